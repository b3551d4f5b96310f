"""Attacks by a worker on its own sandbox, for `test_walls`: those in `TRIALS`, one for each guarantee.

The file is imported inside the sandbox. Each trial returns forbidden operations by name, none of
which may succeed. No trial does harm if a wall is missing.
"""

import ctypes
import errno
import json
import mmap
import os
import platform
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from autograder.walls.inside import seccomp
from autograder.walls.inside.libc import libc

MEGABYTE = 1 << 20
PIECE = MEGABYTE // 4
LEFT_BEHIND = "sandbox_trial"
SYSTEM_FILES = (
    "/etc/passwd", "/etc/hostname", "/var/log", "/sys/kernel", "/sys/devices", "/dev/shm",
)  # fmt: skip
WRITABLE = ("/", "/tmp", "/var/tmp", "/usr", "/etc", "/dev", "/dev/shm")
LIMITS = ("AS", "DATA", "CPU", "FSIZE", "NOFILE", "NPROC")
PROGRAM = next(
    (path for path in ("/usr/bin/true", "/bin/true") if os.path.exists(path)), sys.executable
)
WHILE = 1.0  # seconds; the size of a folder is looked at ten times as often
LONGEST = 20  # seconds that a process which got away may live
# calls that any user may make without a filter: the numbers by `seccomp.ARCHITECTURES`, arguments
CALLS: dict[str, tuple[tuple[int, int], tuple[int, ...]]] = {
    "memfd_create": ((319, 279), (0, 0)),
    "unshare": ((272, 97), (0,)),
    "ptrace": ((101, 117), (0, 0, 0, 0)),
    "keyctl": ((250, 219), (0, 0xFFFFFFFD, 0)),
    "io_uring_setup": ((425, 425), (0, 0)),
}

Facts = Mapping[str, Any]
Attempts = dict[str, Callable[[], object]]


def run(channel: socket.socket) -> None:
    """Run the trial requested by one line of JSON, answer with one line, and stay until the grader hangs up."""
    with channel.makefile("rb") as reader:
        facts = json.loads(reader.readline())
        attempts = (TRIALS | TOOLS)[facts["trial"]](facts)
        channel.sendall(
            json.dumps([name for name, attempt in attempts.items() if _succeeds(attempt)]).encode()
            + b"\n"
        )
        reader.readline()


def _succeeds(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except ProcessLookupError:  # no such process, but the signal would have been allowed
        return True
    except (OSError, MemoryError, RuntimeError, ValueError):
        return False
    return True


def _reading(paths: Iterable[str]) -> Attempts:
    return {f"read {path}": partial(_read, path) for path in paths}


def _read(path: str) -> object:
    if os.path.isdir(path):
        return os.listdir(path)
    with open(path, "rb") as file:
        return file.read(1)


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)


def write_outside(facts: Facts) -> Attempts:
    """Try to create files in world-writable or own folders, and to change a world-writable file."""
    victim = f"{facts['playground']}/victim"
    folders = [facts["playground"], facts["home"], facts["course"][0], *WRITABLE, *sys.path[-2:]]
    return {
        **{f"write into {folder}": partial(_write_and_remove, folder) for folder in folders},
        f"empty {victim}": lambda: os.truncate(victim, 0),
        f"change the rights of {victim}": lambda: os.chmod(victim, 0o666),
        f"change the times of {victim}": lambda: os.utime(victim),
        f"make a link in {facts['playground']}": lambda: os.symlink("/", f"{victim}.link"),
        f"make a folder in {facts['playground']}": lambda: os.mkdir(f"{victim}.folder"),
    }


def _write_and_remove(folder: str) -> None:
    path = f"{folder}/{LEFT_BEHIND}_{os.getpid()}"
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    os.unlink(path)


def fill_scratch(facts: Facts) -> Attempts:
    size = 2 * facts["limits"]["scratch_mb"] * MEGABYTE
    return {
        f"keep {size} bytes of files in {folder}": partial(_fill, folder, size)
        for folder in (".", facts["playground"])
    }


