"""Where the processor time of a submission goes: `python -m benchmarks.profile [03_masked_heads …] [--submissions 4]`.

One grader grades a few submissions of each kind. Printed are milliseconds of processor time of
grader and workers for one submission: the first run of all tests with the start of their worker,
the repetitions of failing tests in new workers, the runs with the solution in place of failed
parts, and the search for known mistakes. The second table lists the tests that take most of the
floor, the suite on the solution in one process.
"""

from __future__ import annotations

import argparse
import os
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any
from unittest.mock import patch

from made_up_class import AnswerBook

from autograder.course.config import Assignment, Course
from autograder.course.reading import load_course
from autograder.grading.diagnosis import Diagnosis
from autograder.grading.follow_through import FollowThrough
from autograder.grading.preparation import open_grader
from autograder.grading.suite_run import SubmissionExaminee
from autograder.walls.outside.launcher import Sandbox
from benchmarks.course import SEED, answer, floor
from benchmarks.measure import family_cpu_seconds
from benchmarks.plain_suite import ROOT

KINDS = ("right", "mistake", "two_mistakes", "stub", "unfinished", "crash", "loop")
STEPS = ("first", "repeated", "follow-through", "naming")
COSTLIEST = 4


@contextmanager
def clocks() -> Iterator[dict[str, float]]:
    """Count the seconds of each step while the context lasts."""
    spent = defaultdict[str, float](float)

    def timed(method: Callable[..., Any], step_of: Callable[..., str]) -> Callable[..., Any]:
        @wraps(method)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            before = family_cpu_seconds()
            try:
                return method(self, *args, **kwargs)
            finally:
                spent[step_of(self, *args, **kwargs)] += family_cpu_seconds() - before

        return call

    def step_of(examinee: SubmissionExaminee, test: Any, run: Any) -> str:
        if examinee._again:
            return "inside follow-through"
        return "first" if examinee._renewal == "none" else "repeated"

    with (
        patch.object(SubmissionExaminee, "ending", timed(SubmissionExaminee.ending, step_of)),
        patch.object(
            FollowThrough, "again", timed(FollowThrough.again, lambda *_: "follow-through")
        ),
        patch.object(Diagnosis, "name", timed(Diagnosis.name, lambda *_, **__: "naming")),
    ):
        yield spent


def rows(course: Course, assignment: Assignment, count: int) -> Iterator[str]:
    """The lines of the first table for one assignment."""
    grader = open_grader(course, Sandbox(hidden=course.hidden_folders), SEED, [assignment.name])
    rng = random.Random(SEED)
    book = AnswerBook(course, assignment, rng)
    grader.grade(answer(book, "right", 0, rng))  # the first one is slower
    for kind in filter(book.has, KINDS):
        with clocks() as spent:
            before = family_cpu_seconds()
            for number in range(count):
                grader.grade(answer(book, kind, number, rng))
            total = family_cpu_seconds() - before
        cells = [
            total,
            *(spent[step] for step in STEPS),
            total - sum(spent[step] for step in STEPS),
        ]
        yield f"| {assignment.name} | {kind} | {' | '.join(f'{1000 * cell / count:.0f}' for cell in cells)} |"
    grader.close()


def costliest(spent: dict[str, float]) -> str:
    """The cells of the second table."""
    most = sorted(spent, key=lambda name: -spent[name])[:COSTLIEST]
    return (
        f"{sum(spent.values()):.0f} | {', '.join(f'`{name}` {spent[name]:.0f}' for name in most)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("assignments", nargs="*", metavar="ASSIGNMENT", help="by default all")
    parser.add_argument("--submissions", type=int, default=4, help="of each kind (default 4)")
    chosen = parser.parse_args()
    course = load_course(ROOT)
    selected = course.select(chosen.assignments or None)
    print(
        f"| assignment | answer | in all | {' | '.join(STEPS)} | the rest |\n|---|---|{'---:|' * (len(STEPS) + 2)}"
    )
    for assignment in selected:
        for row in rows(course, assignment, chosen.submissions):
            print(row, flush=True)
    print("\n| assignment | floor | its costliest tests |\n|---|---:|---|")
    for assignment in selected:
        print(f"| {assignment.name} | {costliest(floor(course, assignment, 1))} |", flush=True)


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    main()
