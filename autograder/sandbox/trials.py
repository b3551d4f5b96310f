"""Attacks by a worker on its own sandbox; reports those that succeeded.

`report_isolation` is the short test of a tier; the others serve `autograder doctor --verify`. Each takes the environment
prepared by `verify`, and returns a list of forbidden operations that succeeded; the boundary holds if it is empty. No
trial does harm if a boundary is missing.
"""

import ctypes
import importlib.util
import json
import mmap
import os
import platform
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

MEGABYTE = 1 << 20
LEFT_BEHIND = "left_behind"
PACKAGES = ("torch", "numpy", "IPython")
SYSTEM_FILES = ("/etc/passwd", "/etc/hostname", "/var/log", "/sys/kernel", "/dev/shm")
LONGEST = 20  # seconds that a process which got away may live
# calls that any user may make without a filter: (x86_64, aarch64), arguments
CALLS: dict[str, tuple[tuple[int, int], tuple[int, ...]]] = {
    "memfd_create": ((319, 279), (0, 0)),
    "personality": ((135, 92), (0xFFFFFFFF,)),
    "prctl": ((157, 167), (3, 0, 0, 0, 0)),
    "unshare": ((272, 97), (0,)),
    "ptrace": ((101, 117), (0, 0, 0, 0)),
    "keyctl": ((250, 219), (0, 0xFFFFFFFD, 0)),
    "io_uring_setup": ((425, 425), (0, 0)),
    "setsid": ((112, 157), ()),
}
NOT_PERMITTED, NOT_THERE = 1, 38

Facts = Mapping[str, Any]
Trial = Callable[[Facts], Any]


def run(channel: socket.socket) -> None:
    """Run the trial requested by one line of JSON, and answer with one line."""
    with channel.makefile("rb") as reader:
        facts = json.loads(reader.readline())
        found = TRIALS[facts["trial"]](facts)
        channel.sendall(json.dumps(found).encode() + b"\n")
        if facts["trial"] == "stay":
            reader.readline()


def successes(attempts: Mapping[str, Callable[[], object]]) -> list[str]:
    """Return the names of the attempts that succeeded."""
    return [name for name, attempt in attempts.items() if _succeeds(attempt)]


def _succeeds(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except ProcessLookupError:  # no such process, but the signal would have been allowed
        return True
    except (OSError, MemoryError):
        return False
    return True


def _read(path: str) -> object:
    if os.path.isdir(path):
        return os.listdir(path)
    with open(path, "rb") as file:
        return file.read(1)


def _readable(paths: Iterable[str]) -> list[str]:
    return successes({f"read {path}": partial(_read, path) for path in paths})


def read_course(facts: Facts) -> list[str]:
    return _readable(facts["course"])


def read_home(facts: Facts) -> list[str]:
    return successes({f"list {facts['home']}": lambda: os.listdir(facts["home"])})


def read_system(facts: Facts) -> list[str]:
    return _readable(SYSTEM_FILES)


def see_names(facts: Facts) -> list[str]:
    return [f"see that {path} is there" for path in facts["course"] if os.path.exists(path)]


def read_environment(facts: Facts) -> list[str]:
    found = ["read a variable of the grader"] if facts["token"] in str(dict(os.environ)) else []
    files = [f"/proc/{pid}/environ" for pid in (facts["grader"], os.getppid(), 1)]
    return found + _readable(files)


def write_outside(facts: Facts) -> list[str]:
    """Try to create files in world-writable or own folders, and to change a world-writable file."""
    folders = [facts["playground"], facts["home"], "/", "/tmp", "/usr", "/dev/shm", *sys.path[-2:]]
    attempts: dict[str, Callable[[], object]] = {
        f"write into {folder}": partial(_write_and_remove, folder) for folder in folders
    }
    victim = f"{facts['playground']}/victim"
    attempts[f"empty {victim}"] = lambda: os.truncate(victim, 0)
    attempts[f"change the rights of {victim}"] = lambda: os.chmod(victim, 0o666)
    attempts[f"change the times of {victim}"] = lambda: os.utime(victim)
    attempts[f"make a link in {facts['playground']}"] = lambda: os.symlink("/", f"{victim}.link")
    return successes(attempts)


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)


def _write_and_remove(folder: str) -> None:
    path = f"{folder}/{LEFT_BEHIND}_{os.getpid()}"
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    os.unlink(path)


