"""The launcher's side of a worker: the sandboxed process that executes one student's code."""

import json
import os
import socket
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from autograder.records import InfrastructureError
from autograder.walls.inside.statistics import STATISTICS, STATISTICS_FILES
from autograder.walls.outside.deadline import seconds_waited

END_SECONDS = 10
BRIEF_SECONDS = 2
STATE = 0  # which of a worker's files of statistics
SCHEDULING = 1
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Ending:
    """The end of a worker: by itself ("exit"), killed at a limit ("cpu", "wall", "disk"), or on request ("closed").

    `code` is the exit code, or minus the number of the signal; `processor_seconds` is what it used
    in its whole life, and `tried` what the kernel says that it tried in vain (see `shared.tried`).
    """

    reason: str
    code: int
    processor_seconds: float = field(default=0.0, compare=False)
    tried: Sequence[str] = field(default=(), compare=False)


class WorkerProcess(AbstractContextManager["WorkerProcess"]):
    """A worker and the descriptors connected to it, as a context manager that kills it.

    `socket` is the data socket. Everything that a worker sends is an unverified claim.
    """

    def __init__(self, data: socket.socket, output: BinaryIO, status: socket.socket) -> None:
        self.socket = data
        self._output = output
        self._status = status
        self._ending: Ending | None = None
        self._statistics: list[int] = []  # descriptors of its /proc/self/stat and schedstat

    def __exit__(self, *_: object) -> None:
        self.close()

    def output(self, limit: int = 64 * 1024) -> str:
        """Return the first `limit` bytes of the worker's output so far, including control characters."""
        return os.pread(self._output.fileno(), limit, 0).decode("utf-8", "replace")

    def processor_seconds(self) -> float:
        """Return the processor time of all threads of the worker; 0.0 if the system does not provide it."""
        if self._ending is not None:
            return self._ending.processor_seconds
        user, system = self._read_statistics()[11:13] or (0, 0)
        return (int(user) + int(system)) / TICKS

    def wants_processor(self) -> bool:
        """Return whether the worker runs, or waits for a processor or the disk; False if it sleeps."""
        return self._read_statistics()[:1] in ([b"R"], [b"D"])

    def seconds_waited(self) -> float:
        """Return how long its main thread was ready to run and had no processor; 0.0 after its end,
        and if the system does not provide it.
        """
        return seconds_waited(self._read(SCHEDULING))

    def _read_statistics(self) -> list[bytes]:
        """Return the fields of its /proc/self/stat from the state on; none after its end."""
        return self._read(STATE).rpartition(b")")[2].split()

    def _read(self, number: int) -> bytes:
        """Read one of the files that its descriptors name; nothing after its end."""
        if not self._statistics and self._ending is None:
            self._statistics = _receive_statistics(self._status)
        if number < len(self._statistics):
            with suppress(OSError):
                return os.pread(self._statistics[number], 1024, 0)
        return b""

    def end(self, kill: bool = True) -> Ending:
        """Kill the worker, or with `kill=False` wait a moment for its own end first; return how it ended.

        Raises InfrastructureError if the sandbox failed.
        """
        if self._ending is None:
            self._ending = self._await_ending(kill)
        return self._ending

    @property
    def tried(self) -> Sequence[str]:
        """What it tried in vain in its whole life; nothing before its end."""
        return self._ending.tried if self._ending is not None else ()

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
            for descriptor in self._statistics:
                os.close(descriptor)
            self._statistics = []

    def _await_ending(self, kill: bool) -> Ending:
        report = None if kill else receive(self._status, BRIEF_SECONDS)
        if report is None:
            with suppress(OSError):  # it makes the fork server kill the worker, unless it has ended
                self._status.shutdown(socket.SHUT_WR)
            report = receive(self._status, END_SECONDS)
        if not report or not report.strip():
            raise InfrastructureError(
                "The sandbox's fork server ended before it said how a worker ended."
            )
        ending: dict[str, Any] = json.loads(report)
        problem = ending.pop("setup_error")
        if problem:
            raise InfrastructureError(
                f"The sandbox could not put up the walls round a worker: {problem}."
            )
        return Ending(**ending)


def receive(connection: socket.socket, seconds: float, end: bytes | None = None) -> bytes | None:
    """Receive until the text ends in `end` or the other side closes the connection; None if that takes too long."""
    until = time.monotonic() + seconds
    text = b""
    try:
        while end is None or not text.endswith(end):
            connection.settimeout(max(0.001, until - time.monotonic()))
            chunk = connection.recv(4096)
            if not chunk:
                break
            text += chunk
    except TimeoutError:
        return None
    except OSError:
        pass
    return text


def _receive_statistics(connection: socket.socket) -> list[int]:
    """Receive the descriptors that a worker sends first; none if they have not arrived."""
    try:
        connection.settimeout(0)
        if connection.recv(1, socket.MSG_PEEK) != STATISTICS:
            return []
        _, descriptors, _, _ = socket.recv_fds(connection, 1, len(STATISTICS_FILES))
        return descriptors
    except OSError:
        return []
