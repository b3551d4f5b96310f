"""How long is waited: a call has its seconds of processor time, and a multiple of them by the clock.

The clock of the deadlines and the kernel's counts are fakes: they advance only when a test says so.
"""

from __future__ import annotations

import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch

from autograder.bridge.outside.endless_calls import SHARE_LEFT, SHARE_OF_RIGHT_CODE, EndlessCalls
from autograder.bridge.outside.remote import RemoteStudent
from autograder.bridge.outside.replay import ReplayCache, ReplaySocket
from autograder.bridge.outside.worker_connection import WorkerConnection
from autograder.bridge.shared import wire
from autograder.bridge.shared.errors import StudentTimeoutError
from autograder.course.config import Limits
from autograder.walls.outside import alarm as alarms
from autograder.walls.outside.alarm import TestAlarm, alarm
from autograder.walls.outside.deadline import (
    CLOCK_FACTOR,
    MOMENT,
    PROCESSORS,
    Deadline,
    DeadlineExceededError,
)
from autograder.walls.outside.launcher import Sandbox


class Clock:
    """Replaces the module `time` in `autograder.walls.outside.deadline`."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@dataclass
class Told:
    """A worker of which the kernel tells this."""

    used: float = 0.0
    state: str = "S"

    def processor_seconds(self) -> float:
        return self.used

    def wants_processor(self) -> bool:
        return self.state in "RD"

    def run(self, share: float) -> Callable[[float], None]:
        """Something that gives it so many processors, on average, whenever time passes."""

        def use(seconds: float) -> None:
            self.state = "R"
            self.used += share * seconds

        return use


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("autograder.walls.outside.deadline.time", clock)
    return clock


def wait_out(
    clock: Clock, deadline: Deadline, meanwhile: Callable[[float], None] = lambda seconds: None
) -> tuple[float, DeadlineExceededError]:
    """Return the seconds on the clock until the deadline has passed; `meanwhile` is called at each wait."""
    began = clock.now
    with pytest.raises(DeadlineExceededError) as late:
        while True:
            seconds = deadline.left()
            assert seconds > 0
            clock.now += seconds
            meanwhile(seconds)
    return clock.now - began, late.value


def test_loop_ends_when_its_processor_time_is_used_up(clock):
    worker = Told(used=7.0)
    seconds, late = wait_out(clock, Deadline(2.0, worker), worker.run(1.0))
    assert seconds == worker.used - 7.0 == pytest.approx(2.0, abs=PROCESSORS * MOMENT)
    assert (late.limit, late.seconds, late.starved) == ("processor", 2.0, False)


@pytest.mark.parametrize("share", [PROCESSORS, 0.5, 0.3, 0.22])
def test_code_has_all_its_processor_time(clock, share):
    """Whatever takes the rest: other processes, a hypervisor, swapping; threads are counted together."""
    worker = Told()
    seconds, late = wait_out(clock, Deadline(1.0, worker), worker.run(share))
    assert worker.used == pytest.approx(1.0, abs=PROCESSORS * MOMENT)
    assert seconds == pytest.approx(1.0 / share, abs=PROCESSORS * MOMENT / share)
    assert late.limit == "processor"


def test_code_that_sleeps_ends_by_the_clock_and_is_not_starved(clock):
    seconds, late = wait_out(clock, Deadline(2.0, Told()))
    assert seconds == pytest.approx(CLOCK_FACTOR * 2.0)
    assert (late.limit, late.seconds, late.starved) == ("clock", CLOCK_FACTOR * 2.0, False)


@pytest.mark.parametrize("state", ["R", "D"])
def test_code_that_wanted_a_processor_or_the_disk_was_starved(clock, state):
    seconds, late = wait_out(clock, Deadline(2.0, Told(state=state)))
    assert seconds == pytest.approx(CLOCK_FACTOR * 2.0)
    assert late.limit == "clock" and late.starved


def test_end_of_the_tests_time_is_not_proof_of_an_endless_call(clock):
    seconds, late = wait_out(clock, Deadline(60, Told(), clock.now + 0.05))
    assert seconds == pytest.approx(0.05, abs=MOMENT)
    assert (late.limit, late.starved) == ("test", False)


def test_the_kernel_is_not_asked_before_the_time_can_be_up(clock):
    asked = []
    worker = SimpleNamespace(processor_seconds=lambda: asked.append(clock.now) or 0.0)
    deadline = Deadline(2.0, worker)
    for _ in range(100):
        clock.now += 0.9 * 2.0 / PROCESSORS / 100
        deadline.left()
    assert len(asked) == 1


def late_reader(clock: Clock, worker: Told, sent: bytes) -> object:
    """Receive what a worker sent in time, when the clock has run out because this process had no processor."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        deadline = Deadline(2.0, worker)
        theirs.sendall(sent)
        clock.now += 3 * CLOCK_FACTOR * 2.0
        return wire.receive(ours, deadline)


