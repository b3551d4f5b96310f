"""Grading and building in the process of the tests, in place of processes that each import PyTorch again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from autograder.authoring import build as building
from autograder.authoring.hints_file import hints_path, make
from autograder.course.config import Assignment, Course
from autograder.grading.grader import Grader
from autograder.grading.preparation import open_grader
from autograder.runs.pool import Plan
from autograder.walls.outside.launcher import Sandbox


def present(*modules: str) -> list[str]:
    """Return those of the modules that are there: a copy of the core has no extras."""
    has_extras = find_spec("autograder.extras") is not None
    return [name for name in modules if has_extras or ".extras." not in name]


class GraderAtHand:
    """Does what a pool of graders does, but at once, in this process and in a sandbox that is already warm."""

    def __init__(self, plan: Plan, sandbox: Sandbox) -> None:
        self._plan = plan
        self._sandbox = sandbox
        self._grader: Grader | None = None

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future = Future[Any]()
        with pytest.MonkeyPatch.context() as patch:
            for module in present(
                "autograder.authoring.audit",
                "autograder.authoring.carried_over",
                "autograder.authoring.fixed_inputs",
                "autograder.runs.pool",
                "autograder.feedback.painter",
                "autograder.extras.sheets.conversation",
                "autograder.extras.sheets.proof",
            ):
                patch.setattr(f"{module}.this_grader", self._this_grader)
            try:
                future.set_result(function(*arguments))
            except Exception as error:
                future.set_exception(error)
        return future

    def _this_grader(self) -> Grader:
        if self._grader is None:
            self._grader = open_grader(
                self._plan.course, self._sandbox, self._plan.run_seed, self._plan.names
            )
        return self._grader

    def __enter__(self) -> GraderAtHand:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def shutdown(self, **options: bool) -> None:
        if self._grader is not None:
            self._grader.close()
            self._grader = None


@contextmanager
def graders_at_hand(sandbox: Sandbox) -> Iterator[None]:
    """Let runs grade, and draw pictures, in this process. What a grader does to its process is tested elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        for module in present(
            "autograder.authoring.audit",
            "autograder.runs.run",
            "autograder.feedback.painter",
            "autograder.extras.sheets.sheets",
        ):
            patch.setattr(f"{module}.graders", lambda plan: GraderAtHand(plan, sandbox))
        yield


def build_at_hand(course: Course) -> list[Path]:
    """Build the course; its hints are made in this process. That a process of their own makes the same is tested."""

    def make_all(course: Course, assignments: Sequence[Assignment]) -> dict[Path, str]:
        return {
            hints_path(course, assignment): make(course, assignment) for assignment in assignments
        }

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("autograder.authoring.build.make_all", make_all)
        return building.build(course)
