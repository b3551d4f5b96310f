"""The journal, `grades.jsonl`: one line a graded submission, written when it is graded, never rewritten.

A run that was killed can leave half a line at the end: reading passes over it, and the next run takes it away before
it writes. Any other line that cannot be read is a grade that is missing, and is told of.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from autograder import __version__
from autograder.records import Grade, InfrastructureError, RefusedError

FILE_NAME = "grades.jsonl"
PIECE = 64 * 1024
LISTED = 3  # so many line numbers stand in a sentence


class Journal:
    """An open journal: `latest` grade of each student and assignment, and `append`. A context manager.

    `problem` is a sentence about the lines that cannot be read, None without such lines.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / FILE_NAME
        self.latest: dict[tuple[str, str], Grade] = {}
        grades = read_journal(self.path)
        for grade in grades:
            self.latest[grade.student, grade.assignment] = grade
        self.problem = grades.problem
        self._file = self.path.open("a+b")
        self._end_last_line()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with suppress(OSError) if error else nullcontext():  # what could not be written has been told
            self._file.close()

    def append(self, grade: Grade) -> None:
        """Write one grade and hand it to the operating system at once; raises InfrastructureError when that fails."""
        line = grade.to_json()
        try:
            self._file.write(line.encode("utf-8", "replace") + b"\n")
            self._file.flush()
        except OSError as error:
            raise InfrastructureError(
                f"{self.path} cannot be written: {error.strerror}. The grades before are kept; run the same command "
                "again when that is mended."
            ) from None
        self.latest[grade.student, grade.assignment] = Grade.from_json(line)  # shares texts with the others

    def holds(self, student: str, assignment: str, submission_sha256: str, suite_sha256: str) -> bool:
        """Whether this very text was graded by this very suite and engine already."""
        known = self.latest.get((student, assignment))
        if known is None or known.status != "graded" or known.autograder != __version__:
            return False
        return (known.submission_sha256, known.suite_sha256) == (submission_sha256, suite_sha256)

    def _end_last_line(self) -> None:
        """Take half a line away, and end a whole one that an editor left without its end."""
        start, line = _last_line(self._file)
        if not line:
            return
        if _grade_in(line.decode("utf-8", "replace")) is None:
            self._file.truncate(start)
        else:
            self._file.write(b"\n")
            self._file.flush()


class Reading:
    """The grades of a journal in the order in which they were written, each read when it is its turn.

    A later one about the same student and assignment replaces an earlier one. No journal, no grades. `damaged` are
    the numbers of the lines that cannot be read, as far as reading has come. With `needed`, reading to the end raises
    Refused when there was no grade at all.
    """

    def __init__(self, path: Path, needed: bool = False) -> None:
        self.path = path
        self.damaged: list[int] = []
        self._needed = needed

    def __iter__(self) -> Iterator[Grade]:
        self.damaged.clear()
        found = False
        for number, line in self._lines():
            grade = _grade_in(line)
            if grade is not None:
                found = True
                yield grade
            elif line.endswith("\n") and line.strip():
                self.damaged.append(number)
        if self._needed and not found:
            raise RefusedError(f"{self.path} holds no grades.")

    @property
    def problem(self) -> str | None:
        """A sentence about the lines that cannot be read, and what to do; None without such lines."""
        if not self.damaged:
            return None
        if len(self.damaged) == 1:
            what = f"line {self.damaged[0]} cannot be read; the grade in it is missing"
        else:
            what = (
                f"{len(self.damaged)} lines cannot be read ({self._listed()}); the grades in them are missing"
            )
        return (
            f"{self.path}: {what}. Put a copy of the file back, or remove what cannot be read and grade again: "
            "`autograder grade` grades what is missing."
        )

    def _listed(self) -> str:
        shown = [str(number) for number in self.damaged[:LISTED]]
        if len(self.damaged) > LISTED:
            shown.append(f"{len(self.damaged) - LISTED} more")
        return f"{', '.join(shown[:-1])} and {shown[-1]}"

    def _lines(self) -> Iterator[tuple[int, str]]:
        if self.path.exists():
            with self.path.open("r", encoding="utf-8", errors="replace") as lines:
                yield from enumerate(lines, start=1)


def journal_at(path: Path) -> Path:
    """The journal that this is, or that is in this folder; raises Refused when there is none."""
    journal = path / FILE_NAME if path.is_dir() else path
    if not journal.is_file():
        raise RefusedError(f"There is no journal {journal}. `autograder grade` writes one.")
    return journal


def read_journal(path: Path) -> Reading:
    """The grades of a journal, of which there may be none."""
    return Reading(path)


def grades_at(path: Path) -> Reading:
    """The grades of the journal that this is, or that is in this folder; raises Refused when there is none.

    That there is not one grade in it is told when it has been read: any file could be called a journal.
    """
    return Reading(journal_at(path), needed=True)


def _grade_in(line: str) -> Grade | None:
    try:
        return Grade.from_json(line)
    except ValueError:
        return None


def _last_line(file: BinaryIO) -> tuple[int, bytes]:
    """Where the last line begins, and what of it there is when it has no end; nothing when it has one."""
    size = at = file.seek(0, os.SEEK_END)
    tail = b""
    while at and b"\n" not in tail:
        at = max(0, at - PIECE)
        file.seek(at)
        tail = file.read(size - at)
    line = tail[tail.rfind(b"\n") + 1 :]
    return size - len(line), line