ANSWER = wire.dumps({"id": 1, "ok": torch.ones(20_000)})


def test_an_answer_that_waits_to_be_read_is_in_time(clock):
    assert late_reader(clock, Told(state="R"), ANSWER)["id"] == 1


def test_an_answer_does_not_extend_the_processor_time(clock):
    """Otherwise a worker that never stops sending would never be late."""
    worker = Told(used=1.0)
    used = iter([1.0, 3.1])
    worker.processor_seconds = lambda: next(used)
    with pytest.raises(DeadlineExceededError) as late:
        late_reader(clock, worker, ANSWER)
    assert late.value.limit == "processor"


@pytest.mark.parametrize(
    ("late", "sentence", "endless"),
    [
        (DeadlineExceededError("processor", 2.0), "within 2 seconds of processor time.", 1),
        (DeadlineExceededError("clock", 10.0), "within 10 seconds on the clock.", 1),
        (DeadlineExceededError("clock", 10.0, starved=True), "within 10 seconds on the clock.", 0),
        (DeadlineExceededError("test"), "This test took too long.", 0),
    ],
)
def test_the_sentence_says_which_limit(late, sentence, endless):
    calls = EndlessCalls()
    error = calls.too_late("f", late)
    assert str(error).endswith(sentence)
    assert calls.times["f"] == endless
    assert error.starved == (late.starved or late.limit == "test")


@pytest.mark.parametrize(
    ("late", "name", "share"),
    [
        ("", "f", 1.0),
        ("f", "f", 0.1),
        ("ff", "f", 0.05),
        ("fffff", "f", 0.025),
        ("f", "g", 1 / 3),  # it may call f, which never ends
        ("fffff", "g", 1 / 3),
        ("fg", "h", 1 / 6),
        ("fghijk", "l", 0.1),
        ("f", "", 1.0),
    ],
)
def test_a_function_that_never_ends_pays_its_limit_once(late, name, share):
    calls = EndlessCalls()
    for called in late:
        calls.too_late(called, DeadlineExceededError("processor", 2.0))
    assert calls.share_left(name) == share


def test_with_the_solution_in_place_a_call_has_what_right_code_needs():
    calls = EndlessCalls()
    assert calls.for_cured_code().share_left("f") == 1.0
    calls.too_late("f", DeadlineExceededError("processor", 2.0))
    cured = calls.for_cured_code()
    assert cured.share_left("f") == cured.share_left("g") == SHARE_OF_RIGHT_CODE
    cured.too_late("f", DeadlineExceededError("processor", 0.7))
    assert (cured.share_left("f"), cured.share_left("g")) == (SHARE_LEFT[0], SHARE_OF_RIGHT_CODE)


# ------------------------------------------------------------------ with a worker

TEXT = """
import time
def loop(): return loop.again() if False else [None for _ in iter(int, 1)]
def sleep(): time.sleep(10**6)
"""


