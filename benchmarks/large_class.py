"""What the records of a large class cost: `python -m benchmarks.large_class --grades 100000`.

Writes a journal of made-up grades of this course, then runs `autograder report`, `compare` and each
`export` on it. Prints the bytes of each grade, and the time, the processor time and the largest
memory of each command.
"""

from __future__ import annotations

import argparse
import csv
import random
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from autograder.course.reading import load_course
from autograder.gradebook.journal import FILE_NAME, Journal
from autograder.records import Grade, TestResult
from autograder.version import __version__
from benchmarks.measure import measured

TESTS = 29
SECONDS = [number / 1000 for number in range(1, 100)]
ONE = "03_masked_heads"  # for the exports of one assignment
MESSAGE = "attention(query, key, value) returned another tensor: at [0, 1, 2] it is 0.731, and 0.269 was expected. "


def made_up(count: int, seed: int) -> Iterator[Grade]:
    """Grades of all assignments; two in five fail four tests, as in the made-up class."""
    chance = random.Random(seed)
    assignments = load_course(".").assignments
    passed = {
        a.name: tuple(
            right(n, a.parts[n % len(a.parts)].name, a.points / TESTS) for n in range(TESTS)
        )
        for a in assignments
    }
    for number in range(count):
        assignment = assignments[number % len(assignments)]
        tests = list(passed[assignment.name])
        for place in chance.sample(range(TESTS), 4) if chance.random() < 0.4 else ():
            tests[place] = replace(
                tests[place],
                outcome="failed",
                score=0.0,
                message=MESSAGE * 2,
                hint="Which axis is it?",
                mistake="axis",
            )
        yield Grade(
            f"s{number // len(assignments):06}", assignment.name, "graded", sum(test.score for test in tests),
            assignment.points, tuple(tests), seed=2**127, isolation="namespaces", seconds=0.067,
            submission_sha256=f"{chance.getrandbits(256):064x}", suite_sha256=f"{assignment.name[:2]}".rjust(64, "5"),
            autograder=__version__, test_seconds=tuple(chance.choices(SECONDS, k=TESTS)),
        )  # fmt: skip


def right(number: int, part: str, points: float) -> TestResult:
    return TestResult(
        f"test_number_{number}_of_the_suite",
        part,
        f"This is the title of test {number}.",
        "passed",
        points,
        points,
    )


def write_sheets(folder: Path, students: int) -> None:
    """Write the tables that Canvas and Moodle would give to fill in: `canvas.csv` and `moodle.csv`."""
    assignments = load_course(".").assignments
    with (folder / "canvas.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(
            [
                "Student",
                "ID",
                "SIS Login ID",
                *(f"{a.title} ({n})" for n, a in enumerate(assignments)),
            ]
        )
        table.writerow(["    Points Possible", "", "", *(a.points for a in assignments)])
        table.writerows(
            [f"Student {n:06}", n, f"s{n:06}", *("" for _ in assignments)] for n in range(students)
        )
    with (folder / "moodle.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(
            ["Identifier", "Full name", "Username", "Grade", "Maximum grade", "Feedback comments"]
        )
        points = load_course(".").assignment(ONE).points
        table.writerows(
            [f"Participant {n}", f"Student {n:06}", f"s{n:06}", "", points, ""]
            for n in range(students)
        )


def commands(folder: Path) -> dict[str, tuple[str, ...]]:
    one = ("--assignment", ONE)
    canvas, moodle = (("--sheet", str(folder / f"{site}.csv")) for site in ("canvas", "moodle"))
    exports = {
        "csv": (), "canvas": canvas, "moodle": (*moodle, *one), "gradescope": one, "junit": (), "classroom50": (),
        "moodle-feedback": (*moodle, *one),
    }  # fmt: skip
    exported = {
        name: (
            "export",
            "--to",
            name,
            str(folder),
            *more,
            "--output",
            str(folder / "exported" / name),
        )
        for name, more in exports.items()
    }
    # the feedback for Moodle consists of the pages of the report
    return {
        "compare": ("compare", *[str(folder)] * 2, "--json"),
        "report": ("report", str(folder)),
        **exported,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grades", type=int, default=100_000)
    parser.add_argument("--output", type=Path, default=Path("build/large"))
    parser.add_argument(
        "--commands", nargs="*", choices=tuple(commands(Path())), default=tuple(commands(Path()))
    )
    options = parser.parse_args()
    shutil.rmtree(options.output, ignore_errors=True)
    started = time.monotonic()
    with Journal(options.output) as journal:
        for grade in made_up(options.grades, 1):
            journal.append(grade)
    bytes_each = (options.output / FILE_NAME).stat().st_size / options.grades
    print(
        f"journal: {bytes_each:.0f} bytes a grade, written in {time.monotonic() - started:.0f} s",
        flush=True,
    )
    write_sheets(options.output, options.grades // len(load_course(".").assignments) + 1)
    (options.output / "exported").mkdir()
    for name in options.commands:
        words = [str(Path(sys.executable).with_name("autograder")), *commands(options.output)[name]]
        cost = measured([words], Path())
        print(
            f"{name}: {cost.seconds:.0f} s, {cost.cpu_seconds:.0f} s of processors, {cost.memory_mb:.0f} MB",
            flush=True,
        )


if __name__ == "__main__":
    main()
