"""The fork server: imports PyTorch once, then forks one isolated worker for each request.

It runs inside the sandbox, holds no secret and never reads a byte written by a student: it passes
on the data socket unread. Of a call that the filter refuses and the kernel reports, it reads the
number. It ends with all its workers when the grader closes the control socket.


    grader                      fork server                    worker
      |                              |                            |
      |== control ===================|                            |
      |   {"limits": …} + data, output, status ->                 |
      |   <- "\n"                    |---- fork ----------------->|
      |== status ====================|                            |
      |   <- " " + /proc/self/stat and schedstat -----------------|
      |   closed by the grader: kill |---- setup (socket) --------|
      |   <- how the worker ended,   |   <- why it could not be isolated, or
      |   and what it tried in vain  |      a descriptor for reports of the kernel
      |== data ===================================================| 3
      |   requests and replies       |                            |
      |-- output (a file) ----------------------------------------| 1, 2

A worker has the descriptors 0 (empty), 1 and 2 (output), 3 (data) and, until it is isolated, 4
(setup); all others are closed.
"""

import ctypes
import fcntl
import gc
import io
import json
import os
import resource
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn

from autograder.walls.inside import jail, seccomp
from autograder.walls.inside.imports import ImportFailedError, import_all
from autograder.walls.inside.libc import libc
from autograder.walls.inside.statistics import send_statistics

OPEN_FILES = 4096
DATA = 3
SETUP = 4
FAILED = 70
LARGE_PAGE = 2 << 20
COLLAPSE = 25  # MADV_COLLAPSE, since Linux 6.1
DESCRIPTORS = 3
SECONDS_BETWEEN_LOOKS = 0.1  # at the files of workers without a disk of their own
NO_LISTENER = -1
MOST_REPORTS = 100  # of one worker; then the kernel refuses alone

Entry = Callable[[socket.socket], None]


