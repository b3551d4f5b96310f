"""The last boundary: a list of the system calls that a worker may make, enforced by the kernel.

`filter_program` generates a classic BPF program for one architecture, `install` applies it to the calling process for
good. It cannot check paths: a filter sees numbers, not the memory that pointers refer to.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from dataclasses import dataclass, field
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


def _allowed() -> dict[str, tuple[int | None, ...]]:
    """Return the numbers of the calls in `system_calls.txt`, a column for each architecture; None where it has none."""
    rows = map(str.split, Path(__file__).with_name("system_calls.txt").read_text("utf-8").splitlines())
    return {
        name: tuple(None if number == "-" else int(number) for number in numbers)
        for name, *numbers in (row for row in rows if row and row[0] != "#")
    }


ALLOWED = _allowed()

# calls whose first, second or fourth argument decides; each has its own rule in `filter_program`
SENDTO = (44, 206)
RECVFROM = (45, 207)
FUTEX = (202, 98)
CLONE = (56, 220)
CLONE3 = (435, 435)
KILL = (62, 129)
TGKILL = (234, 131)
FCNTL = (72, 25)
IOCTL = (16, 29)
PRLIMIT64 = (302, 261)

# asking and setting flags, duplicating. Not F_SETOWN and F_SETSIG: they send signals to others. No locks or leases,
# nor the call flock: a lock on a package's file is seen by every other worker that can read the file
FCNTL_COMMANDS = {"F_DUPFD": 0, "F_GETFD": 1, "F_SETFD": 2, "F_GETFL": 3, "F_SETFL": 4, "F_DUPFD_CLOEXEC": 1030}
IOCTL_COMMANDS = {
    "TCGETS": 0x5401,
    "TIOCGWINSZ": 0x5413,
    "FIONREAD": 0x541B,
    "FIONBIO": 0x5421,
    "FIONCLEX": 0x5450,
    "FIOCLEX": 0x5451,
}

LOAD, RETURN = 0x20, 0x06
JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT = 0x15, 0x35, 0x45
LONGEST_JUMP = 255


@dataclass(frozen=True)
class _Jump:
    """A conditional jump to a label; if the condition is false, the program continues."""

    code: int
    value: int
    target: str


@dataclass
class Assembler:
    """Collects instructions with named jump targets; `assemble` counts the offsets."""

    instructions: list[_Jump | tuple[int, int]] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)

    def label(self, name: str) -> None:
        """Name the position of the next instruction."""
        if name in self.labels:
            raise ValueError(f"the label {name!r} is used twice")
        self.labels[name] = len(self.instructions)

    def load(self, offset: int) -> None:
        """Load 32 bits of the call's description into the accumulator."""
        self.instructions.append((LOAD, offset))

    def answer(self, action: int) -> None:
        """End the program with `action`."""
        self.instructions.append((RETURN, action))

    def if_equal(self, value: int, target: str) -> None:
        self.instructions.append(_Jump(JUMP_EQUAL, value, target))

    def if_at_least(self, value: int, target: str) -> None:
        self.instructions.append(_Jump(JUMP_AT_LEAST, value, target))

    def if_any_bit(self, value: int, target: str) -> None:
        self.instructions.append(_Jump(JUMP_ANY_BIT, value, target))

    def assemble(self) -> bytes:
        """Return the program as `struct sock_filter[]`; raises ValueError for a jump that cannot be encoded."""
        return b"".join(self._encode(at, each) for at, each in enumerate(self.instructions))

    def _encode(self, at: int, instruction: _Jump | tuple[int, int]) -> bytes:
        if not isinstance(instruction, _Jump):
            code, value = instruction
            return struct.pack("=HBBI", code, 0, 0, value)
        if instruction.target not in self.labels:
            raise ValueError(f"the label {instruction.target!r} is not defined")
        distance = self.labels[instruction.target] - at - 1
        if not 0 <= distance <= LONGEST_JUMP:
            raise ValueError(f"the jump to {instruction.target!r} is {distance} instructions long")
        return struct.pack("=HBBI", instruction.code, distance, 0, instruction.value)


def supported() -> bool:
    """Whether there is a table of system calls for this machine."""
    return platform.machine() in ARCHITECTURES


def filter_program(machine: str, own_pid: int) -> bytes:
    """Return the filter for a worker with the process id `own_pid` in its own namespace."""
    column = list(ARCHITECTURES).index(machine)
    program = Assembler()
    program.load(ARCHITECTURE)
    program.if_equal(ARCHITECTURES[machine], "native")
    program.answer(KILL_PROCESS)
    program.label("native")
    program.load(NUMBER)
    program.if_at_least(X32_BIT, "refuse")
    # the C library falls back to clone, whose flags are in a register where a filter can read them
    program.if_equal(CLONE3[column], "unknown")
    rules = {"sendto": SENDTO, "recvfrom": RECVFROM, "futex": FUTEX, "clone": CLONE}
    rules |= {"kill": KILL, "tgkill": TGKILL, "fcntl": FCNTL, "ioctl": IOCTL, "prlimit64": PRLIMIT64}
    for name, numbers in rules.items():
        program.if_equal(numbers[column], name)
    for number in (pair[column] for pair in ALLOWED.values()):
        if number is not None:
            program.if_equal(number, "allow")
    # a C library newer than this table tries new calls and needs this answer to fall back to old ones
    program.if_at_least(FIRST_UNIFIED_NUMBER, "unknown")
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
    program.label("sendto")
    program.label("recvfrom")
    program.load(ARGUMENT_3)
    program.if_any_bit(MSG_OOB, "refuse")
    program.answer(ALLOW)
    # two workers that wait and wake on a page of the same file would hear each other. The C library, which joins a
    # thread by a wait that is not private, asks again until the thread has ended
    program.label("futex")
    program.load(ARGUMENT_1)
    program.if_any_bit(FUTEX_PRIVATE, "allow")
    program.answer(AGAIN)
    program.label("clone")
    program.load(ARGUMENT_0)
    program.if_any_bit(CLONE_THREAD, "allow")
    program.answer(REFUSE)
    program.label("kill")
    program.label("tgkill")
    program.load(ARGUMENT_0)
    program.if_equal(own_pid, "allow")
    program.answer(REFUSE)
    program.label("prlimit64")
    program.load(ARGUMENT_0)
    program.if_equal(0, "allow")
    program.if_equal(own_pid, "allow")
    program.answer(REFUSE)
    for name, commands in (("fcntl", FCNTL_COMMANDS), ("ioctl", IOCTL_COMMANDS)):
        program.label(name)
        program.load(ARGUMENT_1)
        for command in commands.values():
            program.if_equal(command, "allow")
        program.answer(REFUSE)


def install(program: bytes) -> None:
    """Apply the filter to the calling process for good; needs `no_new_privs`. Raises OSError."""
    instructions = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(instructions))
    check(libc().prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, header, 0, 0), "installing the filter")
