"""Run the visible tests on a student's own file, in the student's own process.

Nothing is isolated: it is the student's code on the student's machine. Points are those of the
visible tests.
"""

import contextlib
import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from autograder.bridge.inside.server import Server
from autograder.bridge.inside.surroundings import Output, nobody_there
from autograder.bridge.outside.local import Loaded, from_file, load
from autograder.bridge.outside.loopback import LoopbackConnection, called_name
from autograder.bridge.outside.remote import RemoteStudent
from autograder.bridge.outside.subject import RemoteSubject
from autograder.bridge.shared.errors import (
    BELOW_MAIN,
    MissingNameError,
    RemoteException,
    StudentRaisedError,
    cause_of_missing,
    describe_error,
    missing_name,
)
from autograder.failures.explain import Failure, clean, explain, failed_alone, sentences_about
from autograder.failures.needs import SYNTAX_ERRORS, unmet_need
from autograder.records import RefusedError, SourceFile, TestResult, total
from autograder.selfcheck.locked_hints import (
    SEED,
    LockedHints,
    MistakeHint,
    Recording,
    named,
    recordings,
)
from autograder.selfcheck.workspace import Work, find_work
from autograder.source.places import CodeLocation, StudentText
from autograder.source.python_versions import OLDEST, dotted, newer_than_oldest
from autograder.source.text import is_in_cells
from autograder.suite.session import Ending, Examinee, RunTest, SuiteSession, Test, ending_of
from autograder.walls.outside.alarm import TestAlarm, alarm

SECONDS = 20.0
SHORT_SECONDS = 2.0  # of processor time, for a call of a function that did not end before
SLOW_LOADING = 3.0  # seconds of processor time
PRINTED = 2000  # maximum length of the output stored for each test

_NO_NAME = re.compile(r"There is no `(\w+)`")

_UNPACK = "unpack the test file again"

Own = Callable[[FrameType], bool]


@dataclass(frozen=True)
class Finding:
    """One test's result, with hints for a failure."""

    result: TestResult
    details: str = ""
    place: CodeLocation | None = None
    mistake: str = ""
    nudge: str = ""
    printed: str = ""

    @property
    def passed(self) -> bool:
        return self.result.outcome == "passed"

    @property
    def waits(self) -> bool:
        return self.result.outcome == "skipped"

    @property
    def unwritten(self) -> bool:
        return self.result.is_unwritten


@dataclass(frozen=True)
class CheckReport:
    """The results of a student's file.

    `problem` is the error that stopped the file, `failures` tell of lines that stopped only
    themselves, and `stopped_at` is the place of the first of these. `unreadable` is the line that is
    no Python, with a caret below it. `points` are those of the
    assignment with its hidden tests, 0 if they are unknown.
    """

    file: str
    assignment: str
    findings: tuple[Finding, ...]
    parts: Mapping[str, str]
    problem: str = ""
    stopped_at: str = ""
    unreadable: str = ""
    failures: tuple[str, ...] = ()
    note: str = ""
    warnings: tuple[str, ...] = ()
    printed: str = ""
    points: float = 0.0

    @property
    def results(self) -> tuple[TestResult, ...]:
        return tuple(finding.result for finding in self.findings)

    @property
    def all_passed(self) -> bool:
        return not self.problem and all(finding.passed for finding in self.findings)

    @property
    def score(self) -> float:
        return total(result.score for result in self.results)

    @property
    def max_score(self) -> float:
        return total(result.max_score for result in self.results)

    @property
    def next(self) -> Finding | None:
        """The first failure, which the student should fix next."""
        return next(
            (finding for finding in self.findings if not finding.passed and not finding.waits), None
        )

    def waits_for_the_file(self, finding: Finding) -> bool:
        """Whether nothing is known of a test, because the file was not read to its end."""
        return bool(self.problem) and finding.result.message == self.problem

    def by_part(self) -> dict[str, tuple[Finding, ...]]:
        """The findings of each part, in the order of the tests."""
        names = dict.fromkeys(finding.result.part for finding in self.findings)
        return {name: tuple(f for f in self.findings if f.result.part == name) for name in names}

    @property
    def passed_parts(self) -> frozenset[str]:
        """The parts whose visible tests all pass."""
        return frozenset(
            part for part, findings in self.by_part().items() if all(f.passed for f in findings)
        )

    def title(self, part: str) -> str:
        return self.parts.get(part) or part.replace("_", " ").capitalize()

    def as_record(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "parts": dict(self.parts),
            "score": self.score,
            "max_score": self.max_score,
        }


def check_target(target: str | Path) -> CheckReport:
    """Check a file, or an assignment by its folder or name.

    Raises RefusedError if there is none.
    """
    return check_work(find_work(target))


