"""The last boundary: a list of the system calls that a worker, or a grader's fork, may make, enforced by the kernel.

It cannot check paths: a filter sees numbers, not the memory that pointers refer to.
"""

import ctypes
import errno
import platform
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from autograder.sandbox.inside.libc import check, libc

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

# what becomes of the calls that only a grader's fork needs, in a worker and in the fork
OF_WORKERS = {"fork": "refuse"}
OF_FORKS = {"fork": "allow"}

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
    instructions = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(instructions))
    check(libc().prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, header, 0, 0), "installing the filter")
