"""What a grader needs of a course, loaded and checked before the first submission (see `preparation`)."""

from collections.abc import Mapping
from dataclasses import dataclass

from autograder.bridge.outside.local import LocalStudent
from autograder.course.config import Assignment, Course
from autograder.course.mistakes import Mistake
from autograder.records import InfrastructureError, SourceFile
from autograder.suite.session import SuiteSession, Test


@dataclass(frozen=True)
class PreparedAssignment:
    """The solution, tests and known mistakes of one assignment.

    `usual_names` stand in the solution itself; in a submission they are not flagged.
    `stub_outline` is the digest of the unchanged stub (see `WorkerFactory.outline`).
    """

    assignment: Assignment
    solution: SourceFile
    stub: SourceFile
    tests: tuple[Test, ...]
    mistakes: tuple[Mistake, ...]
    usual_names: frozenset[str]
    stub_outline: str
    suite_sha256: str
    reference: LocalStudent

    @property
    def forbidden(self) -> list[str]:
        """The names that at least one test forbids."""
        return sorted({name for test in self.tests for name in test.forbids})


@dataclass(frozen=True)
class PreparedCourse:
    """One session with the suites of the assignments, by name.

    `missing` are the errors of assignments that need a module which cannot be imported here, and
    `unsound` the sentences about tests that an assignment's own solution fails.
    """

    course: Course
    session: SuiteSession
    assignments: Mapping[str, PreparedAssignment]
    missing: Mapping[str, InfrastructureError]
    unsound: Mapping[str, list[str]]