def check_work(work: Work) -> CheckReport:
    """Run the visible tests of one assignment on the student's file."""
    text = work.text()
    parts = text.part_titles()
    printed = Output()
    with nobody_there(text.name):
        with contextlib.redirect_stdout(printed):
            loaded = load(text.text, text.name, seconds=SECONDS)
        failures = loaded.failures
        failed = failed_alone(failures, [name for name, _, _ in loaded.absent])
        file = SourceFile(text.name, text.text)
        is_own = from_file(text.name)
        examination = _Examination(work.test_file, loaded.module, is_own, text, file)
        with suite_of(work.test_file) as session:
            findings = examination.findings(session)
    if not findings:
        raise RefusedError(f"{work.test_file.name} holds no test: {_UNPACK}.")
    problem, place = _stopped(failures, file)
    if not text.text.strip():
        problem = "Your file is empty. Was it saved?"
        place = None
    hints = examination.hints
    return CheckReport(
        file=work.file.name,
        assignment=work.name,
        findings=tuple(
            _blamed_on(finding, failures, file, (problem, place)) for finding in findings
        ),
        parts=parts,
        problem=problem,
        stopped_at=str(place or _place_at_top(failed) or ""),
        unreadable=_unreadable(failures),
        failures=tuple(sentences_about(failed)),
        note=work.note,
        warnings=tuple(dict.fromkeys([*_about_tests(work, hints), *_warnings(text, loaded)])),
        printed=clean(printed.getvalue(), PRINTED),
        points=hints.points,
    )


def check_student(
    module: ModuleType,
    test_file: Path,
    is_own: Own,
    part: str | None = None,
    saved: StudentText | None = None,
    file: SourceFile | None = None,
    session: SuiteSession | None = None,
) -> tuple[Finding, ...]:
    """Return the results of the visible tests, of one part or of all, for a module in this process.

    `is_own` decides which frames of a traceback belong to the student's code. Places are those in the
    `saved` file. `file` is the student's, if the module was loaded from one. A `session` has
    collected the test file before; without one, the file is read again.
    """
    examination = _Examination(
        test_file, module, is_own, saved or StudentText("", "notebook.py"), file
    )
    if session is not None:
        return tuple(examination.findings(session, part))
    with suite_of(test_file) as session_of_file:
        return tuple(examination.findings(session_of_file, part))


class OwnServer(Server):
    """A server for a trusted module in this process, which Ctrl-C and the alarm can interrupt."""

    def describe_error(self, error: BaseException) -> dict[str, Any]:
        if isinstance(error, (KeyboardInterrupt, TestAlarm)):
            raise error
        return super().describe_error(error)


class PatientOnce(LoopbackConnection):
    """A connection that waits for each function once: later calls of one that did not end have a short time."""

    def __init__(self, server: Server) -> None:
        super().__init__(server, records=True)
        self._endless: set[str] = set()

    def exchange(
        self, operation: str, arguments: dict[str, Any], seconds: float | None
    ) -> dict[str, Any]:
        if operation != "call":
            return super().exchange(operation, arguments, seconds)
        name = called_name(self.server, arguments["target"])
        is_again = name in self._endless
        try:
            with alarm(SHORT_SECONDS) if is_again else contextlib.nullcontext():
                return super().exchange(operation, arguments, seconds)
        except TestAlarm:
            self._endless.add(name)
            if not is_again:
                raise
            raise TestAlarm(
                f"`{name}` did not end in an earlier test, and here it was stopped after {SHORT_SECONDS:g} seconds."
            ) from None


class AtHome(Examinee):
    """A student's module in this process, behind the same protocol as in grading, for equal results."""

    def __init__(self, module: ModuleType, is_own: Own, file: SourceFile | None = None) -> None:
        connection = PatientOnce(OwnServer(module, is_own))
        subject = RemoteSubject(connection, RemoteStudent(connection), None, file)
        super().__init__(subject, time_limit)
        self.printed: dict[str, str] = {}

    def ending(self, test: Test, run: RunTest) -> Ending:
        printed = Output()
        error = run(test, self.subject, time_limit, printed)
        self.printed[test.name] = clean(printed.getvalue(), PRINTED)
        return ending_of(test, error, self.subject)


