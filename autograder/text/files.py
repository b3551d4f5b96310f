"""Files that are written whole, and archives whose bytes depend on nothing but what is in them."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from autograder.records import RefusedError

BEGINNING = 1000  # bytes, in which a file's mark stands
EPOCH = (2020, 1, 1, 0, 0, 0)
FILE, PROGRAM = 0o100644, 0o100755


def check_folder(folder: Path) -> None:
    """Raises Refused where no folder is or can be made, or nothing can be written into it. Makes nothing."""
    place = folder.absolute()
    there = next(path for path in (place, *place.parents) if os.path.lexists(path))
    if not there.is_dir():
        raise RefusedError(f"{folder} cannot be written: {there} is not a folder.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise RefusedError(f"{folder} cannot be written: there is no permission to write into {there}.")


def check_file(file: Path, writer: str, ours: Callable[[Path], bool]) -> None:
    """Raises Refused where no file can be written, or where one stays because `ours` does not know it again.

    `writer` is the subject of the sentence, as in "`similar` did not write it". Makes nothing.
    """
    if file.is_dir():
        raise RefusedError(f"{file} is a folder. Name a file with --output.")
    if file.exists() and not ours(file):
        raise RefusedError(
            f"{file} is there already, and {writer} did not write it. Name another file with --output."
        )
    check_folder(file.parent)


def marked(mark: bytes) -> Callable[[Path], bool]:
    """Knows a file of ours by a mark in its beginning."""

    def ours(file: Path) -> bool:
        with file.open("rb") as opened:
            return mark in opened.read(BEGINNING)

    return ours


def write_whole(file: Path, content: str | bytes) -> None:
    """Write a file so that nobody ever finds half of it, and the old one stays where that fails; its folder is made.

    A text is written as UTF-8, its line ends as they are; half a surrogate pair becomes a question mark. Raises OSError
    with the file's name, also where the disk is full.
    """
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        draft.write_bytes(data)
        draft.replace(file)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from None
    finally:
        draft.unlink(missing_ok=True)


def zipped(files: Mapping[str, str | bytes], programs: Collection[str] = ()) -> bytes:
    """A zip of these files, by name, those of `programs` executable; the same files give the same bytes."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.create_system = 3  # Unix, wherever it is made
            entry.external_attr = (PROGRAM if name in programs else FILE) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return memory.getvalue()
