"""Graders as processes: each loads what it needs of the course once and forks to grade submissions (see `disposable`)."""

import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, TypeVar

from autograder.course.config import Course
from autograder.course.digests import submission_digest
from autograder.grading.reference import PreparationNeededError
from autograder.grading.time_limits import KernelWatch
from autograder.records import Grade, Submission
from autograder.runs.disposable import Disposable
from autograder.runs.private_folder import PrivateFolder
from autograder.walls.outside.trusted_process import leave_current_folder, spawning
from autograder.walls.outside.unavailable import ForkServerNeededError

if TYPE_CHECKING:
    from autograder.grading.grader import Grader
    from autograder.walls.outside.launcher import Sandbox

Result = TypeVar("Result")
WORTH_ANOTHER = 24  # starting a grader takes about as long as grading this many submissions


@dataclass(frozen=True)
class Plan:
    """The settings of a run: the course, the names of its assignments (None: all), the seed, the sandbox's tier."""

    course: Course
    run_seed: int
    tier: str = "best"
    jobs: int = 1
    names: tuple[str, ...] | None = None

    def for_submissions(self, count: int) -> "Plan":
        """Return this plan with no more graders than so many submissions keep busy for longer than a start takes."""
        return replace(self, jobs=min(self.jobs, 1 + count // WORTH_ANOTHER))


def end_on_ctrl_c() -> None:
    """End this process without a word on Ctrl-C from now on, if it was started by another one, which finds words."""
    if multiprocessing.parent_process() is None:
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


class GraderPool(ProcessPoolExecutor):
    """A pool of grader processes; the functions submitted to it can call `this_grader()`.

    They run where nothing can be written but temporary files (see `shut_in`), and return plain
    values and records of the engine.
    """

    def __init__(self, plan: Plan) -> None:
        self._folder = PrivateFolder()
        arguments = (plan, self._folder.name)
        super().__init__(plan.jobs, spawning(), prepare_process, arguments)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait=wait, cancel_futures=cancel_futures)
        if wait:
            self._folder.close()

    def submit(
        self, function: Callable[..., Result], /, *args: Any, **kwargs: Any
    ) -> Future[Result]:
        return super().submit(call_in_fork, function, *args, **kwargs)


def graders(plan: Plan) -> GraderPool:
    """Start `plan.jobs` graders in a sandbox that was probed.

    Raises SandboxUnavailableError if none works, or if it is weaker than the course allows.
    """
    from autograder.walls.outside.launcher import require_tier

    tier = require_tier(plan.tier, plan.course.min_tier)
    return GraderPool(replace(plan, tier=tier))


_plan: Plan | None = None
# one for each process, created at its first use, like the sandbox, the grader and its fork
_watch = cache(KernelWatch)


@cache
def this_grader() -> "Grader":
    """Return the grader of this process; raises CourseError or InfrastructureError."""
    from autograder.grading.preparation import open_grader

    assert _plan is not None, "this process was not made by `graders`"
    return open_grader(_plan.course, _sandbox(), _plan.run_seed, _plan.names, _watch())


def grade_one(submission: Submission) -> Grade:
    """Return the grade of a submission; runs in a grader's process."""
    return this_grader().grade(submission)


def be_ready() -> None:
    """Prepare all assignments; runs in a grader's process."""
    this_grader().prepare_all()


def call_in_fork(function: Callable[..., Result], *arguments: Any) -> Result:
    """Call the function in a fork of this process and return its result.

    The fork can start nothing; where it misses a fork server, this process starts one, and calls
    again. It prepares nothing either: each further fork has what this process has prepared.
    """
    missed = list[tuple[str, ...]]()
    while True:
        try:
            result: Result = _disposable().call(function, *arguments)
        except ForkServerNeededError as needed:
            _disposable().end()
            _sandbox().renew(needed.modules, again=needed.modules in missed)
            missed.append(needed.modules)
        except PreparationNeededError as needed:
            _disposable().end()
            if not this_grader().prepare(needed.names):
                raise  # it asks for what it has
        else:
            return result


@cache
def _disposable() -> Disposable:
    this_grader()
    # the sandbox reports once that it is ready: a fork would wait for that in vain
    _sandbox().warm_up()
    return Disposable(_watch(), started=end_with_parent, enclose=_shut_in, fits=_fits)


def _fits(value: Any, arguments: Sequence[Any]) -> bool:
    """Whether a fork's reply can be true: whatever is asked with a submission, the reply is its grade."""
    return all(
        isinstance(value, Grade)
        and value.attempt == (asked.student, asked.assignment, submission_digest(asked))
        for asked in arguments
        if isinstance(asked, Submission)
    )


def _shut_in(pipe: int) -> None:
    """Shut in this process, a fork, before it meets the first value of a submission."""
    from autograder.walls.outside.shut_in import shut_in

    this_grader().prepare_no_more()
    shut_in(tempfile.gettempdir(), [pipe, *_sandbox().start_no_more()])


def prepare_process(plan: Plan, folder: str) -> None:
    """Start the sandbox first, so that it and this process import PyTorch at the same time.

    Temporary files go to a new folder in `folder`, the only place where forks can write.
    """
    global _plan
    os.environ["OMP_NUM_THREADS"] = "1"
    tempfile.tempdir = os.environ["TMPDIR"] = tempfile.mkdtemp(dir=folder)
    leave_current_folder()
    # PyTorch's advice to authors would break the instructor's progress bar
    warnings.simplefilter("ignore")
    _plan = plan
    end_on_ctrl_c()
    end_with_parent()
    try:
        _sandbox()
    except Exception:
        # a failure here would break the pool without a message; `this_grader` raises it again
        return


@cache
def _sandbox() -> "Sandbox":
    from autograder.walls.outside.launcher import Sandbox

    assert _plan is not None
    return Sandbox(_plan.tier, hidden=_plan.course.hidden_folders)


def end_with_parent() -> None:
    """End this process, and with it its sandbox, when the parent process has ended for any reason.

    On Linux the kernel does it, because a process with further threads should not fork.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    if sys.platform == "linux":
        # needs modules that only Unix has
        from autograder.walls.inside.jail import die_with_parent

        die_with_parent(parent.pid or 0)
    else:
        threading.Thread(target=_exit_after, args=(parent.sentinel,), daemon=True).start()


def _exit_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