class _Examination:
    """One run of the visible tests; failures are looked up in the locked hints."""

    def __init__(
        self,
        test_file: Path,
        module: ModuleType,
        is_own: Own,
        text: StudentText,
        file: SourceFile | None,
    ) -> None:
        self._test_file = test_file
        self._module = module
        self._is_own = is_own
        self._examinee = AtHome(module, is_own, file)
        self._text = text
        self._places = text.functions()
        self._parts = text.parts_of_functions()
        self.hints = LockedHints(test_file.parent)
        self._untested: set[str] = set()  # tests that failed because of a package

    def findings(self, session: SuiteSession, part: str | None = None) -> list[Finding]:
        tests = [test for test in session.tests() if part is None or test.part == part]
        findings = {
            ending.test.name: self._finding(ending)
            for ending in session.examine(self._examinee, SEED, tests)
        }
        unknown = [test for test in tests if test.name not in self._untested]
        failed = [test for test in unknown if findings[test.name].result.outcome == "failed"]
        if failed:
            self._add_clues(session, failed, findings)
        return list(findings.values())

    def _finding(self, ending: Ending) -> Finding:
        test = ending.test
        error = ending.error
        details = _details(test)
        if error is None:
            return Finding(ending.result(None), details)
        raised = self._told(error)
        if sentence := self._blame_package(raised):
            self._untested.add(test.name)
            return Finding(ending.result(Failure("failed", sentence)), details)
        failure = explain(
            error, full=True, is_own=self._is_own, file=SourceFile(self._text.name, self._text.text)
        )
        result = ending.result(failure)
        message = failure.message.replace(" in the submission.", " in your file.")
        place = None if isinstance(error, MissingNameError) else place_of_frame(raised)
        return Finding(
            ending.with_input(replace(result, message=message), self._test_file.name),
            details,
            place and self._text.named(place),
            printed=self._examinee.printed.get(test.name, ""),
        )

    def _told(self, error: BaseException) -> RemoteException:
        """Return an error with the frames of the student's code."""
        if isinstance(error, StudentRaisedError):
            return error.remote
        return describe_error(error, self._is_own)

    def _blame_package(self, raised: RemoteException) -> str:
        """Return the sentence about a package of the assignment that cannot be imported, if the error comes from it."""
        for package in self.hints.packages:
            is_named = "ImportError" in raised.bases and re.search(rf"'{package}['.]", raised.text)
            if is_named or _error_of_import(package) == (raised.type, raised.text):
                return (
                    f"This test needs the package {package}, which cannot be imported here "
                    f"({raised.type}: {clean(raised.text, 300)}), so it says nothing about your answer. "
                    f"Install it: pip install {package}"
                )
        return ""

    def _add_clues(
        self, session: SuiteSession, tests: list[Test], findings: dict[str, Finding]
    ) -> None:
        """Add the names of mistakes, and a location if the traceback gives none."""
        recorded = dict(recordings(session, self._module, tests))
        hints_of = {
            name: self.hints.about(name, recording.answers) for name, recording in recorded.items()
        }
        parts: dict[str, list[str]] = {}
        for test in tests:
            parts.setdefault(test.part, []).append(test.name)
        missed = [name for name, finding in findings.items() if not finding.passed]
        chosen = named(hints_of, parts, missed)
        for name, recording in recorded.items():
            finding = findings[name]
            hint = chosen.get(name)
            result = finding.result
            place = finding.place or self._place_in(hint, recording, result.part)
            if hint is not None:
                result = replace(result, hint=hint.hint, mistake=hint.id or None)
            nudge = "" if hint else self._nudge(place, recording)
            findings[name] = replace(
                finding, result=result, place=place, mistake=hint.title if hint else "", nudge=nudge
            )

    def _nudge(self, place: CodeLocation | None, recording: Recording) -> str:
        """Return the author's nudge for the function at the place, or for the last one with a nudge that was called."""
        visited = [name for name in map(self._known, reversed(recording.visited)) if name]
        functions = [place.function, *visited] if place else visited
        return next(filter(None, map(self.hints.nudge, functions)), "")

    def _place_in(
        self, hint: MistakeHint | None, recording: Recording, part: str
    ) -> CodeLocation | None:
        """Return the location of the mistake, or of the last call; of the part if the test compares two values."""
        if hint and (place := self._known(hint.place)):
            return self._places[place]
        visited = [name for name in map(self._known, recording.visited) if name]
        of_part = [name for name in visited if self._parts.get(name) == part]
        if of_part or len({name.partition(".")[0] for name in visited}) == 1:
            return self._places[(of_part or visited)[-1]]
        return None

    def _known(self, name: str) -> str | None:
        """Return the function of the student's file that was called by that name."""
        return next(
            (n for n in (name, f"{name}.forward", f"{name}.__init__") if n in self._places), None
        )


def _error_of_import(package: str) -> tuple[str, str] | None:
    """Return the type and the text of the error of importing a package, None if it can be imported."""
    try:
        importlib.import_module(package)
    except Exception as error:  # a package that is broken raises nearly anything
        return type(error).__name__, str(error)
    return None


def time_limit() -> contextlib.AbstractContextManager[None]:
    """Return the limit of a test."""
    return alarm(SECONDS)


def suite_of(test_file: Path) -> contextlib.closing[SuiteSession]:
    """Collect the tests of one file, which is read again each time."""
    return contextlib.closing(SuiteSession([test_file], test_file.parent))


