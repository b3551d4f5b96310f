"""The plugin with plain pytest: against the reference, against a file, and beside a student's own file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.authoring.build import build
from autograder.course.config import CourseError, load_course
from autograder.suite.session import SuiteSession, check_suite
from tests.autograder.tiny_course import ALTERNATIVE, write_tiny_course

SUITE = "tests/assignments/01_adding"


@pytest.fixture
def course(tmp_path):
    return write_tiny_course(tmp_path / "course")


def run_pytest(folder, *arguments):
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--import-mode=importlib",
        *arguments,
    ]
    environment = {name: value for name, value in os.environ.items() if name not in ("CI", "PYTEST_ADDOPTS")}
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    return result.stdout + result.stderr


def test_against_the_reference(course):
    assert "5 passed" in run_pytest(course, SUITE)


def test_against_a_file_in_the_sandbox(course, tmp_path):
    file = tmp_path / "adding.py"
    file.write_text(ALTERNATIVE, "utf-8")
    assert "5 passed" in run_pytest(course, SUITE, "--submission", str(file))
    file.write_text(ALTERNATIVE.replace("sum((a, b))", "a - b"), "utf-8")
    said = run_pytest(course, SUITE, "--submission", str(file))
    assert "1 failed, 3 passed, 1 skipped" in said and "add(2, 3)" in said


def test_a_file_of_no_assignment_is_a_sentence(course, tmp_path):
    file = tmp_path / "subtracting.py"
    file.write_text(ALTERNATIVE, "utf-8")
    said = run_pytest(course, SUITE, "--submission", str(file))
    assert "subtracting.py" in said and "adding.py" in said and "Traceback" not in said


def test_beside_a_students_own_file(course):
    build(load_course(course))
    stub = course / "assignments/01_adding"
    assert "2 failed" in run_pytest(stub, ".")
    (stub / "adding.py").write_text(ALTERNATIVE, "utf-8")
    assert "2 passed" in run_pytest(stub, ".")


def test_a_seed_is_printed_and_can_be_repeated(course):
    assert "--run-seed" in run_pytest(course, SUITE, "-v")
    assert "5 passed" in run_pytest(course, SUITE, "--run-seed", "7")


def test_what_is_wrong_with_a_suite_is_said(course):
    hidden = course / SUITE / "test_hidden.py"
    text = hidden.read_text("utf-8")
    text = text.replace('needs("test_two_and_three_are_five")', 'needs("test_nothing")')
    text = text.replace('part("total")\n@pytest.mark.points(3)', 'part("totals")\n@pytest.mark.points(3)')
    text = text.replace('    """A negative number is a ValueError that names it."""\n', "")
    hidden.write_text(text, "utf-8")
    loaded = load_course(course)
    assignment = loaded.assignment("01_adding")
    session = SuiteSession([loaded.visible_test_file(assignment), hidden], course)
    try:
        problems = check_suite(loaded, assignment, session.tests())
    finally:
        session.close()
    assert problems == [
        f"{SUITE}: test_any_two_numbers needs test_nothing, which does not stand before it.",
        f"{SUITE}: test_pushes_add_up belongs to part `totals`, which course.yml does not know.",
        f"{SUITE}: test_negative_numbers_are_refused has no docstring for students to read.",
        f"{SUITE}: the tests of part `total` add up to 3 points; course.yml says 6.",
    ]


def test_a_suite_that_cannot_be_collected_is_a_sentence(course):
    hidden = course / SUITE / "test_hidden.py"
    hidden.write_text("import nowhere_to_be_found\n", "utf-8")
    with pytest.raises(CourseError, match="test_hidden.py cannot be collected: .*nowhere_to_be_found"):
        SuiteSession([hidden], course)


def test_courses_with_files_of_the_same_names_do_not_mix(course, tmp_path):
    hidden = Path(SUITE) / "test_hidden.py"
    other = Path(shutil.copytree(course, tmp_path / "other"))
    (other / hidden).write_text("def test_of_another_course(): ...\n", "utf-8")
    (tmp_path / "broken.py").write_text("import nowhere_to_be_found\n", "utf-8")
    with pytest.raises(CourseError):
        SuiteSession([other / hidden, tmp_path / "broken.py"], other)
    sessions = [SuiteSession([root / hidden], root) for root in (other, course, other)]
    try:
        names = [[item.name for item in session._session.items] for session in sessions]
    finally:
        for session in sessions:
            session.close()
    assert names[0] == names[2] == ["test_of_another_course"]
    assert "test_pushes_add_up" in names[1]
