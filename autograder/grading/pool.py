"""Graders as processes: each loads the course once, and forks for the submissions (see `disposable`)."""

import multiprocessing
import os
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, TypeVar

from autograder.course.config import Course
from autograder.grading.disposable import Disposable
from autograder.grading.watch import KernelWatch
from autograder.records import Grade, Submission

if TYPE_CHECKING:
    from autograder.grading.grader import Grader

Result = TypeVar("Result")


@dataclass(frozen=True)
class Plan:
    """What graders are made for: a course (or some of its assignments), the run's seed, the sandbox's tier."""

    course: Course
    run_seed: int
    tier: str = "best"
    jobs: int = 1
    names: tuple[str, ...] | None = None


class GraderPool(ProcessPoolExecutor):
    """`plan.jobs` processes; in what is submitted, `this_grader()` gives a grader."""

    def __init__(self, plan: Plan) -> None:
        context = multiprocessing.get_context("spawn")
        super().__init__(plan.jobs, context, initializer=prepare_process, initargs=(plan,))

    def submit(self, function: Callable[..., Result], /, *args: Any) -> Future[Result]:  # type: ignore[override]
        return super().submit(call_in_fork, function, *args)


_plan: Plan | None = None
_sandbox: Any = None
_watch: KernelWatch | None = None
_grader: "Grader | None" = None
_disposable: Disposable | None = None


def graders(plan: Plan) -> GraderPool:
    """Start graders; raises SandboxUnavailableError where the sandbox is weaker than the course allows."""
    from autograder.sandbox.launcher import require_tier

    require_tier(plan.tier, plan.course.min_tier)
    return GraderPool(plan)


def this_grader() -> "Grader":
    """The grader of this process; made at its first use. Raises CourseError or InfrastructureError."""
    global _grader, _watch
    if _grader is None:
        import torch

        from autograder.grading.grader import Grader

        torch.set_num_threads(1)
        assert _plan is not None, "this process was not made by `graders`"
        _watch = KernelWatch()
        _grader = Grader(_plan.course, _start_sandbox(), _plan.run_seed, _plan.names, _watch)
    return _grader


def grade_one(submission: Submission) -> Grade:
    """Runs in a grader's process."""
    return this_grader().grade(submission)


def call_in_fork(function: Callable[..., Result], *arguments: Any) -> Result:
    """What the function returns in a fork of this process."""
    global _disposable
    if _disposable is None:
        this_grader()
        assert _watch is not None
        _start_sandbox().warm_up()  # each fork would wait for its own word that it is ready, and it comes once
        _disposable = Disposable(_watch, started=_end_with_parent)
    result: Result = _disposable.call(function, *arguments)
    return result


def prepare_process(plan: Plan) -> None:
    """Start the sandbox at once; PyTorch is then imported on both sides of the wall at the same time."""
    global _plan
    os.environ["OMP_NUM_THREADS"] = "1"
    warnings.simplefilter("ignore")  # PyTorch's advice to authors would break the instructor's progress bar
    _plan = plan
    _end_with_parent()
    try:
        _start_sandbox()
    except Exception:
        return  # a process that fails here would break the pool without a word; `this_grader` fails with one


def _start_sandbox() -> Any:
    global _sandbox
    if _sandbox is None:
        from autograder.sandbox.launcher import Sandbox

        assert _plan is not None
        _sandbox = Sandbox(_plan.tier, hidden=_plan.course.hidden_folders)
    return _sandbox


def _end_with_parent() -> None:
    """A grader whose class is gone ends, and its sandbox with it, however the class was ended."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
