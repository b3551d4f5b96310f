"""One submission in, one grade out.

A submission's text goes into a worker; the suite runs here, against the proxy. A failing test is run once more,
alone in a fresh worker, before it counts. Then the failures are explained and known mistakes named.
"""

from __future__ import annotations

import ast
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from autograder import __version__
from autograder.course.config import Assignment, Course, CourseError
from autograder.course.digests import submission_digest, suite_digest
from autograder.course.mistakes import Mistake, load_mistakes
from autograder.grading.diagnosis import Diagnosis
from autograder.grading.explain import Failure, clean, explain
from autograder.grading.reference import load_reference
from autograder.protocol.errors import StudentError, StudentTimeoutError
from autograder.proxy.connection import malformed, told_exception
from autograder.proxy.local import LocalStudent, load_text
from autograder.proxy.remote import RemoteStudent
from autograder.proxy.replay import ReplayCache
from autograder.proxy.subject import RemoteSubject, Subject, Use
from autograder.proxy.transcript import Transcript
from autograder.proxy.worker_connection import WorkerConnection
from autograder.records import Grade, InfrastructureError, RefusedError, SourceFile, Submission, TestResult
from autograder.sandbox.launcher import Sandbox
from autograder.source import text as source
from autograder.suite.session import SuiteSession, Test, TestAlarm, alarm, check_suite

LONGEST_NAME = 2000  # a longer dotted name is compared with none, and looked at by a person
CALLS_PER_TEST = 6  # a test may take this many times `call_seconds` on the trusted side


class WorkerFactory:
    """Where submissions are put to be tested: a sandbox, and the references they are compared with."""

    def __init__(self, course: Course, sandbox: Sandbox) -> None:
        self.course = course
        self.sandbox = sandbox
        self._references: dict[str, LocalStudent] = {}

    def reference(self, assignment: Assignment) -> LocalStudent:
        """The solution as a module of this process; raises CourseError when it does not run."""
        if assignment.name not in self._references:
            self._references[assignment.name] = load_reference(self.course, assignment)
        return self._references[assignment.name]

    def subject(
        self,
        assignment: Assignment,
        file: SourceFile,
        uses: Sequence[Use] | None = None,
        endless: Counter[str] | None = None,
    ) -> RemoteSubject[WorkerConnection]:
        """The submission loaded in a fresh worker; raises StudentTimeout or StudentCrashed when it cannot be.

        Left out, the `uses` of names are read by the worker before it has run a line of the text. `endless`
        counts the calls that did not end, by name; they are not waited for as long again.
        """
        connection = self._connect(assignment, endless)
        try:
            uses = (
                read_uses(connection, assignment, file, self._entry_points(assignment))
                if uses is None
                else uses
            )
            seconds = assignment.limits.load_seconds
            loaded = connection.request("load", seconds, text=file.text, filename=_name(assignment, file))
            with malformed("the result of loading"):
                errors = [told_exception(claim) for claim in loaded["errors"]]
        except StudentError:
            connection.close()
            raise
        return RemoteSubject(connection, RemoteStudent(connection, errors), self.reference(assignment), uses)

    def _entry_points(self, assignment: Assignment) -> list[str]:
        """The functions and classes of the solution, which are what tests call."""
        tree = ast.parse(self.course.solution_file(assignment).read_text("utf-8"))
        return [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]

    def outline(self, assignment: Assignment, file: SourceFile) -> str:
        """A digest of the code without comments and layout, read in a worker that never runs it."""
        reader = self._connect(assignment)
        try:
            return str(reader.request("outline", text=file.text, filename=_name(assignment, file)))
        finally:
            reader.close()

    def close(self) -> None:
        self.sandbox.close()

    def _connect(self, assignment: Assignment, endless: Counter[str] | None = None) -> WorkerConnection:
        self.reference(assignment)  # first: where it lacks a package, the sandbox would, too
        worker = self.sandbox.spawn(assignment.limits, assignment.preload)
        return WorkerConnection(worker, assignment.limits.call_seconds, endless)


