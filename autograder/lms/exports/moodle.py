"""Moodle: the grading worksheet of one assignment, with the grades filled in, for upload.

Moodle identifies columns by their titles in the teacher's language and rejects rows that changed after the download.
Therefore the downloaded sheet is filled in and its dates are kept.
"""

from autograder.course.config import Assignment
from autograder.gradebook.final_scores import harmless
from autograder.lms.exports import Exported, ExportRequest
from autograder.lms.exports.filling import Filling, open_sheet
from autograder.lms.roster import hidden_name, participant
from autograder.lms.sheet import titles
from autograder.records import Grade, RefusedError
from autograder.text.names import shown

COLUMNS = titles("moodle")
NO = ("no", "nein")


def export(request: ExportRequest) -> Exported:
    """Fill the column of grades; raises RefusedError if this is not a worksheet or the assignment is ambiguous."""
    filling, _, column = worksheet(request)
    sheet, assignment = filling.sheet, the_assignment(request)
    most = next((sheet.cell(row, sheet.column(*COLUMNS["most"])) for row in filling.rows), "")
    grades = _changeable(request.grades_of(assignment), filling)
    filling.fill(grades, column, most)
    _comment(grades, filling)
    return filling.finish()


def the_assignment(request: ExportRequest) -> Assignment:
    """Return the assignment of a worksheet; raises RefusedError if it is ambiguous."""
    assignments = request.assignments
    if len(assignments) != 1:
        raise RefusedError("A grading worksheet is of one assignment; say which one with --assignment.")
    return assignments[0]


def worksheet(request: ExportRequest) -> tuple[Filling, int, int]:
    """Return the downloaded worksheet with its columns of participants and of grades; raises RefusedError without one."""
    sheet = open_sheet(request, "in Moodle, the assignment → Submissions → Download grading worksheet.")
    identifier = sheet.column(*COLUMNS["id"])
    column = sheet.column(request.column) if request.column else sheet.column(*COLUMNS["grade"])
    if identifier is None or column is None:
        raise RefusedError(
            f"{sheet.name} is not a grading worksheet from Moodle: it has no columns `Identifier` and "
            f"`{shown(request.column or 'Grade')}`. In another language, name the column of grades with --column."
        )
    who = sheet.column(*COLUMNS["name"])
    others = [sheet.column(name) for name in COLUMNS["other_keys"]]
    keys = [n for n in (identifier, *others, who) if n is not None]
    names = range(len(sheet.header)) if who is None else [who]  # in any column if no title matches
    filling = Filling(request, sheet, range(len(sheet.rows)), keys, names, identifier if who is None else who, "")
    for row in filling.rows:
        told = sheet.cell(row, identifier)
        filling.students.add(row, [participant(told)], [hidden_name(told)])
    return filling, identifier, column


def _comment(grades: list[Grade], filling: Filling) -> None:
    sheet, problems = filling.sheet, filling.problems
    column = sheet.column(*COLUMNS["comment"])
    for grade in grades:
        text = filling.request.comments.get((grade.student, grade.assignment))
        row = filling.row(grade)
        if text is None or row is None:
            continue
        if column is None or column >= len(sheet.rows[row]):
            problems.append(f"{shown(grade.student)}: {sheet.name} has no place for a comment.")
        elif sheet.cell(row, column) not in ("", text):
            problems.append(f"{shown(grade.student)}: there is another comment already, which is kept.")
        else:
            sheet.fill(row, column, harmless(text))


def _changeable(grades: list[Grade], filling: Filling) -> list[Grade]:
    locked = filling.sheet.column(*COLUMNS["changeable"])
    if locked is None:
        return grades
    taken = []
    for grade in grades:
        row = filling.row(grade)
        if row is not None and filling.sheet.cell(row, locked).casefold() in NO:
            filling.problems.append(f"{shown(grade.student)}: Moodle says that this grade cannot be changed.")
        else:
            taken.append(grade)
    return taken
