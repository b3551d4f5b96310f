"""The journal, `grades.jsonl`: one line per graded submission, appended after grading and never rewritten."""

import os
from collections import deque
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from types import TracebackType

from autograder.gradebook.seals import doubt, seal
from autograder.gradebook.suites import SuiteMissingError, Suites
from autograder.records import Grade, InfrastructureError, RefusedError, Submission
from autograder.text.files import make_folder, open_as_its_folder
from autograder.text.wording import joined
from autograder.version import __version__

FILE_NAME = "grades.jsonl"
LISTED = 3  # maximum number of line numbers in a message


class Journal:
    """An open journal, as a context manager: the `latest` grades, and the `problem` of unreadable lines or None."""

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        self.path = folder / FILE_NAME
        grades = Reading(self.path)
        self._suites = grades.suites
        self.latest = {grade.key: grade for grade in grades}
        self.problem = grades.problem
        self._open()

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with suppress(OSError) if error else nullcontext():  # the failed write has been reported
            self._file.close()

    def append(self, grade: Grade) -> None:
        """Append one grade and flush it to the operating system.

        Raises InfrastructureError if that fails; the next one is then written in place of what was
        cut off.
        """
        try:
            if self._file.closed:
                self._open()
            line = self._suites.to_line(grade)
            text = line.encode("utf-8", "replace") + b"\n"
            seal(self.path.parent, FILE_NAME, text)
            self._file.write(text)
            self._file.flush()
        except OSError as error:
            with suppress(OSError):
                self._file.close()
            raise InfrastructureError(
                f"{self.path} cannot be written: {error.strerror}. Earlier grades are kept. Solve the problem "
                "and run the same command again."
            ) from None
        self.latest[grade.key] = self._suites.to_grade(line)  # shares texts with other grades

    def holds(
        self, submission: Submission, submission_sha256: str, suite_sha256: str | None
    ) -> bool:
        """Whether this text was already graded by this suite and this version of the engine."""
        stored = self.latest.get((submission.student, submission.assignment))
        if stored is None or stored.status != "graded" or stored.autograder != __version__:
            return False
        return (stored.submission_sha256, stored.suite_sha256) == (submission_sha256, suite_sha256)

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        self._file = os.fdopen(open_as_its_folder(str(self.path), flags), "a+b")
        self._end_last_line()

    def _end_last_line(self) -> None:
        """Remove a partial last line, and terminate a complete one without a newline."""
        self._file.seek(0)
        lines = deque(self._file, maxlen=1)
        if not lines or lines[0].endswith(b"\n"):
            return
        try:
            self._suites.to_grade(lines[0].decode("utf-8", "replace"))
        except SuiteMissingError:
            pass  # the line is complete
        except ValueError:
            self._file.truncate(self._file.tell() - len(lines[0]))
            return
        self._file.write(b"\n")
        self._file.flush()


class Reading:
    """An iterator over the grades of a journal in the order in which they were written, read lazily.

    A later grade of the same student and assignment replaces an earlier one. A missing journal has
    no grades. `damaged` holds the numbers of unreadable lines found so far, `missing` the files of
    suites without which some cannot be read. With `needed`, reading to the end raises RefusedError
    if there was no grade; about its lines, if one looks like a record, for any file can have the
    name of a journal.
    """

    def __init__(self, path: Path, needed: bool = False) -> None:
        self.path = path
        self.suites = Suites(path.parent)
        self.damaged: list[int] = []
        self.missing: set[Path] = set()
        self._needed = needed

    def __iter__(self) -> Iterator[Grade]:
        self.damaged.clear()
        self.missing.clear()
        has_grades = False
        is_journal = False
        for number, line in self._lines():
            is_journal = is_journal or line.startswith("{")
            try:
                grade = self.suites.to_grade(line)
            except SuiteMissingError as error:
                self.missing.add(error.file)
                self.damaged.append(number)
            except ValueError:
                if line.endswith("\n") and line.strip():
                    self.damaged.append(number)
            else:
                has_grades = True
                yield grade
        if self._needed and not has_grades:
            raise RefusedError(
                self._damage if is_journal and self._damage else f"{self.path} holds no grades."
            )

    @property
    def problem(self) -> str | None:
        """A message about lines that cannot be read, or that somebody else wrote, and how to proceed; or None."""
        doubtful = doubt(self.path.parent) if self._needed and self.path.name == FILE_NAME else ""
        return " ".join(filter(None, (self._damage, doubtful))) or None

    @property
    def _damage(self) -> str | None:
        if not self.damaged:
            return None
        if len(self.damaged) == 1:
            what = f"line {self.damaged[0]} cannot be read; the grade in it is missing"
        else:
            numbers = joined([str(number) for number in self.damaged], LISTED)
            what = f"{len(self.damaged)} lines cannot be read ({numbers}); the grades in them are missing"
        remedy = "Restore a copy of the file, or remove the unreadable lines and"
        if self.missing:
            files = " and ".join(sorted(map(str, self.missing)))
            remedy = f"There is no readable {files}, which holds the tests' names: copy it from the folder of the run, or"
        return f"{self.path}: {what}. {remedy} run `autograder grade`, which grades the missing submissions."

    def _lines(self) -> Iterator[tuple[int, str]]:
        if self.path.exists():
            with self.path.open("r", encoding="utf-8", errors="replace") as lines:
                yield from enumerate(lines, start=1)


def grades_at(path: Path) -> Reading:
    """Read the journal at this path or in this folder; raises RefusedError if there is none.

    RefusedError for a file without a single grade is raised at the end of reading, as any file can
    have the name of a journal.
    """
    journal = path / FILE_NAME if path.is_dir() else path
    if not journal.is_file():
        raise RefusedError(f"There is no journal {journal}. `autograder grade` writes one.")
    return Reading(journal, needed=True)
