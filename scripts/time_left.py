"""How much of its time does a right answer need? A call that needs most of it fails on a slow machine.

python scripts/time_left.py 03_masked_heads 08_translation

Grades the solution and every alternative, and prints for each assignment the calls that come nearest
to their limit of processor time, and the submission that comes nearest to its own. The exit code is
1 if a call needs more than a third: machines differ by as much.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from autograder.bridge.outside.worker_connection import WorkerConnection
from autograder.course.config import Assignment, Course
from autograder.course.mistakes_file import load_alternatives
from autograder.course.reading import load_course
from autograder.grading.preparation import open_grader
from autograder.records import SourceFile, Submission
from autograder.walls.outside.launcher import Sandbox

SEED = 2026
MOST = 1 / 3
SHOWN = 3


@dataclass(frozen=True)
class TimedCall:
    """What a call used of its limit, in seconds of processor time."""

    answer: str
    test: str
    name: str
    seconds: float
    limit: float

    @property
    def share(self) -> float:
        return self.seconds / self.limit


@contextmanager
def recorded(calls: list[TimedCall], answer: str) -> Iterator[None]:
    """Record all calls of the student's code in this block, as of this answer."""
    exchange = WorkerConnection.exchange
    run = WorkerConnection.run
    test = ""

    def noting_test(self: WorkerConnection, name: str, *arguments: Any) -> Any:
        nonlocal test
        test = name.rpartition("::")[2]
        return run(self, name, *arguments)

    def timed(
        self: WorkerConnection, operation: str, arguments: dict[str, Any], seconds: float | None
    ) -> dict[str, Any]:
        before = self.worker.processor_seconds()
        try:
            return exchange(self, operation, arguments, seconds)
        finally:
            used = self.worker.processor_seconds() - before
            limit = seconds or self.call_seconds
            calls.append(TimedCall(answer, test or "(loading)", operation, used, limit))

    with (
        patch.object(WorkerConnection, "exchange", timed),
        patch.object(WorkerConnection, "run", noting_test),
    ):
        yield


def right_answers(course: Course, assignment: Assignment) -> list[tuple[str, str]]:
    return [
        ("the solution", course.read_solution(assignment)),
        *load_alternatives(course, assignment),
    ]


def timed_calls(course: Course, assignment: Assignment) -> list[TimedCall]:
    grader = open_grader(course, Sandbox(hidden=course.hidden_folders), SEED, [assignment.name])
    calls: list[TimedCall] = []
    try:
        for name, text in right_answers(course, assignment):
            file = SourceFile(f"{assignment.stem}.py", text)
            with recorded(calls, name):
                grade = grader.grade(Submission(name, assignment.name, (file,)))
            if grade.score != grade.max_score:
                print(f"{name}: {grade.score} of {grade.max_score} points")
    finally:
        grader.close()
    return calls


def main(names: list[str]) -> int:
    course = load_course()
    too_near = 0
    for assignment in course.select(names or None):
        calls = sorted(timed_calls(course, assignment), key=lambda call: call.share, reverse=True)
        print(f"{assignment.name}: {len(calls)} calls", flush=True)
        for call in calls[:SHOWN]:
            print(
                f"  {call.share:4.0%} of {call.limit:g} s: {call.answer}, {call.name} in {call.test}",
                flush=True,
            )
        too_near += sum(call.share > MOST for call in calls)
    return 1 if too_near else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
