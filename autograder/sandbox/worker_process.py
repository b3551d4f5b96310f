"""One worker: the process that the fork server made for one student's code, as the trusted side sees it."""

from __future__ import annotations

import json
import os
import socket
import time
from dataclasses import dataclass
from typing import Any, BinaryIO

from autograder.records import InfrastructureError
from autograder.sandbox.zygote import STATISTICS

END_SECONDS = 10
BRIEF_SECONDS = 2
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Ending:
    """How a worker ended: by itself ("exit"), or killed for "cpu", "wall" or because we asked ("closed").

    `code` is the exit code, or minus the number of the signal. Memory includes what workers share.
    """

    reason: str
    code: int
    cpu_seconds: float
    peak_memory_mb: float


class WorkerProcess:
    """One forked process for one student's code, and the descriptors that lead to it.

    `socket` is the data socket. Everything that comes out of a worker is a claim, not a fact.
    """

    def __init__(self, data: socket.socket, output: BinaryIO, status: socket.socket) -> None:
        self.socket = data
        self._output = output
        self._status = status
        self._ending: Ending | None = None
        self._statistics: int | None = None

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def output(self, limit: int = 64 * 1024) -> str:
        """What the worker has printed so far, at most `limit` bytes of it, control characters and all."""
        return os.pread(self._output.fileno(), limit, 0).decode("utf-8", "replace")

    def processor_seconds(self) -> float:
        """Return the processor time of all its threads, as the kernel counts it; 0.0 where the system does not tell."""
        user, system = self._read_statistics()[11:13] or (0, 0)
        return (int(user) + int(system)) / TICKS

    def wants_processor(self) -> bool:
        """Whether it runs, stands in line for a processor or waits for the disk, and does not sleep."""
        return self._read_statistics()[:1] in ([b"R"], [b"D"])

    def _read_statistics(self) -> list[bytes]:
        """Return the fields of its /proc/self/stat from the state on; none after its end."""
        if self._statistics is None and self._ending is None:
            self._statistics = _receive_statistics(self._status)
        try:
            line = b"" if self._statistics is None else os.pread(self._statistics, 1024, 0)
        except OSError:
            line = b""
        return line.rpartition(b")")[2].split()

    def end(self, kill: bool = True) -> Ending:
        """How it ended: after killing it, or after giving it a moment to end by itself.

        Raises InfrastructureError when not the worker but the sandbox failed.
        """
        if self._ending is None:
            self._ending = self._await_ending(kill)
        return self._ending

    def close(self) -> None:
        """Kills the worker if it lives and frees everything; afterwards it is reaped."""
        try:
            self.end()
        except InfrastructureError:
            pass  # the fork server is gone, and its workers with it
        finally:
            self.socket.close()
            self._status.close()
            self._output.close()
            if self._statistics is not None:
                os.close(self._statistics)
                self._statistics = None

    def _await_ending(self, kill: bool) -> Ending:
        report = None if kill else _receive_all(self._status, BRIEF_SECONDS)
        if report is None:
            _hang_up(self._status)
            report = _receive_all(self._status, END_SECONDS)
        if not report or not report.strip():
            raise InfrastructureError("The sandbox's fork server ended before it said how a worker ended.")
        ending: dict[str, Any] = json.loads(report)
        problem = ending.pop("setup_error")
        if problem:
            raise InfrastructureError(f"The sandbox could not put up the walls round a worker: {problem}.")
        return Ending(**ending)


def _receive_all(connection: socket.socket, seconds: float) -> bytes | None:
    """Everything until the other side hangs up; None when that takes too long."""
    until, text = time.monotonic() + seconds, b""
    try:
        while True:
            connection.settimeout(max(0.001, until - time.monotonic()))
            chunk = connection.recv(4096)
            if not chunk:
                return text
            text += chunk
    except TimeoutError:
        return None
    except OSError:
        return text


def _receive_statistics(connection: socket.socket) -> int | None:
    """Receive the file that a worker sends before all else; None while it has not."""
    try:
        connection.settimeout(0)
        if connection.recv(1, socket.MSG_PEEK) != STATISTICS:
            return None
        _, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
        return descriptors[0] if descriptors else None
    except OSError:
        return None


def _hang_up(connection: socket.socket) -> None:
    """Asks the fork server to kill the worker; one that has ended is no error."""
    try:
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        return
