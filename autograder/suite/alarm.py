"""Interrupts a student's own code in their own process, which has nobody else's work in it. Graders never use it.

The alarm is an exception wherever the code happens to be. Graders outlive a submission, so what takes too long there
ends the process instead (see `autograder.grading.watch`).
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN_SECONDS = 0.5  # an exception in a callback or in __del__ is printed and lost; the next one is not


class TestAlarm(BaseException):
    """Something took too long; a BaseException, so that nothing swallows it by accident."""

    __test__ = False


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise TestAlarm in the main thread after `seconds`; elsewhere, and on Windows, do nothing."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise TestAlarm

    previous = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
