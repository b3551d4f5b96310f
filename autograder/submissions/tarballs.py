"""Tar archives as folders: unpacked to a nameless temporary file of limited size, and never to a path of theirs."""

import gzip
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from functools import partial
from typing import BinaryIO

from autograder.records import RefusedError
from autograder.source.gate import MEGABYTE
from autograder.submissions import files
from autograder.submissions.files import Entry, File, Odd, PackedFolder
from autograder.text.names import shown

TARBALLS = (".tar", ".tar.gz", ".tgz")
PIECE = 1 << 20  # bytes
GZIP = b"\x1f\x8b"
HEADERS = 4096  # bytes of a tar beside the content, for each allowed entry


@contextmanager
def unpacked(root: PackedFolder, stream: BinaryIO, size: int, entries: int) -> Iterator[None]:
    """Add the files of a tar to a folder, which can be read inside this block.

    Raises RefusedError if there is too much in it, and nearly anything if it is broken.
    """
    with tempfile.TemporaryFile() as plain:
        _unzip(root.name, stream, plain, size + HEADERS * entries)
        with tarfile.open(fileobj=plain, mode="r:") as archive:
            for number, member in enumerate(archive):
                if number >= entries:
                    raise RefusedError(
                        f"{shown(root.name)} holds more than {entries} files. {files.ONLY_THE_FILE}"
                    )
                name = member.name.removeprefix("./")
                make = None if member.isdir() else partial(_entry, archive, member)
                if name not in ("", "."):
                    root.add(name, member.size, make)
            yield


def _unzip(name: str, stream: BinaryIO, plain: BinaryIO, limit: int) -> None:
    packed = stream.read(len(GZIP)) == GZIP
    stream.seek(0)
    source = gzip.GzipFile(fileobj=stream) if packed else stream
    while piece := source.read(PIECE):
        plain.write(piece)
        if plain.tell() > limit:
            raise RefusedError(
                f"{shown(name)} holds more than {limit // MEGABYTE} MB. {files.ONLY_THE_FILE}"
            )
    plain.seek(0)


def _entry(archive: tarfile.TarFile, member: tarfile.TarInfo, name: str) -> Entry:
    if not member.isreg() or member.issparse():
        return Odd(name, "a link or a device")
    return File(name, partial(_load, archive, member), time=_time(member))


def _load(archive: tarfile.TarFile, member: tarfile.TarInfo, limit: int) -> bytes:
    try:
        content = archive.extractfile(member)
        return content.read(limit + 1) if content else b""
    except (tarfile.TarError, OSError, ValueError) as error:
        raise RefusedError(
            f"{shown(member.name)} cannot be read from its archive; pack it again."
        ) from error


def _time(member: tarfile.TarInfo) -> str:
    try:
        return datetime.fromtimestamp(member.mtime, timezone.utc).replace(tzinfo=None).isoformat()
    except (ValueError, OverflowError, OSError):
        return ""
