"""A disposable fork for trusted work: it is not interrupted, but ended and replaced."""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from autograder.grading.time_limits import KernelWatch, TaskEndedError
from autograder.records import InfrastructureError
from autograder.runs.disposable import Disposable
from autograder.walls.outside.budget import LEAST, Budget

WATCH = KernelWatch()
LITTLE = 0.05  # seconds of processor time


@pytest.fixture
def fork() -> Iterator[Disposable]:
    disposable = Disposable(WATCH, started=faulthandler.disable)
    yield disposable
    disposable.end()


def pid() -> int:
    return os.getpid()


def do(*tasks: str) -> list[str]:
    """Do tasks one after another and return their outcomes: `loop` never ends, the name of a signal ends the process."""
    done = []
    for task in tasks:
        try:
            with WATCH.limit(task, LITTLE, lasting=task.startswith("lasting")):
                if task.endswith("loop"):
                    sum(range(10**12))  # no signal's handler would be called before it ends
                if task.startswith("SIG"):
                    os.kill(os.getpid(), getattr(signal, task))
            done.append(task)
        except TaskEndedError as ended:
            done.append(str(ended))
    return done


def test_calls_share_one_fork_of_this_process(fork):
    assert fork.call(pid) == fork.call(pid) != os.getpid()
    assert fork.call(int, "7") == 7


def test_exception_in_the_fork_is_raised_in_the_caller(fork):
    with pytest.raises(ValueError, match="invalid literal") as caught:
        fork.call(int, "seven")
    assert "Traceback" in str(caught.value.__cause__)
    assert fork.call(int, "7") == 7


def test_task_that_times_out_is_skipped_and_the_others_complete(fork):
    before = fork.call(pid)
    assert fork.call(do, "first", "loop", "last") == ["first", "took too long", "last"]
    assert fork.call(pid) != before


def test_only_a_lasting_task_stays_ended_in_the_next_call(fork, monkeypatch):
    fork.call(do, "loop")
    assert fork.call(ended_before) == {}
    fork.call(do, "lasting loop")
    assert fork.call(ended_before) == {"lasting loop": True}, "which no submission has a part in"


def ended_before() -> dict[str, bool]:
    return WATCH.ended


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


@pytest.mark.parametrize("crash", ["SIGSEGV", "SIGABRT"])
def test_task_is_retried_after_one_crash(fork, crash):
    assert fork.call(do, "first", crash, "last") == ["first", "ended its process", "last"]


def test_fork_killed_twice_raises_infrastructure_error(fork):
    with pytest.raises(InfrastructureError, match=r"died twice in SIGKILL \(exit code -9\)"):
        fork.call(do, "SIGKILL")
    with pytest.raises(InfrastructureError, match=r"died twice \(exit code 3\)"):
        fork.call(os._exit, 3)
    assert fork.call(do, "first") == ["first"]


def test_fork_killed_once_is_replaced_without_loss(fork):
    os.kill(fork.call(pid), signal.SIGKILL)
    assert fork.call(do, "first") == ["first"]


def test_distrusted_fork_is_replaced_after_its_call(fork):
    first = fork.call(pid)
    assert fork.call(doubt) == first != fork.call(pid) == fork.call(pid)


def doubt() -> int:
    WATCH.distrust()
    return os.getpid()


class Costs(NamedTuple):
    until: float
    used: float
    passed: bool


def costs(digest: str, *tasks: str) -> Costs:
    """Do tasks in the budget of a submission, each of which may use `LITTLE` processor time."""
    with WATCH.submission(digest, 60.0, 60.0) as budget:
        for task in tasks:
            with budget.counted(LITTLE):
                do(task)
            WATCH.remember(f"test of {task}")
        return Costs(budget.until, budget.used, WATCH.has_passed("test of first"))


def ends_until_it_has_passed_one() -> tuple[float, float]:
    with WATCH.submission("ada", 60.0, 60.0) as budget:
        if WATCH.has_passed("first"):
            return budget.until, budget.used
        WATCH.remember("first")
        try:
            with budget.counted(LITTLE), WATCH.limit("second", LITTLE):
                sum(range(10**12))
        except TaskEndedError:
            raise AssertionError("what was passed is forgotten") from None


def test_process_that_replaces_another_has_what_is_left_of_the_budget_and_the_passed_tests(fork):
    before = time.monotonic()
    until, used = fork.call(ends_until_it_has_passed_one)
    assert used >= LITTLE, "the test that ended the process is counted"
    assert before + 60 <= until


def test_each_submission_has_a_budget_of_its_own_also_within_one_call(fork):
    assert fork.call(two_submissions) == [True, False, False]
    assert not fork.call(costs, "ada").passed


def two_submissions() -> list[bool]:
    WATCH.begin_call()
    return [costs("ada", "first").passed, costs("ben").passed, costs("ada").passed]


def test_spent_budget_leaves_no_room():
    budget = Budget(1.0, 60.0)
    assert (budget.has_room, budget.is_spent, budget.left) == (True, False, 1.0)
    budget.use(0.6)
    assert (budget.has_room, budget.is_spent) == (False, False), (
        "the rest is for tests that have not run"
    )
    budget.use(0.6)
    assert (budget.is_spent, budget.left) == (True, LEAST)
    assert Budget(1.0, clock_seconds=-1.0).is_spent
    assert not Budget().is_spent


def test_processor_time_of_this_process_counts_and_its_sleep_does_not():
    budget = Budget(60.0, 60.0)
    with budget.counted():
        time.sleep(2 * LITTLE)
    assert budget.used < LITTLE
    with budget.counted():
        burn(LITTLE)
    assert budget.used >= LITTLE
