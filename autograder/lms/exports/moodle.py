"""Moodle: the grading worksheet of one assignment, with the grades filled in, for upload.

Moodle identifies columns by their titles in the teacher's language and rejects rows that changed after the download.
Therefore the downloaded sheet is filled in and its dates are kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from autograder.course.config import Assignment
from autograder.gradebook.final_scores import harmless
from autograder.lms.exports import Exported, ExportError, ExportRequest
from autograder.lms.exports.filling import Filling, open_sheet
from autograder.lms.roster import hidden_name, participant
from autograder.lms.sheet import Sheet
from autograder.records import Grade
from autograder.text.names import shown

ID_COLUMNS = ("Identifier", "ID")
NAME_COLUMNS = ("Full name", "Vollständiger Name")
OTHER_KEYS = ("ID number", "ID-Nummer", "Email address", "E-Mail-Adresse", "Username")
GRADE_COLUMNS = ("Grade", "Bewertung")
MOST_COLUMNS = ("Maximum grade", "Bestwertung")
LOCKED_COLUMNS = ("Grade can be changed", "Bewertung kann geändert werden")
COMMENT_COLUMNS = ("Feedback comments", "Feedback als Kommentar")
NO = ("no", "nein")


def export(request: ExportRequest) -> Exported:
    """Fill the column of grades; raises ExportError if this is not a worksheet or the assignment is ambiguous."""
    rows = worksheet(request)
    assignment = the_assignment(request)
    most = next((rows.sheet.cell(r, rows.sheet.column(*MOST_COLUMNS)) for r in rows.filling.rows), "")
    grades = _changeable(request.grades_of(assignment), rows.filling, rows.sheet)
    rows.filling.fill(grades, rows.column, most)
    _comment(request, grades, rows)
    return rows.filling.finish(rows.identifier if rows.who is None else rows.who)


@dataclass(frozen=True)
class Worksheet:
    """An open worksheet with the columns that identify the student and the column of grades."""

    sheet: Sheet
    filling: Filling
    identifier: int
    who: int | None
    column: int


def the_assignment(request: ExportRequest) -> Assignment:
    """Return the assignment of a worksheet; raises ExportError if it is ambiguous."""
    assignments = request.assignments
    if len(assignments) != 1:
        raise ExportError("A grading worksheet is of one assignment; say which one with --assignment.")
    return assignments[0]


def worksheet(request: ExportRequest) -> Worksheet:
    """Read the downloaded worksheet; raises ExportError if it is not one."""
    sheet = open_sheet(request, "in Moodle, the assignment → Submissions → Download grading worksheet.")
    identifier = sheet.column(*ID_COLUMNS)
    column = sheet.column(request.column) if request.column else sheet.column(*GRADE_COLUMNS)
    if identifier is None or column is None:
        raise ExportError(
            f"{sheet.name} is not a grading worksheet from Moodle: it has no columns `Identifier` and "
            f"`{shown(request.column or 'Grade')}`. In another language, name the column of grades with --column."
        )
    who = sheet.column(*NAME_COLUMNS)
    others = [sheet.column(name) for name in OTHER_KEYS]
    keys = [n for n in (identifier, *others, who) if n is not None]
    names = range(len(sheet.header)) if who is None else [who]  # in any column if no title matches
    filling = Filling(request, sheet, range(len(sheet.rows)), keys, names, "")
    for row in filling.rows:
        told = sheet.cell(row, identifier)
        filling.also(row, participant(told), hidden_name(told))
    return Worksheet(sheet, filling, identifier, who, column)


def _comment(request: ExportRequest, grades: list[Grade], rows: Worksheet) -> None:
    """Write the instructors' comments to the column of comments; existing comments are kept."""
    column = rows.sheet.column(*COMMENT_COLUMNS)
    for grade in grades:
        text = request.comments.get((grade.student, grade.assignment))
        row = rows.filling.row(grade)
        if text is None or row is None:
            continue
        if column is None or column >= len(rows.sheet.rows[row]):
            rows.filling.problems.append(f"{shown(grade.student)}: {rows.sheet.name} has no place for a comment.")
        elif rows.sheet.cell(row, column) not in ("", text):
            rows.filling.problems.append(f"{shown(grade.student)}: there is another comment already, which is kept.")
        else:
            rows.sheet.fill(row, column, harmless(text))


def _changeable(grades: list[Grade], filling: Filling, sheet: Sheet) -> list[Grade]:
    """Return the grades that Moodle will accept, and add a problem for each of the others."""
    locked = sheet.column(*LOCKED_COLUMNS)
    if locked is None:
        return grades
    taken = []
    for grade in grades:
        row = filling.row(grade)
        if row is not None and sheet.cell(row, locked).casefold() in NO:
            filling.problems.append(f"{shown(grade.student)}: Moodle says that this grade cannot be changed.")
        else:
            taken.append(grade)
    return taken
