"""Time limits for trusted code: code that takes too long is not interrupted; its whole process ends.

An exception in the middle of an import would leave a process with partly imported modules.
Therefore the kernel ends the process, and another one replaces it (see
`autograder.runs.disposable`).
"""

import mmap
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from autograder.walls.outside.budget import STATE, Budget

NOTE_BYTES = 1024
NAMES_BYTES = 64 << 10  # for the names of passed tests; those beyond would be run again
DIGEST_BYTES = 64
STALLED_SECONDS = 600.0  # by the clock: no trusted code waits that long
LASTING = b"!"
PASSING = b" "


class TaskEndedError(Exception):
    """This task ended a process before, so it is not started again.

    `late`: it exceeded its time.
    """

    def __init__(self, late: bool) -> None:
        super().__init__("took too long" if late else "ended its process")
        self.late = late


class Watch:
    """Skips tasks that ended a process before.

    This class sets no limit; it is for a process that cannot be replaced.
    """

    def __init__(self) -> None:
        self.ended: dict[str, bool] = {}  # by name; True for those that took too long
        self.in_doubt = False

    @contextmanager
    def limit(self, task: str, seconds: float, lasting: bool = False) -> Iterator[None]:
        """Limit the processor time of the task in this context; nested tasks have their own limits.

        A `lasting` task is the same in each call: once it ended a process, later calls skip it,
        too. Raises TaskEndedError if this task ended a process before.
        """
        if task in self.ended:
            raise TaskEndedError(self.ended[task])
        yield

    @contextmanager
    def submission(self, digest: str, seconds: float, clock_seconds: float) -> Iterator[Budget]:
        """Grade one submission inside, with this budget of processor time and time on the clock."""
        yield Budget(seconds, clock_seconds)

    def has_passed(self, test: str) -> bool:
        """Whether the submission passed this test before the process that graded it was replaced."""
        return False

    def remember(self, test: str) -> None:
        """Remember that the submission passed this test."""

    def distrust(self) -> None:
        """Have this process replaced before the next submission."""
        self.in_doubt = True


class KernelWatch(Watch):
    """A watch with limits that the kernel enforces; the parent process can read the current task."""

    def __init__(self) -> None:
        super().__init__()
        self._note = mmap.mmap(-1, NOTE_BYTES)  # shared with the parent process
        shared = memoryview(mmap.mmap(-1, DIGEST_BYTES + STATE.size + NAMES_BYTES))
        self._digest = shared[:DIGEST_BYTES]
        self._submission = shared[DIGEST_BYTES:]
        self._budget = self._submission[: STATE.size]
        self._passed = self._submission[STATE.size :]
        self._names: set[bytes] = set()  # of the passed tests, as this process knows them
        self._filled = 0

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

    @contextmanager
    def submission(self, digest: str, seconds: float, clock_seconds: float) -> Iterator[Budget]:
        """As above.

        A process that replaces one that ended continues with what was left, and with the passed
        tests.
        """
        present = digest.encode()[:DIGEST_BYTES].ljust(DIGEST_BYTES, b"\0")
        if self._digest != present:  # one call can grade several
            self.begin_call()
            self._digest[:] = present
        names = bytes(self._passed).rstrip(b"\0")
        self._filled = len(names)
        self._names = set(names.split(b"\n"))
        try:
            yield Budget(seconds, clock_seconds, self._budget)
        finally:
            self.begin_call()

    def has_passed(self, test: str) -> bool:
        return test.encode() in self._names

    def remember(self, test: str) -> None:
        name = test.encode()
        self._names.add(name)
        filled = self._filled + len(name) + 1
        if filled <= NAMES_BYTES:
            self._passed[self._filled : filled] = name + b"\n"
            self._filled = filled

    def begin_call(self) -> None:
        """Forget the last submission."""
        self._digest[:] = bytes(DIGEST_BYTES)
        self._submission[:] = bytes(STATE.size + NAMES_BYTES)
        self._names.clear()
        self._filled = 0

    def settle(self, late: bool) -> None:
        """Count the time of the test in which a process ended; not if it had an accident."""
        Budget(memory=self._budget).settle(late)

    def clear(self) -> None:
        self._note[:] = bytes(NOTE_BYTES)
