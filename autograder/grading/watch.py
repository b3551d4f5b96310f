"""Limits for trusted work: what takes too long ends its process; it is never interrupted.

An exception in the middle of an import would leave a process that looks whole and is not. So the kernel ends the whole
process, and another takes its place (see `autograder.grading.disposable`).
"""

import mmap
import signal
from collections.abc import Iterator
from contextlib import contextmanager

NOTE_BYTES = 1024
STALLED_SECONDS = 600.0  # by the clock: nothing trusted waits that long
LASTING, PASSING = b"!", b" "


class TaskEndedError(Exception):
    """This task has ended a process before, so it is not begun again. `late`: it took too long."""

    def __init__(self, late: bool) -> None:
        super().__init__("took too long" if late else "ended its process")
        self.late = late


class Watch:
    """Knows the tasks that ended a process before. This one, for a process that nobody replaces, sets no limit."""

    def __init__(self) -> None:
        self.ended: dict[str, bool] = {}  # by name; True for those that took too long
        self.in_doubt = False

    @contextmanager
    def limit(self, task: str, seconds: float, lasting: bool = False) -> Iterator[None]:
        """Do one task, which may use so many seconds of processor time; tasks may be nested, and are timed apart.

        A `lasting` task is the same in each call, so it is not tried again in a later one either.
        Raises TaskEndedError for a task that ended a process before.
        """
        if task in self.ended:
            raise TaskEndedError(self.ended[task])
        yield

    def distrust(self) -> None:
        """Have this process replaced before it does anything for another submission."""
        self.in_doubt = True


class KernelWatch(Watch):
    """A watch whose limits the kernel keeps; the process that forked this one reads what it was doing."""

    def __init__(self) -> None:
        super().__init__()
        self._note = mmap.mmap(-1, NOTE_BYTES)  # shared by both

    @property
    def task(self) -> tuple[str, bool]:
        """The task that was begun and has not ended, and whether it is a lasting one; an empty name for none."""
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

    def clear(self) -> None:
        self._note[:] = bytes(NOTE_BYTES)
