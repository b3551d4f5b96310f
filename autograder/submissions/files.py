"""Files and folders of students, on disk and in archives, and the text of a file.

No link is followed, no code is run.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from autograder.records import RefusedError, SourceFile, unusable
from autograder.source import gate
from autograder.source.file_kinds import source_text
from autograder.source.gate import FILE_BYTES, MEGABYTE, too_large
from autograder.text.names import shown

STUDENT_ENTRIES = 1000  # files and folders in one student's folder or archive
CLASS_ENTRIES = 50_000  # in the folder or archive of a class
STUDENT_BYTES = 20 * MEGABYTE  # of one student's archive, packed and unpacked
CLASS_BYTES = 200 * MEGABYTE  # of the archive of a class
NOTEBOOK_BYTES = STUDENT_BYTES  # of a notebook with its outputs
DEPTH = 16  # of folders in an archive
PATH_LENGTH = 1000  # of an entry of an archive

SOURCES = (".py", ".ipynb")
ZIP = ".zip"
ARCHIVES = (
    ZIP,
    ".tar.gz",
    ".tar",
    ".tgz",
    ".tbz2",
    ".txz",
    ".bz2",
    ".xz",
    ".zst",
    ".gz",
    ".7z",
    ".rar",
)

COUNTED = re.compile(
    r"[-_ ]?(?:(?<!\d)\d+|\(\d+\))$"
)  # the number that is appended to a duplicate name

ONLY_THE_FILE = "Hand in only the file that you wrote."


@dataclass(frozen=True)
class File:
    """A readable file; `load` reads at most one byte more than its argument, or raises RefusedError.

    `time` is that of a file in an archive as ISO-8601, empty if unknown. `path` is that of a file
    on disk, which is opened without following links below `root`.
    """

    name: str
    load: Callable[[int], bytes]
    path: Path | None = None
    time: str = ""
    root: Path | None = None

    def read(self, limit: int | None = None) -> bytes:
        """Return the contents; raises RefusedError if they cannot be read or have more than `limit` bytes.

        Without a limit, a notebook may be larger than other files, for its stored outputs.
        """
        if limit is None:
            limit = NOTEBOOK_BYTES if suffix(self.name) == ".ipynb" else FILE_BYTES
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


@dataclass(frozen=True)
class DiskFolder:
    """A folder on disk; its links are not followed, and none on the way from `root`, by default the folder itself."""

    path: Path
    root: Path | None = None

    @property
    def name(self) -> str:
        return self.path.name

    def entries(self) -> "list[Entry]":
        """Return the entries sorted by name; raises RefusedError if they cannot be listed."""
        entries: list[Entry] = []
        try:
            for entry in gate.names_in(self.path, self.root):
                entries.append(_on_disk(entry, self.path / entry.name, self.root or self.path))
                if len(entries) > CLASS_ENTRIES:
                    raise RefusedError(
                        f"There are more than {CLASS_ENTRIES} files in {shown(self.name)}."
                    )
        except OSError as error:
            raise unusable(f"The folder {shown(self.name)} cannot be read", error) from None
        return sorted(entries, key=lambda entry: entry.name)

    def inspect(self) -> None:
        """Raise RefusedError if this cannot be the folder of one student, for example by its size."""
        if len(self.entries()) > STUDENT_ENTRIES:
            raise RefusedError(
                f"There are more than {STUDENT_ENTRIES} files in {shown(self.name)}. {ONLY_THE_FILE}"
            )


@dataclass
class PackedFolder:
    """A folder inside an archive; `problem` is an error about one of its entries' names."""

    name: str
    path: Path | None = None
    children: "dict[str, Entry]" = field(default_factory=dict)
    problem: str | None = None
    count: int = 0
    size: int = 0

    def entries(self) -> "list[Entry]":
        if self.problem:
            raise RefusedError(self.problem)
        return [self.children[name] for name in sorted(self.children)]

    def inspect(self) -> None:
        for problem in self._problems():
            raise RefusedError(problem)
        if self.count > STUDENT_ENTRIES:
            raise RefusedError(
                f"{shown(self.name)} holds more than {STUDENT_ENTRIES} files. {ONLY_THE_FILE}"
            )
        if self.size > STUDENT_BYTES:
            megabytes = STUDENT_BYTES // MEGABYTE
            raise RefusedError(
                f"{shown(self.name)} unpacks to more than {megabytes} MB. {ONLY_THE_FILE}"
            )

    def _problems(self) -> Iterator[str]:
        if self.problem:
            yield self.problem
        for child in self.children.values():
            if isinstance(child, PackedFolder):
                yield from child._problems()

    def add(self, name: str, size: int, make: "Callable[[str], Entry] | None") -> None:
        """Add the entry `name`; `make` creates the entry of its last component, None stands for a folder."""
        parts, problem = _parts(name)
        folder = self
        for part in parts if make is None or problem else parts[:-1]:
            folder.count = folder.count + 1
            folder.size = folder.size + size
            if part not in folder.children:
                folder._put(PackedFolder(part))
            child = folder.children[part]
            if not isinstance(child, PackedFolder):
                return  # links and files have no children
            folder = child
        folder.count = folder.count + 1
        folder.size = folder.size + size
        if problem:
            folder.problem = problem
        elif make is not None and parts:
            folder._put(make(parts[-1]))

    def _put(self, entry: "Entry") -> None:
        if entry.name in self.children:
            self._spoil(entry.name)
            return
        self.children[entry.name] = entry

    def _spoil(self, name: str) -> None:
        entry = self.children[name]
        if isinstance(entry, PackedFolder):
            entry.problem = f"{shown(name)} is in the archive twice."
        else:
            self.children[name] = Odd(name, "in the archive twice")


