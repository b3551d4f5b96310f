"""Zip archives as folders. Nothing is extracted to disk, and the archive's metadata is not trusted.

Only stored and deflated entries are read: with other methods, a small file can demand an arbitrary amount of memory.
"""

import stat
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO

from autograder.records import RefusedError
from autograder.source.gate import MEGABYTE, open_regular
from autograder.submissions.files import (
    CLASS_ENTRIES,
    ONLY_THE_FILE,
    STUDENT_ENTRIES,
    ZIP,
    Entry,
    File,
    Odd,
    stem,
    suffix,
)
from autograder.text.names import shown

STUDENT_BYTES = 20 * MEGABYTE  # one student's archive, packed and unpacked
CLASS_BYTES = 200 * MEGABYTE  # an archive of a class
DEPTH = 16
PATH_LENGTH = 1000
ENTRY_BYTES = 256  # of a zip's directory for each allowed entry

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@dataclass
class PackedFolder:
    """A folder inside an archive; `problem` is an error about one of its entries' names."""

    name: str
    path: Path | None = None
    children: dict[str, Entry] = field(default_factory=dict)
    problem: str | None = None
    count: int = 0
    size: int = 0
    _spellings: dict[str, str] = field(default_factory=dict)

    def entries(self) -> list[Entry]:
        if self.problem:
            raise RefusedError(self.problem)
        return [self.children[name] for name in sorted(self.children)]

    def inspect(self) -> None:
        for problem in self._problems():
            raise RefusedError(problem)
        if self.count > STUDENT_ENTRIES:
            raise RefusedError(f"{shown(self.name)} holds more than {STUDENT_ENTRIES} files. {ONLY_THE_FILE}")
        if self.size > STUDENT_BYTES:
            megabytes = STUDENT_BYTES // MEGABYTE
            raise RefusedError(f"{shown(self.name)} unpacks to more than {megabytes} MB. {ONLY_THE_FILE}")

    def _problems(self) -> Iterator[str]:
        if self.problem:
            yield self.problem
        for child in self.children.values():
            if isinstance(child, PackedFolder):
                yield from child._problems()

    def add(self, name: str, size: int, make: Callable[[str], Entry] | None) -> None:
        """Add the entry `name`; `make` creates the entry of its last component, None stands for a folder."""
        parts, problem = _parts(name)
        folder = self
        for part in parts if make is None or problem else parts[:-1]:
            folder.count, folder.size = folder.count + 1, folder.size + size
            if part not in folder.children:
                folder._put(PackedFolder(part))
            child = folder.children[part]
            if not isinstance(child, PackedFolder):
                return  # links and files have no children
            folder = child
        folder.count, folder.size = folder.count + 1, folder.size + size
        if problem:
            folder.problem = problem
        elif make is not None and parts:
            folder._put(make(parts[-1]))

    def _put(self, entry: Entry) -> None:
        if entry.name in self.children:
            self._spoil(entry.name, "in the archive twice")
            return
        self.children[entry.name] = entry
        key = unicodedata.normalize("NFC", entry.name).casefold()
        other = self._spellings.setdefault(key, entry.name)
        if other != entry.name:
            self._spoil(other, "in the archive twice, in uppercase and in lowercase")
            self._spoil(entry.name, "in the archive twice, in uppercase and in lowercase")

    def _spoil(self, name: str, what: str) -> None:
        entry = self.children[name]
        if isinstance(entry, PackedFolder):
            entry.problem = f"{shown(name)} is {what}."
        else:
            self.children[name] = Odd(name, what)


def _parts(name: str) -> tuple[list[str], str | None]:
    parts: list[str] = []
    pieces = name[: PATH_LENGTH + 1].rstrip("/").split("/")
    for number, piece in enumerate(pieces):
        if piece == "." or (not piece and len(pieces) == 1):
            continue
        odd = piece == ".." or "\\" in piece or "\0" in piece or (number == 0 and piece.endswith(":"))
        if not piece or odd or len(parts) >= DEPTH or len(name) > PATH_LENGTH:
            return parts, f"The archive contains a file with the invalid name {shown(name)!r}. Pack it again."
        parts.append(piece)
    return parts, None


@contextmanager
def open_archive(path: Path, whole_class: bool = False) -> Iterator[PackedFolder]:
    """Open an archive as a folder that is named like the archive without its suffix.

    Raises RefusedError if it is too large, broken, or not a zip archive.
    """
    if suffix(path.name) != ZIP:
        raise RefusedError(f"{shown(path.name)} cannot be unpacked here; hand in the file itself or a zip archive.")
    root = PackedFolder(stem(path.name), path)
    size, entries = (CLASS_BYTES, CLASS_ENTRIES) if whole_class else (STUDENT_BYTES, STUDENT_ENTRIES)
    with open_regular(path, size) as stream:
        with _broken(path.name):
            _fill(root, stream, entries)
        yield root


@contextmanager
def _broken(name: str) -> Iterator[None]:
    """Convert any exception of an archive's reader to RefusedError, as hostile bytes can raise nearly any."""
    try:
        yield
    except RefusedError:
        raise
    except Exception as error:
        raise RefusedError(f"{shown(name)} is broken or not an archive of that kind; pack it again.") from error


class _Narrow:
    """A file that limits the size of one read: a zip's directory is read at once, whatever its declared size."""

    def __init__(self, stream: BinaryIO, limit: int, problem: str) -> None:
        self._stream, self._limit, self._problem = stream, limit, problem
        self.seek, self.tell, self.seekable = stream.seek, stream.tell, stream.seekable

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(self._limit + 1 if size < 0 else min(size, self._limit + 1))
        if len(data) > self._limit:
            raise RefusedError(self._problem)
        return data


def _fill(root: PackedFolder, stream: BinaryIO, entries: int) -> None:
    problem = f"{shown(root.name)}.zip holds more than {entries} files. {ONLY_THE_FILE}"
    narrow: IO[bytes] = _Narrow(stream, entries * ENTRY_BYTES, problem)  # type: ignore[assignment]
    archive = zipfile.ZipFile(narrow)
    if len(archive.infolist()) > entries:
        raise RefusedError(problem)
    for info in archive.infolist():
        name = info.orig_filename
        root.add(name, info.file_size, None if name.endswith("/") else partial(_entry, archive, info))


def _entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> Entry:
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
        return Odd(name, "a link or a device")
    return File(name, partial(_load, archive, info, name))


def _load(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, limit: int) -> bytes:
    if info.flag_bits & 1:
        raise RefusedError(f"{shown(name)} is encrypted; pack it without a password.")
    if info.compress_type not in _METHODS:
        raise RefusedError(f"{shown(name)} is compressed in an unusual way; pack it as a plain zip.")
    with _broken(name), archive.open(info) as stream:
        return stream.read(limit + 1)
