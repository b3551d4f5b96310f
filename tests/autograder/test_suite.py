"""The plugin with plain pytest: against the reference, against a file, and beside a student's file."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata

import pytest

from autograder.authoring.build import build
from autograder.course.reading import load_course
from autograder.installation.distribution import NAME
from tests.autograder.tiny_course import ALTERNATIVE, write_tiny_course

SUITE = "tests/assignments/01_adding"


@pytest.fixture
def course(tmp_path):
    return write_tiny_course(tmp_path / "course")


def run_pytest(folder, *arguments):
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib",
        *arguments,
    ]  # fmt: skip
    environment = {
        name: value for name, value in os.environ.items() if name not in ("CI", "PYTEST_ADDOPTS")
    }
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    return result.stdout + result.stderr


@pytest.mark.slow
def test_suite_runs_against_the_reference(course):
    assert "5 passed" in run_pytest(course, SUITE)


@pytest.mark.slow
def test_suite_runs_against_a_file_in_the_sandbox(course, tmp_path):
    file = tmp_path / "adding.py"
    file.write_text(ALTERNATIVE, "utf-8")
    assert "5 passed" in run_pytest(course, SUITE, "--autograder-submission", str(file))
    file.write_text(ALTERNATIVE.replace("sum((a, b))", "a - b"), "utf-8")
    output = run_pytest(course, SUITE, "--autograder-submission", str(file))
    assert "1 failed, 3 passed, 1 skipped" in output and "add(2, 3)" in output


@pytest.mark.slow
def test_forbidden_name_in_a_file_fails_the_test_that_forbids_it(course, tmp_path):
    tests = course / SUITE / "test_visible.py"
    mark = '@pytest.mark.forbids("operator.add")\ndef test_two_and_three'
    tests.write_text(tests.read_text("utf-8").replace("def test_two_and_three", mark), "utf-8")
    file = tmp_path / "adding.py"
    file.write_text(
        "import operator\n" + ALTERNATIVE.replace("sum((a, b))", "operator.add(a, b)"), "utf-8"
    )
    output = run_pytest(course, SUITE, "--autograder-submission", str(file))
    assert "1 failed, 3 passed, 1 skipped" in output and "operator.add" in output


@pytest.mark.slow
def test_released_tests_run_against_the_file_beside_them(course):
    build(load_course(course))
    stub = course / "assignments/01_adding"
    assert "2 failed" in run_pytest(stub, ".")
    (stub / "adding.py").write_text(ALTERNATIVE, "utf-8")
    assert "2 passed" in run_pytest(stub, ".")


# ------------------------------------------------------------------ a project that has nothing to do with suites

CONFTEST = """
import pytest

def pytest_addoption(parser):
    for option in ("--unsafe", "--submission", "--run-seed"):
        parser.addoption(option, action="store_true")

@pytest.fixture
def seed(pytestconfig):
    return pytestconfig.getoption("--unsafe")
"""
TESTS = """
import pytest

@pytest.mark.part("of its own")
def test_with_fixtures_of_its_own(seed):
    assert seed is True

@pytest.fixture
def student():
    return "Ada"

@pytest.mark.part("of its own")
def test_with_a_student_of_its_own(student):
    assert student == "Ada"

def test_without(reference):
    "Nobody defined it."
"""


def test_plugin_does_not_affect_a_project_with_the_same_names(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST, "utf-8")
    (tmp_path / "test_own.py").write_text(TESTS.split("@pytest.fixture")[0], "utf-8")
    (tmp_path / "test_without.py").write_text(
        "def test_without(reference, student): ...\n", "utf-8"
    )
    output = run_pytest(tmp_path, "-v", "--unsafe")
    assert "1 passed, 1 error" in output and "fixture 'reference' not found" in output
    assert "autograder:" not in output


@pytest.mark.parametrize("off", ["autograder", "autograder.suite.plugin"])
def test_other_projects_run_with_the_plugin_switched_off(tmp_path, off):
    (tmp_path / "conftest.py").write_text(CONFTEST, "utf-8")
    (tmp_path / "test_own.py").write_text(TESTS.rpartition("def test_without")[0], "utf-8")
    output = run_pytest(tmp_path, "-p", f"no:{off}", "--unsafe")
    assert "2 passed" in output and "INTERNALERROR" not in output


def test_package_registers_one_plugin():
    """Switching it off leaves nothing of it behind."""
    plugins = metadata.distribution(NAME).entry_points.select(group="pytest11")
    assert [plugin.name for plugin in plugins] == ["autograder"]
