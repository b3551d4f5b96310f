"""The last boundary: a list of the system calls that a worker may make, enforced by the kernel.

`filter_program` generates a classic BPF program for one architecture, `install` applies it to the calling process for
good. It cannot check paths: a filter sees numbers, not the memory that pointers refer to.
"""

import ctypes
import errno
import platform
import struct
from pathlib import Path

from autograder.sandbox.libc import check, libc

KILL_PROCESS = 0x80000000
ALLOW = 0x7FFF0000
ERRNO = 0x00050000
REFUSE = ERRNO | errno.EPERM
UNKNOWN = ERRNO | errno.ENOSYS
AGAIN = ERRNO | errno.EAGAIN

# offsets in struct seccomp_data; the lower half of an argument comes first on both architectures
NUMBER, ARCHITECTURE, ARGUMENT_0, ARGUMENT_1, ARGUMENT_3 = 0, 4, 16, 24, 40

X32_BIT = 0x40000000
FIRST_UNIFIED_NUMBER = 424
CLONE_THREAD = 0x00010000
FUTEX_PRIVATE = 0x80
MSG_OOB = 0x1  # out-of-band data: not needed, and the cause of several kernel bugs
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def _table() -> dict[str, tuple[tuple[int | None, ...], str]]:
    """Read `system_calls.txt`: each call's numbers, None where an architecture has none, and its rule."""
    rows = map(str.split, Path(__file__).with_name("system_calls.txt").read_text("utf-8").splitlines())
    return {
        name: (tuple(None if number == "-" else int(number) for number in numbers[:2]), "".join(numbers[2:]) or "allow")
        for name, *numbers in (row for row in rows if row and row[0] != "#")
    }


CALLS = _table()

# asking and setting flags, duplicating: F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC. Not F_SETOWN and
# F_SETSIG: they send signals to others. No locks or leases, nor the call flock: a lock on a package's file is seen by
# every other worker that can read the file
FCNTL_COMMANDS = (0, 1, 2, 3, 4, 1030)
# TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX
IOCTL_COMMANDS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)

LOAD, RETURN = 0x20, 0x06
JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT = 0x15, 0x35, 0x45
LONGEST_JUMP = 255


class Assembler:
    """Collects instructions with named jump targets; `assemble` counts the offsets."""

    def __init__(self) -> None:
        self.instructions: list[tuple[int, int, str | None]] = []  # the code, its value, and where it jumps to
        self.labels: dict[str, int] = {}

    def label(self, name: str) -> None:
        """Name the position of the next instruction."""
        if name in self.labels:
            raise ValueError(f"the label {name!r} is used twice")
        self.labels[name] = len(self.instructions)

    def load(self, offset: int) -> None:
        """Load 32 bits of the call's description into the accumulator."""
        self.instructions.append((LOAD, offset, None))

    def answer(self, action: int) -> None:
        """End the program with `action`."""
        self.instructions.append((RETURN, action, None))

    def jump(self, condition: int, value: int, target: str) -> None:
        """Jump to a label if the condition is true; otherwise the program continues."""
        self.instructions.append((condition, value, target))

    def assemble(self) -> bytes:
        """Return the program as `struct sock_filter[]`; raises ValueError for a jump that cannot be encoded."""
        distances = [self._distance(at, target) for at, (_, _, target) in enumerate(self.instructions)]
        steps = zip(self.instructions, distances)
        return b"".join(struct.pack("=HBBI", code, distance, 0, value) for (code, value, _), distance in steps)

    def _distance(self, at: int, target: str | None) -> int:
        if target is None:
            return 0
        if target not in self.labels:
            raise ValueError(f"the label {target!r} is not defined")
        distance = self.labels[target] - at - 1
        if not 0 <= distance <= LONGEST_JUMP:
            raise ValueError(f"the jump to {target!r} is {distance} instructions long")
        return distance


def supported() -> bool:
    """Whether there is a table of system calls for this machine."""
    return platform.machine() in ARCHITECTURES


def filter_program(machine: str, own_pid: int) -> bytes:
    """Return the filter for a worker with the process id `own_pid` in its own namespace."""
    column = list(ARCHITECTURES).index(machine)
    program = Assembler()
    program.load(ARCHITECTURE)
    program.jump(JUMP_EQUAL, ARCHITECTURES[machine], "native")
    program.answer(KILL_PROCESS)
    program.label("native")
    program.load(NUMBER)
    program.jump(JUMP_AT_LEAST, X32_BIT, "refuse")
    for numbers, rule in CALLS.values():
        number = numbers[column]
        if number is not None:
            program.jump(JUMP_EQUAL, number, rule)
    # a C library newer than this table tries new calls and needs this answer to fall back to old ones
    program.jump(JUMP_AT_LEAST, FIRST_UNIFIED_NUMBER, "unknown")
    program.answer(REFUSE)
    _argument_rules(program, own_pid)
    program.label("refuse")
    program.answer(REFUSE)
    program.label("unknown")
    program.answer(UNKNOWN)
    program.label("allow")
    program.answer(ALLOW)
    return program.assemble()


def _argument_rules(program: Assembler, own_pid: int) -> None:
    """Add checks of arguments: plain bytes, own threads, own signals, own limits, harmless commands."""
    program.label("transfer")
    program.load(ARGUMENT_3)
    program.jump(JUMP_ANY_BIT, MSG_OOB, "refuse")
    program.answer(ALLOW)
    # two workers that wait and wake on a page of the same file would hear each other. The C library, which joins a
    # thread by a wait that is not private, asks again until the thread has ended
    program.label("futex")
    program.load(ARGUMENT_1)
    program.jump(JUMP_ANY_BIT, FUTEX_PRIVATE, "allow")
    program.answer(AGAIN)
    program.label("clone")
    program.load(ARGUMENT_0)
    program.jump(JUMP_ANY_BIT, CLONE_THREAD, "allow")
    program.answer(REFUSE)
    program.label("kill")
    program.load(ARGUMENT_0)
    program.jump(JUMP_EQUAL, own_pid, "allow")
    program.answer(REFUSE)
    program.label("prlimit64")
    program.load(ARGUMENT_0)
    program.jump(JUMP_EQUAL, 0, "allow")
    program.jump(JUMP_EQUAL, own_pid, "allow")
    program.answer(REFUSE)
    for name, commands in (("fcntl", FCNTL_COMMANDS), ("ioctl", IOCTL_COMMANDS)):
        program.label(name)
        program.load(ARGUMENT_1)
        for command in commands:
            program.jump(JUMP_EQUAL, command, "allow")
        program.answer(REFUSE)


def install(program: bytes) -> None:
    """Apply the filter to the calling process for good; needs `no_new_privs`. Raises OSError."""
    instructions = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(instructions))
    check(libc().prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, header, 0, 0), "installing the filter")
