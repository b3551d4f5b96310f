"""The only module that opens files placed by students.

A file must be a regular file of limited size with a single hard link. Its path is walked from a
`root`, the last folder that no student can replace: each component is opened relative to the one
before, and none through a symbolic link, so that a folder which becomes a link while it is read
leads nowhere. Pipes are not waited for and devices are not opened, so a hostile folder causes an
error message and no delay.
"""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from autograder.records import RefusedError, unusable
from autograder.text.names import shown

MEGABYTE = 1 << 20
FILE_BYTES = 4 * MEGABYTE  # maximum size of a file

# Do not follow links or wait for pipes. Not every system defines every flag.
_FLAGS = ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
_CAREFULLY = sum(getattr(os, flag, 0) for flag in _FLAGS)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_ON_THE_WAY = getattr(os, "O_PATH", 0) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)


def open_regular(path: Path, limit: int, root: Path | None = None) -> BinaryIO:
    """Open a file for reading; raises RefusedError for a link, a pipe, a device, or a size above `limit`.

    No link is followed below `root`, which is the file's folder if it is not given.
    """
    name = shown(path.name)
    try:
        descriptor = _open(path, os.O_RDONLY, root)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise RefusedError(
                f"{name} cannot be opened: it is a link. Use the file itself."
            ) from None
        raise unusable(f"{name} cannot be opened", error) from None
    status = os.fstat(descriptor)
    problem = None
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


def names_in(path: Path, root: Path | None = None) -> Iterator["os.DirEntry[str]"]:
    """Yield the entries of a folder, of which only the names are paths; raises OSError."""
    if os.scandir not in os.supports_fd:  # on Windows, where nothing is graded
        with os.scandir(path) as entries:
            yield from entries
        return
    descriptor = _open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0), root or path)
    try:
        with os.scandir(descriptor) as entries:
            yield from entries
    finally:
        os.close(descriptor)


def read_bytes(path: Path, limit: int = FILE_BYTES, root: Path | None = None) -> bytes:
    """Read at most `limit` + 1 bytes of a regular file, to detect one that grows; or raise RefusedError."""
    with open_regular(path, limit, root) as stream:
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


def too_large(name: str, limit: int) -> str:
    advice = (
        " Clear the notebook's outputs and save it again."
        if name.lower().endswith(".ipynb")
        else ""
    )
    size = f"{limit // MEGABYTE} MB" if limit >= MEGABYTE else f"{limit} bytes"
    return f"{shown(name)} is larger than {size}.{advice}"


def _open(path: Path, flags: int, root: Path | None) -> int:
    """Open the last component of a path below `root`, each component relative to its parent; raises OSError."""
    root = path.parent if root is None else root
    parts = path.relative_to(root).parts
    if ".." in parts:
        raise OSError(errno.EXDEV, "the path leads out of the folder")
    if not parts:
        return os.open(path, flags | _CAREFULLY & ~_NOFOLLOW)
    if os.open not in os.supports_dir_fd:  # on Windows, where nothing is graded
        return os.open(path, flags | _CAREFULLY, 0o666)
    folder = os.open(root, _ON_THE_WAY)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _ON_THE_WAY | _NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], flags | _CAREFULLY, 0o666, dir_fd=folder)
    finally:
        os.close(folder)
