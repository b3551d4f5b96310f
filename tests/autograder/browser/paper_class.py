"""A class for page tests: grades as in a journal, with the course's own tests and mistakes, but without submissions."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import yaml

from autograder.course.config import Assignment, Course
from autograder.grading.preparation import collect_suites
from autograder.records import Grade, Outcome
from autograder.records import TestResult as Result

MESSAGE = "The output differs first at batch 0, position 2: `0.186` came back. 12 of 60 numbers differ, by at most 1.3."


def paper_class(course: Course, students: int, seed: int = 1) -> list[Grade]:
    """Return the grades of that many students in every assignment: most correct, some not, some refused;
    reproducible by the seed.
    """
    dice = random.Random(seed)
    names = [f"student {number:03d}" for number in range(students)]
    papers = [(a, results_of(course, a), mistakes_of(course, a)) for a in course.assignments]
    return [_grade(name, dice.random(), *paper, dice) for name in names for paper in papers]


def results_of(course: Course, assignment: Assignment) -> list[Result]:
    """Return the results of a suite with all tests passed."""
    with contextlib.closing(collect_suites(course, [assignment])) as session:
        return [
            Result(test.name, test.part, test.title, "passed", test.points, test.points)
            for test in session.tests()
        ]


def mistakes_of(course: Course, assignment: Assignment) -> list[dict[str, str]]:
    return yaml.safe_load(course.mistakes_file(assignment).read_text("utf-8"))


def failing(test: Result, mistake: dict[str, str] | None, outcome: Outcome = "failed") -> Result:
    named = {"hint": mistake["hint"], "mistake": mistake["id"]} if mistake else {}
    return Result(test.name, test.part, test.title, outcome, 0.0, test.max_score, MESSAGE, **named)


def _grade(
    student: str,
    ability: float,
    assignment: Assignment,
    tests: list[Result],
    mistakes: list,
    dice: random.Random,
) -> Grade:
    if dice.random() < 0.01:
        problem = "adding.py is not UTF-8 text (byte 6); save it as UTF-8."
        return Grade(student, assignment.name, "refused", 0.0, assignment.points, problem=problem)
    mistake = dice.choice([None, *mistakes[: len(mistakes) // 2]])
    results = tuple(
        test if dice.random() < 0.5 + ability else failing(test, mistake) for test in tests
    )
    score = sum(result.score for result in results)
    return Grade(
        student, assignment.name, "graded", score, assignment.points, results, seed=41, isolation="namespaces",
        submission_sha256="0" * 64,
    )  # fmt: skip


def here() -> Path:
    return Path(__file__).resolve().parents[3]