class Grader:
    """Grades submissions of a course, one after another, with the same fresh inputs for all of them."""

    def __init__(
        self, course: Course, sandbox: Sandbox, run_seed: int, names: Iterable[str] | None = None
    ) -> None:
        self.course, self.run_seed = course, run_seed
        self.assignments = {assignment.name: assignment for assignment in course.select(names)}
        self.workers = WorkerFactory(course, sandbox)
        files = [file for a in self.assignments.values() for file in _test_files(course, a)]
        self.session = SuiteSession(files, course.root)
        self.tests = {
            name: self.session.tests(course.suite_folder(a)) for name, a in self.assignments.items()
        }
        problems = [
            p for name, a in self.assignments.items() for p in check_suite(course, a, self.tests[name])
        ]
        if problems:
            self.session.close()
            raise CourseError(problems)
        self._diagnoses: dict[str, Diagnosis] = {}
        self._usual: dict[str, set[str]] = {}
        self._cache = ReplayCache()
        self._digests = {name: suite_digest(course, a) for name, a in self.assignments.items()}

    def grade(self, submission: Submission) -> Grade:
        """The grade of one submission. Raises InfrastructureError when the machine failed, never because of students."""
        started = time.monotonic()
        try:
            if submission.problem:
                raise RefusedError(submission.problem)
            assignment = self._assignment(submission)
            file = self.choose(assignment, submission)
        except RefusedError as refusal:
            return refused(self.course, submission, str(refusal), self.run_seed)
        loaded = self.load(assignment, file)
        results = self._results(assignment, loaded)
        return Grade(
            student=submission.student,
            assignment=assignment.name,
            status="graded",
            score=round(sum(result.score for result in results), 6),
            max_score=assignment.points,
            tests=results,
            seed=self.run_seed,
            isolation=self.workers.sandbox.tier,
            seconds=round(time.monotonic() - started, 3),
            submission_sha256=submission_digest(submission),
            suite_sha256=self._digests[assignment.name],
            autograder=__version__,
            flags=self._flags(assignment, loaded),
        )

    def load(self, assignment: Assignment, file: SourceFile) -> LoadedSubmission:
        """A submission ready to be asked; to be closed."""
        return LoadedSubmission(self.workers, assignment, file)

    def reseed(self, run_seed: int) -> None:
        """Begin another run: other inputs, and mistakes take their tests again."""
        if run_seed != self.run_seed:
            self.run_seed = run_seed
            self._diagnoses.clear()
            self._cache = ReplayCache()

    def first_failure(self, name: str, text: str, run_seed: int, seconds: float) -> str | None:
        """The test that fails first, and how, for an answer of our own that is run here, without a sandbox.

        None when all pass. `seconds` is what loading and each test may take.
        """
        assignment = self.assignments[name]
        try:
            with alarm(seconds):
                student = load_text(text, f"{assignment.stem}.py", f"trusted_{assignment.stem}")
        except TestAlarm:
            return "loading it took too long"
        subject = Subject(student, self.workers.reference(assignment))
        self.session.start(run_seed)
        for test in self.tests[name]:
            error = self.session.run(test, subject, seconds)
            if error is not None:
                return f"{test.name} ({type(error).__name__}: {error})"[:500]
        return None

    def close(self) -> None:
        self.session.close()
        self.workers.close()

    def _assignment(self, submission: Submission) -> Assignment:
        if submission.assignment not in self.assignments:
            raise RefusedError(f"The course has no assignment `{clean(submission.assignment, 100)}`.")
        return self.assignments[submission.assignment]

    def choose(self, assignment: Assignment, submission: Submission) -> SourceFile:
        """The file that counts: the one that was changed when there are two, any when both say the same."""
        if len(submission.files) == 1:
            return submission.files[0]
        try:
            outlines = {file.name: self.workers.outline(assignment, file) for file in submission.files}
        except StudentError:
            raise RefusedError(
                "There are two files, and at least one of them cannot be read. Hand in one file."
            ) from None
        stub = self.course.stub_file(assignment)
        untouched = source.outline(stub.read_text("utf-8"), stub.name) if stub.exists() else ""
        changed = [file for file in submission.files if outlines[file.name] != untouched]
        if len({outlines[file.name] for file in changed}) > 1:
            names = " and ".join(sorted(outlines))
            raise RefusedError(f"{names} hold different code. Hand in the one that counts.")
        return (changed or list(submission.files))[0]

    def _flags(self, assignment: Assignment, loaded: LoadedSubmission) -> tuple[str, ...]:
        """What a person may want to look at: look-ups that the search for forbidden names cannot follow."""
        dynamic = [use for use in loaded.uses if use.dynamic]
        if not dynamic or not any(test.forbids for test in self.tests[assignment.name]):
            return ()
        usual = self._look_ups_of_solution(assignment)
        return tuple(
            f"{use.place} looks names up while it runs (`{use.name}`): forbidden ones could hide there."
            for use in dynamic
            if use.name not in usual
        )

    def _look_ups_of_solution(self, assignment: Assignment) -> set[str]:
        """What the solution itself looks up; in an answer it is nothing to wonder at."""
        if assignment.name not in self._usual:
            text = self.course.solution_file(assignment).read_text("utf-8")
            found = source.names_used(text, f"{assignment.stem}.py")["dynamic"]
            self._usual[assignment.name] = {name for name, *_ in found}
        return self._usual[assignment.name]

    def _results(self, assignment: Assignment, loaded: LoadedSubmission) -> tuple[TestResult, ...]:
        tests = self.tests[assignment.name]
        try:
            self.workers.sandbox.warm_up(assignment.preload)  # no part of a student's time
            suite_run = SuiteRun(self.session, loaded, assignment, self._cache)
            self.session.start(self.run_seed)
            runs = [suite_run.take(test) for test in tests]
        finally:
            loaded.close()
        named = self._diagnosis(assignment).name(
            {run.test: run.transcript for run in runs if run.failed and run.transcript is not None}
        )
        return tuple(self._result(run, loaded.file, named.get(run.test.name)) for run in runs)

    def _result(self, run: _Run, file: SourceFile, mistake: Mistake | None) -> TestResult:
        test = run.test
        failure = run.skipped
        if run.error is not None:
            failure = explain(run.error, full=not test.hidden or self.course.feedback == "full", file=file)
        passed = TestResult(test.name, test.part, test.title, "passed", test.points, test.points)
        if failure is None:
            return passed
        hint, name = (mistake.hint, mistake.id) if mistake else (None, None)
        failed = replace(passed, outcome=failure.outcome, score=0.0, message=failure.message)
        return replace(failed, hint=hint, mistake=name)

    def _diagnosis(self, assignment: Assignment) -> Diagnosis:
        if assignment.name not in self._diagnoses:
            mistakes = load_mistakes(self.course, assignment)
            filename = f"{assignment.stem}.py"
            reference = self.workers.reference(assignment)
            self._diagnoses[assignment.name] = Diagnosis(
                self.session, mistakes, reference, filename, self.run_seed
            )
        return self._diagnoses[assignment.name]