def fill_scratch(facts: Facts) -> list[str]:
    """Try to create small files in all writable places until the limit is exceeded."""
    limit = facts["limits"]["scratch_mb"] * MEGABYTE
    written = sum(_fill(folder, 2 * limit) for folder in (".", facts["playground"]))
    return [f"keep {written // MEGABYTE} MB of files"] if written > limit else []


def _fill(folder: str, size: int) -> int:
    """Return how many of `size` bytes could be stored; they are removed afterwards."""
    piece, names = bytes(MEGABYTE // 2), list[str]()
    try:
        while len(names) * len(piece) < size:
            name = f"{folder}/{LEFT_BEHIND}_{len(names)}"
            _write(name, piece)
            names.append(name)
    except OSError:
        _succeeds(lambda: os.unlink(name))
    for each in names:
        os.unlink(each)
    return len(names) * len(piece)


def grow_a_file(facts: Facts) -> list[str]:
    """Try raw writes to the one file that is open in every tier."""
    written, limit = 0, facts["limits"]["file_mb"] * MEGABYTE
    with suppress(OSError):
        while written <= 2 * limit:
            written += os.write(1, bytes(MEGABYTE // 4))
    return [f"make a file of {written / MEGABYTE:g} MB"] if written > limit else []


def use_network(facts: Facts) -> list[str]:
    attempts: dict[str, Callable[[], object]] = {
        f"make a socket of family {family}, type {kind}": partial(socket.socket, family, kind)
        for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, 16)
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW)
    }
    attempts["reach the grader over TCP"] = lambda: socket.create_connection(facts["listener"], 2).close()
    return successes(attempts)


def fork(facts: Facts) -> list[str]:
    terminal = partial(fork_with, lambda: os.forkpty()[0])
    return successes({"fork": partial(fork_with, os.fork), "fork with a terminal": terminal})


def fork_with(how: Callable[[], int]) -> None:
    """Start a process that ends at once, and wait for it."""
    pid = how()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def run_programs(facts: Facts) -> list[str]:
    """Try to run programs; the last attempt would replace this process, which then cannot answer."""
    program = next((p for p in ("/usr/bin/true", "/bin/true") if os.path.exists(p)), sys.executable)
    return successes(
        {
            "spawn a program": lambda: os.waitpid(os.posix_spawn(program, [program], {}), 0),
            "run a program": lambda: subprocess.run([program], check=False),
            "become a program": lambda: os.execv(program, [program]),
        }
    )


def signal_others(facts: Facts) -> list[str]:
    """Try to signal other processes, with signal 0, which only checks the permission."""
    others = {"the grader": facts["grader"], "everybody": -1, "its neighbour": os.getpid() + 1}
    return successes({f"send {who} a signal": partial(os.kill, pid, 0) for who, pid in others.items()})


def see_processes(facts: Facts) -> list[str]:
    places = ["/proc", "/proc/self/fd", f"/proc/{facts['grader']}/cmdline", "/proc/1/cmdline"]
    seen = {place for place in places if _succeeds(partial(_read, place))}
    if "/proc" in seen and not any(name.isdigit() for name in os.listdir("/proc")):
        seen.remove("/proc")  # an empty folder stands there
    return [f"read {place}" for place in sorted(seen)]


def make_rare_calls(facts: Facts) -> list[str]:
    column = {"x86_64": 0, "aarch64": 1}.get(platform.machine())
    if column is None:
        return [f"make any call: there is no list of them for {platform.machine()} machines"]
    return [f"call {name}" for name, (row, given) in CALLS.items() if _is_let_through(row[column], given)]


def _is_let_through(number: int, arguments: tuple[int, ...]) -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    answer = libc.syscall(number, *(ctypes.c_long(each) for each in arguments))
    return answer >= 0 or ctypes.get_errno() not in (NOT_PERMITTED, NOT_THERE)


def gain_rights(facts: Facts) -> list[str]:
    return successes(
        {
            "become root": lambda: os.setresuid(0, 0, 0),
            "join root's group": lambda: os.setgroups([0]),
            "change the root folder": lambda: os.chroot("/usr"),
            "go before others": lambda: os.setpriority(os.PRIO_PROCESS, 0, -5),
        }
    )


def raise_limits(facts: Facts) -> list[str]:
    names = ("AS", "DATA", "CPU", "FSIZE", "NOFILE", "NPROC")
    return [f"raise the limit {name}" for name in names if _is_raised(getattr(resource, f"RLIMIT_{name}"))]


def _is_raised(kind: int) -> bool:
    _, hard = resource.getrlimit(kind)
    if hard == resource.RLIM_INFINITY:
        return True
    try:
        resource.setrlimit(kind, (hard + 1, hard + 1))
    except (OSError, ValueError):
        return False
    return True


def take_memory(facts: Facts) -> list[str]:
    size = (facts["limits"]["memory_mb"] + 64) * MEGABYTE
    attempts = {"bytes": lambda: bytearray(size), "a mapping": lambda: mmap.mmap(-1, size)}
    return successes({f"take {size // MEGABYTE} MB as {how}": each for how, each in attempts.items()})


def start_threads(facts: Facts) -> list[str]:
    wanted, end = 12 * facts["limits"]["processes"], threading.Event()
    threading.stack_size(64 * 1024)
    try:
        for _ in range(wanted):
            threading.Thread(target=end.wait, args=(LONGEST,), daemon=True).start()
    except RuntimeError:
        return []
    finally:
        end.set()
    return [f"start {wanted} threads"]


def open_files(facts: Facts) -> list[str]:
    """Check that only stdin, stdout, stderr and the data socket are open, and that few others can be opened."""
    found = [f"use descriptor {number}" for number in range(4, 256) if _succeeds(partial(os.fstat, number))]
    wanted = facts["limits"]["open_files"] + 1
    try:
        opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(wanted)]
    except OSError:
        return found
    return [*found, f"open {len(opened)} more files"]


