"""What one submission may cost, and what it tried in vain, over all of its tests, workers, repeats and follow-through."""

import math
import struct
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from autograder.walls.inside.tried import NETWORK, PROGRAM
from autograder.walls.outside.deadline import CLOCK_FACTOR, seconds_waited

# the end on the clock; the processor time used; that of the test which runs; bytes; time withheld;
# 1.0 for each kind of what it tried in vain
STATE = struct.Struct("=ddddddd")
# received from all workers; receiving, comparing and dropping them takes other processes' time
MAX_BYTES = 256 << 20
TRIES = (NETWORK, PROGRAM)
FIELDS = ("until", "used", "running", "received", "withheld", *TRIES)
LEAST = 0.1  # seconds for what has begun


class Budget:
    """The time of a submission: `seconds` of processor time, and `clock_seconds` from now on by the clock.

    The processor time is that of its workers, loading included, and that of the grader in its
    tests. Time in which they were ready to run, but other processes had all processors, is added to
    the end on the clock, up to five times `clock_seconds` in all, because code can bring that
    about. The state is in `memory`, which processes may share: a process that replaces another one
    has what is left.
    """

    def __init__(
        self, seconds: float = math.inf, clock_seconds: float = math.inf, memory: Any = None
    ) -> None:
        self.seconds = seconds
        self.clock_seconds = clock_seconds
        self._memory = bytearray(STATE.size) if memory is None else memory
        if not self._state()["until"]:
            self._write(until=time.monotonic() + clock_seconds)

    @property
    def until(self) -> float:
        """The end on the clock (time.monotonic)."""
        state = self._state()
        return state["until"] + min(state["withheld"], (CLOCK_FACTOR - 1) * self.clock_seconds)

    @property
    def used(self) -> float:
        return self._state()["used"]

    @property
    def received(self) -> float:
        return self._state()["received"]

    @property
    def left(self) -> float:
        """The processor time for what begins now; never less than a moment."""
        return max(LEAST, self.seconds - self.used)

    @property
    def is_spent(self) -> bool:
        return (
            self.used >= self.seconds or self.received > MAX_BYTES or time.monotonic() > self.until
        )

    @property
    def has_room(self) -> bool:
        """Whether there is time for repeats, which leave half of it to the tests that have not run once."""
        return self.used < self.seconds / 2 and self.received < MAX_BYTES / 2 and not self.is_spent

    def use(self, seconds: float) -> None:
        self._write(used=self.used + seconds)

    def withhold(self, seconds: float) -> None:
        """Count time in which a process was ready to run and had no processor."""
        self._write(withheld=self._state()["withheld"] + seconds)

    def receive(self, size: int) -> None:
        """Count what a worker has sent."""
        self._write(received=self.received + size)

    def note(self, tried: Iterable[str]) -> None:
        """Note what a worker tried in vain."""
        self._write(**dict.fromkeys(set(TRIES).intersection(tried), 1.0))

    @property
    def tried(self) -> list[str]:
        """What any of the workers tried in vain."""
        state = self._state()
        return [kind for kind in TRIES if state[kind]]

    @contextmanager
    def counted(self, at_most: float = 0.0) -> Iterator[None]:
        """Count the processor time of this process inside, or `at_most` if the process is ended at this limit."""
        used_before = time.process_time()
        waited_before = seconds_this_thread_waited()
        self._write(running=at_most)
        try:
            yield
        finally:
            self._write(used=self.used + time.process_time() - used_before, running=0.0)
            self.withhold(seconds_this_thread_waited() - waited_before)

    def settle(self, late: bool) -> None:
        """Count the test in which a process ended: all of its time if it was too late, nothing after an accident."""
        running = self._state()["running"]
        self._write(used=self.used + (running if late else 0.0), running=0.0)

    def _state(self) -> dict[str, float]:
        return dict(zip(FIELDS, STATE.unpack(self._memory[: STATE.size]), strict=True))

    def _write(self, **changed: float) -> None:
        self._memory[: STATE.size] = STATE.pack(*{**self._state(), **changed}.values())


def seconds_this_thread_waited() -> float:
    """Return how long this thread was ready to run and had no processor; 0.0 if the system does not tell."""
    try:
        with open("/proc/thread-self/schedstat", "rb") as file:
            return seconds_waited(file.read())
    except OSError:
        return 0.0
