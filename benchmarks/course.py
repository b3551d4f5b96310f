"""What one submission costs in each assignment: right answers, single mistakes, and a class as it is.

    make bench
    python -m benchmarks.course [03_masked_heads …] [--submissions 30] [--peers 3] [--json FILE] [--picture FILE]

The graders are those of `autograder grade`, and are made before the clocks start. The floor is the
same suite on the solution in this process, without a wall. nbgrader's own executor runs the visible
tests on the solution.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from made_up_class import AnswerBook

from autograder.bridge.outside.subject import Subject
from autograder.course.config import Assignment, Course
from autograder.course.mistakes_file import load_mistakes
from autograder.course.reading import load_course
from autograder.grading.preparation import collect_suites, import_for_gradients
from autograder.grading.reference import load_reference
from autograder.records import SourceFile, Submission
from autograder.runs.pool import Plan, grade_one, graders
from autograder.suite.session import Examinee
from benchmarks.compare import compete, make_class
from benchmarks.contestants import NBGRADER
from benchmarks.measure import family_cpu_seconds
from benchmarks.plain_suite import ROOT

SEED = 2026
CLASSES = ("right", "mistakes", "realistic")
# A realistic class: the share of each group, and the kinds of answers that take turns in it.
GROUPS: tuple[tuple[float, tuple[str, ...]], ...] = (
    (0.6, ("right", "alternative", "right", "notebook")),
    (0.3, ("mistake", "mistake", "two_mistakes")),
    (0.1, ("stub", "unfinished", "crash", "loop", "syntax_error", "exit", "memory")),
)


@dataclass(frozen=True)
class Figure:
    """Milliseconds of processor time and on the clock for one submission."""

    cpu: float
    wall: float


@dataclass(frozen=True)
class Row:
    """One assignment: the floor, each class of submissions, and nbgrader, unless it was left out."""

    assignment: str
    floor: float
    right: Figure
    mistakes: Figure
    realistic: Figure
    nbgrader: Figure | None


def submissions(
    course: Course, assignment: Assignment, kind: str, count: int
) -> Iterator[Submission]:
    """So many submissions of a class; no two of them have the same text."""
    rng = random.Random(SEED)
    if kind == "right":
        texts = [course.read_solution(assignment)] * count
    elif kind == "mistakes":
        mistakes = load_mistakes(course, assignment)
        chosen = rng.sample(mistakes, len(mistakes))
        texts = [chosen[number % len(chosen)].source for number in range(count)]
    else:
        yield from _realistic(AnswerBook(course, assignment, rng), count, rng)
        return
    for number, text in enumerate(texts):
        yield _submission(
            assignment, number, {f"{assignment.stem}.py": f"{text}\nSTUDENT = {number}\n"}
        )


def _realistic(book: AnswerBook, count: int, rng: random.Random) -> Iterator[Submission]:
    kinds = list[str]()
    for share, group in GROUPS:
        able = [kind for kind in group if book.has(kind)]
        start = rng.randrange(len(able))
        kinds += [able[(start + turn) % len(able)] for turn in range(round(share * count))]
    rng.shuffle(kinds)
    for number, kind in enumerate(kinds):
        yield answer(book, kind, number, rng)


def answer(book: AnswerBook, kind: str, number: int, rng: random.Random) -> Submission:
    """The submission of one student with an answer of this kind."""
    files = book.answer(kind, rng).files
    return _submission(book.assignment, number, {name: data.decode() for name, data in files})


def _submission(assignment: Assignment, number: int, files: dict[str, str]) -> Submission:
    return Submission(
        f"student{number:04}", assignment.name, tuple(SourceFile(*file) for file in files.items())
    )


def ours(course: Course, assignment: Assignment, kind: str, count: int, jobs: int) -> Figure:
    """What a class costs, graded by `jobs` graders that are ready and have not heard the answers of another class."""
    with graders(Plan(course, SEED, jobs=jobs, names=(assignment.name,))) as pool:
        first = [
            pool.submit(grade_one, each)
            for each in submissions(course, assignment, "right", 2 * jobs)
        ]
        for future in first:
            assert future.result().score == assignment.points, "the solution did not get all points"
        work = list(submissions(course, assignment, kind, count))
        cpu, wall = family_cpu_seconds(), time.monotonic()
        for future in [pool.submit(grade_one, submission) for submission in work]:
            future.result()
        cpu, wall = family_cpu_seconds() - cpu, time.monotonic() - wall
    return Figure(1000 * cpu / len(work), 1000 * wall / len(work))


def floor(course: Course, assignment: Assignment, times: int) -> dict[str, float]:
    """Milliseconds of processor time for each test of the suite on the solution in this process."""
    import_for_gradients()
    session = collect_suites(course, [assignment])
    spent = Counter[str]()
    try:
        solution = load_reference(course, assignment)
        for turn in range(times + 1):
            started = time.process_time_ns()
            for ending in session.examine(Examinee(Subject(solution, solution)), SEED):
                assert ending.passed, ending.error
                # the first turn is slower
                spent[ending.test.name] += bool(turn) * (time.process_time_ns() - started)
                started = time.process_time_ns()
    finally:
        session.close()
    return {name: nanoseconds / 1e6 / times for name, nanoseconds in spent.items()}


def nbgrader(assignment: Assignment, peers: int) -> Figure:
    """What one more right answer costs nbgrader with its own executor; raises CommandFailed."""
    with tempfile.TemporaryDirectory() as folder:
        row = compete(NBGRADER, make_class(Path(folder), peers, assignment.name))
    return Figure(1000 * row.cpu_seconds, 1000 * row.seconds)


def table(rows: Sequence[Row]) -> str:
    """As Markdown: processor time in milliseconds, its ratios, and submissions a second."""
    heads = ["floor", *CLASSES, "realistic ÷ floor", "realistic a second"]
    heads += ["nbgrader", "nbgrader ÷ right", "nbgrader ÷ realistic"] if rows[0].nbgrader else []
    lines = [f"| assignment | {' | '.join(heads)} |", "|---|" + "---:|" * len(heads)]
    for row in [*rows, mean(rows)]:
        cells = [row.floor, *(figure.cpu for figure in (row.right, row.mistakes, row.realistic))]
        ratios = [row.realistic.cpu / row.floor, 1000 / row.realistic.wall]
        texts = [*(f"{cell:.0f}" for cell in cells), *(f"{ratio:.1f}" for ratio in ratios)]
        if peer := row.nbgrader:
            texts += [
                f"{peer.cpu:.0f}",
                f"{peer.cpu / row.right.cpu:.1f}",
                f"{peer.cpu / row.realistic.cpu:.1f}",
            ]
        lines.append(f"| {row.assignment} | {' | '.join(texts)} |")
    return "\n".join(lines)


def mean(rows: Sequence[Row]) -> Row:
    """The mean submission: as many of each assignment."""

    def of(figures: Sequence[Figure | None]) -> Figure:
        known = [figure for figure in figures if figure]
        return Figure(
            sum(figure.cpu for figure in known) / len(known),
            sum(figure.wall for figure in known) / len(known),
        )

    classes = {kind: of([getattr(row, kind) for row in rows]) for kind in CLASSES}
    peers = [row.nbgrader for row in rows]
    floors = sum(row.floor for row in rows) / len(rows)
    return Row("mean", floors, **classes, nbgrader=of(peers) if any(peers) else None)


def draw(rows: Sequence[Row], file: Path) -> None:
    """Bars of processor time, on a logarithmic axis."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    bars = {"floor": [row.floor for row in rows]}
    bars |= {kind: [getattr(row, kind).cpu for row in rows] for kind in CLASSES}
    if rows[0].nbgrader:
        bars["nbgrader"] = [row.nbgrader.cpu if row.nbgrader else 0 for row in rows]
    figure, axes = plt.subplots(figsize=(8, 1 + 0.6 * len(rows)), layout="constrained")
    for place, (name, values) in enumerate(bars.items()):
        offset = 0.8 * (place + 0.5) / len(bars) - 0.4
        axes.barh([at + offset for at in range(len(rows))], values, 0.8 / len(bars), label=name)
    axes.set_yticks(range(len(rows)), [row.assignment for row in rows])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("processor time of one submission (ms)")
    axes.legend()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150)


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("assignments", nargs="*", metavar="ASSIGNMENT", help="by default all")
    options.add_argument("--submissions", type=int, default=30, help="in each class (default 30)")
    options.add_argument(
        "--peers", type=int, default=3, help="for nbgrader (default 3; 0 leaves it out)"
    )
    options.add_argument("--jobs", type=int, default=2, help="graders (default 2)")
    options.add_argument("--json", type=Path, help="write the figures to this file")
    options.add_argument("--picture", type=Path, help="draw them in this file")
    chosen = options.parse_args()
    if chosen.submissions < 10 or chosen.peers == 1 or chosen.peers < 0:
        options.error("a class has 10 or more submissions, and nbgrader's has 2 or more, or none")
    course = load_course(ROOT)
    print(
        f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}, ",
        end="",
    )
    print(f"load {os.getloadavg()[0]:.1f} before\n", flush=True)
    rows = []
    for assignment in course.select(chosen.assignments or None):
        measured = {
            kind: ours(course, assignment, kind, chosen.submissions, chosen.jobs)
            for kind in CLASSES
        }
        peer = nbgrader(assignment, chosen.peers) if chosen.peers else None
        rows.append(
            Row(
                assignment.name,
                sum(floor(course, assignment, 3).values()),
                **measured,
                nbgrader=peer,
            )
        )
        print(assignment.name, file=sys.stderr, flush=True)
        if chosen.json:  # after each assignment, because all of them take an hour
            chosen.json.parent.mkdir(parents=True, exist_ok=True)
            chosen.json.write_text(
                json.dumps([asdict(row) for row in rows], indent=1) + "\n", "utf-8"
            )
    print(table(rows))
    if chosen.picture:
        draw(rows, chosen.picture)


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    torch.set_num_threads(1)
    main()
