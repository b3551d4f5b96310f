"""Nobody changes another's grade: it is the same alone, in whatever order, and however slowly the grader imports."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.course.config import Course
from autograder.records import Grade, Submission
from autograder.runs.pool import Plan, graders, this_grader
from autograder.walls.outside.doctor import TierReport
from tests.autograder.mixed_class import (
    SAMPLE,
    TEST_SECONDS,
    TEXTS,
    grades,
    mixed_course,
    submissions,
)

SEED = 5
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


def grade_and_replace(submission: Submission) -> Grade:
    """Runs in a grader, which grades nothing else."""
    grader = this_grader()
    grader.watch.distrust()
    return grader.grade(submission)


def without_times(grade: Grade) -> dict:
    return json.loads(replace(grade, seconds=0.0, test_seconds=()).to_json())


def grades_alone(plan: Plan) -> dict[str, dict]:
    """Each grade by a grader that has graded nobody before."""
    with graders(plan) as pool:
        running: dict[str, Future[Grade]] = {
            one.student: pool.submit(grade_and_replace, one) for one in submissions(SAMPLE)
        }
        return {student: without_times(future.result()) for student, future in running.items()}


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
