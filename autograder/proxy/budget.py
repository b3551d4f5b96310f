"""What one submission may cost, counted once over all of its tests, workers, repeats and follow-through."""

import math
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

STATE = struct.Struct("=ddd")  # the end on the clock; the processor time used; that of the test which runs
LEAST = 0.1  # seconds for what has begun


class Budget:
    """The time of a submission: `seconds` of processor time, and `clock_seconds` from now on by the clock.

    The processor time is that of its workers, loading included, and that of the grader in its tests. The state is in
    `memory`, which processes may share: a process that replaces another one has what is left.
    """

    def __init__(self, seconds: float = math.inf, clock_seconds: float = math.inf, memory: Any = None) -> None:
        self.seconds = seconds
        self._memory = bytearray(STATE.size) if memory is None else memory
        until, used, _ = self._state()
        if not until:
            self._write(time.monotonic() + clock_seconds, used)

    @property
    def until(self) -> float:
        """The end on the clock (time.monotonic)."""
        return self._state()[0]

    @property
    def used(self) -> float:
        return self._state()[1]

    @property
    def left(self) -> float:
        """The processor time for what begins now; never less than a moment."""
        return max(LEAST, self.seconds - self.used)

    @property
    def is_spent(self) -> bool:
        return self.used >= self.seconds or time.monotonic() > self.until

    @property
    def has_room(self) -> bool:
        """Whether there is time for repeats, which leave half of it to the tests that have not run once."""
        return self.used < self.seconds / 2 and not self.is_spent

    def use(self, seconds: float) -> None:
        until, used, running = self._state()
        self._write(until, used + seconds, running)

    @contextmanager
    def counted(self, at_most: float = 0.0) -> Iterator[None]:
        """Count the processor time of this process inside, or `at_most` if the process is ended at this limit."""
        before = time.process_time()
        self._write(self.until, self.used, at_most)
        try:
            yield
        finally:
            self._write(self.until, self.used + time.process_time() - before)

    def _state(self) -> tuple[float, float, float]:
        until, used, running = STATE.unpack(self._memory[: STATE.size])
        return until, used, running

    def _write(self, until: float, used: float, running: float = 0.0) -> None:
        self._memory[: STATE.size] = STATE.pack(until, used, running)


def settle(memory: Any, late: bool) -> None:
    """Count the test in which a process ended: all of its time if it was too late, nothing after an accident."""
    until, used, running = STATE.unpack(memory[: STATE.size])
    memory[: STATE.size] = STATE.pack(until, used + (running if late else 0.0), 0.0)
