"""Printed text: a test reads what a submission prints with `capsys`, wherever the submission runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.bridge.outside.remote import RemoteStudent
from autograder.bridge.outside.worker_connection import WorkerConnection
from autograder.bridge.shared import wire
from autograder.course.config import Course, Limits
from autograder.course.reading import load_course
from autograder.grading.grader import Grader
from autograder.grading.preparation import open_grader
from autograder.records import SourceFile, Submission
from autograder.selfcheck.check import check_target
from tests.autograder.at_hand import build_at_hand
from tests.autograder.both_sides import SIDES, connected
from tests.autograder.printing_course import write_printing_course

NAME = "01_table"
TEXT = r"""
import os, sys
from contextlib import redirect_stdout
import io

def hello(name="world"):
    print("hello", name)

def warn():
    print("careful", file=sys.stderr)

def fail():
    print("before")
    raise ValueError("no")

def between(callback):
    print("first")
    callback()
    print("last")

def own():
    inside = io.StringIO()
    with redirect_stdout(inside):
        print("inside")
    return inside.getvalue()

def rows():
    for number in range(2):
        print("row", number)
        yield number

def much(times):
    for _ in range(times):
        print("x" * 1000)

def escape():
    print("\x1b]0;owned\x07\x1b[2J\udce9")

def closed():
    sys.stdout.close()

def replaced():
    sys.stdout = None

def to_the_descriptor():
    os.write(1, b"raw")
"""


@pytest.fixture(params=SIDES)
def connection(request, sandbox):
    with connected(request.param, sandbox, TEXT, "asked.py") as connection:
        connection.reads_output = True
        connection.start_test(3)
        yield connection


@pytest.fixture
def student(connection):
    return RemoteStudent(connection)


# ------------------------------------------------------------------ in a call


def test_each_call_prints_its_own_text(student, capsys):
    student.hello()
    assert capsys.readouterr() == ("hello world\n", "")
    student.hello("é")
    student.hello()
    student.warn()
    assert capsys.readouterr() == ("hello é\nhello world\n", "careful\n")


def test_text_of_an_iterator_comes_with_its_values(student, capsys):
    rows = student.rows()
    assert capsys.readouterr().out == ""
    assert next(rows) == 0 and capsys.readouterr().out == "row 0\n"


def test_other_tests_receive_no_text(connection, student, capsys):
    connection.reads_output = False
    connection.start_test(4)
    student.hello()
    assert not [each for each in connection.transcript.answers if each.operation == "print"]


def test_text_is_part_of_the_answers(connection, student, capsys):
    """So a known mistake that prints something else is recognised by it."""
    student.hello("Ada")
    first = connection.transcript
    connection.start_test(3)
    student.hello("Eve")
    assert not first.same_as(connection.transcript)


# ------------------------------------------------------------------ hostile text


def test_huge_text_is_cut(student, capsys):
    student.much(5000)
    assert len(capsys.readouterr().out) == wire.MAX_TEXT
    student.hello()
    assert capsys.readouterr().out == "hello world\n"


def test_closed_and_replaced_output_harm_only_the_submission(connection, student, capsys):
    for misuse in (student.closed, student.replaced):
        misuse()
        capsys.readouterr()
        connection.start_test(5)
        student.hello()
        assert capsys.readouterr().out == "hello world\n"
    if isinstance(connection, WorkerConnection):
        student.to_the_descriptor()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "claim", ["text", 3, None, [], ["a"], ["a", "b", "c"], [1, 2], [["\ud800"], {}], {"a": 1}]
)
def test_forged_text_is_text_or_the_end_of_the_submission(sandbox, capsys, claim):
    """A worker may send anything in place of its printed text."""
    connection = WorkerConnection(sandbox.spawn(Limits()), Limits().call_seconds)
    exchange = connection.exchange
    connection.exchange = lambda *given: {**exchange(*given), "printed": claim}
    connection.request("load", text=TEXT, filename="asked.py")
    assert capsys.readouterr().out == ""  # nobody asked for it
    connection.reads_output = True
    try:
        connection.start_test(3)
        RemoteStudent(connection).hello()
    except Exception as error:
        assert "is not printed text" in str(error)
    assert "hello" not in capsys.readouterr().out
    connection.close()


# ------------------------------------------------------------------ in a suite


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    course = load_course(write_printing_course(tmp_path_factory.mktemp("printing")))
    build_at_hand(course)
    return course


@pytest.fixture(scope="module")
def solution(course: Course) -> str:
    return course.solution_file(course.assignment(NAME)).read_text("utf-8")


@pytest.fixture(scope="module")
def grader(course: Course, sandbox):
    grader = open_grader(course, sandbox, 7)
    yield grader
    grader.close()


def graded(grader: Grader, text: str, student: str = "ada"):
    return grader.grade(Submission(student, NAME, (SourceFile("table.py", text),)))


def test_grading_reads_the_text(grader, solution, capfd):
    for _ in range(3):  # the third is replayed
        assert graded(grader, solution).score == 4
    wrong = graded(grader, solution.replace("number**2)", "number * 2)"))
    assert [test.outcome for test in wrong.tests] == ["failed", "failed", "passed"]
    assert {test.mistake for test in wrong.tests[:2]} == {"doubles"}
    assert (
        wrong.tests[0].message
        == "The printed text differs first in line 2: '3 6\\n' came back, '3 9\\n' was expected."
    )
    in_one_row = graded(grader, solution.replace("number**2)", 'number**2, end=" ")'))
    assert {test.mistake for test in in_one_row.tests[:2]} == {"in_one_row"}
    assert capfd.readouterr() == ("", "")


def test_equal_replies_with_other_text_are_not_replayed(grader, solution):
    """All these submissions return None; only their text tells them apart."""
    assert graded(grader, solution).score == 4
    assert graded(grader, solution.replace("print(number, number**2)", "pass")).score == 1
    assert graded(grader, solution).score == 4


def test_a_student_sees_the_same(course, solution, capfd):
    released = course.stub_file(course.assignment(NAME))
    stub = released.read_text("utf-8")
    try:
        released.write_text(solution, "utf-8")
        assert check_target(released).all_passed
        released.write_text(solution.replace("number**2)", "number * 2)"), "utf-8")
        report = check_target(released)
        assert (
            report.findings[0].result.message
            == "The printed text differs first in line 2: '3 6\\n' came back, '3 9\\n' was expected."
        )
        assert report.findings[0].result.mistake == "doubles"
    finally:
        released.write_text(stub, "utf-8")
    assert capfd.readouterr() == ("", "")


def pytest_of(course: Course, *arguments: str, name: str = NAME) -> str:
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/assignments/{name}",
        *arguments,
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    return subprocess.run(
        command, cwd=course.root, capture_output=True, text=True, env=environment
    ).stdout


def test_capfd_is_refused_with_a_sentence(tmp_path):
    root = write_printing_course(tmp_path)
    for name in ("test_visible.py", "test_hidden.py"):
        file = root / "tests" / "assignments" / NAME / name
        file.write_text(file.read_text("utf-8").replace("capsys", "capfd"), "utf-8")
    from autograder.grading.preparation import collect_suites
    from autograder.records import CourseError

    course = load_course(root)
    with pytest.raises(
        CourseError, match="uses the fixture `capfd`, which does not see .* Use `capsys`"
    ):
        collect_suites(course, course.assignments)
