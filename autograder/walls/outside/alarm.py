"""A time limit for code in the student's own process, as an exception, which may leave any state behind.

A grader outlives a submission: there, a timeout ends the process (see `autograder.grading.time_limits`).
"""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from autograder.walls.outside import deadline
from autograder.walls.outside.budget import seconds_this_thread_waited

# repeated, because an exception in a callback or in __del__ is printed and lost
AGAIN_SECONDS = 0.5


class TestAlarm(BaseException):
    """The time limit was exceeded; a BaseException, so that `except Exception` does not catch it."""

    __test__ = False


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise TestAlarm in the main thread after `seconds` of this process's processor time.

    Alarms can be inside one another. Code that sleeps is interrupted by the clock
    (`deadline.CLOCK_FACTOR`), which does not count the time that this thread waited for a
    processor. In other threads, and on Windows, do nothing.
    """
    if (
        not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return

    longest = deadline.CLOCK_FACTOR * seconds
    begun = time.monotonic()
    waited_before = seconds_this_thread_waited()

    def was_starved() -> bool:
        waited = seconds_this_thread_waited() - waited_before
        most = (deadline.CLOCK_FACTOR - 1) * longest
        return time.monotonic() - begun < longest + min(waited, most)

    def ring(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGPROF:
            raise TestAlarm(
                f"This test used more than {seconds:g} seconds of processor time. Is there an endless loop?"
            )
        if was_starved():
            return  # the alarm rings again
        raise TestAlarm(
            f"This test took more than {longest:g} seconds. Does it wait for something?"
        )

    limits = {
        signal.SIGPROF: (signal.ITIMER_PROF, seconds),
        signal.SIGALRM: (signal.ITIMER_REAL, longest),
    }
    previous = {number: signal.signal(number, ring) for number in limits}
    outer = {timer: signal.setitimer(timer, most, AGAIN_SECONDS) for timer, most in limits.values()}
    try:
        yield
    finally:
        left = {timer: signal.setitimer(timer, 0)[0] for timer in outer}
        for number, handler in previous.items():
            signal.signal(number, handler)
        for timer, most in limits.values():
            _go_on(timer, outer[timer], max(0.0, most - left[timer]))


def _go_on(timer: int, before: tuple[float, float], used: float) -> None:
    """Start a timer again that ran before, without the seconds that were used meanwhile."""
    seconds, interval = before
    if seconds:
        signal.setitimer(timer, max(seconds - used, 0.001), interval)
