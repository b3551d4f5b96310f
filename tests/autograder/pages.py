"""Write the pages of a class from all grades of a journal, or of one grade, without a roster."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from autograder.course.config import Course
from autograder.feedback.html import as_html, write_what_counts
from autograder.feedback.pages import feedback_path
from autograder.feedback.record import PageRecord, PageRecords
from autograder.gradebook.final_scores import ClassList, Effective, what_counts
from autograder.records import Grade
from autograder.text.files import write_whole


def write_all(folder: Path, course: Course, grades: Iterable[Grade]) -> Path:
    """Write the gradebook, the feedback pages and the report; return the report's path."""
    return write_what_counts(folder, course, what_counts(folder, course, grades))


def counted(*grades: Grade) -> Effective:
    """Return these grades as they are, for a class of which nothing else is known."""
    return Effective(list(grades), {}, [], ClassList())


def page_of(folder: Path, course: Course, grade: Grade) -> PageRecord:
    """Return the record of the page of one grade."""
    return PageRecords(folder, course).page(grade, counted(grade))


def write_feedback(folder: Path, course: Course, grade: Grade) -> Path:
    """Write the page of one grade; return its path."""
    return write_whole(folder / feedback_path(grade), as_html(page_of(folder, course, grade)))
