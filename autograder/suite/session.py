"""A pytest session that collects suites once and runs their tests repeatedly, for one student after another."""

import io
import os
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import (
    AbstractContextManager,
    contextmanager,
    nullcontext,
    redirect_stderr,
    redirect_stdout,
)
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol, TextIO

import pytest
from _pytest.config import _prepareconfig
from _pytest.pathlib import module_name_from_path
from _pytest.runner import runtestprotocol

from autograder.bridge.outside.subject import RemoteSubject, Subject
from autograder.bridge.outside.transcript import Transcript
from autograder.course.config import Assignment, Course, CourseError
from autograder.failures.explain import Failure
from autograder.records import TestResult
from autograder.suite import markers
from autograder.suite.evidence import evidence
from autograder.suite.markers import SUITE, SubjectProvider, Suite, is_test_of_suite
from autograder.text.spelling import did_you_mean

Limit = Callable[[], AbstractContextManager[Any]]
# the only ones: none of the course, of a student or of the user
SETTINGS = Path(__file__).with_name("session.ini")
WITHOUT = (
    "cacheprovider", "unraisableexception", "threadexception", "doctest", "logging", "junitxml", "faulthandler",
    "stepwise",
)  # fmt: skip
PLUGINS = [
    "-p",
    "autograder.suite.plugin",
    *(option for name in WITHOUT for option in ("-p", f"no:{name}")),
]


@dataclass(frozen=True)
class Test:
    """One test of a suite, with the properties that the grader uses."""

    __test__ = False

    item: pytest.Item
    name: str
    part: str
    points: float
    title: str
    hidden: bool
    needs: tuple[str, ...]
    forbids: tuple[str, ...]


@dataclass(frozen=True)
class Ending:
    """The end of one test: an error, an earlier test that did not pass and that it needs, or neither if it passed.

    `transcript` holds the answers of a module behind a connection, or what a check told of them;
    `last_call` is the test's last call of it, as a line to paste.
    """

    test: Test
    error: BaseException | None = None
    waits_for: Test | None = None
    transcript: Transcript | None = None
    seconds: float = 0.0
    last_call: str = ""

    @property
    def passed(self) -> bool:
        return self.error is None and self.waits_for is None

    @property
    def failed(self) -> bool:
        return self.error is not None

    def with_input(self, result: TestResult, test_file: str) -> TestResult:
        """Return the result of a failure with its input: the last call, or where the test stands in the students' file.

        A hidden test stands in none, and unwritten code needs none.
        """
        if result.is_unwritten or (self.test.hidden and not self.last_call):
            return result
        _, line, _ = self.test.item.location
        place = f"The test: {test_file}, line {(line or 0) + 1}"
        return replace(result, to_try=f"Try: `{self.last_call}`" if self.last_call else place)

    def result(self, failure: Failure | None) -> TestResult:
        """Return what a grade holds of it; `failure` explains the error."""
        test = self.test
        passed = TestResult(
            test.name, test.part, test.title, "passed", test.points, test.points, hidden=test.hidden
        )
        if self.waits_for is not None:
            failure = Failure("skipped", f"This waits until “{self.waits_for.title}” passes.")
        if failure is None:
            return passed
        return replace(passed, outcome=failure.outcome, score=0.0, message=failure.message)


class RunTest(Protocol):
    """Runs one test with a subject; returns the exception that ended it, or None if it passed.

    Set-up and call each run inside a `limit`, a context manager that can end them with an
    exception. Printed text goes to `output`, or nowhere: a student's text must not command the
    terminal.
    """

    def __call__(
        self, test: Test, subject: Subject, limit: Limit = ..., output: TextIO | None = ...
    ) -> BaseException | None: ...


class Examinee:
    """What `SuiteSession.examine` examines: one subject for all tests, each of which runs once, within a limit.

    Others have another subject for a test, know its ending beforehand, or run it twice.
    """

    def __init__(self, subject: Subject, limit: Limit = nullcontext) -> None:
        self.subject = subject
        self._limit = limit

    def ending(self, test: Test, run: RunTest) -> Ending:
        """Return how a test ends."""
        error = run(test, self.subject, self._limit)
        return ending_of(test, error, self.subject)


def ending_of(test: Test, error: BaseException | None, subject: Subject) -> Ending:
    """Return the ending of a test with what its subject answered."""
    if not isinstance(subject, RemoteSubject):
        return Ending(test, error)
    connection = subject.connection
    transcript = evidence(error, connection.transcript)
    # the answers do not tell what was printed, and what was forbidden
    if not connection.reads_output and subject.use_of(test.forbids) is None:
        transcript.exchanges = connection.exchanges
    return Ending(test, error, transcript=transcript, last_call=connection.last_call)


