"""Archives as folders. Nothing is extracted to a path of the archive, and its metadata is not trusted.

Of a zip, only stored and deflated entries are read: with other methods, a small file can demand an
arbitrary amount of memory.
"""

import stat
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO

from autograder.records import RefusedError
from autograder.source.gate import open_regular
from autograder.submissions import files
from autograder.submissions.files import Entry, File, Odd, PackedFolder, stem, suffix
from autograder.submissions.tarballs import TARBALLS, unpacked
from autograder.text.names import shown

DOS_EPOCH = (1980, 1, 1)  # the date of an entry without one
ENTRY_BYTES = 256  # of a zip's directory for each allowed entry

UTF_8_FLAG = 0x800

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class UnreadableArchive(RefusedError):
    """Nothing in an archive can be read, as it is broken or too large."""


@contextmanager
def open_archive(
    path: Path, whole_class: bool = False, root: Path | None = None
) -> Iterator[PackedFolder]:
    """Open an archive as a folder of the same name; raises RefusedError if it is too large or broken.

    It is opened without following links below `root`.
    """
    ending = suffix(path.name)
    if ending not in (files.ZIP, *TARBALLS):
        raise UnreadableArchive(
            f"{shown(path.name)} cannot be unpacked here; hand in the file itself or a zip archive."
        )
    packed = PackedFolder(stem(path.name), path)
    size = files.STUDENT_BYTES
    entries = files.STUDENT_ENTRIES
    if whole_class:
        size = files.CLASS_BYTES
        entries = files.CLASS_ENTRIES
    with ExitStack() as stack:
        try:
            stream = stack.enter_context(open_regular(path, size, root))
            with _broken(path.name):
                if ending in TARBALLS:
                    stack.enter_context(unpacked(packed, stream, size, entries))
                else:
                    _fill(packed, stream, entries)
        except RefusedError as refusal:
            raise UnreadableArchive(str(refusal)) from refusal
        yield packed


@contextmanager
def _broken(name: str) -> Iterator[None]:
    """Convert any exception of an archive's reader to RefusedError, as hostile bytes can raise nearly any."""
    try:
        yield
    except RefusedError:
        raise
    except Exception as error:
        raise RefusedError(
            f"{shown(name)} is broken or not an archive of that kind; pack it again."
        ) from error


class _Narrow:
    """A file that limits the size of one read: a zip's directory is read at once, whatever its declared size."""

    def __init__(self, stream: BinaryIO, limit: int, problem: str) -> None:
        self._stream = stream
        self._limit = limit
        self._problem = problem
        self.seek = stream.seek
        self.tell = stream.tell
        self.seekable = stream.seekable

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(self._limit + 1 if size < 0 else min(size, self._limit + 1))
        if len(data) > self._limit:
            raise RefusedError(self._problem)
        return data


def _fill(root: PackedFolder, stream: BinaryIO, entries: int) -> None:
    problem = f"{shown(root.name)}.zip holds more than {entries} files. {files.ONLY_THE_FILE}"
    narrow: IO[bytes] = _Narrow(stream, entries * ENTRY_BYTES, problem)  # type: ignore[assignment]
    archive = zipfile.ZipFile(narrow)
    if len(archive.infolist()) > entries:
        raise RefusedError(problem)
    for info in archive.infolist():
        name = _name(info)
        root.add(
            name, info.file_size, None if name.endswith("/") else partial(_entry, archive, info)
        )


def _name(info: zipfile.ZipInfo) -> str:
    """Return an entry's path: some programs write UTF-8 without saying so, or the separator of Windows."""
    name = info.orig_filename
    if not info.flag_bits & UTF_8_FLAG:
        with suppress(UnicodeError):
            name = name.encode("cp437").decode()
    return name.replace("\\", "/")


def _entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> Entry:
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
        return Odd(name, "a link or a device")
    return File(name, partial(_load, archive, info, name), time=_time(info))


def _time(info: zipfile.ZipInfo) -> str:
    """Return an entry's time as ISO-8601; empty if it is invalid or none."""
    try:
        return "" if info.date_time[:3] == DOS_EPOCH else datetime(*info.date_time).isoformat()
    except ValueError:
        return ""


def _load(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, limit: int) -> bytes:
    if info.flag_bits & 1:
        raise RefusedError(f"{shown(name)} is encrypted; pack it without a password.")
    if info.compress_type not in _METHODS:
        raise RefusedError(
            f"{shown(name)} is compressed in an unusual way; pack it as a plain zip."
        )
    with _broken(name), archive.open(info) as stream:
        return stream.read(limit + 1)
