"""What a grader needs of an assignment, loaded and checked before its first submission (see `preparation`)."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from autograder.bridge.outside.local import LocalStudent
from autograder.course.config import Assignment, Course
from autograder.course.mistakes import Mistake
from autograder.grading.reference import MissingModuleError, PreparationNeededError
from autograder.records import SourceFile
from autograder.suite.session import SuiteSession, Test


@dataclass(frozen=True)
class PreparedAssignment:
    """The solution, tests and known mistakes of one assignment.

    `usual_names` stand in the solution itself; in a submission they are not flagged.
    `stub_outline` is the digest of the unchanged stub (see `WorkerFactory.outline`). `unsound` are
    sentences about tests that the solution fails.
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
    unsound: tuple[str, ...]

    @property
    def forbidden(self) -> list[str]:
        """The names that at least one test forbids."""
        return sorted({name for test in self.tests for name in test.forbids})


class PreparedCourse:
    """One session with the suites of the assignments, each of which is prepared when it is first needed.

    `tests` are those of each assignment, by name. `missing` are the errors of assignments that need
    a module which cannot be imported here, as far as this is known.
    """

    def __init__(
        self,
        course: Course,
        session: SuiteSession,
        tests: Mapping[str, tuple[Test, ...]],
        missing: Mapping[str, MissingModuleError],
        prepare: Callable[[Assignment, tuple[Test, ...]], PreparedAssignment],
    ) -> None:
        self.course = course
        self.session = session
        self.tests = tests
        self.missing = dict(missing)
        self._prepare = prepare
        self._prepared: dict[str, PreparedAssignment] = {}
        self._prepares = True

    def __contains__(self, name: str) -> bool:
        return name in self.tests or name in self.missing

    def prepared(self, name: str) -> PreparedAssignment:
        """Return one of the assignments; raises CourseError, MissingModuleError or PreparationNeededError."""
        self.prepare([name])
        if name in self.missing:
            raise self.missing[name]
        return self._prepared[name]

    def prepare(self, names: Collection[str]) -> bool:
        """Prepare those of these assignments that are not; return whether there were any.

        Raises CourseError, or PreparationNeededError after `prepare_no_more`.
        """
        settled = {*self._prepared, *self.missing}
        new = tuple(name for name in self.tests if name in names and name not in settled)
        if new and not self._prepares:
            raise PreparationNeededError(new)
        for name in new:
            try:
                self._prepared[name] = self._prepare(self.course.assignment(name), self.tests[name])
            except MissingModuleError as error:
                self.missing[name] = error
        return bool(new)

    def prepare_no_more(self) -> None:
        """From now on, prepare nothing in this process, a fork."""
        self._prepares = False

    def require_some(self) -> None:
        """Raise MissingModuleError if no assignment is left."""
        if self.missing and self.missing.keys() >= self.tests.keys():
            raise all_missing(self.missing)


def all_missing(missing: Mapping[str, MissingModuleError]) -> MissingModuleError:
    """Return one error in place of those of all assignments."""
    return MissingModuleError("\n".join(map(str, missing.values())))