def _fill(folder: str, size: int) -> None:
    """Keep so many bytes in small files for a while, and remove them."""
    names = [f"{folder}/{LEFT_BEHIND}_{number}" for number in range(size // PIECE)]
    try:
        for name in names:
            _write(name, bytes(PIECE))
        time.sleep(WHILE)
    finally:
        for name in names:
            with suppress(OSError):
                os.unlink(name)


def grow_a_file(facts: Facts) -> Attempts:
    """Try raw writes to the one file that is open in every tier."""
    size = 2 * facts["limits"]["file_mb"] * MEGABYTE
    return {
        f"make a file of {size} bytes": lambda: [
            os.write(1, bytes(PIECE)) for _ in range(size // PIECE)
        ]
    }


def _fork() -> None:
    """Start a process that ends at once, and wait for it."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def make_rare_calls(facts: Facts) -> Attempts:
    if not seccomp.supported():
        return {f"make any system call of {platform.machine()}": lambda: None}
    column = list(seccomp.ARCHITECTURES).index(platform.machine())
    return {
        f"call {name}": partial(_call, numbers[column], given)
        for name, (numbers, given) in CALLS.items()
    }


def _call(number: int, arguments: tuple[int, ...]) -> None:
    answer = libc().syscall(number, *map(ctypes.c_long, arguments))
    if answer < 0 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
        raise PermissionError


def _raise_limit(kind: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        resource.setrlimit(kind, (hard + 1, hard + 1))


def take_memory(facts: Facts) -> Attempts:
    size = (facts["limits"]["memory_mb"] + 64) * MEGABYTE
    return {
        f"take {size} bytes": lambda: bytearray(size),
        f"map {size} bytes": lambda: mmap.mmap(-1, size),
    }


def _start_threads(count: int) -> None:
    end = threading.Event()
    threading.stack_size(64 * 1024)
    try:
        for _ in range(count):
            threading.Thread(target=end.wait, args=(LONGEST,), daemon=True).start()
    finally:
        end.set()


def open_files(facts: Facts) -> Attempts:
    """Check that only stdin, stdout, stderr and the data socket are open, and that few others can be opened."""
    most = facts["limits"]["open_files"]
    attempts: Attempts = {
        f"use descriptor {number}": partial(os.fstat, number) for number in range(4, 256)
    }
    return {
        **attempts,
        f"open {most} more files": lambda: [os.open(os.devnull, os.O_RDONLY) for _ in range(most)],
    }


def _compute(seconds: float) -> None:
    while time.process_time() < seconds:
        pass


def _print(kilobytes: int) -> None:
    for _ in range(4 * kilobytes):
        print("x" * 1023)
    if os.fstat(1).st_size <= 1024 * kilobytes:
        raise OSError("the rest was dropped")


def leave_things(facts: Facts) -> Attempts:
    """Leave files and a process in its own session that ignores signals; the grader checks whether they persist."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=time.sleep, args=(LONGEST,), daemon=True).start()
    files: Attempts = {
        f"write {path}": partial(_write, path, b"left") for path in _left_behind(facts)
    }
    return {**files, "start a daemon": _start_daemon}


def _start_daemon() -> None:
    """Start a process that keeps the grader's socket open, by which the grader detects it."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)  # by then it has a session of its own
        return
    os.setsid()
    if os.fork() == 0:
        time.sleep(LONGEST)
    os._exit(0)


def _left_behind(facts: Facts) -> list[str]:
    return [
        f"{folder}/{LEFT_BEHIND}_{facts['token']}"
        for folder in (".", facts["playground"], "/dev/shm")
    ]


TRIALS: dict[str, Callable[[Facts], Attempts]] = {
    "tests and solutions": lambda facts: _reading([facts["hidden"], *facts["course"]]),
    "files of the system": lambda facts: _reading([facts["home"], *SYSTEM_FILES]),
    "names of hidden files": lambda facts: {
        "see that a hidden file is there": partial(os.stat, facts["hidden"])
    },
    "environment": lambda facts: {
        "read a variable of the grader": lambda: str(dict(os.environ)).index(facts["token"]),
        **_reading(f"/proc/{pid}/environ" for pid in (facts["grader"], os.getppid(), 1)),
    },
    "writing outside": write_outside,
    "scratch space": fill_scratch,
    "size of a file": grow_a_file,
    "network": lambda facts: {
        **{
            f"make a socket of family {family}, type {kind}": partial(socket.socket, family, kind)
            for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, 16)
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW)
        },
        "reach the grader over TCP": lambda: socket.create_connection(facts["listener"], 2).close(),
    },
    "new processes": lambda _: {"fork": _fork},
    "other programs": lambda _: {
        "spawn a program": lambda: os.waitpid(os.posix_spawn(PROGRAM, [PROGRAM], {}), 0),
        "become a program": lambda: os.execv(PROGRAM, [PROGRAM]),  # which cannot answer
    },
    "signals to others": lambda facts: {  # with signal 0, which only checks the permission
        f"send {name} a signal": partial(os.kill, pid, 0)
        for name, pid in (
            ("the grader", facts["grader"]),
            ("everybody", -1),
            ("its neighbour", os.getpid() + 1),
        )
    },
    "processes hidden": lambda facts: {
        # it may be an empty folder
        "list processes": lambda: min(map(int, filter(str.isdigit, os.listdir("/proc")))),
        **_reading(["/proc/self/fd", f"/proc/{facts['grader']}/cmdline", "/proc/1/cmdline"]),
    },
    "system-call filter": make_rare_calls,
    "limits stay": lambda _: {
        f"raise the limit {name}": partial(_raise_limit, getattr(resource, f"RLIMIT_{name}"))
        for name in LIMITS
    },
    "memory": take_memory,
    "number of threads": lambda facts: {
        "start many threads": partial(_start_threads, 12 * facts["limits"]["processes"])
    },
    "descriptors": open_files,
    "processor time": lambda facts: {
        "compute too long": partial(_compute, facts["limits"]["cpu_seconds"] + 2)
    },
    "wall clock": lambda facts: {
        "wait too long": partial(time.sleep, facts["limits"]["submission_seconds"] + 3)
    },
    "output": lambda facts: {"print too much": partial(_print, facts["limits"]["output_kb"])},
}
TOOLS: dict[str, Callable[[Facts], Attempts]] = {
    "nothing": lambda _: {},
    "leave": leave_things,
    "find": lambda facts: {
        f"find {path} of the worker before it": partial(os.unlink, path)
        for path in _left_behind(facts)
    },
}
