"""The gradebook, `grades.csv`: one row per student and assignment, for spreadsheets and other programs."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from autograder.course.config import Course
from autograder.gradebook.lateness import Final, GradeKey, counting, finals
from autograder.gradebook.times import read_late, read_times
from autograder.records import Grade
from autograder.text.files import write_whole

FILE_NAME = "grades.csv"
COLUMNS = ("student", "assignment", "status", "score", "max_score", "problem", "final_score", "days_late")
# in locales with a decimal comma, spreadsheets separate cells with semicolons
_FORMULA = re.compile(r"(^|;\s*)(?=[=+\-@\t\r\n＝＋－＠])")


def write_gradebook(folder: Path, grades: Iterable[Grade], finals: Mapping[GradeKey, Final] | None = None) -> Path:
    """Write `grades.csv` (RFC 4180, UTF-8, sorted) with the latest grade of each student and assignment.

    `score` is the raw score, `final_score` the score after lateness; `days_late` is empty if unknown.
    """
    table = io.StringIO(newline="")
    rows = csv.writer(table)
    rows.writerow(COLUMNS)
    rows.writerows(_row(grade, final_of(grade, finals)) for grade in latest_grades(grades))
    path = folder / FILE_NAME
    write_whole(path, table.getvalue())
    return path


def latest_grades(grades: Iterable[Grade]) -> list[Grade]:
    """Return the last grade of each student and assignment, sorted by both."""
    latest = {(grade.student, grade.assignment): grade for grade in grades}
    return sorted(latest.values(), key=lambda g: (g.student.casefold(), g.student, g.assignment))


def what_counts(folder: Path, course: Course, grades: Iterable[Grade]) -> tuple[list[Grade], dict[GradeKey, Final]]:
    """Return the effective grades of the journal in `folder`, sorted, and their final scores.

    Raises InfrastructureError if the file of submission times exists but cannot be read.
    """
    times = read_times(folder)
    counted = latest_grades(counting(course, grades, times))
    return counted, finals(course, counted, times, read_late(folder))


def final_of(grade: Grade, finals: Mapping[GradeKey, Final] | None) -> Final:
    """Return the final score of a grade; the raw score if `finals` has none."""
    return (finals or {}).get((grade.student, grade.assignment)) or Final(grade.score)


def number(value: float) -> str:
    """Format a score with at most two decimals: 12, 7.5 or 3.33."""
    return f"{round(value, 2):.10g}"


def _row(grade: Grade, final: Final) -> tuple[str, ...]:
    scores = (number(grade.score), number(grade.max_score))
    problem = harmless(grade.problem or "")
    late = f"{final.days}" if final.due and final.known else ""
    names = harmless(grade.student), harmless(grade.assignment)
    return (*names, grade.status, *scores, problem, number(final.score), late)


def harmless(text: str) -> str:
    """Escape text that a spreadsheet would evaluate as a formula with a leading apostrophe."""
    return _FORMULA.sub(r"\1'", text)
