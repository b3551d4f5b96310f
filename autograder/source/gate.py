"""The only module that opens files placed by students.

A file must be a regular file of limited size with a single hard link, and its last path component must not be a
symbolic link. Pipes are not waited for and devices are not opened, so a hostile folder causes an error message and no
delay.
"""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from autograder.records import RefusedError, unusable
from autograder.text.names import shown

MEGABYTE = 1 << 20
FILE_BYTES = 4 * MEGABYTE  # maximum size of a file

# Do not follow links or wait for pipes. Not every system defines every flag.
_FLAGS = ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
_CAREFULLY = sum(getattr(os, flag, 0) for flag in _FLAGS)


def open_regular(path: Path, limit: int) -> BinaryIO:
    """Open a file for reading; raises RefusedError for a link, a pipe, a device, or a size above `limit`."""
    name = shown(path.name)
    try:
        descriptor = os.open(path, os.O_RDONLY | _CAREFULLY)
    except OSError as error:
        raise unusable(f"{name} cannot be opened", error) from None
    status, problem = os.fstat(descriptor), None
    if not stat.S_ISREG(status.st_mode):
        problem = f"{name} is not a regular file."
    elif status.st_nlink > 1:
        problem = f"{name} is linked to from elsewhere; hand in a file of its own."
    elif status.st_size > limit:
        problem = too_large(path.name, limit)
    if problem:
        os.close(descriptor)
        raise RefusedError(problem)
    return os.fdopen(descriptor, "rb")


def read_bytes(path: Path, limit: int = FILE_BYTES) -> bytes:
    """Read at most `limit` + 1 bytes of a regular file, to detect one that grows; or raise RefusedError."""
    with open_regular(path, limit) as stream:
        try:
            return stream.read(limit + 1)
        except OSError as error:
            raise unusable(f"{shown(path.name)} cannot be read", error) from None


def read_text(path: Path, limit: int = FILE_BYTES) -> str:
    """Read the UTF-8 text of a regular file; raises RefusedError, also for invalid UTF-8."""
    data = read_bytes(path, limit)
    if len(data) > limit:
        raise RefusedError(too_large(path.name, limit))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise RefusedError(f"{shown(path.name)} is not UTF-8 text.") from None


def write_bytes(path: Path, data: bytes) -> None:
    """Write a student's bytes to a file, new or not, through no link; raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _CAREFULLY, 0o666)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)


def too_large(name: str, limit: int) -> str:
    advice = " Clear the notebook's outputs and save it again." if name.lower().endswith(".ipynb") else ""
    size = f"{limit // MEGABYTE} MB" if limit >= MEGABYTE else f"{limit} bytes"
    return f"{shown(name)} is larger than {size}.{advice}"