class BoundedOutput(io.FileIO):
    """A worker's output stream; bytes beyond `limit` are dropped without an error."""

    def __init__(self, descriptor: int, limit: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self.left = limit

    def write(self, data: Any) -> int:
        kept = bytes(data)[: self.left]
        self.left -= len(kept)
        if kept:
            super().write(kept)
        return len(data)


@dataclass
class Child:
    """A worker that has not been reaped yet."""

    pid: int
    status: socket.socket
    setup: socket.socket
    deadline: float
    limits: Mapping[str, float]
    reason: str = "exit"
    setup_error: bytes = b""
    listener: int = NO_LISTENER
    reports: int = 0
    tried: set[str] = field(default_factory=set)

    def kill(self, reason: str) -> None:
        """Kill the worker; the first reason counts."""
        if self.reason == "exit":
            self.reason = reason
            os.kill(self.pid, signal.SIGKILL)

    def hear_of_setup(self) -> bool:
        """Receive what has come from its setup, if anything; return whether more can come."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self.setup, 4096, 1)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.setup_error += data.strip()
        for descriptor in descriptors:
            self.listener = descriptor
        return bool(data)

    def answer_report(self) -> bool:
        """Refuse a call that was reported, and remember its kind; return whether more are wanted."""
        self.reports += 1
        with suppress(OSError):  # the worker has ended meanwhile
            self.tried.add(seccomp.answer_report(self.listener))
        return self.reports < MOST_REPORTS

    def close_listener(self) -> None:
        if self.listener != NO_LISTENER:
            os.close(self.listener)
            self.listener = NO_LISTENER

    def report(self, wait_status: int, usage: resource.struct_rusage) -> None:
        """Report the worker's ending to the grader."""
        code = os.waitstatus_to_exitcode(wait_status)
        cpu = usage.ru_utime + usage.ru_stime
        if (
            self.reason == "exit"
            and code in (-signal.SIGKILL, -signal.SIGXCPU)
            and cpu > self.limits["cpu_seconds"] - 0.5
        ):
            self.reason = "cpu"
        ending = {
            "reason": self.reason,
            "code": code,
            "processor_seconds": cpu,
            "tried": sorted(self.tried),
            "setup_error": self.setup_error.decode("utf-8", "replace"),
        }
        with suppress(OSError):  # the grader has closed the status socket
            self.status.sendall(json.dumps(ending).encode())
        self.status.close()
        self.setup.close()
        self.close_listener()


class Zygote:
    """Serves the control socket until the grader closes it."""

    def __init__(self, control: socket.socket, walls: jail.Walls, entry: Entry) -> None:
        self.control = control
        self.walls = walls
        self.entry = entry
        self.children: dict[int, Child] = {}
        self.footprint = jail.Footprint.now()
        self.open = True
        self._next_look = 0.0
        self.selector = selectors.DefaultSelector()
        self.selector.register(control, selectors.EVENT_READ, self._on_request)
        self.alarm, self.alarm_end = socket.socketpair()
        for end in (self.alarm, self.alarm_end):
            end.setblocking(False)
        self.selector.register(self.alarm, selectors.EVENT_READ, lambda: self.alarm.recv(4096))
        signal.set_wakeup_fd(self.alarm_end.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> None:
        """Serve requests until the grader closes the control socket and all workers are dead."""
        while self.open:
            for key, _ in self.selector.select(self._seconds_to_wait()):
                key.data()
            self._reap()
            self.enforce_deadlines()
            self._look_at_files()
        for child in self.children.values():
            child.kill("closed")
        while self.children:
            self._reap(wait=True)

    def _seconds_to_wait(self) -> float | None:
        seconds = self.seconds_to_deadline()
        if seconds is None or not self.walls.scratch:
            return seconds
        return min(seconds, SECONDS_BETWEEN_LOOKS)

    def _look_at_files(self) -> None:
        """Kill the workers that have written too much; not more often than it is worth."""
        if not self.walls.scratch or time.monotonic() < self._next_look:
            return
        for child in self.children.values():
            if child.reason == "exit" and self.walls.is_overfull(child.pid, child.limits):
                child.kill("disk")
        self._next_look = time.monotonic() + SECONDS_BETWEEN_LOOKS

    def seconds_to_deadline(self) -> float | None:
        """Return how long no worker is too late, or None without one."""
        deadlines = [child.deadline for child in self.children.values() if child.reason == "exit"]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def enforce_deadlines(self) -> None:
        """Kill the workers that are too late."""
        now = time.monotonic()
        for child in self.children.values():
            if child.deadline < now:
                child.kill("wall")

    def _on_request(self) -> None:
        request = receive(self.control)
        if request is None:
            self.open = False
            return
        limits, descriptors = request
        self.control.sendall(b"\n")
        self._spawn(limits, *descriptors)

    def _spawn(self, limits: Mapping[str, float], data: int, output: int, status: int) -> None:
        setup, setup_end = socket.socketpair()
        setup.setblocking(False)
        status_socket = socket.socket(fileno=status)
        try:
            pid = self.walls.fork()
        except OSError as error:
            status_socket.sendall(json.dumps({"setup_error": str(error)}).encode())
            status_socket.close()
            setup.close()
        else:
            if pid == 0:
                send_statistics(status_socket)
                self._become_worker(limits, data, output, setup_end.detach())
            deadline = time.monotonic() + limits["submission_seconds"]
            child = Child(pid, status_socket, setup, deadline, limits)
            self.children[pid] = child
            self.selector.register(
                status_socket, selectors.EVENT_READ, lambda: self._on_hangup(child)
            )
            self.selector.register(setup, selectors.EVENT_READ, lambda: self._on_setup(child))
        finally:
            setup_end.close()
            for descriptor in (data, output):
                os.close(descriptor)

    def _on_setup(self, child: Child) -> None:
        if not child.hear_of_setup():
            self.selector.unregister(child.setup)
            return
        if child.listener != NO_LISTENER and child.listener not in self.selector.get_map():
            on_report = partial(self._on_report, child)
            self.selector.register(child.listener, selectors.EVENT_READ, on_report)

    def _on_report(self, child: Child) -> None:
        if not child.answer_report():
            self.selector.unregister(child.listener)
            child.close_listener()

    def _on_hangup(self, child: Child) -> None:
        self.selector.unregister(child.status)
        child.kill("closed")

    def _reap(self, wait: bool = False) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, 0 if wait else os.WNOHANG)
            except ChildProcessError:
                self.children.clear()
                return
            if pid == 0:
                return
            child = self.children.pop(pid, None)
            if child is not None:
                # what is left of its session, without a filter
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)
                self.walls.remove_files(pid)
                child.hear_of_setup()
                for watched in (child.status, child.setup, child.listener):
                    if watched != NO_LISTENER and watched in self.selector.get_map():
                        self.selector.unregister(watched)
                child.report(status, usage)

    def _become_worker(
        self, limits: Mapping[str, float], data: int, output: int, setup: int
    ) -> NoReturn:
        code = FAILED
        try:
            self._forget_the_others()
            channel = self._wall_in(limits, data, output, setup)
            self.entry(channel)
            code = 0
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            flush_output()
            os._exit(code & 0xFF)

    def _wall_in(
        self, limits: Mapping[str, float], data: int, output: int, setup: int
    ) -> socket.socket:
        """Isolate the worker and return the data socket; a failure is reported to the zygote."""
        try:
            arrange_descriptors(data, output, setup)
            setup = SETUP
            channel = socket.socket(fileno=DATA)
            redirect_output(int(limits["output_kb"]) * 1024)
            self.walls.hand_over = send_listener
            self.walls.enter(limits, self.footprint)
        except BaseException as error:
            os.write(setup, f"{type(error).__name__}: {error}".encode()[:4000])
            raise
        os.close(setup)
        return channel

    def _forget_the_others(self) -> None:
        """Drop objects that could close a reused descriptor when they are collected."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self.selector.close()
        for descriptor in (
            self.control,
            self.alarm,
            self.alarm_end,
            *(c.status for c in self.children.values()),
            *(c.setup for c in self.children.values()),
        ):
            descriptor.detach()
        self.children.clear()


def receive(control: socket.socket) -> tuple[dict[str, float], list[int]] | None:
    """Receive one request; None if the grader closed the connection."""
    text = b""
    descriptors = list[int]()
    while not text.endswith(b"\n"):
        try:
            chunk, more, _, _ = socket.recv_fds(control, 65536, DESCRIPTORS)
        except ConnectionError:
            return None
        if not chunk:
            return None
        text += chunk
        descriptors += more
    return json.loads(text)["limits"], descriptors


def send_listener(listener: int) -> None:
    """Send the fork server the descriptor by which the kernel reports what this worker tries in vain."""
    with socket.socket(fileno=os.dup(SETUP)) as setup:
        socket.send_fds(setup, [b" "], [listener])


def arrange_descriptors(data: int, output: int, setup: int) -> None:
    """Set up descriptors: 0 empty, 1 and 2 the output file, 3 the data socket, 4 error reports; no others."""
    data, output, setup = (
        fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10) for descriptor in (data, output, setup)
    )
    empty = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((empty, 0), (output, 1), (output, 2), (data, DATA), (setup, SETUP)):
        os.dup2(source, target)
    os.closerange(SETUP + 1, OPEN_FILES)


def redirect_output(limit: int) -> None:
    """Limit `print`: output beyond the limit is dropped."""
    sys.stdout = sys.__stdout__ = _text_stream(1, limit)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _text_stream(2, limit)  # type: ignore[misc]


def _text_stream(descriptor: int, limit: int) -> io.TextIOWrapper:
    raw = io.BufferedWriter(BoundedOutput(descriptor, limit))
    return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True)


def flush_output() -> None:
    """Flush the buffers; ignore streams closed by a student's code."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()


