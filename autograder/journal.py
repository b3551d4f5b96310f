"""The journal, `grades.jsonl`: one line a graded submission, written when it is graded, never rewritten.

A run that was killed can leave half a line at the end; reading passes over it and writing goes on after it.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from autograder import __version__
from autograder.records import Grade, Refused

FILE_NAME = "grades.jsonl"


class Journal:
    """An open journal: `latest` grade of each student and assignment, and `append`. A context manager."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / FILE_NAME
        self.latest: dict[tuple[str, str], Grade] = {}
        for grade in read_journal(self.path):
            self.latest[grade.student, grade.assignment] = grade
        self._file = self.path.open("a+b")
        self._end_last_line()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()

    def append(self, grade: Grade) -> None:
        """Write one grade and hand it to the operating system at once."""
        line = grade.to_json()
        self._file.write(line.encode("utf-8", "replace") + b"\n")
        self._file.flush()
        self.latest[grade.student, grade.assignment] = Grade.from_json(line)  # shares texts with the others

    def holds(self, student: str, assignment: str, submission_sha256: str, suite_sha256: str) -> bool:
        """Whether this very text was graded by this very suite and engine already."""
        known = self.latest.get((student, assignment))
        if known is None or known.status != "graded" or known.autograder != __version__:
            return False
        return (known.submission_sha256, known.suite_sha256) == (submission_sha256, suite_sha256)

    def run_seed(self) -> int:
        """The seed of the run that is in the journal, for going on with it; a fresh secret one when it is empty."""
        return next(reversed(self.latest.values())).seed if self.latest else fresh_seed()

    def _end_last_line(self) -> None:
        size = self._file.seek(0, os.SEEK_END)
        if size:
            self._file.seek(size - 1)
            if self._file.read(1) != b"\n":
                self._file.write(b"\n")
                self._file.flush()


def fresh_seed() -> int:
    """A seed that nobody could know beforehand."""
    return secrets.randbits(31)


def journal_at(path: Path) -> Path:
    """The journal that this is, or that is in this folder; raises Refused when there is none."""
    journal = path / FILE_NAME if path.is_dir() else path
    if not journal.is_file():
        raise Refused(f"There is no journal {journal}. `autograder grade` writes one.")
    return journal


def read_journal(path: Path) -> Iterable[Grade]:
    """The grades of a journal in the order in which they were written; broken lines are passed over.

    A later line about the same student and assignment replaces an earlier one. No journal, no grades.
    """
    if not path.exists():
        return
    with path.open("r", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                yield Grade.from_json(line)
            except ValueError:
                continue
