"""Shared code of nbgrader's converters: opening the course, and logging errors as messages."""

from __future__ import annotations

from typing import Any

from nbgrader.converters.base import NbGraderException
from nbgrader.utils import find_all_files

from autograder.course.config import Assignment, Course, CourseError, load_course


def open_course(converter: Any) -> tuple[Course, Assignment]:
    """Return the course in nbgrader's folder and the converter's assignment.

    Raises NbGraderException with a message.
    """
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