def use_large_pages() -> None:
    """Request 2 MB pages for this process's memory: a fork copies and later drops one entry per page.

    On a kernel without support or free pages, only the speed differs.
    """
    if not jail.ON_LINUX:
        return
    with open("/proc/self/maps") as file:
        regions = [line.split() for line in file]
    for addresses, access, _, _, _, *name in regions:
        if access == "rw-p" and (not name or name == ["[heap]"]):
            start, end = (int(address, 16) for address in addresses.split("-"))
            start = -(-start // LARGE_PAGE) * LARGE_PAGE
            end = end // LARGE_PAGE * LARGE_PAGE
            if start < end:
                libc().madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), COLLAPSE)


def limit_own_files() -> None:
    """Limit the number of descriptors that a fork has to close."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, wanted))


def main() -> None:
    """Parse the launcher's options, and serve the control socket that they name."""
    options = json.loads(sys.argv[1])
    sys.argv[:] = ["autograder"]
    sys.orig_argv[:] = []
    control = socket.socket(fileno=options["control"])
    limit_own_files()
    walls = jail.TIERS[options["tier"]](options["readable"], options["hidden"])
    walls.prepare()
    try:
        entry = import_all(options)
    except ImportFailedError as failed:
        problem = {"module": failed.module, "reason": failed.reason}
        control.sendall(json.dumps({"problem": problem}).encode() + b"\n")
        sys.exit(FAILED)
    gc.collect()
    gc.freeze()
    use_large_pages()
    walls.make_room()
    try:
        zygote = Zygote(control, walls, entry)
        report = {"note": walls.note, "scratch": walls.scratch, "modules": sorted(sys.modules)}
        control.sendall(json.dumps(report).encode() + b"\n")
        zygote.serve()
    finally:
        walls.close()
