"""A command that is run again and again beside the work of this process."""

import subprocess
import time
from collections.abc import Callable, Sequence

END_SECONDS = 10.0


class Repeated:
    """Runs a command at once, and again so many seconds after each start, but never twice at a time."""

    def __init__(
        self, command: Sequence[str], seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._command = command
        self._seconds = seconds
        self._clock = clock
        self._next = clock()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def due(self) -> float:
        """When to look again, on the clock."""
        return self._clock() + 1 if self._process else self._next

    def look(self) -> None:
        """Start the command if it is time; raises OSError."""
        if self._process is not None and self._process.poll() is not None:
            self._process = None
        if self._process is None and self._clock() >= self._next:
            self._next = self._clock() + self._seconds
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL)

    def close(self) -> None:
        """End the command, which gets time to end what it started."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
