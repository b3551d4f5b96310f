"""Run a student's code in a forked child, so that it cannot end this process; loaded modules are inherited.

On systems without fork (Windows), the task runs in this process without a time limit. Nothing else is isolated.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Callable
from typing import Any

from autograder.records import RefusedError

STEP = 0.05
GRACE_SECONDS = 1.0


class Unfinished(Exception):
    """The child returned no result; `str(error)` is a message for the student."""


class GivenUp(Unfinished):
    """The caller cancelled the task."""


def can_fork() -> bool:
    return hasattr(os, "fork")


def run_in_child(task: Callable[[], Any], seconds: float, give_up: Callable[[], bool] = lambda: False) -> Any:
    """Return the result of `task`, which must be JSON-serializable; `give_up` is polled during the run.

    Raises RefusedError if the task does, Unfinished on a timeout or if the child exits.
    """
    if not can_fork():
        return task()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _be_the_child(task, reading, writing)
    os.close(writing)
    patience = 0.0
    try:
        answer = _answer(reading, time.monotonic() + seconds, seconds, give_up)
        patience = GRACE_SECONDS
    finally:
        os.close(reading)
        code = _end(child, patience)
    if not answer:
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        raise Unfinished(f"Your code ended the process that ran it ({how}).")
    return _opened(answer)


def _end(child: int, patience: float) -> int:
    """Return the child's exit code; a child that does not exit within `patience` seconds is killed."""
    deadline = time.monotonic() + patience
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= deadline:
            os.kill(child, signal.SIGKILL)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        time.sleep(0.005)


def _be_the_child(task: Callable[[], Any], reading: int, writing: int) -> None:
    """Run the task in the child and write its result. Never returns."""
    try:
        os.close(reading)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # input() gets an end of file
        try:
            reply = {"ok": task()}
        except RefusedError as refusal:
            reply = {"refused": str(refusal)}
        except Exception as error:
            reply = {"broken": f"{type(error).__name__}: {error}"}
        data = json.dumps(reply).encode()
        while data:
            data = data[os.write(writing, data) :]
    finally:
        os._exit(0)


def _answer(reading: int, deadline: float, seconds: float, give_up: Callable[[], bool]) -> bytes:
    data = b""
    while True:
        if time.monotonic() > deadline:
            raise Unfinished(
                f"Your code ran for more than {seconds:g} seconds and was stopped. Is there a loop?"
            )
        if give_up():
            raise GivenUp("The file changed while it was checked.")
        if select.select([reading], [], [], STEP)[0]:
            piece = os.read(reading, 1 << 16)
            if not piece:
                return data
            data += piece


def _opened(answer: bytes) -> Any:
    reply = json.loads(answer)
    if "refused" in reply:
        raise RefusedError(reply["refused"])
    if "broken" in reply:
        raise Unfinished(f"The tests themselves stopped: {reply['broken']}")
    return reply["ok"]
