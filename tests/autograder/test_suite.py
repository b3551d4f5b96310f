"""The plugin with plain pytest: against the reference, against a file, and beside a student's own file."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from autograder.authoring.build import build
from autograder.course.config import load_course
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
