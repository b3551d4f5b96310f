"""Deadlines of calls to a student's code, in its own processor time and on the clock."""

import math
import os
import time
from collections.abc import Callable
from typing import Protocol

# by the clock, for code that sleeps and for machines with more work than processors
CLOCK_FACTOR = 5
MOMENT = 0.01
PROCESSORS = os.cpu_count() or 1


class DeadlineExceededError(TimeoutError):
    """A call timed out: `limit` says at which of its limits; "test" is that of the test, reached by many calls.

    `starved`: it still wanted a processor when the clock ran out, so the machine may be to blame.
    """

    def __init__(self, limit: str, seconds: float = math.inf, starved: bool = False) -> None:
        super().__init__("no answer")
        self.limit = limit
        self.seconds = seconds
        self.starved = starved


class Timed(Protocol):
    """A process whose times are measured by the kernel and not reported by the process."""

    def processor_seconds(self) -> float: ...

    def wants_processor(self) -> bool: ...


def seconds_waited(schedstat: bytes) -> float:
    """Return how long a thread waited for a processor, from Linux's `schedstat` of it: the time it
    ran, the time it waited (both in nanoseconds), and how often it ran.
    """
    fields = schedstat.split()
    return int(fields[1]) / 1e9 if len(fields) == 3 else 0.0


class Deadline:
    """The deadline of a call that may use `seconds` of the worker's processor time from now on.

    `until` (time.monotonic) is absolute. Where the system does not count processor time, the clock
    decides.
    """

    def __init__(self, seconds: float, worker: Timed, until: float = math.inf) -> None:
        self.seconds = seconds
        self._worker = worker
        self._used_before = worker.processor_seconds()
        self._until = until
        now = time.monotonic()
        self._end = now + CLOCK_FACTOR * seconds
        # sooner, not even all processors together use so much
        self._earliest = now + seconds / PROCESSORS

    def left(self, arrived: Callable[[], bool] = lambda: False) -> float:
        """Return the seconds to wait before the next check; raises DeadlineExceededError after the deadline.

        While `arrived` finds unread data, the clock is ignored: this process, not the worker, was
        late.
        """
        now = time.monotonic()
        if now >= self._until:
            raise DeadlineExceededError("test")
        if now >= self._earliest:
            unused = self.seconds - (self._worker.processor_seconds() - self._used_before)
            if unused <= 0:
                raise DeadlineExceededError("processor", self.seconds)
            self._earliest = now + max(unused / PROCESSORS, MOMENT)
        if now < self._end:
            return min(self._earliest, self._end, self._until) - now
        if not arrived():
            raise DeadlineExceededError(
                "clock", CLOCK_FACTOR * self.seconds, self._worker.wants_processor()
            )
        return MOMENT
