"""Deadlines: code gets its full time on a busy machine, and no more.

The clock of the deadlines is a fake that advances only on request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from autograder.course.config import Limits
from autograder.protocol import wire
from autograder.protocol.errors import StudentTimeoutError
from autograder.proxy.deadline import MOMENT, MOST_IN_LINE, Deadline, DeadlineExceededError
from autograder.proxy.remote import RemoteStudent
from autograder.proxy.replay import ReplayCache, ReplaySocket, Request
from autograder.proxy.worker_connection import WorkerConnection
from autograder.sandbox.launcher import Sandbox
from tests.autograder.waiting import hang_guard


class Clock:
    """Replaces the module `time` in `autograder.proxy.deadline`."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@dataclass
class Told:
    """A worker with these scheduling times."""

    waited: float = 0.0
    others: float = 0.0

    def seconds_queued(self) -> float:
        return self.waited

    def other_threads_seconds(self) -> float:
        return self.others


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("autograder.proxy.deadline.time", clock)
    return clock


def wait_out(
    clock: Clock, deadline: Deadline, meanwhile: Callable[[float], None] = lambda seconds: None
) -> tuple[float, DeadlineExceededError]:
    """Return the seconds on the clock until the deadline has passed; `meanwhile` is called at each wait."""
    began = clock.now
    with pytest.raises(DeadlineExceededError) as late:
        while True:
            seconds = min(deadline.left(), MOMENT)
            clock.now += seconds
            meanwhile(seconds)
    return clock.now - began, late.value


def test_code_that_used_its_full_time_is_endless(clock):
    seconds, late = wait_out(clock, Deadline(0.1, Told(waited=7.0)))
    assert seconds == pytest.approx(0.1, abs=MOMENT)
    assert late.endless and not late.starved


def test_queueing_time_is_added_once(clock):
    worker = Told(waited=7.0)
    deadline = Deadline(0.1, worker)
    worker.waited += 0.2
    seconds, late = wait_out(clock, deadline)
    assert seconds == pytest.approx(0.3, abs=MOMENT)
    assert late.endless and not late.starved


def test_deadline_is_extended_by_queueing_time_on_a_busy_machine(clock):
    """The worker waits for a processor for two thirds of the time, so its second takes three."""
    worker = Told()

    def stand_in_line(seconds: float) -> None:
        worker.waited += 2 / 3 * seconds

    seconds, late = wait_out(clock, Deadline(1.0, worker), stand_in_line)
    assert seconds - worker.waited == pytest.approx(1.0, abs=MOMENT)
    assert late.endless and not late.starved


def test_code_that_only_waited_for_a_processor_is_starved(clock):
    worker = Told()
    deadline = Deadline(0.05, worker)
    worker.waited = 100.0
    seconds, late = wait_out(clock, deadline)
    assert seconds == pytest.approx(0.05 * (1 + MOST_IN_LINE), abs=MOMENT)
    assert late.starved and not late.endless


def test_queueing_behind_own_threads_does_not_extend_the_deadline(clock):
    worker = Told()
    deadline = Deadline(0.1, worker)
    worker.waited, worker.others = 1.0, 3.0
    seconds, late = wait_out(clock, deadline)
    assert seconds == pytest.approx(0.1, abs=MOMENT)
    assert late.endless and not late.starved


def test_end_of_the_tests_time_is_not_proof_of_an_endless_call(clock):
    seconds, late = wait_out(clock, Deadline(60, Told(), clock.now + 0.05))
    assert seconds == pytest.approx(0.05, abs=MOMENT)
    assert not late.endless and not late.starved


# ------------------------------------------------------------------ with a worker

TEXT = """
import time
def loop(): return loop.again() if False else [None for _ in iter(int, 1)]
def sleep(): time.sleep(10**6)
"""


def call_in_vain(sandbox: Sandbox, name: str) -> tuple[StudentTimeoutError, Counter[str]]:
    """Make a call that never returns; return how it ended, and the calls recorded as endless."""
    connection = WorkerConnection(sandbox.spawn(Limits()), 0.5)
    try:
        connection.request("load", 120, text=TEXT, filename="loops.py")
        with pytest.raises(StudentTimeoutError) as late:
            getattr(RemoteStudent(connection, []), name)()
        return late.value, connection._endless
    finally:
        connection.close()


def test_sleep_does_not_extend_the_deadline(sandbox):
    late, endless = call_in_vain(sandbox, "sleep")
    assert not late.starved and endless == {"sleep": 1}


def test_loop_is_endless_unless_starved(sandbox):
    late, endless = call_in_vain(sandbox, "loop")
    assert endless == ({} if late.starved else {"loop": 1})


def test_repeated_timeouts_shorten_the_deadline():
    connection = WorkerConnection(SimpleNamespace(socket=None, seconds_queued=lambda: 0.0), 1.0)
    waits = []
    for _ in range(5):
        waits.append(connection._deadline("loop", 1.0, 1e12).seconds)
        connection._endless["loop"] += 1
    assert waits == [1.0, 0.1, 0.05, 0.025, 0.025]
    assert connection._deadline("other", 1.0, 1e12).seconds == 1.0, (
        "one endless loop does not affect other functions"
    )
    connection._endless["another"] += 1
    assert connection._deadline("other", 1.0, 1e12).seconds == 0.5
    assert connection._deadline("", 5.0, 1e12).seconds == 5.0, "loading has all its time"


# ------------------------------------------------------------------ conversations that part


@pytest.fixture
def ends():
    import socket

    here, there = socket.socketpair()
    with here, there:
        yield here, there


def talk(line: ReplaySocket, there, request: bytes, reply: str) -> None:
    until = hang_guard()
    wire.send(there, reply)
    line.send(Request(wire.dumps(request.decode()), "f", 1.0), until)
    line.receive(until)


def replay(line: ReplaySocket, known: ReplayCache, test: str) -> bool:
    return line.replay(known, test, lambda name, seconds, until: Deadline(seconds, Told(), until), 1e12)


def test_uncached_test_adds_nothing_to_the_previous_test(ends):
    here, there = ends
    known, line = ReplayCache(), ReplaySocket(here)
    assert not replay(line, known, "first")
    talk(line, there, b"question", "answer")
    line.mark_passed()
    line.disable()
    talk(line, there, b"question of a forbidden test", "answer")
    line.mark_passed()
    (last,) = known.first_node("first").replies.values()
    assert last.passed and not last.requests


def test_incomplete_replay_counts_as_nondeterministic(ends):
    here, there = ends
    known, line = ReplayCache(), ReplaySocket(here)
    replay(line, known, "first")
    for question in (b"one", b"two"):
        talk(line, there, question, "answer")
    again = ReplaySocket(here)
    wire.send(there, "answer")
    wire.send(there, "answer")
    assert not replay(again, known, "first")
    until = hang_guard()
    again.send(Request(wire.dumps("one"), "f", 1.0), until)
    again.receive(until)
    assert again.diverged
