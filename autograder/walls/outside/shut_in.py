"""Shut in a grader's fork: the trusted process that handles the values of submissions.

A fault in a kernel of PyTorch that a hostile tensor reaches would otherwise be the whole machine.
The fork needs little: to read, to compute, to ask the fork server for workers over sockets that are
open already, and to reply over its pipe. It has the worker's list of system calls, with the few
more that are marked `fork` in `system_calls.txt`.
"""

import os
import platform
import resource
import sys
import tempfile
from collections.abc import Collection
from contextlib import suppress

from autograder.walls.inside import jail, landlock, seccomp

PARTS = ("Landlock", "seccomp")


def shut_in(folder: str, descriptors: Collection[int]) -> tuple[str, ...]:
    """Let this process start no program, open no network, signal nobody, and write only below `folder`, for good.

    Of what it has open, it keeps these descriptors; the others lead nowhere. It may read all files.
    Returns those of the `PARTS` that this system lacks. Raises OSError if one of the others fails.
    """
    if sys.platform != "linux":
        return PARTS
    _forget_descriptors(descriptors)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    jail.drop_privileges(read_all=True)
    missing = []
    if landlock.version():
        landlock.restrict(("/", os.devnull), writable=(folder,))
    else:
        missing.append("Landlock")
    try:
        program = seccomp.filter_program(platform.machine(), os.getpid(), seccomp.OF_FORKS)
        seccomp.install(program)
    except (OSError, ValueError):  # a kernel without it, or a machine without a list of calls
        missing.append("seccomp")
    return tuple(missing)


def _forget_descriptors(kept: Collection[int]) -> None:
    """Let all other descriptors lead to /dev/null: a number that objects of this process still hold is not used again."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in map(int, os.listdir("/proc/self/fd")):
        if number not in kept and number != nowhere:
            with suppress(OSError):  # the one that has listed them
                os.fstat(number)
                os.dup2(nowhere, number, inheritable=False)
    os.close(nowhere)


def lacking_here() -> tuple[str, ...]:
    """Return what `shut_in` lacks on this system, found out by a child of this process."""
    if sys.platform != "linux":
        return PARTS
    with tempfile.TemporaryDirectory() as folder:
        child = os.fork()
        if child == 0:
            code = 0
            try:
                lacking = shut_in(folder, ())
                code = sum(1 << number for number, part in enumerate(PARTS) if part in lacking)
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return tuple(part for number, part in enumerate(PARTS) if code & 1 << number)
