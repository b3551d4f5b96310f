"""Shared code of nbgrader's converters: opening the course, the gradebook's facts, and errors as messages."""

from typing import Any

from nbgrader.api import Gradebook
from nbgrader.converters.base import NbGraderException
from nbgrader.utils import find_all_files

from autograder.course.config import Assignment, Course, CourseError
from autograder.course.reading import load_course
from autograder.gradebook.lateness import due_for


def open_course(converter: Any) -> tuple[Course, Assignment]:
    """Return the course in nbgrader's folder and the converter's assignment; raises NbGraderException."""
    folder = converter.coursedir
    try:
        course = load_course(folder.root)
        assignment = course.assignment(folder.assignment_id)
    except CourseError as error:
        raise refusal(converter, str(error)) from None
    source = folder.format_path(folder.source_directory, ".", assignment.name)
    copied = find_all_files(source, [*folder.ignore, "*.ipynb"])
    if copied:
        raise refusal(
            converter,
            f"nbgrader would copy {copied[0]} to students. Use this course's own nbgrader_config.py, "
            "whose CourseDirectory.ignore keeps solutions where they are.",
        )
    return course, assignment


def refusal(converter: Any, sentence: str) -> NbGraderException:
    """Log a message, and return the exception that ends an nbgrader command without a traceback."""
    converter.log.error(sentence)
    return NbGraderException(sentence)


def enter_due(gradebook: Gradebook, course: Course, assignment: Assignment) -> None:
    """Enter an assignment's due date into the gradebook; without one in course.yml, formgrader's stays."""
    due = due_for(course, assignment, "")
    if due is not None:
        gradebook.update_or_create_assignment(assignment.name, duedate=due)


def first_and_last(name: str) -> tuple[str, str]:
    """Split `Ada King Lovelace` or `Lovelace, Ada King` as nbgrader stores names: the last word is the last name."""
    last, comma, first = name.partition(",")
    if not comma:
        first, _, last = name.strip().rpartition(" ")
    return first.strip(), last.strip()
