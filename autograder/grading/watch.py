"""Time limits for trusted code: code that takes too long is not interrupted; its whole process ends.

An exception in the middle of an import would leave a process with partly imported modules. Therefore the kernel ends the
process, and another one replaces it (see `autograder.grading.disposable`).
"""

import mmap
import signal
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager

NOTE_BYTES = 1024
MOMENT = struct.Struct("=d")
STALLED_SECONDS = 600.0  # by the clock: no trusted code waits that long
LASTING, PASSING = b"!", b" "


class TaskEndedError(Exception):
    """This task ended a process before, so it is not started again. `late`: it exceeded its time."""

    def __init__(self, late: bool) -> None:
        super().__init__("took too long" if late else "ended its process")
        self.late = late


class Watch:
    """Skips tasks that ended a process before. This class sets no limit; it is for a process that cannot be replaced."""

    def __init__(self) -> None:
        self.ended: dict[str, bool] = {}  # by name; True for those that took too long
        self.in_doubt = False

    @contextmanager
    def limit(self, task: str, seconds: float, lasting: bool = False) -> Iterator[None]:
        """Limit the processor time of the task in this context; nested tasks have their own limits.

        A `lasting` task is the same in each call: once it ended a process, later calls skip it, too.
        Raises TaskEndedError if this task ended a process before.
        """
        if task in self.ended:
            raise TaskEndedError(self.ended[task])
        yield

    def until(self, seconds: float) -> float:
        """Return when the present submission has used up so many seconds by the clock (time.monotonic)."""
        return time.monotonic() + seconds

    def distrust(self) -> None:
        """Have this process replaced before the next submission."""
        self.in_doubt = True


class KernelWatch(Watch):
    """A watch with limits that the kernel enforces; the parent process can read the current task."""

    def __init__(self) -> None:
        super().__init__()
        self._note = mmap.mmap(-1, NOTE_BYTES)  # shared with the parent process
        self._until = mmap.mmap(-1, MOMENT.size)  # 0 before the submission's time has begun

    @property
    def task(self) -> tuple[str, bool]:
        """The name of the unfinished task, or "", and whether it is a lasting one."""
        note = self._note[:].rstrip(b"\0")
        return note[1:].decode("utf-8", "replace"), note[:1] == LASTING

    @contextmanager
    def limit(self, task: str, seconds: float, lasting: bool = False) -> Iterator[None]:
        with super().limit(task, seconds, lasting):
            before = self._note[:]
            note = (LASTING if lasting else PASSING) + task.encode("utf-8", "replace")
            self._note[:] = note[:NOTE_BYTES].ljust(NOTE_BYTES, b"\0")
            processor = signal.setitimer(signal.ITIMER_PROF, seconds)
            clock = signal.setitimer(signal.ITIMER_REAL, STALLED_SECONDS)
            try:
                yield
            finally:
                signal.setitimer(signal.ITIMER_PROF, *processor)
                signal.setitimer(signal.ITIMER_REAL, *clock)
                self._note[:] = before

    def until(self, seconds: float) -> float:
        """As above; a process that replaces one that ended has no more time than was left."""
        (moment,) = MOMENT.unpack(self._until[:])
        if not moment:
            moment = super().until(seconds)
            self._until[:] = MOMENT.pack(moment)
        return float(moment)

    def begin_call(self) -> None:
        """Give the next submission a time of its own."""
        self._until[:] = bytes(MOMENT.size)

    def clear(self) -> None:
        self._note[:] = bytes(NOTE_BYTES)
