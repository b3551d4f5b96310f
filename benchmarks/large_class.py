"""What the records of a large class cost: `python -m benchmarks.large_class --grades 100000`.

Writes a journal of made-up grades of this course, then runs `autograder report`, `export --to csv` and `compare` on it.
Prints the bytes of each grade, and the time and the largest memory of each command.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from autograder import __version__
from autograder.course.config import load_course
from autograder.gradebook.journal import FILE_NAME, Journal
from autograder.records import Grade, TestResult
from benchmarks.measure import measured

TESTS = 29
SECONDS = [number / 1000 for number in range(1, 100)]
MESSAGE = "attention(query, key, value) returned another tensor: at [0, 1, 2] it is 0.731, and 0.269 was expected. "


def made_up(count: int, seed: int) -> Iterator[Grade]:
    """Grades of all assignments; two in five fail four tests, as in the made-up class."""
    chance = random.Random(seed)
    assignments = load_course(".").assignments
    passed = {
        a.name: tuple(right(n, a.parts[n % len(a.parts)].name, a.points / TESTS) for n in range(TESTS))
        for a in assignments
    }
    for number in range(count):
        assignment = assignments[number % len(assignments)]
        tests = list(passed[assignment.name])
        for place in chance.sample(range(TESTS), 4) if chance.random() < 0.4 else ():
            tests[place] = replace(
                tests[place], outcome="failed", score=0.0, message=MESSAGE * 2, hint="Which axis is it?", mistake="axis"
            )
        yield Grade(
            f"s{number // len(assignments):06}", assignment.name, "graded", sum(test.score for test in tests),
            assignment.points, tuple(tests), seed=2**127, isolation="namespaces", seconds=0.067,
            submission_sha256=f"{chance.getrandbits(256):064x}", suite_sha256=f"{assignment.name[:2]}".rjust(64, "5"),
            autograder=__version__, test_seconds=tuple(chance.choices(SECONDS, k=TESTS)),
        )  # fmt: skip


def right(number: int, part: str, points: float) -> TestResult:
    return TestResult(
        f"test_number_{number}_of_the_suite", part, f"This is the title of test {number}.", "passed", points, points
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grades", type=int, default=100_000)
    parser.add_argument("--output", type=Path, default=Path("build/large"))
    parser.add_argument("--commands", nargs="*", default=["export", "compare", "report"])
    options = parser.parse_args()
    shutil.rmtree(options.output, ignore_errors=True)
    started = time.monotonic()
    with Journal(options.output) as journal:
        for grade in made_up(options.grades, 1):
            journal.append(grade)
    bytes_each = (options.output / FILE_NAME).stat().st_size / options.grades
    print(f"journal: {bytes_each:.0f} bytes a grade, written in {time.monotonic() - started:.0f} s", flush=True)
    folder = str(options.output)
    commands = {
        "export": ("export", "--to", "csv", folder, "--output", f"{folder}/all.csv"),
        "compare": ("compare", folder, folder, "--json"),
        "report": ("report", folder),
    }
    for name in options.commands:
        cost = measured([[str(Path(sys.executable).with_name("autograder")), *commands[name]]], Path())
        print(f"{name}: {cost.seconds:.0f} s, {cost.memory_mb:.0f} MB", flush=True)


if __name__ == "__main__":
    main()