def compute_too_long(facts: Facts) -> list[str]:
    limit = facts["limits"]["cpu_seconds"] + 2
    while time.process_time() < limit:
        pass
    return [f"compute for {limit} seconds"]


def wait_too_long(facts: Facts) -> list[str]:
    limit = facts["limits"]["submission_seconds"] + 3
    time.sleep(limit)
    return [f"go on for {limit} seconds"]


def print_too_much(facts: Facts) -> list[str]:
    for _ in range(4 * facts["limits"]["output_kb"]):
        print("x" * 1023)
    return []


def stay(facts: Facts) -> list[str]:
    """Wait until the grader closes the connection, for inspection from outside."""
    return []


def leave_things(facts: Facts) -> list[str]:
    """Leave files and a process in its own session that ignores signals; the grader checks whether they persist."""
    for path in _left_behind(facts):
        _succeeds(partial(_write, path, b"left"))
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=time.sleep, args=(LONGEST,), daemon=True).start()
    _succeeds(_start_daemon)
    return []


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
    return [f"{folder}/{LEFT_BEHIND}_{facts['token']}" for folder in (".", facts["playground"], "/dev/shm")]


def find_things(facts: Facts) -> list[str]:
    there = [path for path in _left_behind(facts) if os.path.exists(path)]
    for path in there:
        os.unlink(path)
    return [f"find {path} of the worker before it" for path in there]


def report_isolation(facts: Facts) -> dict[str, list[str]]:
    """Return the boundaries that are open, such as to a file that must be hidden, and the unreadable packages."""
    attempts = {
        "read a file of this machine": lambda: os.close(os.open(facts["hidden"], os.O_RDONLY)),
        "open a network socket": lambda: socket.socket().close(),
        "start a process": lambda: fork_with(os.fork),
        "write outside its own folder": lambda: os.open("/usr/probe", os.O_WRONLY | os.O_CREAT),
        "stop another process": lambda: os.kill(os.getpid() + 1, 0),
    }
    return {"succeeded": successes(attempts), "unreadable": [name for name in PACKAGES if not _is_readable(name)]}


def _is_readable(package: str) -> bool:
    spec = importlib.util.find_spec(package)
    return spec is not None and spec.origin is not None and os.access(spec.origin, os.R_OK)


TRIALS: dict[str, Trial] = {
    trial.__name__: trial
    for trial in (
        read_course, read_home, read_system, see_names, read_environment, write_outside, fill_scratch,
        grow_a_file, use_network, fork, run_programs, signal_others, see_processes, make_rare_calls,
        gain_rights, raise_limits, take_memory, start_threads, open_files, compute_too_long, wait_too_long,
        print_too_much, stay, leave_things, find_things, report_isolation,
    )
}  # fmt: skip
