"""Load and check what a grader needs of a course: tests, solutions, mistakes and digests of its assignments."""

from collections.abc import Collection, Iterable
from functools import partial

import torch

from autograder.course.config import Assignment, Course, CourseError
from autograder.course.digests import suite_digest
from autograder.course.mistakes_file import load_mistakes
from autograder.grading.grader import Grader
from autograder.grading.prepared import PreparedAssignment, PreparedCourse, all_missing
from autograder.grading.reference import MissingModuleError, import_needed, load_reference, needs
from autograder.grading.suite_run import SolutionFailsError, failures_of_solution
from autograder.grading.time_limits import Watch
from autograder.records import SourceFile
from autograder.source import text as source
from autograder.source.names_used import names_used
from autograder.suite.session import SuiteSession, Test, check_suite
from autograder.walls.outside.launcher import Sandbox


def open_grader(
    course: Course,
    sandbox: Sandbox,
    run_seed: int,
    names: Iterable[str] | None = None,
    watch: Watch | None = None,
) -> Grader:
    """Return a grader of these assignments, by default of all; raises CourseError or InfrastructureError."""
    # graders run side by side, and threads that wait for a processor keep it busy
    torch.set_num_threads(1)
    return Grader(open_suites(course, run_seed, names), sandbox, run_seed, watch or Watch())


def open_suites(
    course: Course, run_seed: int, names: Iterable[str] | None = None
) -> PreparedCourse:
    """Collect the suites of these assignments; those that need a module which cannot be imported may be left out.

    Raises CourseError with all problems of suites, MissingModuleError if no assignment is left.
    """
    import_for_gradients()
    chosen = course.select(names)
    missing: dict[str, MissingModuleError] = {}
    try:
        session, tests = _sound_suites(course, chosen)
    except CourseError:
        importable, missing = _importable(chosen)
        if not missing:
            raise
        # without files, pytest would collect the current folder
        if not importable:
            raise all_missing(missing) from None
        session, tests = _sound_suites(course, importable)
    prepare = partial(_prepared, course, session, run_seed)
    return PreparedCourse(course, session, tests, missing, prepare)


def _importable(
    assignments: Iterable[Assignment],
) -> tuple[list[Assignment], dict[str, MissingModuleError]]:
    """Return the assignments whose modules can be imported, and the errors of the others, by name."""
    importable = []
    missing = {}
    for assignment in assignments:
        try:
            import_needed(assignment)
        except MissingModuleError as error:
            missing[assignment.name] = error
        else:
            importable.append(assignment)
    return importable, missing


def _is_of_a_package(failure: SolutionFailsError, assignment: Assignment) -> bool:
    """Whether a solution fails because a package that its assignment needs is incomplete."""
    packages = {module.partition(".")[0] for module in assignment.preload}
    return failure.missing.partition(".")[0] in packages


def import_for_gradients() -> None:
    """Import the several hundred modules that PyTorch imports at the first gradient with given weights.

    The grader computes such gradients for answers of students, even if no test does. Optimisers
    import further modules; only tests use them, so they are imported when the tests run on the
    solution.
    """
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


def check_suites(course: Course, assignments: Collection[Assignment]) -> None:
    """Raise CourseError with the problems for which `open_suites` refuses these assignments' suites."""
    session, _ = _sound_suites(course, assignments)
    session.close()


def _sound_suites(
    course: Course, assignments: Collection[Assignment]
) -> tuple[SuiteSession, dict[str, tuple[Test, ...]]]:
    """Return one session with the suites of these assignments, and the tests of each, by name."""
    session = collect_suites(course, assignments)
    tests_of = {
        assignment: session.tests(course.suite_folder(assignment)) for assignment in assignments
    }
    problems: list[str] = []
    for assignment, tests in tests_of.items():
        problems += check_suite(course, assignment, tests)
    if problems:
        session.close()
        raise CourseError(problems)
    return session, {assignment.name: tests for assignment, tests in tests_of.items()}


def _prepared(
    course: Course,
    session: SuiteSession,
    run_seed: int,
    assignment: Assignment,
    tests: tuple[Test, ...],
) -> PreparedAssignment:
    """Load an assignment, and run every test on its solution: all imports are done then.

    Raises CourseError with the problems of its solution or mistakes, and MissingModuleError if it
    needs a module that cannot be imported.
    """
    solution = course.solution_file(assignment)
    stub = course.stub_file(assignment)
    solution_file = SourceFile(solution.name, course.read_solution(assignment))
    given = stub.read_text("utf-8") if stub.exists() else ""
    mistakes = load_mistakes(course, assignment)
    reference = load_reference(course, assignment)
    failures = list(failures_of_solution(session, tests, reference, Watch(), run_seed))
    for failure in failures:
        if _is_of_a_package(failure, assignment):
            raise MissingModuleError(needs(assignment, failure.missing, failure))
    return PreparedAssignment(
        assignment,
        solution_file,
        SourceFile(stub.name, given),
        tests,
        mistakes,
        _names_in(solution_file),
        source.outline(given, stub.name),
        suite_digest(course, assignment),
        reference,
        tuple(f"{assignment.name}: {failure}" for failure in failures),
    )


def _names_in(solution: SourceFile) -> frozenset[str]:
    names = set[str]()
    for places in names_used(solution.text, solution.name).values():
        names.update(name for name, *_ in places)
    return frozenset(names)
