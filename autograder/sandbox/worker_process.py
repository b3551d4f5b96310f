"""The launcher's side of a worker: the sandboxed process that executes one student's code."""

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
    """The end of a worker: by itself ("exit"), killed at a limit ("cpu", "wall"), or killed on request ("closed").

    `code` is the exit code, or minus the number of the signal. The memory includes pages shared with other workers.
    """

    reason: str
    code: int
    cpu_seconds: float
    peak_memory_mb: float


class WorkerProcess:
    """A worker and the descriptors connected to it, as a context manager that kills it.

    `socket` is the data socket. Everything that a worker sends is an unverified claim.
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
        """Return the first `limit` bytes of the worker's output so far, including control characters."""
        return os.pread(self._output.fileno(), limit, 0).decode("utf-8", "replace")

    def seconds_queued(self) -> float:
        """Return the seconds for which the worker's first thread and this process have waited for a processor.

        0.0 if the system does not provide the number.
        """
        if not self._clocks and self._ending is None:
            self._clocks = _receive_clocks(self._status)
        return sum(_times(each)[1] for each in (*self._clocks[:1], *_own_clock()))

    def other_threads_seconds(self) -> float:
        """Return the processor time of all threads but the first; 0.0 if the system does not provide the number."""
        if not self._clocks:
            return 0.0
        first, all_together = self._clocks
        ticks = _read(all_together).rpartition(b")")[2].split()[11:13]
        return max(0.0, sum(map(int, ticks)) / TICKS - _times(first)[0])

    def end(self, kill: bool = True) -> Ending:
        """Kill the worker, or with `kill=False` wait a moment for its own end first; return how it ended.

        Raises InfrastructureError if the sandbox failed.
        """
        if self._ending is None:
            self._ending = self._await_ending(kill)
        return self._ending

    def close(self) -> None:
        """Kill the worker if it is alive, wait until it is reaped, and close all descriptors."""
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
    """Receive everything until the other side closes the connection; None if that takes too long."""
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
    """Open the kernel's file of this process's scheduling times; empty if the system has none."""
    try:
        return (os.open("/proc/self/schedstat", os.O_RDONLY | os.O_CLOEXEC),)
    except OSError:
        return ()


if hasattr(os, "register_at_fork"):  # the file belongs to the process that opened it
    os.register_at_fork(after_in_child=_own_clock.cache_clear)


def _times(clock: int) -> tuple[float, float]:
    """Return the seconds for which a process has run and waited for a processor; zeros if it has ended."""
    ran, seconds_queued = (_read(clock).split() or [b"0", b"0"])[:2]
    return int(ran) / 1e9, int(seconds_queued) / 1e9


def _read(file: int) -> bytes:
    try:
        return os.pread(file, 1024, 0)
    except OSError:  # of a process that has ended
        return b""


def _receive_clocks(connection: socket.socket) -> list[int]:
    """Receive the descriptors of a worker's scheduling times, which it sends first; empty if they have not arrived."""
    try:
        connection.settimeout(0)
        if connection.recv(1, socket.MSG_PEEK) != CLOCK:
            return []
        _, descriptors, _, _ = socket.recv_fds(connection, 1, len(CLOCKS))
        return descriptors
    except OSError:
        return []


def _hang_up(connection: socket.socket) -> None:
    """Make the fork server kill the worker; does nothing if the worker has ended."""
    try:
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        return
