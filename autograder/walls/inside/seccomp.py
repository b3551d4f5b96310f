"""The last boundary: a list of the system calls that a worker, or a grader's fork, may make, enforced by the kernel.

It cannot check paths: a filter sees numbers, not the memory that pointers refer to.
"""

import ctypes
import errno
import fcntl
import platform
import select
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from autograder.walls.inside.libc import check, libc
from autograder.walls.inside.tried import NETWORK, PROGRAM

KILL_PROCESS = 0x80000000
ALLOW = 0x7FFF0000
ERRNO = 0x00050000
REFUSE = ERRNO | errno.EPERM
UNKNOWN = ERRNO | errno.ENOSYS
AGAIN = ERRNO | errno.EAGAIN

# offsets in struct seccomp_data; the lower half of an argument comes first on both architectures
NUMBER = 0
ARCHITECTURE = 4
ARGUMENT_0 = 16
ARGUMENT_1 = 24
ARGUMENT_3 = 40

X32_BIT = 0x40000000
FIRST_UNIFIED_NUMBER = 424
CLONE_THREAD = 0x00010000
FUTEX_PRIVATE = 0x80
MSG_OOB = 0x1  # out-of-band data: not needed, and the cause of several kernel bugs
PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def _table() -> dict[str, tuple[tuple[int | None, ...], str]]:
    """Read `system_calls.txt`: each call's numbers, None where an architecture has none, and its rule."""
    calls = {}
    for line in Path(__file__).with_name("system_calls.txt").read_text("utf-8").splitlines():
        words = line.split()
        if words and words[0] != "#":
            name, *numbers = words[:3]
            rule = words[3] if len(words) > 3 else "allow"
            calls[name] = (tuple(None if n == "-" else int(n) for n in numbers), rule)
    return calls


CALLS = _table()

# asking and setting flags, duplicating: F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL,
# F_DUPFD_CLOEXEC. Not F_SETOWN and F_SETSIG: they send signals to others. No locks or leases, nor
# the call flock: a lock on a package's file is seen by every other worker that can read the file
FCNTL_COMMANDS = (0, 1, 2, 3, 4, 1030)
# TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX
IOCTL_COMMANDS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)

# What becomes of two rules of the table. `fork`: only a grader's fork needs the call. `reported`: a
# person is told that the call was made; a second filter refuses it, and reports it.
OF_WORKERS = {"fork": "refuse", "reported": "refuse"}
OF_WATCHED_WORKERS = {"fork": "refuse", "reported": "allow", "clone": "allow"}
OF_FORKS = {"fork": "allow", "reported": "refuse"}

# families of sockets that the C library itself tries, to ask the machine for names
LOCAL_FAMILIES = (1, 16)
REPORT = 0x7FC00000
SET_FILTER = 1
NEW_LISTENER = 1 << 3
RECEIVE_REPORT = 0xC0502100
ANSWER_REPORT = 0xC0182101
REPORTED = struct.Struct("=QIIiIQ6Q")  # struct seccomp_notif: its id, the process, …, the call
ANSWER = struct.Struct("=QqiI")  # struct seccomp_notif_resp: the id, a value, an error, flags

LOAD = 0x20
RETURN = 0x06
JUMP_EQUAL = 0x15
JUMP_AT_LEAST = 0x35
JUMP_ANY_BIT = 0x45


# a label, or an instruction: its code, its value, and the label that it jumps to
Step = str | tuple[int, int] | tuple[int, int, str]


def assemble(program: Sequence[Step]) -> bytes:
    """Return the program as `struct sock_filter[]`; raises KeyError or struct.error for a jump that cannot be encoded.

    A jump is made if its condition is true; otherwise the program continues.
    """
    labels: dict[str, int] = {}
    instructions: list[tuple[int, int] | tuple[int, int, str]] = []
    for step in program:
        if isinstance(step, str):
            labels[step] = len(instructions)
        else:
            instructions.append(step)
    code = bytearray()
    for at, (operation, value, *target) in enumerate(instructions, start=1):
        distance = labels[target[0]] - at if target else 0
        code += struct.pack("=HBBI", operation, distance, 0, value)
    return bytes(code)


class Header(ctypes.Structure):
    """A `struct sock_fprog`: the number of instructions, and where they are."""

    _fields_ = (("length", ctypes.c_ushort), ("program", ctypes.c_char_p))


def supported() -> bool:
    """Whether there is a table of system calls for this machine."""
    return platform.machine() in ARCHITECTURES


