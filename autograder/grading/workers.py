"""Load submissions in sandboxed workers, in a new worker if one ended, until loading fails twice."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any

from autograder.course.config import Assignment, Course
from autograder.grading.reference import entry_points, load_reference
from autograder.protocol import claims
from autograder.protocol.errors import StudentError, StudentTimeoutError, told_exception
from autograder.proxy.budget import Budget
from autograder.proxy.connection import malformed
from autograder.proxy.remote import RemoteStudent
from autograder.proxy.stand_ins import StandIns
from autograder.proxy.subject import RemoteSubject, Use
from autograder.proxy.worker_connection import SHARE_LEFT, WorkerConnection
from autograder.records import InfrastructureError, SourceFile
from autograder.sandbox.launcher import Sandbox

ENTRIES_SECONDS = 1.0
LOADING_FACTOR = 2.0  # of the limit that the worker keeps itself, for one that does not
MOST_STOPS = 20
MOST_ERRORS = 20  # while a file is loaded
LONGEST_NAME = 2000  # a longer dotted name is not compared; it is flagged for a person


class WorkerFactory:
    """Opens workers for submissions, and loads the references; raises CourseError or InfrastructureError."""

    def __init__(
        self,
        course: Course,
        sandbox: Sandbox,
        assignments: Collection[Assignment],
        forbidden: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.sandbox = sandbox
        self.forbidden = forbidden  # by assignment: names whose calls are recorded; None if they are not known
        self.references = {each.name: load_reference(course, each) for each in assignments}
        self.entry_points = {each.name: entry_points(course, each) for each in assignments}

    def outline(self, assignment: Assignment, file: SourceFile, budget: Budget | None = None) -> str:
        """Return a digest of the code without comments and layout, computed in a worker that does not run the code."""
        with closing(self.connect(assignment, budget=budget)) as reader:
            answer = reader.request("outline", text=file.text, filename=_name(assignment, file))
            with malformed("a digest"):
                return claims.text(answer)

    def close(self) -> None:
        self.sandbox.close()

    def connect(
        self, assignment: Assignment, endless: Counter[str] | None = None, budget: Budget | None = None
    ) -> WorkerConnection:
        """Start a worker. `endless` counts the calls that did not end; later ones have less time."""
        worker = self.sandbox.spawn(assignment.limits, assignment.preload)
        return WorkerConnection(worker, assignment.limits.call_seconds, endless, budget)


class LoadedSubmission:
    """One submission, loaded in a worker when it is needed. After loading failed twice, it is not loaded again."""

    def __init__(
        self,
        workers: WorkerFactory,
        assignment: Assignment,
        file: SourceFile,
        stand_ins: StandIns | None = None,
        budget: Budget | None = None,
    ) -> None:
        self._workers, self.assignment, self.file = workers, assignment, file
        self.budget = budget or Budget()
        self._forbidden = list((workers.forbidden or {}).get(assignment.name, ()))
        self._lists_names = workers.forbidden is None or bool(self._forbidden)
        self._stand_ins, self.load_seconds = stand_ins, assignment.limits.load_seconds
        self._subject: RemoteSubject[WorkerConnection] | None = None
        self.uses: list[Use] = []  # the names that the text uses, as found by a worker
        self.times = 0  # how often it was loaded
        self.entered: dict[str, Use] = {}  # forbidden names that ran although the text does not show them
        self.stopped: list[list[Any]] = []  # where loading took too long: the piece of the text and its line
        self._endless = Counter[str]()
        self._hopeless: StudentError | None = None

    def subject(self, fresh: bool = False) -> RemoteSubject[WorkerConnection]:
        """Return a subject with a running worker, a new one if `fresh`; raises StudentError if loading fails."""
        if self._hopeless is not None:
            raise self._hopeless
        if self._subject is None or fresh or self._subject.connection.dead:
            self.close()
            self._subject = self._open()
        return self._subject

    @property
    def stopped_places(self) -> list[str]:
        """Where loading was stopped: `Line 3`, or `Line 3 of cell 5`."""
        cells = [(piece.rpartition(" cell ")[2], line) for piece, line in self.stopped]
        return [Use("", line, int(cell) if cell.isdecimal() else 0).place for cell, line in cells]

    def close(self) -> None:
        if self._subject is not None:
            self._read_entries(self._subject)
            self._subject.connection.close()
            self._subject = None

    def _read_entries(self, subject: RemoteSubject[WorkerConnection]) -> None:
        if not self._forbidden or subject.connection.dead:
            return
        with suppress(StudentError, InfrastructureError):  # the tests have ended: only flags are missing
            told = subject.connection.request("entered", ENTRIES_SECONDS)
            with malformed("a list of names"):
                for name, line, cell in claims.rows(told, str, int, int):
                    if name in self._forbidden and subject.forbidden([name]) is None:
                        self.entered.setdefault(name, Use(name, line, cell))

    def _open(self, again: bool = False) -> RemoteSubject[WorkerConnection]:
        """Load the text, and once more if loading fails, unless it ended at its time limit."""
        try:
            return self._load()
        except StudentError as error:
            if again or isinstance(error, StudentTimeoutError) and not error.starved:
                self._hopeless = error
                self.load_seconds *= SHARE_LEFT[0]  # with the solution in place of a part, which may cure it
                raise
        return self._open(again=True)

    def _load(self) -> RemoteSubject[WorkerConnection]:
        """Load the text in a new worker; if a test may forbid names, it lists those used before it runs a line."""
        connection = self._workers.connect(self.assignment, self._endless, self.budget)
        try:
            uses = self.uses or (self._read_uses(connection) if self._lists_names else [])
            loaded = connection.request(
                "load",
                LOADING_FACTOR * self.load_seconds,
                text=self.file.text,
                filename=_name(self.assignment, self.file),
                forbidden=self._forbidden,
                modules=self.file.module_texts,
                limit=min(self.load_seconds, self.budget.left),
                skipped=self.stopped,
                stand_ins=connection.answer_with(self._stand_ins) if self._stand_ins else {},
            )
            with malformed("the result of loading"):
                told = claims.table(loaded)
                errors = [told_exception(claim) for claim in claims.items(told["errors"])[:MOST_ERRORS]]
                stops = [*claims.rows(claims.items(told["stopped"])[:MOST_STOPS], str, int)]
                self.stopped = [[name[:LONGEST_NAME], line] for name, line in stops]
        except StudentError:
            connection.close()
            raise
        self.uses, self.times, reference = uses, self.times + 1, self._workers.references[self.assignment.name]
        return RemoteSubject(connection, RemoteStudent(connection, errors), reference, uses)

    def _read_uses(self, connection: WorkerConnection) -> list[Use]:
        """Return the names used in code that the entry points reach, found by a worker that has not run the text."""
        filename, entry_points = _name(self.assignment, self.file), self._workers.entry_points[self.assignment.name]
        answer = connection.request("names_used", text=self.file.text, filename=filename, entry_points=entry_points)
        uses = _uses(answer)
        for module in self.file.modules:
            answer = connection.request("names_of_module", text=module.text, filename=module.name)
            uses += [replace(use, module=module.name) for use in _uses(answer)]
        return uses


def _uses(answer: dict[str, Any]) -> list[Use]:
    with malformed("a list of names"):
        return [
            Use(name[:LONGEST_NAME], line, cell, dynamic=kind == "dynamic" or len(name) > LONGEST_NAME)
            for kind in ("uses", "dynamic")
            for name, line, cell in claims.rows(claims.table(answer)[kind], str, int, int)
        ]


def _name(assignment: Assignment, file: SourceFile) -> str:
    return f"{assignment.stem}.ipynb" if file.is_notebook else f"{assignment.stem}.py"
