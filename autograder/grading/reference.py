"""Load a solution as a module of this process."""

import importlib

from autograder.bridge.outside.local import LocalStudent, load
from autograder.course.config import Assignment, Course, CourseError
from autograder.installation.distribution import install_command
from autograder.records import InfrastructureError


class MissingModuleError(InfrastructureError):
    """A module that an assignment needs cannot be imported: none of its submissions can be graded."""


class PreparationNeededError(InfrastructureError):
    """This process may prepare no assignment, and these are not prepared."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__("The grader has lost an assignment.")
        self.names = names


def load_reference(course: Course, assignment: Assignment) -> LocalStudent:
    """Return the solution; raises CourseError if it does not run, MissingModuleError if a package is missing."""
    import_needed(assignment)
    path = course.solution_file(assignment)
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise CourseError(f"The solution of {assignment.name} cannot be read: {error}.") from None
    loaded = load(text, str(path), f"reference_{assignment.stem}")
    if loaded.problem:
        raise CourseError(f"The solution of {assignment.name} does not run: {loaded.problem}.")
    return LocalStudent(loaded.module)


def import_needed(assignment: Assignment) -> None:
    """Import the modules of `preload` in this process, too; raises MissingModuleError if one cannot be imported."""
    for module in assignment.preload:
        try:
            importlib.import_module(module)
        except Exception as error:  # a package that is broken raises nearly anything
            raise MissingModuleError(needs(assignment, module, error)) from None


def needs(assignment: Assignment, module: str, error: Exception) -> str:
    """Return the sentence about a package that is missing or broken on this machine."""
    package = module.partition(".")[0]
    return (
        f"{assignment.name} needs {package}, which cannot be imported here ({type(error).__name__}: {error}). "
        f"Install it: {install_command([package])}"
    )
