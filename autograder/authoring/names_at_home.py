"""What `check` says about each known mistake at a student's home: its own name, no name, or a wrong one.

The visible tests run in this process, as on a student's computer, with the released hints.json.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from autograder.bridge.outside.local import from_file, load
from autograder.course.config import Assignment, Course
from autograder.course.mistakes import Mistake
from autograder.grading.reference import import_needed
from autograder.records import SourceFile
from autograder.selfcheck.check import Finding, check_student
from autograder.source.places import StudentText
from autograder.suite.session import SuiteSession


@dataclass(frozen=True)
class NamesAtHome:
    """The names that `check` gives to a mistake: each with a failing test, and whether it is a wrong one."""

    mistake: str
    failed: tuple[str, ...]
    named: tuple[tuple[str, str], ...]
    wrong: tuple[tuple[str, str], ...]
    asked: bool

    @property
    def problem(self) -> str:
        """A sentence about a wrong name; empty if there is none."""
        if not self.wrong:
            return ""
        test, name = self.wrong[0]
        return f"`check` calls the mistake {self.mistake} by the name of {name}, in {test}."


def name_at_home(course: Course, assignment: Assignment, mistake: Mistake) -> NamesAtHome:
    """Return what `check` says about a mistake."""
    import_needed(assignment)
    failed = [
        finding for finding in _findings(course, assignment, mistake.source) if _counts(finding)
    ]
    named = [
        (finding.result.name, finding.result.mistake or "") for finding in failed if finding.mistake
    ]
    titles = {finding.result.name: finding.mistake for finding in failed}
    wrong = [
        (test, name) for test, name in named if name != mistake.id and titles[test] != mistake.title
    ]
    tests = tuple(finding.result.name for finding in failed)
    asked = any(finding.result.hint for finding in failed)
    return NamesAtHome(mistake.id, tests, tuple(named), tuple(wrong), asked)


def _findings(course: Course, assignment: Assignment, text: str) -> tuple[Finding, ...]:
    name = f"{assignment.stem}.py"
    folder = course.release_folder(assignment)
    loaded = load(text, name)
    test_file = folder / f"test_{assignment.stem}.py"
    return check_student(
        loaded.module,
        test_file,
        from_file(name),
        saved=StudentText(text, name),
        file=SourceFile(name, text),
        session=_session_of(test_file),
    )


@cache
def _session_of(test_file: Path) -> SuiteSession:
    """Return the collected tests of one assignment, which all its mistakes meet in turn."""
    return SuiteSession([test_file], test_file.parent)


def _counts(finding: Finding) -> bool:
    return not finding.passed and not finding.waits
