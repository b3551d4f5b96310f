"""Nobody changes another's grade: it is the same alone, in whatever order, and however slowly the grader imports."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import time
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.course.config import Course
from autograder.records import Submission
from autograder.runs.pool import Plan, graders, this_grader
from autograder.walls.outside.doctor import TierReport
from tests.autograder.mixed_class import (
    HOSTILE,
    SAMPLE,
    TEST_SECONDS,
    TEXTS,
    grades,
    mixed_course,
    peak_megabytes,
    submissions,
)

SEED = 5
MEGABYTES = 600  # of memory in the largest grader
SLOW_IMPORTS = '''\
"""Imports that take {seconds} s of processor time: the root of sympy, and whatever a fork of the grader imports."""

import os
import sys
import time


class Slow:
    forked = False

    def find_spec(self, name, path=None, target=None):
        if name == "sympy" or self.forked and "." not in name:
            with open({log!r}, "a") as log:
                print("fork" if self.forked else "grader", name, file=log)
            until = time.process_time() + {seconds}
            while time.process_time() < until:
                pass
        return None


sys.meta_path.insert(0, slow := Slow())
os.register_at_fork(after_in_child=lambda: setattr(slow, "forked", True))
'''


@pytest.fixture
def course(tmp_path: Path, tiers: dict[str, TierReport]) -> Course:
    if not any(report.works for tier, report in tiers.items() if tier != "unsafe"):
        pytest.skip("no tier with walls works here")
    return mixed_course(tmp_path / "course")


def make_imports_slow(folder: Path, monkeypatch: pytest.MonkeyPatch, seconds: float) -> Path:
    """Graders that start from now on import slowly; the file that names what was delayed."""
    folder.mkdir()
    log = folder / "delayed.txt"
    (folder / "sitecustomize.py").write_text(
        SLOW_IMPORTS.format(seconds=seconds, log=str(log)), "utf-8"
    )
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return log


def shuffled(number: int, students: Sequence[str] = tuple(TEXTS)) -> list[Submission]:
    found = submissions(students)
    random.Random(number).shuffle(found)
    return found


def grade_and_replace(submission: Submission) -> dict:
    """Runs in a grader, which grades nothing else."""
    grader = this_grader()
    grader.watch.distrust()
    return json.loads(replace(grader.grade(submission), seconds=0.0, test_seconds=()).to_json())


def grades_alone(plan: Plan) -> dict[str, dict]:
    """Each grade by a grader that has graded nobody before."""
    with graders(plan) as pool:
        running: dict[str, Future[dict]] = {
            one.student: pool.submit(grade_and_replace, one) for one in submissions(SAMPLE)
        }
        return {student: future.result() for student, future in running.items()}


@pytest.mark.slow
def test_a_grade_depends_on_nobody_and_on_no_import(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan(course, SEED)
    alone = grades_alone(plan)
    full = alone["right"]["max_score"]
    assert [name for name in SAMPLE if alone[name]["score"] == full] == ["right"]
    late = {
        test["name"]: test["outcome"]
        for test in alone["far"]["tests"]
        if test["outcome"] != "passed"
    }
    assert late == {"test_counting": "timeout"}, (
        "an answer that takes long to judge ends its own test only"
    )
    log = make_imports_slow(tmp_path / "slow", monkeypatch, TEST_SECONDS + 1)
    assert grades(plan, shuffled(1, SAMPLE), tmp_path / "shuffled") == alone
    assert "grader sympy" in log.read_text(), "the delay did not take place"


@pytest.mark.skipif(
    os.environ.get("ORDERS") != "all",
    reason="Takes many minutes; ORDERS=all in the environment runs it.",
)
def test_every_order_and_slow_imports(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each student in a run of their own; five orders; and five orders while an import takes 20 s."""
    runs = {one.student: Plan(course, SEED) for one in submissions()}
    alone = {
        student: grades(plan, submissions([student]), tmp_path / student)[student]
        for student, plan in runs.items()
    }
    plan = Plan(course, SEED, jobs=2)
    for number in range(5):
        assert grades(plan, shuffled(number), tmp_path / f"order{number}") == alone
    log = make_imports_slow(tmp_path / "slow", monkeypatch, 20)
    for number in range(5):
        assert grades(plan, shuffled(number), tmp_path / f"slow{number}") == alone
    assert "grader sympy" in log.read_text(), "the delay did not take place"


def graded_apart(
    plan: Plan, handed_in: list[Submission], folder: Path
) -> tuple[dict[str, dict], float]:
    """Runs in a process of its own: the grades, and the memory that its largest grader needed."""
    return grades(plan, handed_in, folder), peak_megabytes()


@pytest.mark.slow
def test_a_hostile_third_of_a_class(
    course: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody's grade changes, and no grader needs more memory than for an honest class and one large answer."""
    honest = [
        replace(one, student=f"{one.student}-{number}")
        for number in range(8)
        for one in submissions(each for each in TEXTS if each not in HOSTILE)
    ]
    hostile = [
        replace(one, student=f"{one.student}-{n}") for n in range(4) for one in submissions(HOSTILE)
    ]
    mixed = [*honest, *hostile]
    random.Random(SEED).shuffle(mixed)
    figures = {}
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as apart:
        for name, handed_in in (("honest", honest), ("mixed", mixed)):
            began = time.monotonic()
            plan = Plan(course, SEED, jobs=2)
            found, megabytes = apart.submit(graded_apart, plan, handed_in, tmp_path / name).result()
            figures[name] = found, time.monotonic() - began, megabytes
    for name, (found, seconds, megabytes) in figures.items():
        with capsys.disabled():
            print(
                f"\n{name}: {len(found)} submissions, {seconds:.1f} s, largest grader {megabytes:.0f} MB"
            )
    assert {student: figures["mixed"][0][student] for student in figures["honest"][0]} == figures[
        "honest"
    ][0]
    assert figures["mixed"][2] < MEGABYTES
