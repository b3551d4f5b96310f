"""Names of students, and of their folders: none is lost, no two become one, none is a command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.course.config import Course
from autograder.submissions import find_submissions, folder_name, safe_name
from autograder.text.names import student_name
from tests.autograder.hand_ins import CODE, make_course, write


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
@given(st.lists(st.text(max_size=20), min_size=2, max_size=6, unique=True))
def test_different_names_have_different_folders(names: list[str]) -> None:
    students = [student_name(name) for name in names]
    assert len(set(students)) == len(names)
    assert len({safe_name(student) for student in students}) == len(names)
    changed = safe_name("a/b")
    assert safe_name(changed) != changed
    assert len({folder_name(student).casefold() for student in students}) == len(names)


@pytest.mark.parametrize("name", ["Mueller: Anna", "a/b", "Ada-0123456789", "NUL.txt", "X" * 500])
def test_name_with_a_digest_gets_no_second_one(name: str) -> None:
    folder = folder_name(student_name(name))
    assert folder == folder_name(folder)
    assert len(re.findall(r"-[0-9a-f]{10}", folder.removeprefix("Ada-0123456789"))) == 1


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


def test_unusual_name_is_shown_on_one_printable_line(tmp_path: Path, course: Course) -> None:
    write(tmp_path, {"c/\x1b[2Jada/adding.py": CODE, "c/ben/\x07.py": b"\xff"})
    submissions = list(find_submissions(tmp_path / "c", course, "01_adding"))
    assert all(s.student.isprintable() and (s.problem or "").isprintable() for s in submissions)
    assert {s.student.startswith("_[2Jada-") for s in submissions} == {True, False}
