"""One pytest session that collects suites once and then runs their tests again and again, for one student after another.

pytest's own loop would start a session for each submission; here its collection, fixtures and hooks are kept and
only the tests' set-up, call and tear-down are repeated. Failures are kept as exceptions: nothing is formatted.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from _pytest.config import _prepareconfig
from _pytest.pathlib import module_name_from_path

from autograder.course.config import Assignment, Course, CourseError
from autograder.proxy.subject import Subject
from autograder.suite.plugin import (
    SUITE,
    SubjectProvider,
    Suite,
    forbidden_by,
    is_test_of_suite,
    missing_needs,
    needs_of,
    part_of,
    points_of,
    title_of,
)

QUIET = [
    "--capture=no",
    "--assert=plain",
    "--noconftest",
    "--import-mode=importlib",
    "--disable-plugin-autoload",
    "-p",
    "autograder.suite.plugin",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:terminal",
    "-p",
    "no:unraisableexception",
    "-p",
    "no:threadexception",
    "-p",
    "no:doctest",
    "-p",
    "no:logging",
    "-p",
    "no:junitxml",
    "-p",
    "no:faulthandler",
    "-p",
    "no:stepwise",
]


class TestAlarm(BaseException):
    """A test took too long on the trusted side; a BaseException, so that no test swallows it."""

    __test__ = False


@dataclass(frozen=True)
class Test:
    """One test of a suite: what the grader needs to know of it."""

    __test__ = False

    item: pytest.Item
    name: str
    part: str
    points: float
    title: str
    hidden: bool
    needs: tuple[str, ...]
    forbids: tuple[str, ...]


class SuiteSession:
    """Suites collected once. `run` puts a student on the stage and runs one test."""

    def __init__(self, files: Iterable[Path], root: Path) -> None:
        self._current = _CurrentSubject()
        self._collected = _Collected()
        paths = list(files)
        arguments = [*QUIET, "--rootdir", str(root), "-c", str(_no_settings()), *map(str, paths)]
        self._config = _prepareconfig(arguments, plugins=[self._collected])
        self._config._do_configure()
        self._suite: Suite = self._config.stash[SUITE]
        self._suite.subjects = self._current
        self._session = pytest.Session.from_config(self._config)
        self._config.hook.pytest_sessionstart(session=self._session)
        try:
            with _own_modules({module_name_from_path(file, root) for file in paths}):
                self._config.hook.pytest_collection(session=self._session)
        except pytest.UsageError as error:
            self._collected.problems.append(str(error))
        if self._collected.problems:
            self.close()
            raise CourseError(self._collected.problems)

    def tests(self, folder: Path | None = None) -> tuple[Test, ...]:
        """The tests in a folder (or all), visible ones first."""
        items = [item for item in self._session.items if folder is None or item.path.parent == folder]
        return tuple(_test(item) for item in items if is_test_of_suite(item))

    def start(self, run_seed: int) -> None:
        """Begin with a new student: no test has passed yet."""
        self._suite.run_seed = run_seed
        self._suite.passed.clear()

    def blocked_by(self, test: Test) -> str | None:
        """The needed test that did not pass, if any."""
        missing = missing_needs(test.item, self._suite)
        return missing[0] if missing else None

    def skip(self, test: Test) -> None:
        self._suite.passed[test.name] = False

    def accept(self, test: Test) -> None:
        """The test is passed, though it was not run."""
        self._suite.passed[test.name] = True

    def run(self, test: Test, subject: Subject, seconds: float) -> BaseException | None:
        """Run one test with this student; the exception that ended it, or None when it passed.

        A `TestAlarm` ends it after `seconds`.
        """
        self._current.current = subject
        item = test.item
        item._initrequest()  # type: ignore[attr-defined]
        self._session._setupstate.teardown_exact(item)  # leaves another file that a test was run from
        try:
            with alarm(seconds):
                item.ihook.pytest_runtest_setup(item=item)
                item.ihook.pytest_runtest_call(item=item)
            return None
        except (KeyboardInterrupt, pytest.UsageError):
            raise
        except BaseException as error:  # outcomes of pytest and the alarm are no Exceptions
            return error
        finally:
            item.ihook.pytest_runtest_teardown(item=item, nextitem=item.parent)
            item._request = item.funcargs = None  # type: ignore[attr-defined]
            self._current.current = None

    def close(self) -> None:
        """End the session: nobody is on its stage any more."""
        self._session._setupstate.teardown_exact(None)
        self._config.hook.pytest_sessionfinish(session=self._session, exitstatus=0)
        self._config._ensure_unconfigure()


def check_suite(course: Course, assignment: Assignment, tests: tuple[Test, ...]) -> list[str]:
    """What is wrong with a suite, a sentence each: points that do not add up, needs that cannot be met, …"""
    where = f"tests/assignments/{assignment.name}"
    problems = []
    if not tests:
        return [f"{where} has no tests."]
    seen: dict[str, int] = {}
    for position, test in enumerate(tests):
        if test.name in seen:
            problems.append(f"{where}: two tests are called {test.name}.")
        for need in test.needs:
            if need not in seen:
                problems.append(f"{where}: {test.name} needs {need}, which does not stand before it.")
        if test.part not in [part.name for part in assignment.parts]:
            problems.append(
                f"{where}: {test.name} belongs to part `{test.part}`, which course.yml does not know."
            )
        if test.item.obj.__doc__ is None:  # type: ignore[attr-defined]
            problems.append(f"{where}: {test.name} has no docstring for students to read.")
        seen[test.name] = position
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
            raise pytest.UsageError("nobody is on the stage")
        return self.current


class _Collected:
    """A plugin that turns what goes wrong while collecting into sentences."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            reason = str(report.longrepr).strip().splitlines()
            self.problems.append(
                f"{report.nodeid} cannot be collected: {reason[-1] if reason else 'no reason given'}"
            )


@contextmanager
def _own_modules(names: set[str]) -> Iterator[None]:
    """Files of another course may bear the same names: pytest must neither be given theirs nor leave ours behind."""
    aside = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    try:
        yield
    finally:
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(aside)


def _test(item: pytest.Item) -> Test:
    return Test(
        item=item,
        name=item.name,
        part=part_of(item),
        points=points_of(item),
        title=title_of(item),
        hidden=item.path.name == "test_hidden.py",
        needs=tuple(needs_of(item)),
        forbids=tuple(forbidden_by(item)),
    )


def _no_settings() -> Path:
    """An empty configuration file: neither the course's nor a student's settings steer the grader."""
    return Path(__file__).with_name("session.ini")


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise TestAlarm in the main thread after `seconds`; elsewhere, and on Windows, do nothing."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: FrameType | None) -> Any:
        raise TestAlarm

    previous = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