def call_in_vain(sandbox: Sandbox, name: str) -> tuple[StudentTimeoutError, Counter[str]]:
    """Make a call that never returns; return how it ended, and the calls recorded as endless."""
    endless = EndlessCalls()
    connection = WorkerConnection(sandbox.spawn(Limits()), 0.5)
    connection.endless = endless
    try:
        connection.request("load", 120, text=TEXT, filename="loops.py")
        with pytest.raises(StudentTimeoutError) as late:
            getattr(RemoteStudent(connection, []), name)()
        return late.value, endless.times
    finally:
        connection.close()


@pytest.mark.skipif(sys.platform != "linux", reason="Processor time is counted on Linux only.")
def test_a_loop_is_endless_unless_the_machine_starved_it(sandbox):
    late, endless = call_in_vain(sandbox, "loop")
    assert late.starved or "0.5 seconds of processor time" in str(late)
    assert endless == ({} if late.starved else {"loop": 1})


@pytest.mark.skipif(sys.platform != "linux", reason="Processor time is counted on Linux only.")
def test_the_kernel_counts_all_threads_of_a_worker(sandbox):
    """Neither the time of the grader, nor that before the call; the worker itself says nothing."""
    text = """
import threading, time
def use(seconds):
    def spend():
        until = time.thread_time() + seconds
        while time.thread_time() < until: pass
    threads = [threading.Thread(target=spend) for _ in range(2)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""
    with sandbox.spawn(Limits()) as worker:
        connection = WorkerConnection(worker, 600)
        connection.request("load", 600, text=text, filename="threads.py")
        before = worker.processor_seconds()
        RemoteStudent(connection, []).use(0.3)
        assert worker.processor_seconds() - before > 0.4, "one thread alone uses 0.3"
        worker.end()
        assert worker.processor_seconds() - before > 0.4, (
            "its whole life, which counts for its submission"
        )
        assert not worker.wants_processor()


# ------------------------------------------------------------------ in a student's own process


def test_an_alarm_counts_processor_time_and_the_clock_is_a_backstop(monkeypatch):
    timers = {}

    def set_timer(timer: int, seconds: float, interval: float = 0.0) -> tuple[float, float]:
        timers[timer] = seconds
        return 0.0, 0.0  # no timer ran before

    monkeypatch.setattr(signal, "setitimer", set_timer)
    with alarm(20.0):
        assert timers == {signal.ITIMER_PROF: 20.0, signal.ITIMER_REAL: CLOCK_FACTOR * 20.0}
    assert timers == {signal.ITIMER_PROF: 0, signal.ITIMER_REAL: 0}


@pytest.mark.parametrize(
    "endless", [lambda: [None for _ in iter(int, 1)], lambda: time.sleep(10**6)]
)
def test_an_alarm_ends_what_computes_and_what_sleeps(endless):
    signals = signal.SIGPROF, signal.SIGALRM
    before = [signal.getsignal(each) for each in signals]
    with pytest.raises(TestAlarm), alarm(0.1):
        endless()
    assert [signal.getsignal(each) for each in signals] == before
    assert (
        signal.getitimer(signal.ITIMER_PROF) == signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    )


def test_the_clock_of_an_alarm_stops_while_the_machine_gives_no_processor(monkeypatch):
    waited = iter([0.0, 0.4])
    monkeypatch.setattr(alarms, "seconds_this_thread_waited", lambda: next(waited, 0.4))
    begun = time.monotonic()
    with pytest.raises(TestAlarm), alarm(0.1):
        time.sleep(10**6)
    assert time.monotonic() - begun >= CLOCK_FACTOR * 0.1 + 0.4


# ------------------------------------------------------------------ requests that diverge


def replay(line: ReplaySocket, known: ReplayCache, test: str) -> bool:
    return line.replay(
        known, test, lambda name, seconds, until: Deadline(seconds, Told(), until), 1e12
    )
