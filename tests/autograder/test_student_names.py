"""Names of students, and of their folders: none is lost, no two become one, none is a command."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.course.config import Course
from autograder.text.names import folder_name, safe_name, student_name
from tests.autograder.hand_ins import make_course


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return make_course(tmp_path)


@pytest.mark.parametrize(
    "name", ["ada", "Ada Lovelace", "zoë", "李雷", "a.b+c@uni.example", "s-123_x"]
)
def test_ordinary_names_are_unchanged(name: str) -> None:
    assert student_name(name) == name == safe_name(name)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "a/b", "a\\b", "a\nb", "\x1b[31mred", ".hidden", "-rf", "con", "NUL.txt", "x" * 500,
     "ada\u202egnp", " ada", "ada.", "<script>", "a:b", "*", "\udcff"],
)  # fmt: skip
def test_unusual_names_are_made_safe(name: str) -> None:
    folder = safe_name(name)
    assert folder.isprintable() and not set('/\\<>:"|?*\n') & set(folder)
    assert (
        folder not in ("", ".", "..")
        and not folder.startswith((".", "-", " "))
        and not folder.endswith((".", " "))
    )
    assert len(folder.encode()) <= 255 and folder.split(".")[0].lower() not in ("con", "nul")
    assert folder != "ada"


@pytest.mark.parametrize(
    "name", ["::error::x", "##vso[task.complete]", ":::add-mask:::a", "a ##[error]b"]
)
def test_names_cannot_be_workflow_commands(name: str) -> None:
    student = student_name(name)
    assert student != name and "::" not in student and "##" not in student


@settings(max_examples=80)
@given(
    st.lists(
        st.text("aA<-0123456789abcdef", min_size=1, max_size=14),
        min_size=1,
        max_size=4,
        unique=True,
    )
)
def test_imitated_names_stay_distinct(names: list[str]) -> None:
    """A student whose name imitates another's name or folder has a separate folder."""
    others = [make(name) for name in names for make in (student_name, safe_name, folder_name)]
    students = {student_name(name) for name in [*names, *others]}
    assert len({folder_name(student).casefold() for student in students}) == len(students)
