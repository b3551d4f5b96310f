"""The names that known mistakes get at a student's home, where only the visible tests run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from autograder.authoring.names_at_home import NamesAtHome, name_at_home
from autograder.course.mistakes_file import load_mistakes
from autograder.course.reading import load_course
from tests.autograder.at_hand import build_at_hand
from tests.autograder.test_audit import audit

SUITE = "tests/assignments/01_adding"
TWIN = (
    "\n- id: subtracts_from_small_numbers\n  in: add\n  replace: a + b\n"
    "  with: a - b if a < 3 else a + b\n  hint: Is 2 too small to be added to?\n"
)


@pytest.fixture
def folder(built_course: Path, tmp_path: Path) -> Path:
    """A course whose hints do not know of a mistake that the visible test cannot tell from another one."""
    folder = shutil.copytree(built_course, tmp_path / "course")
    with (folder / SUITE / "mistakes.yml").open("a", encoding="utf-8") as file:
        file.write(TWIN)
    return folder


def told(folder: Path, name: str) -> NamesAtHome:
    course = load_course(folder)
    (assignment,) = course.assignments
    (mistake,) = (each for each in load_mistakes(course, assignment) if each.id == name)
    return name_at_home(course, assignment, mistake)


def test_name_of_another_mistake_is_a_problem(folder: Path) -> None:
    assert told(folder, "subtracts").problem == ""
    problem = told(folder, "subtracts_from_small_numbers").problem
    assert (
        "subtracts_from_small_numbers by the name of subtracts, in test_two_and_three_are_five"
        in problem
    )


@pytest.mark.slow
def test_mistakes_that_no_visible_test_tells_apart_get_questions_without_a_name(
    folder: Path,
) -> None:
    build_at_hand(load_course(folder))
    for name in ("subtracts", "subtracts_from_small_numbers"):
        found = told(folder, name)
        assert found.failed == ("test_two_and_three_are_five",)
        assert found.asked and found.named == () and found.problem == ""


def test_mistake_that_passes_the_visible_tests_gets_no_name(folder: Path) -> None:
    found = told(folder, "forgets_what_came_before")
    assert (found.failed, found.named, found.asked) == ((), (), False)


@pytest.mark.slow
def test_audit_reports_a_wrong_name(folder: Path) -> None:
    code, found = audit(folder, "--only", "mistake")
    assert code == 1
    assert any(
        "`check` calls the mistake subtracts_from_small_numbers" in problem
        for problem in found["problems"]
    )
