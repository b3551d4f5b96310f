"""A student checks their own work: the visible tests, in their own process, with their own file.

Nothing is isolated here: it is their code on their machine. Points count what the visible tests are worth.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from autograder.explain import explain
from autograder.records import Refused, TestResult
from autograder.scene import Scene, uses_in
from autograder.session import SuiteSession, Test
from autograder.student.local import describe_error, from_file, load_file

SEED = 0
SECONDS = 60.0


@dataclass(frozen=True)
class Report:
    """How a student's file stands."""

    file: Path
    results: tuple[TestResult, ...]
    preface: tuple[str, ...] = field(default=())

    @property
    def all_passed(self) -> bool:
        return all(result.outcome == "passed" for result in self.results)

    @property
    def summary(self) -> str:
        """Points so far, and what to do next."""
        score = sum(result.score for result in self.results)
        total = sum(result.max_score for result in self.results)
        if self.all_passed:
            return f"All visible tests pass: {score:g} of {total:g} points. Hidden tests ask the same with other numbers."
        first = next(result for result in self.results if result.outcome not in ("passed", "skipped"))
        return f"{score:g} of {total:g} visible points so far. Next: “{first.title}”"

    def as_record(self) -> dict[str, Any]:
        return {
            "file": str(self.file),
            "results": [asdict(result) for result in self.results],
            "next": self.summary,
        }


def check_target(target: Path) -> Report:
    """Check a file, or the one file of an assignment's folder. Raises Refused with a sentence when there is none."""
    file = find_file(target)
    student = load_file(file)
    own = from_file(str(file))
    preface: tuple[str, ...] = ()
    if student.load_error is not None:
        told = describe_error(student.load_error, own)
        where = f" in line {told.frames[-1].line}" if told.frames else ""
        preface = (f"{file.name} stops{where}: {told.type}: {told.text}",)
    scene = Scene(student, None, uses_in(file.read_text("utf-8-sig"), file.name))
    return Report(file, check_student(scene, _test_file(file), own), preface)


def check_student(
    scene: Scene, test_file: Path, own: Callable[[FrameType], bool], part: str | None = None
) -> tuple[TestResult, ...]:
    """What each visible test (of one part, or of all) says about a student in this process.

    `own` tells which steps of a traceback are in the student's code.
    """
    session = SuiteSession([test_file], test_file.parent)
    session.start(SEED)
    try:
        tests = [test for test in session.tests() if part is None or test.part == part]
        return tuple(_take(session, test, scene, own) for test in tests)
    finally:
        session.close()


def find_file(target: Path) -> Path:
    """The student's file: `target` itself, or the one in that folder which has tests beside it."""
    if target.is_file():
        if target.suffix not in (".py", ".ipynb"):
            raise Refused(f"{target} is neither a .py file nor a notebook.")
        return target
    if not target.is_dir():
        raise Refused(f"There is no {target}.")
    tests = sorted(target.glob("test_*.py"))
    files = [test.with_name(test.name.removeprefix("test_")) for test in tests]
    found = [file for file in files if file.is_file()]
    if len(found) != 1:
        raise Refused(
            f"{target.resolve()} is not an assignment's folder: name the file that you want to check."
        )
    return found[0]


def _test_file(file: Path) -> Path:
    test_file = file.with_name(f"test_{file.stem}.py")
    if not test_file.is_file():
        raise Refused(
            f"There is no {test_file.name} beside {file.name}: the tests belong in the same folder."
        )
    return test_file


def _take(
    session: SuiteSession, test: Test, scene: Scene, own: Callable[[FrameType], bool]
) -> TestResult:
    skeleton = TestResult(test.name, test.part, test.title, "passed", test.points, test.points)
    if session.blocked_by(test):
        session.skip(test)
        return _without_points(skeleton, "skipped", "This waits for an earlier test.")
    with contextlib.redirect_stdout(io.StringIO()):
        error = session.run(test, scene, SECONDS)
    if error is None:
        return skeleton
    failure = explain(error, full=True, own=own)
    return _without_points(skeleton, failure.outcome, failure.message)


def _without_points(result: TestResult, outcome: Any, message: str) -> TestResult:
    return TestResult(result.name, result.part, result.title, outcome, 0.0, result.max_score, message)