def filter_program(machine: str, own_pid: int, labels: Mapping[str, str] = OF_WORKERS) -> bytes:
    """Return the filter for a process with the id `own_pid` in its own namespace.

    `labels` replace rules of the table.
    """
    column = list(ARCHITECTURES).index(machine)
    calls = [(numbers[column], labels.get(rule, rule)) for numbers, rule in CALLS.values()]
    program: list[Step] = [
        (LOAD, ARCHITECTURE),
        (JUMP_EQUAL, ARCHITECTURES[machine], "native"),
        (RETURN, KILL_PROCESS),
        "native",
        (LOAD, NUMBER),
        (JUMP_AT_LEAST, X32_BIT, "refuse"),
        *[
            (JUMP_EQUAL, number, rule)
            for number, rule in calls
            if number is not None and rule != "refuse"
        ],
        # a C library newer than this table tries new calls and needs this answer to fall back to
        # old ones
        (JUMP_AT_LEAST, FIRST_UNIFIED_NUMBER, "unknown"),
        (RETURN, REFUSE),
        *("transfer", (LOAD, ARGUMENT_3), (JUMP_ANY_BIT, MSG_OOB, "refuse"), (RETURN, ALLOW)),
        # two workers that wait and wake on a page of the same file would hear each other. The C
        # library, which joins a thread by a wait that is not private, asks again until the thread
        # has ended
        *_rule("futex", ARGUMENT_1, JUMP_ANY_BIT, [FUTEX_PRIVATE], AGAIN),
        *_rule("clone", ARGUMENT_0, JUMP_ANY_BIT, [CLONE_THREAD]),
        *_rule("kill", ARGUMENT_0, JUMP_EQUAL, [own_pid]),
        *_rule("prlimit64", ARGUMENT_0, JUMP_EQUAL, [0, own_pid]),
        *_rule("fcntl", ARGUMENT_1, JUMP_EQUAL, FCNTL_COMMANDS),
        *_rule("ioctl", ARGUMENT_1, JUMP_EQUAL, IOCTL_COMMANDS),
        *("refuse", (RETURN, REFUSE)),
        *("unknown", (RETURN, UNKNOWN)),
        *("allow", (RETURN, ALLOW)),
    ]
    return assemble(program)


def reporting_program(machine: str) -> bytes:
    """Return the filter that reports what a worker tries in vain, and leaves all else to the other filter."""
    column = list(ARCHITECTURES).index(machine)
    numbers = {name: numbers[column] for name, (numbers, rule) in CALLS.items()}
    reported = [
        (JUMP_EQUAL, number, "report")
        for name, number in numbers.items()
        if CALLS[name][1] == "reported" and name != "socket" and number is not None
    ]
    program: list[Step] = [
        (LOAD, ARCHITECTURE),
        (JUMP_EQUAL, ARCHITECTURES[machine], "native"),
        (RETURN, ALLOW),
        *("native", (LOAD, NUMBER)),
        *[(JUMP_EQUAL, numbers[name] or 0, name) for name in ("socket", "clone")],
        *reported,
        (RETURN, ALLOW),
        *("socket", (LOAD, ARGUMENT_0)),
        *[(JUMP_EQUAL, family, "refuse") for family in LOCAL_FAMILIES],
        (RETURN, REPORT),
        *("clone", (LOAD, ARGUMENT_0), (JUMP_ANY_BIT, CLONE_THREAD, "allow")),
        *("report", (RETURN, REPORT)),
        *("refuse", (RETURN, REFUSE)),
        *("allow", (RETURN, ALLOW)),
    ]
    return assemble(program)


def listen(machine: str) -> int | None:
    """Report calls from now on to the descriptor that is returned; None where the kernel cannot do it."""
    call = CALLS["seccomp"][0][list(ARCHITECTURES).index(machine)]
    program = reporting_program(machine)
    header = ctypes.byref(Header(len(program) // 8, program))
    number: int = libc().syscall(call, SET_FILTER, NEW_LISTENER, header)
    return number if number >= 0 else None


def answer_report(listener: int) -> str:
    """Refuse a call that was reported, and return its kind: `NETWORK` or `PROGRAM`.

    Nothing of the call is read but its number. Raises OSError if there is none: its process has
    ended.
    """
    waiting = select.poll()
    waiting.register(listener, select.POLLIN)
    if not any(event & select.POLLIN for _, event in waiting.poll(0)):
        raise OSError(errno.EAGAIN, "nothing is reported")
    buffer = bytearray(REPORTED.size)
    fcntl.ioctl(listener, RECEIVE_REPORT, buffer)
    identity, _, _, number, *_ = REPORTED.unpack(buffer)
    fcntl.ioctl(listener, ANSWER_REPORT, ANSWER.pack(identity, 0, -errno.EPERM, 0))
    return NETWORK if number in CALLS["socket"][0] else PROGRAM


def _rule(
    name: str, argument: int, condition: int, values: Iterable[int], otherwise: int = REFUSE
) -> list[Step]:
    """Return the rule that allows a call if the condition is true of its argument and one of the values."""
    return [
        name,
        (LOAD, argument),
        *[(condition, value, "allow") for value in values],
        (RETURN, otherwise),
    ]


def install(program: bytes) -> None:
    """Apply the filter to the calling process for good; needs `no_new_privs`. Raises OSError."""
    header = ctypes.byref(Header(len(program) // 8, program))
    check(libc().prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, header, 0, 0), "installing the filter")
