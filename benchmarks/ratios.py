"""What grading costs beside the suite alone, as a ratio of processor times that were measured in one run.

    python -m benchmarks.ratios                the ratios, beside the recorded ones
    python -m benchmarks.ratios --record       keeps them in benchmarks/ratios.json, with the commit

The floor is the suite on the solution in one process, without a sandbox. A few right answers and
known mistakes of some assignments are graded, in three pairs of floor and grading; the lowest ratio
counts. The exit code is 1 if one is more than 1.5 times the recorded one, and again when it is
measured once more.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.course.config import Assignment, Course
from autograder.course.mistakes_file import load_mistakes
from autograder.course.reading import load_course
from autograder.grading.preparation import open_grader
from autograder.walls.outside.launcher import Sandbox
from benchmarks.measure import family_cpu_seconds
from benchmarks.milliseconds import ROOT, SEED, submission

RECORD = Path(__file__).with_name("ratios.json")
ASSIGNMENTS = ("03_masked_heads", "05_encoder_block", "13_key_value_cache", "16_preferences")
SUBMISSIONS = {"right": 10, "mistakes": 10}  # of each pair, so thirty of each
PAIRS = 3
MOST = 1.5  # times the recorded ratio
Kind = tuple[str, str]  # the assignment, and the kind of submissions


@dataclass(frozen=True)
class Pair:
    """Milliseconds of processor time for one submission: of the floor, and of grading it."""

    floor: float
    ours: float

    @property
    def ratio(self) -> float:
        return self.ours / self.floor


class Scales:
    """Measures pairs with one grader, which holds all assignments."""

    def __init__(self, course: Course, names: Sequence[str]) -> None:
        self._course = course
        self._grader = open_grader(course, Sandbox(hidden=course.hidden_folders), SEED, names)
        self._grader.prepare_all()
        gc.collect()
        gc.freeze()  # as in a run, whose graders are forks
        self._turn = 0

    def lowest(self, kind: Kind, pairs: int = PAIRS) -> Pair:
        """Return the pair with the lowest ratio."""
        return min((self._pair(*kind) for _ in range(pairs)), key=lambda pair: pair.ratio)

    def _pair(self, name: str, kind: str) -> Pair:
        """Measure one pair; the grader has graded a right answer before, as in any class, and no mistake."""
        assignment = self._grader.assignment(name)
        texts = self._texts(assignment, kind)
        right = self._course.read_solution(assignment)
        self._turn += 1
        self._grader.reseed(SEED + self._turn)
        for number in (-1, -2):
            grade = self._grader.grade(submission(assignment, right, number))
            assert grade.score == grade.max_score, f"the solution of {name} lost points"
        self._suite_alone(name, right)
        floor_before = time.process_time()
        for _ in texts:
            self._suite_alone(name, right)
        floor = time.process_time() - floor_before
        ours_before = family_cpu_seconds()
        for number, text in enumerate(texts):
            self._grader.grade(submission(assignment, text, number))
        ours = family_cpu_seconds() - ours_before
        return Pair(1000 * floor / len(texts), 1000 * ours / len(texts))

    def _suite_alone(self, name: str, text: str) -> None:
        failure = self._grader.first_failure(name, text, SEED + self._turn, 60)
        assert failure is None, failure

    def _texts(self, assignment: Assignment, kind: str) -> list[str]:
        if kind == "right":
            return [self._course.read_solution(assignment)] * SUBMISSIONS[kind]
        mistakes = load_mistakes(self._course, assignment)
        apart = max(1, len(mistakes) // SUBMISSIONS[kind])
        return [mistake.source for mistake in mistakes[::apart]][: SUBMISSIONS[kind]]

    def close(self) -> None:
        self._grader.close()


def beyond(pairs: Mapping[Kind, Pair], recorded: Mapping[Kind, float]) -> list[Kind]:
    """Return the kinds that cost too much beside what was recorded; one without a record costs nothing too much."""
    return [
        kind for kind, pair in pairs.items() if pair.ratio > MOST * recorded.get(kind, pair.ratio)
    ]


def judged(
    kinds: Sequence[Kind], measure: Callable[[Kind], Pair], recorded: Mapping[Kind, float]
) -> tuple[dict[Kind, Pair], list[Kind]]:
    """Measure all kinds, and once more those that cost too much; return the lower ones, and what still does."""
    pairs = {kind: measure(kind) for kind in kinds}
    for kind in beyond(pairs, recorded):
        pairs[kind] = min(pairs[kind], measure(kind), key=lambda pair: pair.ratio)
    return pairs, beyond(pairs, recorded)


def read(file: Path) -> tuple[str, dict[Kind, float]]:
    """Return the commit of a record, and its ratios; "" and none if there is no record."""
    if not file.exists():
        return "", {}
    record = json.loads(file.read_text("utf-8"))
    ratios = {
        (name, kind): ratio
        for name, kinds in record["ratios"].items()
        for kind, ratio in kinds.items()
    }
    return record["commit"], ratios


def write(file: Path, pairs: Mapping[Kind, Pair], commit: str) -> None:
    ratios: dict[str, dict[str, float]] = {}
    for (name, kind), pair in pairs.items():
        ratios.setdefault(name, {})[kind] = round(pair.ratio, 2)
    record = {"commit": commit, "submissions": SUBMISSIONS, "ratios": ratios}
    file.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


def table(pairs: Mapping[Kind, Pair], recorded: Mapping[Kind, float], commit: str) -> str:
    """As Markdown; each figure of the grader beside its floor."""
    lines = [
        f"| assignment | answers | the floor | ours | ratio | at {commit or 'no commit'} |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for (name, kind), pair in pairs.items():
        before = recorded.get((name, kind))
        cells = [f"{pair.floor:.0f} ms", f"{pair.ours:.0f} ms", f"{pair.ratio:.1f}"]
        cells.append("" if before is None else f"{before:.1f}")
        lines.append(f"| {name} | {kind} | {' | '.join(cells)} |")
    return "\n".join(lines)


def present_commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--abbrev=8", "--exclude=*"]
    return subprocess.run(
        command, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("assignments", nargs="*", default=ASSIGNMENTS, metavar="ASSIGNMENT")
    parser.add_argument("--pairs", type=int, default=PAIRS, help=f"of each kind (default {PAIRS})")
    parser.add_argument("--record", nargs="?", type=Path, const=RECORD, metavar="FILE")
    chosen = parser.parse_args()
    course = load_course(ROOT)
    commit, recorded = ("", {}) if chosen.record else read(RECORD)
    kinds = [(name, kind) for name in chosen.assignments for kind in SUBMISSIONS]
    scales = Scales(course, chosen.assignments)
    try:
        pairs, too_much = judged(kinds, lambda kind: scales.lowest(kind, chosen.pairs), recorded)
    finally:
        scales.close()
    print(table(pairs, recorded, commit))
    if chosen.record:
        write(chosen.record, pairs, present_commit())
    for name, kind in too_much:
        print(f"{name}, {kind}: more than {MOST} times the ratio that {RECORD.name} holds.")
    return 1 if too_much else 0


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    sys.exit(main())
