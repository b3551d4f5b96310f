"""Students' files and folders on disk, and the text of a file. No link is followed and no code is run."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from autograder.records import RefusedError, SourceFile
from autograder.source import gate
from autograder.source.gate import FILE_BYTES, too_large
from autograder.source.text import notebook_cells
from autograder.text.names import shown

STUDENT_ENTRIES = 1000  # files and folders in one student's folder or archive
CLASS_ENTRIES = 50_000  # in the folder or archive of a class

SOURCES = (".py", ".ipynb")
ZIP = ".zip"
ARCHIVES = (ZIP, ".tar.gz", ".tar", ".tgz", ".tbz2", ".txz", ".bz2", ".xz", ".zst", ".gz", ".7z", ".rar")

COUNTED = re.compile(r"[-_ ]?(?:\d+|\(\d+\))$")  # the number that is appended to a duplicate name

ONLY_THE_FILE = "Hand in only the file that you wrote."


@dataclass(frozen=True)
class File:
    """A readable file; `load` reads at most one byte more than its argument, or raises RefusedError."""

    name: str
    load: Callable[[int], bytes]
    path: Path | None = None

    def read(self, limit: int = FILE_BYTES) -> bytes:
        """Return the contents; raises RefusedError if they cannot be read or have more than `limit` bytes."""
        data = self.load(limit)
        if len(data) > limit:
            raise RefusedError(too_large(self.name, limit))
        return data


@dataclass(frozen=True)
class Odd:
    """A special file that must not be opened; `what` describes it."""

    name: str
    what: str
    path: Path | None = None


class Folder(Protocol):
    """A folder on disk or inside an archive."""

    @property
    def name(self) -> str: ...

    @property
    def path(self) -> Path | None: ...

    def entries(self) -> "list[Entry]":
        """Return the entries sorted by name; raises RefusedError if they cannot be listed."""

    def inspect(self) -> None:
        """Raise RefusedError if this cannot be the folder of one student, for example by its size."""


Entry = File | Odd | Folder


@dataclass(frozen=True)
class DiskFolder:
    """A folder on disk; its links are not followed."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    def entries(self) -> list[Entry]:
        found: list[Entry] = []
        try:
            with os.scandir(self.path) as entries:
                for entry in entries:
                    found.append(_on_disk(entry))
                    if len(found) > CLASS_ENTRIES:
                        raise RefusedError(f"There are more than {CLASS_ENTRIES} files in {shown(self.name)}.")
        except OSError as error:
            raise RefusedError(f"The folder {shown(self.name)} cannot be read: {error.strerror}.") from None
        return sorted(found, key=lambda entry: entry.name)

    def inspect(self) -> None:
        if len(self.entries()) > STUDENT_ENTRIES:
            raise RefusedError(f"There are more than {STUDENT_ENTRIES} files in {shown(self.name)}. {ONLY_THE_FILE}")


def disk_file(path: Path) -> File:
    """Return the file at this path, unopened."""
    return File(path.name, partial(gate.read_bytes, path), path)


def read_source(file: File) -> SourceFile:
    """Return the text of a .py or .ipynb.

    Raises RefusedError if the file is too large, not UTF-8, not text, or not a notebook.
    """
    data, name = file.read(), shown(file.name)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RefusedError(f"{name} is not UTF-8 text (byte {error.start + 1}); save it as UTF-8.") from None
    if "\0" in text:
        raise RefusedError(f"{name} is not a text file: it contains a zero byte.")
    if suffix(file.name) == ".ipynb":
        try:
            notebook_cells(text)
        except ValueError:
            raise RefusedError(f"{name} is not a readable notebook. Was it saved completely?") from None
    return SourceFile(shown(stem(file.name)) + suffix(file.name), text)


def suffix(name: str) -> str:
    """Return `.py`, `.ipynb` or an archive's suffix in lower case; empty for any other name."""
    lower = name.lower()
    return next((end for end in (*SOURCES, *ARCHIVES) if lower.endswith(end)), "")


def stem(name: str) -> str:
    """Return a file's name without that suffix."""
    ending = suffix(name)
    return name[: -len(ending)] if ending else name


def plain_stem(name: str) -> str:
    """Return a file's name without its suffix and without the number of a duplicate, such as `(1)`."""
    return COUNTED.sub("", stem(name))


def _on_disk(entry: os.DirEntry[str]) -> Entry:
    path = Path(entry.path)
    if entry.is_symlink():
        return Odd(entry.name, "a link", path)
    if entry.is_dir(follow_symlinks=False):
        return DiskFolder(path)
    if entry.is_file(follow_symlinks=False):
        return disk_file(path)
    return Odd(entry.name, "a pipe, a socket or a device", path)