class SuiteSession:
    """Suites, collected once, on which one module after another is examined.

    Raises CourseError if a suite cannot be used.
    """

    def __init__(self, files: Iterable[Path], root: Path) -> None:
        self._current = _CurrentSubject()
        self._reports = _Reports()
        paths = [file.absolute() for file in files]  # `-k` and `@name` would be options
        root = root.absolute()
        # without the second, pytest lists each folder above: all that lies beside a course
        places = [f"--rootdir={root}", f"--confcutdir={root}"]
        arguments = [*PLUGINS, *places, "-c", str(SETTINGS), *map(str, paths)]
        with _own_environment():
            self._config = _prepareconfig(arguments, plugins=[self._reports])
        _start_in(self._config, root, paths)
        self._config._do_configure()
        # but plugins read its options
        self._config.pluginmanager.unregister(name="terminalreporter")
        self._suite: Suite = self._config.stash[SUITE]
        self._suite.subjects = self._current
        self._session = pytest.Session.from_config(self._config)
        self._config.hook.pytest_sessionstart(session=self._session)
        try:
            with _own_modules({module_name_from_path(file, root) for file in paths}):
                self._config.hook.pytest_collection(session=self._session)
        except pytest.UsageError as error:
            self._reports.problems.append(str(error))
        self._reports.problems += _unusable(self._session.items)
        if self._reports.problems:
            self.close()
            raise CourseError(self._reports.problems)

    def tests(self, folder: Path | None = None) -> tuple[Test, ...]:
        """Return the tests in a folder, or all tests, visible ones first."""
        items = [
            item for item in self._session.items if folder is None or item.path.parent == folder
        ]
        return tuple(_test(item) for item in items if is_test_of_suite(item))

    def examine(
        self, examinee: Examinee, run_seed: int, tests: Iterable[Test] | None = None
    ) -> Iterator[Ending]:
        """Run tests, by default all, in their order, as the endings are asked for; a session runs one examination at
        a time. A test that needs one that ran here and did not pass waits for it.
        """
        self._suite.run_seed = run_seed
        self._suite.passed.clear()
        examined: dict[str, Test] = {}
        for test in self.tests() if tests is None else tests:
            examined[test.name] = test
            needed = self._suite.missing(test.needs)
            self._suite.passed[test.name] = False
            if needed:
                yield Ending(test, waits_for=examined[needed])
                continue
            begun = time.monotonic()
            ending = examinee.ending(test, self._run)
            if not ending.seconds:
                ending = replace(ending, seconds=round(time.monotonic() - begun, 3))
            self._suite.passed[test.name] = ending.passed
            yield ending

    def _run(
        self, test: Test, subject: Subject, limit: Limit = nullcontext, output: TextIO | None = None
    ) -> BaseException | None:
        self._current.current = subject
        self._reports.begin(limit)
        output = output or io.StringIO()
        try:
            with redirect_stdout(output), redirect_stderr(output):
                runtestprotocol(test.item, log=False, nextitem=None)
        finally:
            self._current.current = None
        if isinstance(self._reports.error, pytest.UsageError):
            raise self._reports.error
        return self._reports.error

    def close(self) -> None:
        """End the session and tear down its fixtures."""
        self._config.hook.pytest_sessionfinish(session=self._session, exitstatus=0)
        self._config._ensure_unconfigure()


def check_suite(course: Course, assignment: Assignment, tests: tuple[Test, ...]) -> list[str]:
    """Return one sentence per problem of a suite, such as points that do not add up or needs that cannot be met."""
    where = f"tests/assignments/{assignment.name}"
    problems = []
    if not tests:
        return [f"{where} has no tests."]
    names = [part.name for part in assignment.parts]
    seen: set[str] = set()
    for test in tests:
        place = markers.place_of(test.item)
        if test.name in seen:
            problems.append(f"{place}: two tests are called {test.name}.")
        for need in test.needs:
            if need not in seen:
                problems.append(
                    f"{place}: {test.name} needs {need}, which is not defined before it."
                )
        if test.part not in names:
            problems.append(
                f"{place}: {test.name} belongs to part `{test.part}`, which is not in course.yml"
                f"{did_you_mean(test.part, names) or '.'}"
            )
        if test.item.obj.__doc__ is None:  # type: ignore[attr-defined]
            problems.append(f"{place}: {test.name} has no docstring for students to read.")
        seen.add(test.name)
    for part in assignment.parts:
        points = sum(test.points for test in tests if test.part == part.name)
        if abs(points - part.points) > 1e-9:
            problems.append(
                f"{where}: the tests of part `{part.name}` add up to {points:g} points; course.yml says {part.points:g}."
            )
    return problems


class _CurrentSubject(SubjectProvider):
    current: Subject | None = None

    def subject(self, test_file: Path) -> Subject:
        if self.current is None:
            raise pytest.UsageError("there is no subject outside of a test")
        return self.current


