"""The trusted side of the sandbox: starts the isolated fork server and requests workers from it.

    with Sandbox() as sandbox:
        worker = sandbox.spawn(limits)
        …                       # communicate over worker.socket
        ending = worker.end()

Data from a worker is not interpreted here, only transported.
"""

from __future__ import annotations

import functools
import json
import os
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from autograder.records import InfrastructureError
from autograder.sandbox.command import COMMANDS, Layout, SandboxUnavailableError, unavailable
from autograder.sandbox.jail import TIERS
from autograder.sandbox.zygote import CLOCK, CLOCKS

SERVER_ENTRY = "autograder.protocol.server:serve"
START_SECONDS = 120
END_SECONDS = 10
BRIEF_SECONDS = 2
COMPLAINT_LINES = 6
TICKS = os.sysconf("SC_CLK_TCK")
Modules = tuple[str, ...]
LIMITS = (
    "call_seconds",
    "load_seconds",
    "cpu_seconds",
    "submission_seconds",
    "memory_mb",
    "file_mb",
    "scratch_mb",
    "processes",
    "open_files",
    "output_kb",
)


@dataclass(frozen=True)
class Ending:
    """The end of a worker: by itself ("exit"), or killed for "cpu", "wall", or on request ("closed").

    `code` is the exit code, or the negative number of the signal. Memory includes pages that workers share.
    """

    reason: str
    code: int
    cpu_seconds: float
    peak_memory_mb: float


class WorkerProcess:
    """One forked process for one student's code, and its descriptors.

    `socket` is the data socket. No output of a worker can be trusted.
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
        """Return at most `limit` bytes of the worker's output so far, including control characters."""
        return os.pread(self._output.fileno(), limit, 0).decode("utf-8", "replace")

    def seconds_queued(self) -> float:
        """Seconds that its first thread, or this process during a callback, waited for a processor.

        0.0 if the system does not provide the time.
        """
        if not self._clocks and self._ending is None:
            self._clocks = _receive_clocks(self._status)
        return sum(_times(each)[1] for each in (*self._clocks[:1], *_own_clock()))

    def other_threads_seconds(self) -> float:
        """Processor time in seconds of its further threads; 0.0 if the system does not provide it."""
        if not self._clocks:
            return 0.0
        first, all_together = self._clocks
        ticks = _read(all_together).rpartition(b")")[2].split()[11:13]
        return max(0.0, sum(map(int, ticks)) / TICKS - _times(first)[0])

    def end(self, kill: bool = True) -> Ending:
        """Kill the worker, or give it a moment to exit, and return its ending.

        Raises InfrastructureError if the sandbox failed, not the worker.
        """
        if self._ending is None:
            self._ending = self._await_ending(kill)
        return self._ending

    def close(self) -> None:
        """Kill the worker if it is alive, reap it, and release all resources."""
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


class Sandbox:
    """An isolated fork server, as a context manager.

    `tier` is "namespaces", "landlock", "unsafe", or "best": the strongest safe tier that works. `hidden` lists
    folders that no worker may see. `entry`, `warm` and `folders` (added to the workers' import path, read-only) are
    for tests of the sandbox itself. Raises SandboxUnavailableError.
    """

    def __init__(
        self,
        tier: str = "best",
        *,
        hidden: Iterable[Path] = (),
        entry: str = SERVER_ENTRY,
        warm: bool = True,
        folders: Iterable[Path] = (),
    ) -> None:
        if tier not in (*TIERS, "best"):
            raise SandboxUnavailableError(
                f"There is no sandbox {tier!r}; there are {', '.join(TIERS)} and best."
            )
        self.tier = best_tier() if tier == "best" else tier
        self._lock = threading.Lock()
        layout = Layout.of_this_python(folders)
        if self.tier != "unsafe":
            layout.refuse_to_show(hidden)
        self._start = functools.partial(_Server, self.tier, layout, entry, warm)
        self._servers: dict[Modules, _Server] = {}
        self._started(())

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def note(self) -> str:
        """Return deviations from the tier's guarantees; usually empty."""
        with self._lock:
            return self._ready_server(()).note

    def warm_up(self, preload: Iterable[str] = ()) -> None:
        """Wait until workers with these modules can be forked; raises SandboxUnavailableError."""
        with self._lock:
            self._ready_server(tuple(preload))

    def spawn(self, limits: Any, preload: Iterable[str] = ()) -> WorkerProcess:
        """Start a worker with these `limits`, an object with the attributes of course.yml's limits.

        Workers with equal `preload` share a fork server that has imported these modules; it is started for the
        first of them. A fork server that died is restarted once; then InfrastructureError is raised.
        """
        numbers = {name: getattr(limits, name) for name in LIMITS}
        modules = tuple(preload)
        with self._lock:
            try:
                return self._ready_server(modules).spawn(numbers)
            except _ServerGoneError:
                self._discard(modules)
            try:
                return self._ready_server(modules).spawn(numbers)
            except _ServerGoneError as gone:
                raise InfrastructureError(f"The sandbox ({self.tier}) died twice. {gone}") from None

    def close(self) -> None:
        """End the fork servers and all their workers."""
        with self._lock:
            for modules in list(self._servers):
                self._discard(modules)

    def _started(self, modules: Modules) -> _Server:
        if modules not in self._servers:
            self._servers[modules] = self._start(modules)
        return self._servers[modules]

    def _ready_server(self, modules: Modules) -> _Server:
        server = self._started(modules)
        try:
            server.wait_until_ready()
        except SandboxUnavailableError:
            self._discard(modules)
            raise
        return server

    def _discard(self, modules: Modules) -> None:
        server = self._servers.pop(modules, None)
        if server is not None:
            server.close()


