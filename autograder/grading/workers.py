"""Load submissions in sandboxed workers, in a new worker if one ended, until loading fails twice."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, Literal, NamedTuple

from autograder.bridge.outside.connection import malformed
from autograder.bridge.outside.endless_calls import SHARE_LEFT, EndlessCalls
from autograder.bridge.outside.local import LocalStudent
from autograder.bridge.outside.remote import RemoteStudent
from autograder.bridge.outside.solution_answers import StandIns
from autograder.bridge.outside.subject import RemoteSubject, Use
from autograder.bridge.outside.worker_connection import WorkerConnection
from autograder.bridge.shared import claims
from autograder.bridge.shared.errors import (
    TAKES_TOO_LONG,
    RemoteException,
    StudentError,
    StudentTimeoutError,
    told_exception,
)
from autograder.course.config import Assignment
from autograder.failures.explain import failed_alone, sentences_about
from autograder.records import SourceFile
from autograder.walls.outside.budget import Budget
from autograder.walls.outside.deadline import CLOCK_FACTOR
from autograder.walls.outside.launcher import Sandbox

LOADING_FACTOR = 2.0  # of the limit that the worker keeps itself, for one that does not
MOST_STOPS = 20
MOST_ERRORS = 20  # while a file is loaded
MOST_ABSENT = 20  # modules that a file imports and that are not there
LONGEST_NAME = 2000
# what is new when a test begins: nothing, the module of the text that is read once more, or the worker
Renewal = Literal["none", "text", "worker"]


class NamesInText(NamedTuple):
    """The names in a submission's files, and those that look other names up at run time."""

    used: list[Use]
    looked_up: list[Use]


class WorkerFactory:
    """Opens workers for submissions; `references` are the solutions, by assignment."""

    def __init__(
        self,
        sandbox: Sandbox,
        references: Mapping[str, LocalStudent],
        forbidden: Mapping[str, Sequence[str]],
    ) -> None:
        self.sandbox = sandbox
        self.references = references
        self.forbidden = forbidden  # by assignment: the names whose calls are recorded

    def outline(
        self, assignment: Assignment, file: SourceFile, budget: Budget | None = None
    ) -> str:
        """Return a digest of the code without comments and layout, computed in a worker that does not run the code."""
        with closing(self.connect(assignment, budget)) as reader:
            answer = reader.request("outline", text=file.text, filename=_name(assignment, file))
            with malformed("a digest"):
                return claims.text(answer)

    def close(self) -> None:
        self.sandbox.close()

    def connect(self, assignment: Assignment, budget: Budget | None = None) -> WorkerConnection:
        """Start a worker."""
        # the budget of a submission adds to the clock what the machine withheld; the fork server,
        # which cannot know that, waits for as long as the budget ever does
        seconds = CLOCK_FACTOR * assignment.limits.submission_seconds
        limits = assignment.limits.model_copy(update={"submission_seconds": seconds})
        worker = self.sandbox.spawn(limits, assignment.preload)
        return WorkerConnection(worker, assignment.limits.call_seconds, budget)


