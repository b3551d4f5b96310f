"""How long is waited: code has its seconds, whatever else the machine is doing, and no more than those."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest

from autograder.course.config import Limits
from autograder.protocol import wire
from autograder.protocol.errors import StudentTimeoutError
from autograder.proxy.deadline import MOST_IN_LINE, Deadline, DeadlineExceededError
from autograder.proxy.remote import RemoteStudent
from autograder.proxy.replay import ReplayCache, ReplaySocket, Request
from autograder.proxy.worker_connection import WorkerConnection
from autograder.sandbox.launcher import Sandbox


@dataclass
class Told:
    """A worker of which the kernel tells these times."""

    waited: float = 0.0
    others: float = 0.0

    def seconds_queued(self) -> float:
        return self.waited

    def other_threads_seconds(self) -> float:
        return self.others


def seconds_until_too_late(deadline: Deadline) -> tuple[float, DeadlineExceededError]:
    began = time.monotonic()
    with pytest.raises(DeadlineExceededError) as late:
        while True:
            time.sleep(min(deadline.left(), 0.02))
    return time.monotonic() - began, late.value


def test_code_that_had_all_its_time_is_endless():
    seconds, late = seconds_until_too_late(Deadline(0.1, Told(waited=7.0)))
    assert 0.1 <= seconds < 2 and late.endless and not late.starved


def test_time_in_line_is_given_back_once():
    worker = Told(waited=7.0)
    deadline = Deadline(0.1, worker)
    worker.waited += 0.2
    seconds, late = seconds_until_too_late(deadline)
    assert 0.3 <= seconds < 2 and late.endless


def test_code_that_stood_in_line_all_the_time_was_starved():
    worker = Told()
    deadline = Deadline(0.05, worker)
    worker.waited = 100.0
    seconds, late = seconds_until_too_late(deadline)
    assert seconds >= 0.05 * (1 + MOST_IN_LINE) and late.starved and not late.endless


def test_code_that_is_kept_waiting_by_its_own_threads_gets_nothing_for_it():
    worker = Told()
    deadline = Deadline(0.1, worker)
    worker.waited, worker.others = 1.0, 3.0
    seconds, late = seconds_until_too_late(deadline)
    assert seconds < 0.4 and late.endless


def test_the_end_of_a_test_ends_all_and_proves_nothing():
    _, late = seconds_until_too_late(Deadline(60, Told(), time.monotonic() + 0.05))
    assert not late.endless and not late.starved


# ------------------------------------------------------------------ with a worker

TEXT = """
import time
def loop(): return loop.again() if False else [None for _ in iter(int, 1)]
def sleep(): time.sleep(60)
def right(): return 5
"""


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox() as found:
        yield found


def ask(sandbox: Sandbox, connection: WorkerConnection, name: str) -> tuple[float, StudentTimeoutError]:
    connection.request("load", 10, text=TEXT, filename="loops.py")
    student = RemoteStudent(connection, [])
    assert student.right() == 5
    began = time.monotonic()
    with pytest.raises(StudentTimeoutError) as late:
        getattr(student, name)()
    connection.close()
    return time.monotonic() - began, late.value


def test_sleep_is_no_want_of_processors(sandbox):
    connection = WorkerConnection(sandbox.spawn(Limits()), 0.5)
    seconds, late = ask(sandbox, connection, "sleep")
    assert seconds >= 0.5 and not late.starved
    assert connection._endless == {"sleep": 1}


def test_a_loop_burns_what_it_was_promised(sandbox):
    worker = sandbox.spawn(Limits())
    _, late = ask(sandbox, WorkerConnection(worker, 0.5), "loop")
    if not late.starved:
        assert worker.end().cpu_seconds > 0.4, "however busy the machine is"


def test_what_did_not_end_again_and_again_is_waited_for_less_and_less(sandbox):
    connection = WorkerConnection(sandbox.spawn(Limits()), 1.0)
    waits = []
    for _ in range(5):
        waits.append(connection._deadline("loop", 1.0).seconds)
        connection._endless["loop"] += 1
    assert waits == [1.0, 0.1, 0.05, 0.025, 0.025]
    assert connection._deadline("other", 1.0).seconds == 1.0, "one endless loop is nobody else's fault"
    connection._endless["another"] += 1
    assert connection._deadline("other", 1.0).seconds == 0.5
    assert connection._deadline("", 5.0).seconds == 5.0, "loading has all its time"
    connection.close()


# ------------------------------------------------------------------ conversations that part


@pytest.fixture
def ends():
    import socket

    here, there = socket.socketpair()
    with here, there:
        yield here, there


def talk(line: ReplaySocket, there, said: bytes, heard: str) -> None:
    until = time.monotonic() + 5
    wire.send(there, heard)
    line.send(Request(wire.dumps(said.decode()), "f", 1.0), until)
    line.receive(until)


def replay(line: ReplaySocket, known: ReplayCache, test: str) -> bool:
    return line.replay(known, test, lambda name, seconds, until: Deadline(seconds, Told(), until), 1e12)


def test_a_test_that_is_not_recited_adds_nothing_to_the_one_before(ends):
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


def test_a_test_that_does_not_listen_to_the_end_did_not_repeat_itself(ends):
    here, there = ends
    known, line = ReplayCache(), ReplaySocket(here)
    replay(line, known, "first")
    for question in (b"one", b"two"):
        talk(line, there, question, "answer")
    again = ReplaySocket(here)
    wire.send(there, "answer")
    wire.send(there, "answer")
    assert not replay(again, known, "first")
    until = time.monotonic() + 5
    again.send(Request(wire.dumps("one"), "f", 1.0), until)
    again.receive(until)
    assert again.diverged