@functools.cache
def best_tier() -> str:
    """Return the strongest safe tier that works, found by testing; raises SandboxUnavailableError."""
    reasons = []
    for tier in ("namespaces", "landlock"):
        try:
            from autograder.sandbox.doctor import try_tier

            try_tier(tier)
        except SandboxUnavailableError as problem:
            reasons.append(str(problem))
        else:
            return tier
    advice = "With --unsafe students' code runs unprotected: it can read this user's files."
    raise SandboxUnavailableError("\n".join([*reasons, advice]))


class _ServerGoneError(Exception):
    """The fork server does not answer; `str(error)` contains its last output."""


class _Server:
    """One fork server: a process, its control socket, and its error output."""

    def __init__(self, tier: str, layout: Layout, entry: str, warm: bool, modules: Modules) -> None:
        self.tier, self.note, self.ready = tier, "", False
        self.control, theirs = socket.socketpair()
        self.complaints = tempfile.TemporaryFile()  # noqa: SIM115  (closed by `close`)
        wishes = {"tier": tier, "entry": entry, "warm": warm, "preload": modules}
        wishes["control"] = theirs.fileno()
        try:
            command, environment = COMMANDS[tier](layout, wishes)
            self.process = subprocess.Popen(
                command,
                env=environment,
                cwd="/",
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self.complaints,
                stderr=self.complaints,
                start_new_session=True,
            )
        except OSError as error:
            raise unavailable(tier, f"{error}.") from None
        finally:
            theirs.close()

    def wait_until_ready(self) -> None:
        """Wait until workers can be forked; raises SandboxUnavailableError if that fails."""
        if self.ready:
            return
        answer = _receive_line(self.control, START_SECONDS)
        if answer is None:
            self.process.kill()
            raise unavailable(self.tier, self.last_words())
        self.note = json.loads(answer)["note"]
        self.ready = True

    def spawn(self, limits: dict[str, float]) -> WorkerProcess:
        """Start one worker; raises _ServerGoneError if the server has ended."""
        data, their_data = socket.socketpair()
        status, their_status = socket.socketpair()
        output = _output_file()
        request = json.dumps({"limits": limits}).encode() + b"\n"
        descriptors = [their_data.fileno(), output.fileno(), their_status.fileno()]
        try:
            self.control.settimeout(START_SECONDS)
            socket.send_fds(self.control, [request], descriptors)
            if self.control.recv(1) != b"\n":
                raise ConnectionError("it has hung up")
        except OSError:
            for each in (data, status, output):
                each.close()
            raise _ServerGoneError(self.last_words()) from None
        finally:
            their_data.close()
            their_status.close()
        return WorkerProcess(data, output, status)

    def last_words(self) -> str:
        """Return the end of the server's output, which explains a failure."""
        try:
            self.process.wait(BRIEF_SECONDS)
        except subprocess.TimeoutExpired:
            return "It does not answer."
        self.complaints.seek(0)
        text = self.complaints.read()[-4096:].decode("utf-8", "replace").strip()
        lines = text.splitlines()[-COMPLAINT_LINES:]
        return "Its last words: " + "\n".join(lines) if lines else "It said nothing."

    def close(self) -> None:
        """Close the control socket, which ends the server, and make sure that it has ended."""
        self.control.close()
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.complaints.close()


def _output_file() -> BinaryIO:
    """Return an unnamed file for a worker's output."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("output"), "rb", buffering=0)
    return tempfile.TemporaryFile(buffering=0)


def _receive_line(connection: socket.socket, seconds: float) -> bytes | None:
    """Receive one line; None if the other side closes the connection or after a timeout."""
    until, line = time.monotonic() + seconds, b""
    try:
        while not line.endswith(b"\n"):
            connection.settimeout(max(0.001, until - time.monotonic()))
            chunk = connection.recv(4096)
            if not chunk:
                return None
            line += chunk
    except OSError:
        return None
    return line


def _receive_all(connection: socket.socket, seconds: float) -> bytes | None:
    """Receive everything until the other side closes the connection; None after a timeout."""
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
    """Return the descriptor of this process's time statistics; empty if there are none."""
    try:
        return (os.open("/proc/self/schedstat", os.O_RDONLY | os.O_CLOEXEC),)
    except OSError:
        return ()


def _times(clock: int) -> tuple[float, float]:
    """Return the seconds that a process ran, and waited for a processor; zeros if it has ended."""
    ran, seconds_queued = (_read(clock).split() or [b"0", b"0"])[:2]
    return int(ran) / 1e9, int(seconds_queued) / 1e9


def _read(file: int) -> bytes:
    try:
        return os.pread(file, 1024, 0)
    except OSError:  # of a process that has ended
        return b""


def _receive_clocks(connection: socket.socket) -> list[int]:
    """Receive the descriptors of a worker's time statistics, which it sends first; empty if it has none."""
    try:
        connection.settimeout(0)
        if connection.recv(1, socket.MSG_PEEK) != CLOCK:
            return []
        _, descriptors, _, _ = socket.recv_fds(connection, 1, len(CLOCKS))
        return descriptors
    except OSError:
        return []


def _hang_up(connection: socket.socket) -> None:
    """Make the fork server kill the worker; ignore one that has already ended."""
    try:
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        return


__all__: Sequence[str] = ["Ending", "Sandbox", "SandboxUnavailableError", "WorkerProcess", "best_tier"]
