"""Atomic writing of files, and reproducible zip archives."""

import errno
import hashlib
import itertools
import os
import re
import tempfile
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from pathlib import Path

from autograder.records import RefusedError

BEGINNING = 1000  # number of bytes in which a file's mark is searched
PIECE = 1_000_000  # bytes
EPOCH = (2020, 1, 1, 0, 0, 0)
FILE = 0o100644
PROGRAM = 0o100755
# of `write_whole`, for a file with a suffix: `.notes.2024` is somebody's own
_DRAFT = re.compile(r"\..+\.[A-Za-z]\w*\.([1-9]\d{0,8})")


def add_files(digest: "hashlib._Hash", folder: Path) -> None:
    """Add the names and contents of all files below a folder to a digest; hidden folders and caches are left out."""
    for file in sorted(folder.rglob("*")):
        inside = file.relative_to(folder)
        hidden = any(name.startswith(".") or name == "__pycache__" for name in inside.parts)
        if not hidden and file.is_file():
            content = file.read_bytes()
            digest.update(
                f"{inside.as_posix()}\0{len(content)}\0".encode("utf-8", "surrogateescape")
            )
            digest.update(content)


def check_folder(folder: Path) -> None:
    """Raise RefusedError if this folder does not exist and cannot be created, or is not writable.

    Creates nothing.
    """
    place = folder.absolute()
    there = next(path for path in (place, *place.parents) if os.path.lexists(path))
    if not there.is_dir():
        raise RefusedError(f"{folder} cannot be written: {there} is not a folder.")
    if not os.access(there, os.W_OK | os.X_OK):
        if hasattr(os, "statvfs") and os.statvfs(there).f_flag & os.ST_RDONLY:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(there))
        raise RefusedError(
            f"{folder} cannot be written: there is no permission to write into {there}."
        )


def check_file(file: Path, writer: str, ours: Callable[[Path], bool]) -> None:
    """Raise RefusedError if the file cannot be written, or exists and `ours` rejects it.

    `writer` is the subject of the message, as in "`similar` did not write it". Creates nothing.
    """
    if file.is_dir():
        raise RefusedError(f"{file} is a folder. Name a file with --output.")
    if file.exists() and not ours(file):
        raise RefusedError(
            f"{file} already exists, and {writer} did not write it. Name another file with --output."
        )
    check_folder(file.parent)


def marked(mark: bytes) -> Callable[[Path], bool]:
    """Return a function that identifies the engine's own files by a mark near their beginning."""

    def ours(file: Path) -> bool:
        with file.open("rb") as opened:
            return mark in opened.read(BEGINNING)

    return ours


def numbered(path: Path) -> Iterator[Path]:
    """Yield the path itself, then with `-2`, `-3`, … at the end of its name."""
    yield path
    yield from (
        path.with_name(f"{path.stem}-{number}{path.suffix}") for number in itertools.count(2)
    )


def make_folder(folder: Path, mode: int | None = 0o700) -> None:
    """Create a folder, and missing ones above it, for its owner alone; without a `mode`, each as the one around it.

    One that exists keeps its mode, because several people may share a class.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        wanted = path.parent.stat().st_mode & 0o777 if mode is None else mode
        path.mkdir(wanted, exist_ok=True)


def open_as_its_folder(file: str, flags: int) -> int:
    """Open a file for `open(…, opener=…)`; one that is created is no more open than its folder.

    A link in its place is not followed.
    """
    allowed = os.stat(os.path.dirname(file) or ".").st_mode & 0o666
    return os.open(file, flags | getattr(os, "O_NOFOLLOW", 0), allowed)


def write_whole(file: Path, content: str | bytes | Iterable[str | bytes]) -> Path:
    """Write a file atomically and return its path: no reader sees a partial file, and a failure keeps the old one.

    Missing parent folders are created; neither they nor the file are more open than the folder
    around them. Text, whole or in pieces, is encoded as UTF-8 with its line
    ends unchanged; a lone surrogate becomes a question mark. Raises OSError with the file's name,
    also on a full disk.
    """
    pieces = (content,) if isinstance(content, str | bytes) else content
    make_folder(file.parent, mode=None)
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        draft.unlink(missing_ok=True)  # what lies there, such as a link, is not ours
        with open(draft, "xb", opener=open_as_its_folder) as opened:
            opened.writelines(
                p.encode("utf-8", "replace") if isinstance(p, str) else p for p in pieces
            )
        return draft.replace(file)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from None
    finally:
        draft.unlink(missing_ok=True)


def remove_drafts(folder: Path) -> None:
    """Remove what `write_whole` left below a folder when a command was killed.

    It is for places where another command on this machine may write, but none on another.
    """
    for draft in folder.rglob(".*"):
        match = _DRAFT.fullmatch(draft.name)
        if match and not draft.is_dir() and not _is_running(int(match[1])):
            draft.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    """Whether there is a process with this number; only for POSIX, where signal 0 does nothing."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is somebody else's
        return True
    return True


def zipped(
    files: Iterable[tuple[str, str | bytes]], programs: Collection[str] = ()
) -> Iterator[bytes]:
    """Yield pieces of a zip of these files, those in `programs` executable; equal files give equal bytes."""
    with tempfile.TemporaryFile() as whole:
        with zipfile.ZipFile(whole, "w") as archive:
            for name, content in files:
                entry = zipfile.ZipInfo(name, EPOCH)
                entry.create_system = 3  # Unix, on every platform
                entry.external_attr = (PROGRAM if name in programs else FILE) << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, content)
        whole.seek(0)
        yield from iter(partial(whole.read, PIECE), b"")