@dataclass(frozen=True)
class _Run:
    """How one test ended: an error, a reason to skip it, or neither when it passed."""

    test: Test
    error: BaseException | None = None
    skipped: Failure | None = None
    transcript: Transcript | None = None

    @property
    def failed(self) -> bool:
        return self.error is not None

    @property
    def deserves_another(self) -> bool:
        """A failure counts only when it happens again; but nobody waits twice for an endless loop."""
        if isinstance(self.error, StudentTimeoutError):
            return self.error.starved
        return self.error is not None and self.transcript is not None


class LoadedSubmission:
    """One submission on the bench: opens workers for it, and remembers when that is hopeless."""

    def __init__(self, workers: WorkerFactory, assignment: Assignment, file: SourceFile) -> None:
        self._workers, self._assignment, self.file = workers, assignment, file
        self._subject: RemoteSubject[WorkerConnection] | None = None
        self._uses: list[Use] | None = None
        self._endless = Counter[str]()
        self._hopeless: StudentError | None = None

    @property
    def uses(self) -> list[Use]:
        """The names that the text uses, as far as a worker could read it."""
        return self._uses or []

    def subject(self, fresh: bool = False) -> RemoteSubject[WorkerConnection]:
        """A scene with a living worker, a new one if asked for; raises the StudentError that loading ended with."""
        if self._hopeless is not None:
            raise self._hopeless
        if self._subject is None or fresh or self._subject.connection.dead:
            self.close()
            self._subject = self._open()
        return self._subject

    def close(self) -> None:
        if self._subject is not None:
            self._subject.connection.close()
            self._subject = None

    def _open(self) -> RemoteSubject[WorkerConnection]:
        """Loading, too, has failed only when it failed twice; but nobody waits twice for an endless loop."""
        try:
            return self._load()
        except StudentError as error:
            if isinstance(error, StudentTimeoutError) and not error.starved:
                self._hopeless = error
                raise
        try:
            return self._load()
        except StudentError as error:
            self._hopeless = error
            raise

    def _load(self) -> RemoteSubject[WorkerConnection]:
        subject = self._workers.subject(self._assignment, self.file, self._uses, self._endless)
        self._uses = subject.uses
        return subject


