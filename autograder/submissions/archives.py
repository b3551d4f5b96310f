"""zip and tar archives as folders. Nothing is extracted to disk, and the archive's metadata is not trusted.

Only stored and deflated zip entries, tar and tar.gz are read: with other methods, a small file can demand an arbitrary
amount of memory. Sizes are counted while reading, not taken from the archive.
"""

import gzip
import io
import re
import stat
import tarfile
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO

from autograder.records import RefusedError
from autograder.source.gate import FILE_BYTES, MEGABYTE, open_regular
from autograder.submissions.files import (
    ARCHIVES,
    CLASS_ENTRIES,
    ONLY_THE_FILE,
    SOURCES,
    STUDENT_ENTRIES,
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
HEADER_BYTES = 64 * 1024  # of a long name in a tar
PIECE = 64 * 1024
BLOCK = 512
GZIP = b"\x1f\x8b"

_PAX_RECORD = re.compile(rb"(\d{1,9}) ([^=\n]{1,200})=")
_EXTENDED = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
_WITHOUT_CONTENTS = (tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)
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
    """Split an entry's name into its components, and return the error of the first invalid one."""
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

    Raises RefusedError if it is too large, broken, or not a zip, tar or tar.gz.
    """
    if suffix(path.name) not in ARCHIVES:
        raise RefusedError(f"{shown(path.name)} cannot be unpacked here; hand in the file itself or a zip archive.")
    root = PackedFolder(stem(path.name), path)
    size, entries = (CLASS_BYTES, CLASS_ENTRIES) if whole_class else (STUDENT_BYTES, STUDENT_ENTRIES)
    with open_regular(path, size) as stream:
        with _broken(path.name):
            if suffix(path.name) == ".zip":
                _fill_from_zip(root, stream, entries)
            else:
                _fill_from_tar(root, _Tar(stream, path.name, size), entries)
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


def _fill_from_zip(root: PackedFolder, stream: BinaryIO, entries: int) -> None:
    problem = f"{shown(root.name)}.zip holds more than {entries} files. {ONLY_THE_FILE}"
    narrow: IO[bytes] = _Narrow(stream, entries * ENTRY_BYTES, problem)  # type: ignore[assignment]
    archive = zipfile.ZipFile(narrow)
    if len(archive.infolist()) > entries:
        raise RefusedError(problem)
    for info in archive.infolist():
        name = info.orig_filename
        root.add(name, info.file_size, None if name.endswith("/") else partial(_zip_entry, archive, info))


def _zip_entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> Entry:
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
        return Odd(name, "a link or a device")
    return File(name, partial(_load_from_zip, archive, info, name))


def _load_from_zip(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> bytes:
    if info.flag_bits & 1:
        raise RefusedError(f"{shown(name)} is encrypted; pack it without a password.")
    if info.compress_type not in _METHODS:
        raise RefusedError(f"{shown(name)} is compressed in an unusual way; pack it as a plain zip.")
    data = b""
    with _broken(name), archive.open(info) as stream:
        while len(data) <= FILE_BYTES and (more := stream.read(PIECE)):
            data += more
    return data[: FILE_BYTES + 1]


class _Tar:
    """The blocks of a tar, read sequentially up to a limit."""

    def __init__(self, stream: BinaryIO, name: str, most_bytes: int) -> None:
        zipped = stream.read(2) == GZIP
        stream.seek(0)
        self._read = gzip.GzipFile(fileobj=stream, mode="rb").read if zipped else stream.read
        self._left = most_bytes
        self.name = name

    def read(self, size: int) -> bytes:
        """Read that many bytes; raises EOFError if there are fewer."""
        self._spend(size)
        data = self._read(size)
        if len(data) != size:
            raise EOFError
        return data

    def skip(self, size: int) -> None:
        while size:
            size -= len(self.read(min(size, PIECE)))

    def header(self) -> tarfile.TarInfo | None:
        """Return the next header, None after the last; raises tarfile.HeaderError if it is invalid."""
        self._spend(BLOCK)
        block = self._read(BLOCK)
        if not block.strip(b"\0"):
            return None
        info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        if info.size < 0:
            raise ValueError("a file of negative size")
        return info

    def body(self, info: tarfile.TarInfo, limit: int) -> bytes:
        """Return the beginning of an entry's contents, and skip to the next header."""
        data = self.read(min(info.size, limit))
        self.skip(-(-info.size // BLOCK) * BLOCK - len(data))
        return data

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise RefusedError(f"{shown(self.name)} unpacks to too much. {ONLY_THE_FILE}")


def _fill_from_tar(root: PackedFolder, tar: _Tar, entries: int) -> None:
    long_name: str | None = None
    for count, info in enumerate(iter(tar.header, None), start=1):
        if count > 2 * entries:  # a long name takes an extra entry
            raise RefusedError(f"{shown(tar.name)} holds more than {entries} files. {ONLY_THE_FILE}")
        if info.type in _EXTENDED:
            long_name = _pax_path(tar.body(info, HEADER_BYTES)) or long_name
        elif info.type == tarfile.GNUTYPE_LONGNAME:
            long_name = tar.body(info, HEADER_BYTES).rstrip(b"\0").decode("utf-8", "surrogateescape")
        elif info.type in (tarfile.XGLTYPE, tarfile.GNUTYPE_LONGLINK):
            tar.body(info, 0)
        else:
            name, long_name = long_name or info.name, None
            _add_from_tar(root, tar, info, name)


def _add_from_tar(root: PackedFolder, tar: _Tar, info: tarfile.TarInfo, name: str) -> None:
    if info.isdir():
        root.add(name, 0, None)
    elif info.type in (tarfile.REGTYPE, tarfile.AREGTYPE):
        wanted = suffix(name) in SOURCES
        data = tar.body(info, FILE_BYTES + 1 if wanted else 0)
        root.add(name, info.size, lambda last: File(last, io.BytesIO(data).read))
    else:
        if info.type not in _WITHOUT_CONTENTS:
            tar.body(info, 0)
        root.add(name, 0, lambda last: Odd(last, "a link or a device"))


def _pax_path(records: bytes) -> str | None:
    """Return the path among the records of a pax header; raises ValueError if the records are invalid."""
    at, path = 0, None
    while at < len(records):
        record = _PAX_RECORD.match(records, at)
        end = at + int(record[1]) if record else 0
        if record is None or end <= record.end() or records[end - 1 : end] != b"\n":
            raise ValueError("a broken pax header")
        if record[2] == b"size" or record[2].startswith(b"GNU.sparse"):
            raise ValueError("a huge or a sparse file")
        if record[2] == b"path":
            path = records[record.end() : end - 1].decode("utf-8", "surrogateescape")
        at = end
    return path
