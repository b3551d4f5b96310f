"""The subject of a test: the student's module, the reference, and their random state."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from autograder.bridge.inside.entries import Place
from autograder.bridge.outside.connection import Connection
from autograder.bridge.outside.local import LocalStudent, recording
from autograder.bridge.outside.remote import RemoteStudent
from autograder.bridge.shared.random_states import seed_all
from autograder.records import SourceFile

AnyConnection = TypeVar("AnyConnection", bound=Connection)


@dataclass(frozen=True)
class Use:
    """A name in a student's text, or one that ran, with its place; `line` is 0 if unknown, and `cell` for a `.py`."""

    name: str
    line: int
    cell: int = 0

    @property
    def place(self) -> str:
        if not self.line:
            return "Your code"
        within = f"cell {self.cell}" if self.cell else ""
        return f"Line {self.line} of {within}" if within else f"Line {self.line}"


class Subject:
    """A student's module in this process; if it `records`, a test fails for forbidden names as in grading."""

    def __init__(
        self, student: LocalStudent | RemoteStudent, reference: Any = None, records: bool = False
    ) -> None:
        self.student = student
        self.reference = reference
        self._records = records
        self._entered: dict[str, Place] = {}

    @property
    def entered(self) -> Mapping[str, Place]:
        """The forbidden names that the student's code entered in the present test."""
        return self._entered

    def begin(self, seed: int, reads_output: bool = False, forbids: Sequence[str] = ()) -> None:
        """Prepare a test: seed the random generators, equally for all students of a run.

        If the test `reads_output`, what the student's code prints is printed in this process, too.
        A worker records the use of names that it `forbids` as closely as possible.
        """
        self._entered = {}
        seed_all(seed)

    def recording(self, names: Sequence[str], test_file: Path) -> AbstractContextManager[None]:
        """Record in this block which of these names the student's code enters."""
        if self._records and names and isinstance(self.student, LocalStudent):
            return recording(self.student, names, test_file, self._entered)
        return nullcontext()

    def use_of(self, names: Sequence[str]) -> Use | None:
        """Return the first of these names that the student's code entered in the present test, or None."""
        name = next((name for name in self.entered if name in names), None)
        return None if name is None else self._located(name, *self.entered[name])

    def _located(self, name: str, file: str, line: int) -> Use:
        """Return a name with its place in the student's files, as far as this is one."""
        piece = file.rpartition("/")[2]
        cell = piece.rpartition(" cell ")[2]
        return Use(name, line, int(cell)) if cell.isdecimal() else Use(name, line)


class RemoteSubject(Subject, Generic[AnyConnection]):
    """A student's module behind a connection; `file` is its own, if its code stands in one."""

    def __init__(
        self,
        connection: AnyConnection,
        student: RemoteStudent,
        reference: Any = None,
        file: SourceFile | None = None,
    ) -> None:
        super().__init__(student, reference)
        self.connection = connection
        self._file = file

    @property
    def entered(self) -> Mapping[str, Place]:
        return self.connection.entered

    def begin(self, seed: int, reads_output: bool = False, forbids: Sequence[str] = ()) -> None:
        self.connection.reads_output = reads_output
        self.connection.forbids = forbids
        self.connection.start_test(seed)
        super().begin(seed, reads_output, forbids)

    def recording(self, names: Sequence[str], test_file: Path) -> AbstractContextManager[None]:
        return self.connection.recording(names)

    def _located(self, name: str, file: str, line: int) -> Use:
        """Return a name with its place, without it if the file has no such line: a worker could tell anything."""
        piece, _, cell = file.partition(" cell ")
        if self._file is None:
            return super()._located(name, file, line)
        lines = _lines_of(self._file.text) if piece == self._file.name else 0
        if not 0 < line <= lines or (cell and not (cell.isdecimal() and int(cell) <= lines)):
            return Use(name, 0)
        return Use(name, line, int(cell or 0))


def _lines_of(text: str) -> int:
    """Return how many lines a file can have, or a notebook's cell."""
    return 1 + text.count("\n") + text.count("\\n")
