"""The tests, mistakes and digests of assignments, loaded and checked before the first submission."""

import contextlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from autograder.course.config import Assignment, Course, CourseError
from autograder.course.digests import suite_digest
from autograder.course.mistakes import Mistake
from autograder.course.mistakes_file import load_mistakes
from autograder.records import SourceFile
from autograder.source import text as source
from autograder.source.names_used import names_used
from autograder.suite.session import SuiteSession, Test, check_suite


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

    @property
    def forbidden(self) -> list[str]:
        """The names that at least one test forbids."""
        return sorted({name for test in self.tests for name in test.forbids})


def import_for_gradients() -> None:
    """Import the several hundred modules that PyTorch imports at the first gradient with given weights.

    The grader computes such gradients for answers of students, even if no test does. Optimisers
    import further modules; only tests use them, so they are imported when the tests run on the
    solution.
    """
    import torch

    weight = torch.ones(2, requires_grad=True)
    torch.autograd.grad(weight * weight, weight, torch.ones(2), create_graph=True)


def collect_suites(course: Course, assignments: Iterable[Assignment]) -> SuiteSession:
    """Return one session with the suites of these assignments; raises CourseError if one cannot be collected."""
    files = []
    for assignment in assignments:
        visible = course.visible_test_file(assignment)
        hidden = course.hidden_test_file(assignment)
        if not visible.is_file():
            raise CourseError(f"{assignment.name} has no {course.label(visible)}.")
        files.append(visible)
        if hidden.is_file():
            files.append(hidden)
    return SuiteSession(files, course.root)


def prepare(
    course: Course, session: SuiteSession, assignments: Iterable[Assignment]
) -> dict[str, PreparedAssignment]:
    """Return the assignments by name; raises CourseError with all problems of their suites and mistakes."""
    return {
        assignment.name: _prepared(course, assignment, tests)
        for assignment, tests in _sound_tests(course, session, assignments).items()
    }


def check_suites(course: Course, assignments: Collection[Assignment]) -> None:
    """Raise CourseError with the problems for which `prepare` would refuse these assignments' suites."""
    with contextlib.closing(collect_suites(course, assignments)) as session:
        _sound_tests(course, session, assignments)


def _sound_tests(
    course: Course, session: SuiteSession, assignments: Iterable[Assignment]
) -> dict[Assignment, tuple[Test, ...]]:
    tests_of = {
        assignment: session.tests(course.suite_folder(assignment)) for assignment in assignments
    }
    problems: list[str] = []
    for assignment, tests in tests_of.items():
        problems += check_suite(course, assignment, tests)
    if problems:
        raise CourseError(problems)
    return tests_of


def _prepared(
    course: Course, assignment: Assignment, tests: tuple[Test, ...]
) -> PreparedAssignment:
    solution = course.solution_file(assignment)
    stub = course.stub_file(assignment)
    text = course.read_solution(assignment)
    given = stub.read_text("utf-8") if stub.exists() else ""
    solution_file = SourceFile(solution.name, text)
    return PreparedAssignment(
        assignment,
        solution_file,
        SourceFile(stub.name, given),
        tests,
        load_mistakes(course, assignment),
        _names_in(solution_file),
        source.outline(given, stub.name),
        suite_digest(course, assignment),
    )


def _names_in(solution: SourceFile) -> frozenset[str]:
    names = set[str]()
    for places in names_used(solution.text, solution.name).values():
        names.update(name for name, *_ in places)
    return frozenset(names)
