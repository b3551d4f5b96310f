"""Isolation without namespaces: Landlock hides every file that is not listed, but not that it exists."""

import ctypes
import os
import stat
import struct
from collections.abc import Collection, Iterable

from autograder.walls.inside.libc import check, libc

CREATE_RULESET = 444
ADD_RULE = 445
RESTRICT_SELF = 446
ASK_VERSION = 1
RULE_PATH_BENEATH = 1

WRITE_FILE = 1 << 1
READ_FILE = 1 << 2
READ_FOLDER = 1 << 3
READ_ONLY = READ_FILE | READ_FOLDER  # not EXECUTE: nothing here starts a program
REMOVE = 1 << 4 | 1 << 5  # folders, files
MAKE = 1 << 7 | 1 << 8  # folders, files; no devices, links, pipes and sockets
MOVE = 1 << 13
TRUNCATE = 1 << 14
READ_AND_WRITE = READ_ONLY | WRITE_FILE | REMOVE | MAKE | MOVE | TRUNCATE
# the number of rights over files, over the network and over other processes in each version
FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
TCP_RIGHTS = 0b11
SCOPES = 0b11


def version() -> int:
    """Return the kernel's Landlock version, or 0 if it has none; `ctypes.get_errno` says why."""
    version: int = libc().syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ASK_VERSION)
    return max(0, version)


def around(paths: Iterable[str], hidden: Collection[str]) -> tuple[list[str], list[str]]:
    """Return what shows these paths and nothing in the `hidden` folders: paths to read, and folders to list alone.

    A right over a folder holds for all below it. So a folder round a hidden one can only be listed,
    as Python does to find modules, and each of its entries is read by a right of its own.
    """
    readable = []
    listed = []
    waiting = [os.path.realpath(path) for path in paths if os.path.exists(path)]
    while waiting:
        path = waiting.pop()
        if path in hidden:
            continue
        if not any(folder.startswith(f"{path}/") for folder in hidden):
            readable.append(path)
            continue
        listed.append(path)
        waiting += [entry.path for entry in os.scandir(path) if not entry.is_symlink()]
    return readable, listed


def restrict(
    readable: Iterable[str], writable: Iterable[str] = (), listed: Iterable[str] = ()
) -> None:
    """Hide all files except those at or below these paths from this process and its children, for good.

    Missing paths are skipped. Files can be written, made, moved and removed below `writable` alone.
    Of `listed` and what is below, the names can be read.
    Needs `no_new_privs`; raises OSError if Landlock does not work.
    """
    abi = version()
    if abi == 0:
        raise OSError("this kernel has no Landlock")
    files = (1 << FILE_RIGHTS.get(abi, 16)) - 1
    ruleset = _create_ruleset(abi, files)
    try:
        for path in filter(os.path.exists, readable):
            _allow(ruleset, path, READ_ONLY)
        for path in listed:
            _allow(ruleset, path, READ_FOLDER)
        for path in writable:
            _allow(ruleset, path, READ_AND_WRITE & files)
        check(libc().syscall(RESTRICT_SELF, ruleset, 0), "entering Landlock")
    finally:
        os.close(ruleset)


def _create_ruleset(abi: int, files: int) -> int:
    fields = [files]
    if abi >= 4:
        fields.append(TCP_RIGHTS)
    if abi >= 6:
        fields.append(SCOPES)
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    size = ctypes.c_size_t(len(attributes))
    return check(libc().syscall(CREATE_RULESET, attributes, size, 0), "creating Landlock rules")


def _allow(ruleset: int, path: str, rights: int) -> None:
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            rights = READ_FILE
        if path == os.devnull:
            rights |= WRITE_FILE
        rule = struct.pack("=Qi", rights, handle)
        check(libc().syscall(ADD_RULE, ruleset, RULE_PATH_BENEATH, rule, 0), f"allowing {path}")
    finally:
        os.close(handle)
