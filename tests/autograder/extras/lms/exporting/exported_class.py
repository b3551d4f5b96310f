"""A class of four whose grades are exported: a mistake, full marks, a crash, and a file that was refused."""

from __future__ import annotations

from pathlib import Path

from autograder.course.config import Course
from autograder.records import Grade, TestResult

GOLDENS = Path(__file__).parent / "goldens"
NAME = "01_adding"
TESTS = {
    "adds_small_numbers": ("add", 1.5),
    "adds_any_numbers": ("add", 2.5),
    "remembers": ("total", 6),
}


def outcome_of(name: str, outcome: str, score: float, message: str | None = None) -> TestResult:
    title = f"{name.replace('_', ' ').capitalize()}."
    part, most = TESTS[name]
    return TestResult(name, part, title, outcome, score, most, message)  # type: ignore[arg-type]


def ada() -> Grade:
    message = 'add(2, 3) gave 6 < 7 & "five"; 5 was expected.\x1b[0m'
    tests = (
        outcome_of("adds_small_numbers", "passed", 1.5),
        outcome_of("adds_any_numbers", "failed", 0, message),
        outcome_of("remembers", "passed", 6),
    )
    times = {"seconds": 0.25, "test_seconds": (0.0125, 0.1, 0.03)}
    return Grade("1001", NAME, "graded", 7.5, 10, tests, seed=7, isolation="namespaces", **times)


def grace() -> Grade:
    tests = tuple(outcome_of(name, "passed", most) for name, (_, most) in TESTS.items())
    return Grade("1002", NAME, "graded", 10, 10, tests, seed=7, isolation="namespaces", seconds=0.5)


def alan() -> Grade:
    tests = (
        outcome_of("adds_small_numbers", "timeout", 0, "It was still running after 2 seconds."),
        outcome_of("adds_any_numbers", "skipped", 0, "This waits until another one passes."),
        outcome_of("remembers", "crashed", 2, "The process ended."),
    )
    return Grade("1003", NAME, "graded", 2, 10, tests, seed=7, isolation="namespaces", seconds=2.0)


def eve() -> Grade:
    problem = "adding.py is not UTF-8 text (byte 3); save it as UTF-8."
    return Grade("1004", NAME, "refused", 0, 10, problem=problem)


CLASS = (ada(), grace(), alan(), eve())


def golden(name: str) -> bytes:
    return (GOLDENS / name).read_bytes()


def course_built(course: Course) -> Course:
    """The course with a built stub, the only built file that the archive needs."""
    stub = course.stub_file(course.assignment(NAME))
    stub.parent.mkdir(parents=True)
    stub.write_text("def add(a, b): ...\n", "utf-8")
    return course
