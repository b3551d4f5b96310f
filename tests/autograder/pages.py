"""Write the pages of a class from all grades of a journal, without a roster."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from autograder.course.config import Course
from autograder.feedback.html import write_what_counts
from autograder.gradebook.final_scores import what_counts
from autograder.records import Grade


def write_all(folder: Path, course: Course, grades: Iterable[Grade]) -> Path:
    """Write the gradebook, the feedback pages and the report; return the report's path."""
    return write_what_counts(folder, course, what_counts(folder, course, grades))