class _Reports:
    """A plugin that keeps the problems of the collection as sentences, and the exception that ended a test."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.begin(nullcontext)

    def pytest_exception_interact(
        self,
        node: pytest.Item | pytest.Collector,
        call: pytest.CallInfo[Any],
        report: pytest.CollectReport | pytest.TestReport,
    ) -> None:
        if isinstance(report, pytest.CollectReport) and call.excinfo is not None:
            self.problems += _collection_problems(node, call.excinfo.value)

    def begin(self, limit: Limit) -> None:
        self._limit = limit
        self.error: BaseException | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> pytest.TestReport:
        """Return a report for pytest itself, which skips the call after a failed set-up and removes `tmp_path`."""
        assert call.when != "collect"
        error = call.excinfo.value if call.excinfo else None
        if self.error is None:
            self.error = error.__cause__ if isinstance(error, _ExitRaisedError) else error
        outcome: Literal["passed", "failed"] = (
            "failed" if error and call.when == "setup" else "passed"
        )
        return pytest.TestReport(item.nodeid, item.location, {}, outcome, None, call.when)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Iterator[None]:
        try:
            with self._limit():
                return (yield)
        except pytest.exit.Exception as error:
            raise _ExitRaisedError from error

    pytest_runtest_call = pytest_runtest_setup


class _ExitRaisedError(Exception):
    """Replaces the exception of `pytest.exit`, after which pytest would not tear the test down."""


@contextmanager
def _own_modules(names: set[str]) -> Iterator[None]:
    """Hide modules with these names during collection: test files of several courses can have the same names."""
    aside = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    try:
        yield
    finally:
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(aside)


@contextmanager
def _own_environment() -> Iterator[None]:
    """Hide the plugins and options that the environment sets for pytest."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("PYTEST_")]:
            patch.delenv(name)
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        yield


def _start_in(config: pytest.Config, root: Path, paths: Iterable[Path]) -> None:
    """Name the files from the root, as if pytest had been started there: in the name of a folder
    above, `[` and `::` would select tests.
    """
    config.args = [os.path.relpath(path, root) for path in paths]
    config.invocation_params = replace(config.invocation_params, dir=root)


def _collection_problems(node: pytest.Item | pytest.Collector, error: BaseException) -> list[str]:
    """Return why a file cannot be collected, as sentences with the file and the line."""
    cause = error
    if isinstance(error, pytest.Collector.CollectError) and error.__cause__ is not None:
        cause = error.__cause__  # what the file raised
    frames = traceback.extract_tb(cause.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename) == node.path]
    if isinstance(cause, SyntaxError) and cause.filename == str(node.path):
        lines.append(cause.lineno)
    place = f"{node.nodeid}, line {lines[-1]}" if lines else node.nodeid
    if isinstance(cause, CourseError):
        return [f"{place}: {problem}" for problem in cause.problems]
    reason = str(error)
    if isinstance(cause, Exception):  # which pytest's own outcomes are not
        reason = f"{type(cause).__name__}: {getattr(cause, 'msg', cause)}"
    return [f"{place} cannot be collected: {' '.join(reason.split())}"]


def _unusable(items: Iterable[pytest.Item]) -> list[str]:
    """Return a sentence for each test that cannot run, or that does not use the fixture `student`."""
    problems = []
    for item in items:
        place = markers.place_of(item)
        if item.get_closest_marker("part") and not is_test_of_suite(item):
            problems.append(
                f"{place}: {item.name} belongs to a part, but does not use the fixture `student`."
            )
        for points in markers.arguments_of(item, "points"):
            if not re.fullmatch(r"\d+(\.\d+)?", points):
                problems.append(
                    f"{place}: {item.name} has `points({points})`; write a number, as in `points(2)`."
                )
        fixtures = {"request", *markers.fixture_definitions(item)}
        problems += [
            f"{place}: {item.name} uses the fixture `{name}`, which does not see what a submission prints. Use `capsys`."
            for name in sorted({"capfd", "capfdbinary"}.intersection(item.fixturenames))  # type: ignore[attr-defined]
        ]
        problems += [
            f"{place}: {item.name} uses the fixture `{name}`, which is not available in suites: neither conftest.py nor "
            "plugins are loaded. Available are `student`, `reference`, `seed`, the fixtures of the file itself, and "
            "pytest's own, such as `monkeypatch` and `capsys`."
            for name in item.fixturenames  # type: ignore[attr-defined]
            if name not in fixtures
        ]
    return problems


def _test(item: pytest.Item) -> Test:
    return Test(
        item=item,
        name=item.name,
        part=next(iter(markers.arguments_of(item, "part")), ""),
        points=float(next(iter(markers.arguments_of(item, "points")), 0.0)),
        title=markers.title_of(item),
        hidden=item.path.name == "test_hidden.py",
        needs=tuple(markers.arguments_of(item, "needs")),
        forbids=tuple(markers.arguments_of(item, "forbids")),
    )
