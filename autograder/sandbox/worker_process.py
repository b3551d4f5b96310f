"""One worker: the process that the fork server made for one student's code, as the trusted side sees it."""

from __future__ import annotations

import functools
import json
import os
import socket
import time
from dataclasses import dataclass
from typing import Any, BinaryIO

from autograder.records import InfrastructureError
from autograder.sandbox.zygote import CLOCK, CLOCKS

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
        self._clocks: list[int] = []

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def output(self, limit: int = 64 * 1024) -> str:
        """What the worker has printed so far, at most `limit` bytes of it, control characters and all."""
        return os.pread(self._output.fileno(), limit, 0).decode("utf-8", "replace")

    def seconds_queued(self) -> float:
        """Seconds that its first thread, or this process when it was asked back, stood in line for a processor.

        0.0 where the system does not tell.
        """
        if not self._clocks and self._ending is None:
            self._clocks = _receive_clocks(self._status)
        return sum(_times(each)[1] for each in (*self._clocks[:1], *_own_clock()))

    def other_threads_seconds(self) -> float:
        """Seconds of processor time that its further threads have used; 0.0 where the system does not tell."""
        if not self._clocks:
            return 0.0
        first, all_together = self._clocks
        ticks = _read(all_together).rpartition(b")")[2].split()[11:13]
        return max(0.0, sum(map(int, ticks)) / TICKS - _times(first)[0])

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
            for each in self._clocks:
                os.close(each)
            self._clocks.clear()

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


@functools.cache
def _own_clock() -> tuple[int, ...]:
    """The file that tells the time of this process; none where there is none."""
    try:
        return (os.open("/proc/self/schedstat", os.O_RDONLY | os.O_CLOEXEC),)
    except OSError:
        return ()


if hasattr(os, "register_at_fork"):  # the file tells the time of the process that opened it
    os.register_at_fork(after_in_child=_own_clock.cache_clear)


def _times(clock: int) -> tuple[float, float]:
    """Seconds for which a process ran, and for which it stood in line; zeros when it has ended."""
    ran, seconds_queued = (_read(clock).split() or [b"0", b"0"])[:2]
    return int(ran) / 1e9, int(seconds_queued) / 1e9


def _read(file: int) -> bytes:
    try:
        return os.pread(file, 1024, 0)
    except OSError:  # of a process that has ended
        return b""


def _receive_clocks(connection: socket.socket) -> list[int]:
    """The files that a worker sends before all else: what the kernel knows of its time; none while it has not."""
    try:
        connection.settimeout(0)
        if connection.recv(1, socket.MSG_PEEK) != CLOCK:
            return []
        _, descriptors, _, _ = socket.recv_fds(connection, 1, len(CLOCKS))
        return descriptors
    except OSError:
        return []


def _hang_up(connection: socket.socket) -> None:
    """Asks the fork server to kill the worker; one that has ended is no error."""
    try:
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        return
