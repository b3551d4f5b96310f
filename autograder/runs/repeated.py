"""A command that is run again and again beside the work of this process."""

import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType

END_SECONDS = 10.0


class Repeated:
    """Runs a command at once, and again so many seconds after each start, but never twice at a time.

    It is a context manager, at whose end the command gets time to end what it started. `on_error`
    is called, in a thread of its own, with what keeps the command from starting.
    """

    def __init__(
        self, command: Sequence[str], seconds: float, on_error: Callable[[OSError], None]
    ) -> None:
        self._command = command
        self._seconds = seconds
        self._on_error = on_error
        self._is_over = threading.Event()
        self._starting = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._repeat, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(
        self, kind: type | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_over.set()
        with self._starting:
            process = self._process
        if process is None:
            return
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _repeat(self) -> None:
        while not self._is_over.is_set():
            next_start = time.monotonic() + self._seconds
            try:
                self._run()
            except OSError as error:
                self._on_error(error)
            self._is_over.wait(max(0.0, next_start - time.monotonic()))

    def _run(self) -> None:
        with self._starting:
            if self._is_over.is_set():
                return
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL)
        self._process.wait()
