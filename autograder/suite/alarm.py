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

from autograder.proxy.deadline import CLOCK_FACTOR

AGAIN_SECONDS = 0.5  # an exception in a callback or in __del__ is printed and lost; the next one is not


class TestAlarm(BaseException):
    """Something took too long; a BaseException, so that nothing swallows it by accident."""

    __test__ = False


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise TestAlarm in the main thread after `seconds` of this process's processor time.

    Code that sleeps is interrupted by the clock (see `CLOCK_FACTOR`). In other threads, and on Windows, do nothing.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise TestAlarm

    limits = {
        signal.SIGPROF: (signal.ITIMER_PROF, seconds),
        signal.SIGALRM: (signal.ITIMER_REAL, CLOCK_FACTOR * seconds),
    }
    previous = {number: signal.signal(number, ring) for number in limits}
    try:
        for timer, most in limits.values():
            signal.setitimer(timer, most, AGAIN_SECONDS)
        yield
    finally:
        for timer, _ in limits.values():
            signal.setitimer(timer, 0)
        for number, handler in previous.items():
            signal.signal(number, handler)