def failures(session: SuiteSession, module: ModuleType) -> list[Test]:
    """Return the visible tests that a module fails, without skipped ones."""
    endings = session.examine(AtHome(module, is_in_cells), SEED)
    return [ending.test for ending in endings if ending.failed]


def place_of_frame(exception: RemoteException) -> CodeLocation | None:
    """Return the student's line in which an exception was raised."""
    if not exception.frames:
        return None
    frame = exception.frames[-1]
    name, _, cell = frame.file.partition(" cell ")
    function = "" if frame.function.startswith("<") else frame.function
    return CodeLocation(name, frame.line, int(cell) if cell else None, function)


def _place_at_top(failures: Sequence[RemoteException]) -> CodeLocation | None:
    """Return the place of the first of these statements at the top of the file."""
    tops = [failure.statement for failure in failures]
    return place_of_frame(RemoteException("", frames=(tops[0],))) if tops and tops[0] else None


def _stopped(
    failures: Sequence[RemoteException], file: SourceFile
) -> tuple[str, CodeLocation | None]:
    """Return a sentence about what stopped the file, and its place; nothing if it was read to its end."""
    exception = _end(failures)
    if exception is None:
        return "", None
    place = place_of_frame(exception)
    where = f" in line {place.line}" if place else ""
    where += f" of cell {place.cell}" if place and place.cell else ""
    if exception.took_too_long:
        return (
            f"Your file used more than {SECONDS:g} seconds of processor time when it was loaded, and was stopped{where}; "
            f"what stands below had a short time. Is there an endless loop? {BELOW_MAIN}"
        ), place
    if exception.type in SYNTAX_ERRORS:
        need = unmet_need(exception, file)
        return clean(need or f"Python cannot read your file: {exception.text}."), place
    return clean(f"Your file stops{where}: {exception.type}: {exception.text}".rstrip(": ")), place


def _end(failures: Sequence[RemoteException]) -> RemoteException | None:
    ended = (failure for failure in failures if failure.stops_the_rest or failure.took_too_long)
    return next(ended, None)


def _unreadable(failures: Sequence[RemoteException]) -> str:
    """Return the line that Python cannot read, if that is what stopped the file."""
    end = _end(failures)
    if end is None or end.type not in SYNTAX_ERRORS or not end.frames:
        return ""
    return clean(end.frames[-1].pointed)


def _blamed_on(
    finding: Finding,
    failures: Sequence[RemoteException],
    file: SourceFile,
    stopped: tuple[str, CodeLocation | None],
) -> Finding:
    """Return the finding about a missing name with what went wrong before the file could define it."""
    match = _NO_NAME.match(finding.result.message or "")
    if match is None:
        return finding
    message, place = stopped
    cause = cause_of_missing(match[1], failures)
    if cause is not None and not cause.stops_the_rest:
        place = place_of_frame(cause)
        message = f"{missing_name(match[1], [cause])} {unmet_need(cause, file)}".rstrip()
        message = clean(message.replace(" in the submission.", " in your file."))
    if not message:
        return finding
    return replace(finding, result=replace(finding.result, message=message), place=place)


def _about_tests(work: Work, hints: LockedHints) -> Iterator[str]:
    """Yield a sentence if the test file is not the one that was handed out."""
    if not hints.is_of(work.test_file.read_text("utf-8", "replace")):
        yield f"{work.test_file.name} was changed, so these results say nothing about your points: {_UNPACK}."


def _warnings(text: StudentText, loaded: Loaded) -> Iterator[str]:
    """Yield a sentence about each thing that can be different where the file is graded."""
    was_stopped = any(failure.took_too_long for failure in loaded.failures)
    if loaded.seconds > SLOW_LOADING and not was_stopped:
        seconds = f"{loaded.seconds:.0f} s"
        yield f"Your file runs for {seconds} when it is loaded; the grader may stop it there. {BELOW_MAIN}"
    for name, line, piece in loaded.absent:
        where = _where(line, piece.rpartition(" cell ")[2] if " cell " in piece else None)
        yield f"There is no module `{name}` here ({where}): what uses it fails, here and where it is graded."
    for cell in text.cells:
        newer = newer_than_oldest(cell.text) if cell.code else None
        if newer:
            where = _where(cell.first + newer.line - 1, cell.number)
            yield (
                f"{where.capitalize()}: {newer.needs}. Write it without, unless your instructor "
                f"grades with that version: the course itself needs only Python {dotted(OLDEST)}."
            )


def _where(line: int, cell: int | str | None) -> str:
    return f"line {line}" if cell is None else f"line {line} of cell {cell}"


def _details(test: Test) -> str:
    text = inspect.cleandoc(getattr(test.item.obj, "__doc__", None) or "")  # type: ignore[attr-defined]
    return text.partition("\n\n")[2].strip()
