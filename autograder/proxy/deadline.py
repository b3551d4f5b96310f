"""Deadlines of calls to a student's code: wall-clock time without the time spent waiting for a processor."""

from __future__ import annotations

import math
import time
from typing import Protocol

MOST_IN_LINE = 4  # maximum extension, as a multiple of the time limit; beyond it, the machine is too busy
MOMENT = 0.01


class DeadlineExceededError(TimeoutError):
    """A call timed out: `endless` if the code used all its time, `starved` if the machine was too busy."""

    def __init__(self, endless: bool, starved: bool) -> None:
        super().__init__("no answer")
        self.endless, self.starved = endless, starved


class Timed(Protocol):
    """A process whose times, in seconds, are measured by the kernel and not reported by the process."""

    def seconds_queued(self) -> float: ...

    def other_threads_seconds(self) -> float: ...


class Deadline:
    """A deadline `seconds` from now, extended by the time spent waiting for a processor.

    `until` (time.monotonic) is absolute. Waiting caused by the code's own further threads does not extend the deadline.
    """

    def __init__(self, seconds: float, worker: Timed, until: float = math.inf) -> None:
        self.seconds = seconds
        self._worker, self._queued_before = worker, worker.seconds_queued()
        self._end, self._until = time.monotonic() + seconds, until
        self._granted = 0.0

    def left(self) -> float:
        """Return the seconds to wait before the next check; raises DeadlineExceededError after the deadline."""
        now = time.monotonic()
        if now >= self._until:
            raise DeadlineExceededError(endless=False, starved=False)
        if now >= self._end + self._granted:
            most = MOST_IN_LINE * self.seconds
            self._granted = min(self._kept_waiting(), most)
            if now >= self._end + self._granted:
                raise DeadlineExceededError(endless=self._granted < most, starved=self._granted >= most)
        return min(max(self._end + self._granted - now, MOMENT), self._until - now)

    def _kept_waiting(self) -> float:
        return max(
            0.0, self._worker.seconds_queued() - self._queued_before - self._worker.other_threads_seconds()
        )
