"""What follow-through marks cost: `python -m benchmarks.follow_through [03_masked_heads …] [--submissions 30]`.

The realistic class of `benchmarks.course` is graded twice for each assignment, without
follow-through marks and with them, by new graders each time. Printed are the milliseconds of
processor time for one submission and their ratio.
"""

from __future__ import annotations

import argparse
import os
from statistics import mean

from autograder.course.reading import load_course
from benchmarks.course import ours
from benchmarks.plain_suite import ROOT


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("assignments", nargs="*", metavar="ASSIGNMENT", help="by default all")
    parser.add_argument("--submissions", type=int, default=30, help="in each class (default 30)")
    parser.add_argument("--jobs", type=int, default=2, help="graders (default 2)")
    chosen = parser.parse_args()
    course = load_course(ROOT)
    courses = [course.model_copy(update={"follow_through": share}) for share in (0.0, 1.0)]
    print("| assignment | without | with | ratio |\n|---|---:|---:|---:|")
    rows = []
    for assignment in course.select(chosen.assignments or None):
        row = [
            ours(each, assignment, "realistic", chosen.submissions, chosen.jobs).cpu
            for each in courses
        ]
        rows.append(row)
        print(line(assignment.name, row), flush=True)
    print(line("mean", [mean(column) for column in zip(*rows, strict=True)]))


def line(name: str, row: list[float]) -> str:
    without, with_marks = row
    return f"| {name} | {without:.0f} | {with_marks:.0f} | {with_marks / without:.2f} |"


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    main()
