"""Where the processor time of one right answer goes: the grader, the fork server, the worker; beside it, the floor.

    python -m benchmarks.milliseconds [03_masked_heads] [--submissions 100]

One grader takes the solution again and again, each time as another student's text. The kernel says
what the processes cost. The floor is the same suite on the same code in this process, without any
wall.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from autograder.course.config import Assignment, Course
from autograder.course.reading import load_course
from autograder.grading.preparation import open_grader
from autograder.records import SourceFile, Submission
from autograder.walls.outside.launcher import Sandbox

ROOT = Path(__file__).resolve().parents[1]
SEED = 2026
TICKS = os.sysconf("SC_CLK_TCK")


def submission(assignment: Assignment, text: str, number: int) -> Submission:
    """A text as that of another student: the same code, another file."""
    file = SourceFile(f"{assignment.stem}.py", f"{text}\nSTUDENT = {number}\n")
    return Submission(f"student{number}", assignment.name, (file,))


def descendants_cost(pid: int) -> tuple[float, float, float]:
    """Milliseconds of all processes below this one: of those that live, and, by user and by kernel, of ended ones."""
    living = user = kernel = 0.0
    for child in map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
        fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
        mine = [1000 * int(ticks) / TICKS for ticks in fields[11:15]]
        below = descendants_cost(child)
        living += mine[0] + mine[1] + below[0]
        user, kernel = user + mine[2] + below[1], kernel + mine[3] + below[2]
    return living, user, kernel


def split(course: Course, assignment: Assignment, submissions: int) -> dict[str, float]:
    """Milliseconds of processor time for one submission, by where they go."""
    grader = open_grader(course, Sandbox(), SEED, [assignment.name])
    text = course.read_solution(assignment)
    try:
        for number in range(3):
            grader.grade(submission(assignment, text, -number))
        before, started = descendants_cost(os.getpid()), time.process_time()
        for number in range(submissions):
            grade = grader.grade(submission(assignment, text, number))
            assert grade.score == grade.max_score, "the solution did not get all points"
        in_grader = time.process_time() - started
        spent = [now - then for now, then in zip(descendants_cost(os.getpid()), before)]
        started = time.process_time()
        for _ in range(submissions):
            assert grader.first_failure(assignment.name, text, SEED, 60) is None
        floor = time.process_time() - started
    finally:
        grader.close()
    return {
        "grader": 1000 * in_grader / submissions,
        "fork server": spent[0] / submissions,
        "worker, Python": spent[1] / submissions,
        "worker, kernel": spent[2] / submissions,
        "the floor": 1000 * floor / submissions,
    }


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("assignment", nargs="?", default="03_masked_heads")
    options.add_argument("--submissions", type=int, default=100)
    chosen = options.parse_args()
    course = load_course(ROOT)
    found = split(course, course.assignment(chosen.assignment), chosen.submissions)
    floor = found.pop("the floor")
    for name, milliseconds in found.items():
        print(f"{name:15} {milliseconds:6.1f} ms")
    print(f"{'all':15} {sum(found.values()):6.1f} ms")
    print(f"{'the floor':15} {floor:6.1f} ms")


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    torch.set_num_threads(1)
    main()
