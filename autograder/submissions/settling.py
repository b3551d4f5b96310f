"""Hand-ins that are being written: an entry of a folder counts once its files have stayed the same for a while."""

import itertools
import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from autograder.source import gate
from autograder.submissions.files import STUDENT_ENTRIES

SETTLE_SECONDS = 0.5
DEPTH = 8

# of each file: its path, size, inode, and the times of its content and of its name and mode
Stamp = tuple[tuple[str, int, int, int, int], ...]


@dataclass(frozen=True)
class Seen:
    """What was seen of an entry: its stamp, which is empty without files, and its folders."""

    stamp: Stamp
    folders: tuple[Path, ...] = ()


def look_at(entry: Path) -> Seen:
    """Look at all files of an entry; links are not followed, and a vanished entry has none.

    A file that replaces another by renaming has another inode.
    """
    try:
        status = entry.lstat()
    except OSError:
        return Seen(())
    if not stat.S_ISDIR(status.st_mode):
        return Seen((_facts("", status),))
    files: list[tuple[str, int, int, int, int]] = []
    folders = [entry]
    for inner, facts in itertools.islice(_below(entry), STUDENT_ENTRIES):
        if stat.S_ISDIR(facts.st_mode):
            folders.append(inner)
        else:
            files.append(_facts(inner.relative_to(entry).as_posix(), facts))
    return Seen(tuple(sorted(files)), tuple(folders))


def _below(entry: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield all that can be looked at below a student's folder, of which parts may vanish."""
    waiting = [(entry, 0)]
    while waiting:
        folder, depth = waiting.pop()
        for inner, facts in _inside(folder, entry.parent):
            yield inner, facts
            if stat.S_ISDIR(facts.st_mode) and depth < DEPTH:
                waiting.append((inner, depth + 1))


def _inside(folder: Path, root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    try:
        for inner in gate.names_in(folder, root):
            yield folder / inner.name, inner.stat(follow_symlinks=False)
    except OSError:
        return


def _facts(name: str, status: os.stat_result) -> tuple[str, int, int, int, int]:
    return name, status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns


@dataclass
class _Entry:
    seen: Seen
    since: float
    is_known: bool = False


class Settling:
    """The entries of a folder: which have changed, and which of these are complete.

    An entry is complete when it was seen twice with the same files, at least `seconds` apart. The
    clock of the machine plays no part, nor do the times of files beyond being the same.
    """

    def __init__(
        self,
        root: Path,
        seconds: float = SETTLE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root = root
        self._seconds = seconds
        self._clock = clock
        self._entries: dict[str, _Entry] = {}

    @property
    def names(self) -> set[str]:
        """The entries that were there."""
        return set(self._entries)

    @property
    def folders(self) -> set[Path]:
        """The folders of all entries, at any depth."""
        return set[Path]().union(*(entry.seen.folders for entry in self._entries.values()))

    @property
    def due(self) -> list[str]:
        """The entries that changed, and are to be looked at again now."""
        until = self._clock() - self._seconds
        return [
            name
            for name, entry in self._entries.items()
            if not entry.is_known and entry.since <= until
        ]

    @property
    def is_waiting(self) -> bool:
        return not all(entry.is_known for entry in self._entries.values())

    def is_complete(self, name: str) -> bool:
        """Look at an entry; return whether it is complete now, and was not known so."""
        seen = look_at(self._root / name)
        if not seen.stamp and not seen.folders:
            self.forget(name)
            return False
        entry = self._entries.get(name)
        if entry is None or entry.seen.stamp != seen.stamp:
            is_empty = not seen.stamp
            self._entries[name] = _Entry(seen, self._clock(), is_known=is_empty)
            return False
        entry.seen = seen
        if entry.is_known or self._clock() - entry.since < self._seconds:
            return False
        entry.is_known = True
        return True

    def forget(self, name: str) -> None:
        """Take an entry as not known yet: it is gone, or could not be read."""
        self._entries.pop(name, None)