class SuiteRun:
    """One submission takes the tests of a suite."""

    def __init__(
        self, session: SuiteSession, loaded: LoadedSubmission, assignment: Assignment, cache: ReplayCache
    ) -> None:
        self._session, self._loaded, self._limits = session, loaded, assignment.limits
        self._cache = cache
        self._end = time.monotonic() + assignment.limits.submission_seconds
        self._titles: dict[str, str] = {}

    def take(self, test: Test) -> _Run:
        self._titles[test.name] = test.title
        blocked = self._session.blocked_by(test)
        if blocked:
            self._session.skip(test)
            return _Run(
                test, skipped=Failure("skipped", f"This waits until “{self._titles[blocked]}” passes.")
            )
        if time.monotonic() > self._end:
            self._session.skip(test)
            return _Run(
                test, error=StudentTimeoutError("Your submission had used up its time before this test.")
            )
        run = self._once(test, fresh=False)
        if run.deserves_another:
            run = self._once(test, fresh=True)
        if isinstance(run.error, InfrastructureError):
            raise run.error
        return run

    def _once(self, test: Test, fresh: bool) -> _Run:
        try:
            subject = self._loaded.subject(fresh)
        except StudentError as refusal:
            self._session.skip(test)
            return _Run(test, error=refusal)
        connection, name = subject.connection, test.item.nodeid
        until = time.monotonic() + CALLS_PER_TEST * self._limits.call_seconds
        cache = self._cache if subject.forbidden(test.forbids) is None else None

        def run_test() -> BaseException | None:
            seconds = max(until - time.monotonic(), self._limits.call_seconds)
            return self._session.run(test, subject, seconds)

        run = connection.run(name, run_test, until, cache)
        if run.outcome == "diverged":
            return self._once(test, fresh=True)
        if run.outcome == "passed":
            self._session.accept(test)
        if run.error is not None:
            _drop_traceback(run.error)
        return _Run(test, error=run.error, transcript=connection.transcript)


def _drop_traceback(error: BaseException) -> None:
    """Forget the steps that led to an error: they keep all that a test held, and answers may be large."""
    error.__traceback__ = error.__context__ = error.__cause__ = None


def refused(course: Course, submission: Submission, problem: str, run_seed: int) -> Grade:
    """The grade of a submission that cannot be graded: nothing, with the sentence that says why."""
    assignment = course.find(submission.assignment)
    return Grade(
        student=submission.student,
        assignment=submission.assignment,
        status="refused",
        score=0.0,
        max_score=assignment.points if assignment else 0.0,
        problem=clean(problem),
        seed=run_seed,
        submission_sha256=submission_digest(submission),
        autograder=__version__,
    )


def _test_files(course: Course, assignment: Assignment) -> list[Path]:
    files = [course.visible_test_file(assignment), course.hidden_test_file(assignment)]
    missing = [file for file in files if not file.is_file()]
    if missing:
        raise CourseError(f"{assignment.name} has no {missing[0].relative_to(course.root)}.")
    return files


def read_uses(
    connection: WorkerConnection, assignment: Assignment, file: SourceFile, entry_points: list[str]
) -> list[Use]:
    """The names that the text uses where the entry points lead, asked of a worker that has not run it."""
    name = _name(assignment, file)
    answer = connection.request("names_used", text=file.text, filename=name, entry_points=entry_points)
    with malformed("a list of names"):
        return [
            Use(
                str(name)[:LONGEST_NAME],
                int(line),
                int(cell),
                dynamic=kind == "dynamic" or len(name) > LONGEST_NAME,
            )
            for kind in ("uses", "dynamic")
            for name, line, cell in answer[kind]
        ]


def _name(assignment: Assignment, file: SourceFile) -> str:
    return f"{assignment.stem}.ipynb" if file.is_notebook else f"{assignment.stem}.py"