Folder = DiskFolder | PackedFolder
Entry = File | Odd | Folder


def folder_of(entries: Iterable[tuple[str, File | Odd]], name: str = "") -> PackedFolder:
    """Return files, each with its way, as a folder in memory; of two with the same way, the last one is in it."""
    root = PackedFolder(name)
    for way, entry in entries:
        folder = root
        *parents, name_there = way.split("/")
        for parent in parents:
            inner = folder.children.get(parent)
            if not isinstance(inner, PackedFolder):
                inner = PackedFolder(parent)
                folder.children[parent] = inner
            folder = inner
        folder.children[name_there] = replace(entry, name=name_there)
    return root


def disk_file(path: Path, root: Path | None = None) -> File:
    """Return the file at this path, unopened."""
    return File(path.name, partial(gate.read_bytes, path, root=root), path, root=root)


def read_source(file: File) -> SourceFile:
    """Return the text of a .py or .ipynb; raises RefusedError with a sentence about what is wrong with the file."""
    data = file.read()
    name = shown(stem(file.name)) + suffix(file.name)
    return SourceFile(name, source_text(name, data))


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


def _on_disk(entry: os.DirEntry[str], path: Path, root: Path) -> Entry:
    if entry.is_symlink():
        return Odd(entry.name, "a link", path)
    if entry.is_dir(follow_symlinks=False):
        return DiskFolder(path, root)
    if entry.is_file(follow_symlinks=False):
        return disk_file(path, root)
    return Odd(entry.name, "a pipe, a socket or a device", path)


def _parts(name: str) -> tuple[list[str], str | None]:
    parts: list[str] = []
    pieces = name[: PATH_LENGTH + 1].rstrip("/").split("/")
    for number, piece in enumerate(pieces):
        if piece == "." or (not piece and len(pieces) == 1):
            continue
        odd = (
            piece == ".." or "\\" in piece or "\0" in piece or (number == 0 and piece.endswith(":"))
        )
        if not piece or odd or len(parts) >= DEPTH or len(name) > PATH_LENGTH:
            return (
                parts,
                f"The archive contains a file with the invalid name {shown(name)!r}. Pack it again.",
            )
        parts.append(piece)
    return parts, None