class LoadedSubmission:
    """One submission, loaded in a worker when it is needed.

    After loading failed twice, it is not loaded again.
    """

    def __init__(
        self,
        workers: WorkerFactory,
        assignment: Assignment,
        file: SourceFile,
        budget: Budget | None = None,
    ) -> None:
        self._workers = workers
        self.assignment = assignment
        self.file = file
        self.budget = budget or Budget()
        self._forbidden = list(workers.forbidden.get(assignment.name, ()))
        self._stand_ins: StandIns | None = None
        self.load_seconds = assignment.limits.load_seconds
        self._subject: RemoteSubject[WorkerConnection] | None = None
        self.names = NamesInText([], [])  # as a worker found them, if a test forbids some
        self.times = 0  # how often it was loaded
        self.entered = set[str]()  # forbidden names that ran in some test
        # where loading took too long: the piece of the text and its line
        self.stopped: list[list[Any]] = []
        # modules that are not there, with the place of the import
        self.absent: list[tuple[str, str, int]] = []
        self.failures: list[RemoteException] = []  # while it was loaded
        self.endless = EndlessCalls()
        self.is_shared = False  # whether the next worker is for several tests, one after the other
        # whether it can change what reading it anew does not undo; None before a shared worker is asked
        self.reaches_outside: bool | None = None
        self._hopeless: StudentError | None = None
        # read the text for another one, and may read it anew; closed with this one
        self._used_worker: WorkerConnection | None = None

    def cured(self, stand_ins: StandIns, endless: EndlessCalls) -> "LoadedSubmission":
        """Return the same submission with the solution in place of some names.

        It takes over the worker of this one if reading the text anew undoes all that the worker
        did, and there is time for repeating what fails in it.
        """
        cured = LoadedSubmission(self._workers, self.assignment, self.file, self.budget)
        cured._stand_ins = stand_ins
        cured.endless = endless
        # the solution may cure what was stopped
        cured.load_seconds = self.load_seconds * (SHARE_LEFT[0] if self.stopped else 1)
        if self._subject is not None and self.reaches_outside is False and self.budget.has_room:
            cured._used_worker = self._subject.connection
            self._subject = None
        return cured

    @property
    def is_in_used_worker(self) -> bool:
        """Whether its worker has read the text before, for another one."""
        return self._subject is not None and self._subject.connection is self._used_worker

    def subject(self, renewal: Renewal = "none") -> RemoteSubject[WorkerConnection]:
        """Return a subject with a running worker; raises StudentError if loading fails."""
        if self._hopeless is not None:
            raise self._hopeless
        connection = self._worker_to_use_again(renewal)
        if connection is not None:
            try:
                self._subject = self._read_by(connection)
            except StudentError:
                renewal = "worker"
        if self._subject is None or renewal == "worker" or self._subject.connection.dead:
            self.close()
            self._subject = self._open()
        return self._subject

    def _worker_to_use_again(self, renewal: Renewal) -> WorkerConnection | None:
        """Return the living worker that is to read the text anew, if one is."""
        connection = None
        if self._subject is None and renewal == "none":
            connection = self._used_worker
        elif self._subject is not None and renewal == "text":
            connection = self._subject.connection
        return None if connection is None or connection.dead else connection

    @property
    def problems_of_loading(self) -> list[str]:
        """A sentence about each thing that went wrong before a test has called anything."""
        problems = [f"It could not be loaded: {self._hopeless}"] if self._hopeless else []
        for piece, line in self.stopped:
            problems.append(f"{_place(piece, line)} {TAKES_TOO_LONG}")
        for name, piece, line in self.absent:
            problems.append(
                f"{_place(piece, line)} imports `{name}`, and there is no such module where it is graded."
            )
        for failure in self.failures:
            if failure.type == "SystemExit" and failure.statement:
                place = _place(failure.statement.file, failure.statement.line)
                problems.append(f"{place} ended the file: what stands below it was not read.")
        missing = [name for name, _, _ in self.absent]
        file = SourceFile(_name(self.assignment, self.file), self.file.text)
        return [*problems, *sentences_about(failed_alone(self.failures, missing), file)]

    def close(self) -> None:
        if self._used_worker is not None and not self.is_in_used_worker:
            self._used_worker.close()
        if self._subject is not None:
            self._subject.connection.close()
        self._subject = self._used_worker = None

    def _open(self, again: bool = False) -> RemoteSubject[WorkerConnection]:
        """Load the text, and once more if loading fails, unless it ended at its time limit."""
        try:
            return self._load()
        except StudentError as error:
            if again or (isinstance(error, StudentTimeoutError) and not error.starved):
                self._hopeless = error
                # with the solution in place of a part, which may cure it
                self.load_seconds *= SHARE_LEFT[0]
                raise
        return self._open(again=True)

    def _load(self) -> RemoteSubject[WorkerConnection]:
        """Load the text in a new worker, which answers what is asked about the text before it runs a line."""
        connection = self._workers.connect(self.assignment, self.budget)
        try:
            if self._forbidden and not self.times and self._stand_ins is None:
                self.names = self._read_names(connection)
            if self.is_shared and self.reaches_outside is None:
                self.reaches_outside = self._may_reach_outside(connection)
            if connection.dead:
                connection.close()
                connection = self._workers.connect(self.assignment, self.budget)
            subject = self._read_by(connection)
        except BaseException:
            connection.close()
            raise
        self.times += 1
        return subject

    def _read_by(self, connection: WorkerConnection) -> RemoteSubject[WorkerConnection]:
        """Let a worker run the text, in a new module."""
        connection.endless = self.endless
        failures: list[RemoteException] = []
        student = RemoteStudent(connection, failures)  # can ask the solution while it is loaded
        loaded = connection.request(
            "load",
            LOADING_FACTOR * self.load_seconds,
            text=self.file.text,
            filename=_name(self.assignment, self.file),
            forbidden=self._forbidden,
            limit=min(self.load_seconds, self.budget.left),
            skipped=self.stopped,
            stand_ins=connection.answer_with(self._stand_ins) if self._stand_ins else {},
        )
        with malformed("the result of loading"):
            reply = claims.table(loaded)
            failures += [
                told_exception(claim) for claim in claims.items(reply["errors"])[:MOST_ERRORS]
            ]
            self.failures = failures
            stops = claims.rows(claims.items(reply["stopped"])[:MOST_STOPS], str, int)
            self.stopped = [[name[:LONGEST_NAME], line] for name, line in stops]
            absent = claims.rows(claims.items(reply["absent"])[:MOST_ABSENT], str, int, str)
            self.absent = [
                (name[:LONGEST_NAME], piece[:LONGEST_NAME], line) for name, line, piece in absent
            ]
        reference = self._workers.references[self.assignment.name]
        file = SourceFile(_name(self.assignment, self.file), self.file.text)
        return RemoteSubject(connection, student, reference, file)

    def _may_reach_outside(self, connection: WorkerConnection) -> bool:
        """Whether the text can change more than its own module; if the worker cannot tell, it may."""
        filename = _name(self.assignment, self.file)
        seconds = LOADING_FACTOR * self.load_seconds
        try:
            answer = connection.request(
                "reaches_outside", seconds, text=self.file.text, filename=filename
            )
            with malformed("yes or no"):
                return claims.flag(answer)
        except StudentError:
            return True

    def _read_names(self, connection: WorkerConnection) -> NamesInText:
        """Return the names in the file, found by a worker that has not run it."""
        names = NamesInText([], [])
        filename = _name(self.assignment, self.file)
        answer = connection.request(
            "names_used", text=self.file.text, filename=filename, wanted=self._forbidden
        )
        with malformed("a list of names"):
            reply = claims.table(answer)
            for kind, found_names in (("uses", names.used), ("dynamic", names.looked_up)):
                for name, line, cell in claims.rows(reply[kind], str, int, int):
                    found_names.append(Use(name[:LONGEST_NAME], line, cell))
        return names


def _place(piece: str, line: int) -> str:
    cell = piece.rpartition(" cell ")[2]
    return Use("", line, int(cell) if cell.isdecimal() else 0).place


def _name(assignment: Assignment, file: SourceFile) -> str:
    return f"{assignment.stem}.ipynb" if file.is_notebook else f"{assignment.stem}.py"
