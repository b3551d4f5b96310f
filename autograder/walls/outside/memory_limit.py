"""A memory limit for the trusted side while a test processes a student's results.

A returned number can be used as a size: a number of bins, or the batch size of a call to a fake
model. If it demands too much memory, PyTorch and Python raise and the test fails; the grader and
the machine continue. The limit works on Linux only.
"""

import weakref
from resource import RLIM_INFINITY, RLIMIT_DATA, getrlimit, setrlimit

from autograder.walls.inside.jail import Footprint

MORE = 512 << 20  # bytes in addition to those in use at the beginning of a test


class MemoryLimit:
    """The memory limit of this process: `begin` sets it relative to current use, `end` lifts it.

    With several active limits, it is lifted by the last `end`.
    """

    _usual: tuple[int, int] | None = None
    _begun: "weakref.WeakSet[MemoryLimit]" = weakref.WeakSet()

    def begin(self) -> None:
        has = Footprint.now().data
        if not has:
            return
        if MemoryLimit._usual is None:
            MemoryLimit._usual = getrlimit(RLIMIT_DATA)
        self._begun.add(self)
        soft, hard = MemoryLimit._usual
        setrlimit(
            RLIMIT_DATA, (has + MORE if soft == RLIM_INFINITY else min(has + MORE, soft), hard)
        )

    def end(self) -> None:
        self._begun.discard(self)
        if MemoryLimit._usual is not None and not self._begun:
            setrlimit(RLIMIT_DATA, MemoryLimit._usual)
            MemoryLimit._usual = None
