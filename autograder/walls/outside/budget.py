"""What one submission may cost, and what it tried in vain, over all of its tests, workers, repeats and follow-through."""

import io
import math
import os
import struct
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from autograder.walls.inside.tried import NETWORK, PROGRAM
from autograder.walls.outside.deadline import CLOCK_FACTOR, seconds_waited

# the end on the clock; the processor time used; that of the test which runs; bytes; time withheld;
# 1.0 for each kind of what it tried in vain
STATE = struct.Struct("=ddddddd")
FIELD = struct.Struct("=d")
USED_AND_RUNNING = struct.Struct("=dd")
# received from all workers; receiving, comparing and dropping them takes other processes' time
MAX_BYTES = 256 << 20
TRIES = (NETWORK, PROGRAM)
FIELDS = ("until", "used", "running", "received", "withheld", *TRIES)
PLACES = {name: number * FIELD.size for number, name in enumerate(FIELDS)}
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
        if not self._field("until"):
            self._write("until", time.monotonic() + clock_seconds)

    @property
    def until(self) -> float:
        """The end on the clock (time.monotonic)."""
        most_withheld = (CLOCK_FACTOR - 1) * self.clock_seconds
        return self._field("until") + min(self._field("withheld"), most_withheld)

    @property
    def used(self) -> float:
        return self._field("used")

    @property
    def received(self) -> float:
        return self._field("received")

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
        self._write("used", self.used + seconds)

    def withhold(self, seconds: float) -> None:
        """Count time in which a process was ready to run and had no processor."""
        self._write("withheld", self._field("withheld") + seconds)

    def receive(self, size: int) -> None:
        """Count what a worker has sent."""
        self._write("received", self.received + size)

    def note(self, tried: Iterable[str]) -> None:
        """Note what a worker tried in vain."""
        for kind in set(TRIES).intersection(tried):
            self._write(kind, 1.0)

    @property
    def tried(self) -> list[str]:
        """What any of the workers tried in vain."""
        return [kind for kind in TRIES if self._field(kind)]

    @contextmanager
    def counted(self, at_most: float = 0.0) -> Iterator[None]:
        """Count the processor time of this process inside, or `at_most` if the process is ended at this limit."""
        used_before = time.process_time()
        waited_before = seconds_this_thread_waited()
        self._write("running", at_most)
        try:
            yield
        finally:
            self._end_test(time.process_time() - used_before)
            self.withhold(seconds_this_thread_waited() - waited_before)

    def settle(self, late: bool) -> None:
        """Count the test in which a process ended: all of its time if it was too late, nothing after an accident."""
        self._end_test(self._field("running") if late else 0.0)

    def _end_test(self, seconds: float) -> None:
        """Count a test's time; in one write, as the process can be ended at any moment."""
        USED_AND_RUNNING.pack_into(self._memory, PLACES["used"], self.used + seconds, 0.0)

    def _field(self, name: str) -> float:
        value: float = FIELD.unpack_from(self._memory, PLACES[name])[0]
        return value

    def _write(self, name: str, value: float) -> None:
        FIELD.pack_into(self._memory, PLACES[name], value)


class _OpenFile(threading.local):
    """The file of a thread in which the kernel tells how long it waited; opening it takes as long as a short test."""

    process = 0
    file: io.FileIO

    def read(self) -> bytes:
        if self.process != os.getpid():  # the first time, also in a fork
            self.file = io.FileIO("/proc/thread-self/schedstat")
            self.process = os.getpid()
        return os.pread(self.file.fileno(), 100, 0)


_own_schedule = _OpenFile()


def seconds_this_thread_waited() -> float:
    """Return how long this thread was ready to run and had no processor; 0.0 if the system does not tell."""
    try:
        return seconds_waited(_own_schedule.read())
    except OSError:
        return 0.0
