"""Where work arrives: which entries of a folder have changed, and are complete."""

import os
import queue
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Protocol

from autograder.records import Submission
from autograder.runs.changes import Changes
from autograder.submissions.settling import Settling

LOOK_SECONDS = 5.0  # between two looks at everything, at least,
LOOK_SHARE = 200  # and so many times as long as a look takes
POLL_SECONDS = 0.1  # while a file is being written
IDLE_SECONDS = 1.0
NEW_FOLDER_SECONDS = 0.3  # for what was written before a new folder is watched


class HandIns(Protocol):
    """A folder in which students' work arrives; each of its entries can be looked at alone.

    `is_deep` says whether changes inside an entry are work, too. `trusts_stamps` says whether the
    time of hand-in stands in the work itself.
    """

    root: Path
    is_deep: bool
    trusts_stamps: bool

    def submissions(self, names: Collection[str]) -> Iterator[Submission]:
        """Yield what is complete of the work to which these entries belong; raises RefusedError."""


class Arrivals:
    """Waits for changes, and looks at the entries that changed, now and then at all."""

    def __init__(
        self,
        hand_ins: HandIns,
        on_error: Callable[[str, Exception], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root = hand_ins.root
        self._is_deep = hand_ins.is_deep
        self._on_error = on_error
        self._clock = clock
        self._paths: queue.SimpleQueue[Collection[Path]] = queue.SimpleQueue()
        self._changes = Changes(self._paths.put)
        self._settling = Settling(self._root, clock=clock)
        self._next_look = clock()

    @property
    def seconds_until_due(self) -> float:
        """How long to wait at most until the next look."""
        if self._settling.is_waiting:
            return POLL_SECONDS
        return min(IDLE_SECONDS, max(0.0, self._next_look - self._clock()))

    def wait(self, seconds: float) -> set[str]:
        """Wait at most so long for a change or a call of `wake`; return the entries that changed."""
        paths = list[Path]()
        try:
            paths += self._paths.get(timeout=seconds)
            while True:
                paths += self._paths.get_nowait()
        except queue.Empty:
            inside = [path.relative_to(self._root) for path in paths if path != self._root]
            return {path.parts[0] for path in inside}

    def wake(self) -> None:
        self._paths.put(())

    def complete(self, changed: Collection[str]) -> list[str]:
        """Look at these entries, and at those that are due; return those that are complete now."""
        begun = self._clock()
        names = {*changed, *self._settling.due}
        is_time_for_all = begun >= self._next_look
        if is_time_for_all:
            names |= self._everything()
        complete = []
        for name in sorted(names):
            try:
                if self._settling.is_complete(name):
                    complete.append(name)
            except Exception as error:
                self._on_error(name, error)
        if is_time_for_all:
            now = self._clock()
            self._next_look = now + max(LOOK_SECONDS, LOOK_SHARE * (now - begun))
        if names or is_time_for_all:
            self._watch_folders()
        return complete

    def forget(self, name: str) -> None:
        """Take an entry as changed: it could not be read."""
        self._settling.forget(name)

    def close(self) -> None:
        self._changes.close()

    def _everything(self) -> set[str]:
        """Return all entries, also those that are gone."""
        names = self._settling.names
        try:
            names.update(os.listdir(self._root))
        except OSError as error:
            self._on_error("", error)
        return names

    def _watch_folders(self) -> None:
        folders = {self._root} if self._root.is_dir() else set()
        if self._is_deep and folders:
            folders |= self._settling.folders
        if self._changes.watch(folders):
            self._next_look = min(self._next_look, self._clock() + NEW_FOLDER_SECONDS)
