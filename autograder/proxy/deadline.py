"""How long a student's code is waited for: by the clock, but for the time it stood in line for a processor."""

from __future__ import annotations

import math
import time
from typing import Protocol

MOST_IN_LINE = 4  # times the seconds of a call; where code stood in line for longer, the machine is too busy
MOMENT = 0.01


class DeadlineExceededError(TimeoutError):
    """No answer. `endless`: the code had all its time; `starved`: the machine was too busy to give it that."""

    def __init__(self, endless: bool, starved: bool) -> None:
        super().__init__("no answer")
        self.endless, self.starved = endless, starved


class Timed(Protocol):
    """Somebody whose time is told by the kernel, in seconds; never by what runs there."""

    def seconds_queued(self) -> float: ...

    def other_threads_seconds(self) -> float: ...


class Deadline:
    """Counts down from `seconds`; `until` (time.monotonic) ends it all.

    Code whose own further threads keep it from running has nobody else to blame.
    """

    def __init__(self, seconds: float, worker: Timed, until: float = math.inf) -> None:
        self.seconds = seconds
        self._worker, self._in_line_before = worker, worker.seconds_queued()
        self._end, self._until = time.monotonic() + seconds, until
        self._granted = 0.0

    def left(self) -> float:
        """Seconds to wait before asking again; raises TooLate when there are none."""
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
            0.0, self._worker.seconds_queued() - self._in_line_before - self._worker.other_threads_seconds()
        )
