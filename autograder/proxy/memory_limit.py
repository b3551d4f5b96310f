"""How much memory a test may take on the trusted side while it works with a student's answers.

A number that comes back may be used as a size: a count of bins, the rows of a batch that a fake model is asked about.
Where that asks for too much, PyTorch and Python raise, and the test fails; the grader and the machine go on. On other
systems than Linux nothing is promised.
"""

from __future__ import annotations

import sys
import weakref

MORE = 512 << 20  # bytes beyond those that this process has when a test begins


class MemoryLimit:
    """What this process may take: `begin` counts from what it has now, `end` lifts the limit.

    Where several have begun, the limit lasts until the last of them ends.
    """

    _usual: tuple[int, int] | None = None
    _begun: weakref.WeakSet[MemoryLimit] = weakref.WeakSet()

    def begin(self) -> None:
        if sys.platform != "linux":
            return
        from resource import RLIM_INFINITY, RLIMIT_DATA, getrlimit, setrlimit

        from autograder.sandbox.jail import Footprint

        has = Footprint.now().data
        if not has:
            return
        if MemoryLimit._usual is None:
            MemoryLimit._usual = getrlimit(RLIMIT_DATA)
        self._begun.add(self)
        soft, hard = MemoryLimit._usual
        setrlimit(RLIMIT_DATA, (has + MORE if soft == RLIM_INFINITY else min(has + MORE, soft), hard))

    def end(self) -> None:
        self._begun.discard(self)
        if MemoryLimit._usual is not None and not self._begun:
            from resource import RLIMIT_DATA, setrlimit

            setrlimit(RLIMIT_DATA, MemoryLimit._usual)
            MemoryLimit._usual = None
