"""Moodle: the grading worksheet of one assignment, with the grades filled in, for upload.

Moodle identifies columns by their titles in the teacher's language and rejects rows that changed
after the download. Therefore the downloaded sheet is filled in and its dates are kept.
"""

from autograder.course.config import Assignment
from autograder.extras.lms import moodle_columns
from autograder.extras.lms.exports import Exported, Exporter, ExportRequest
from autograder.extras.lms.exports.filling import Filling, SheetRow, open_sheet
from autograder.extras.lms.identity import Described, Id
from autograder.extras.lms.roster import first_and_last, hidden_name, participant
from autograder.extras.lms.sheet import Sheet
from autograder.gradebook.table import harmless
from autograder.records import Grade, RefusedError
from autograder.text.names import shown
from autograder.text.numbers import read_number
from autograder.text.wording import listed

SITE = "moodle"


class MoodleExport(Exporter):
    """The grades in the worksheet that was downloaded from Moodle."""

    adds_hand_grading = True

    def export(self, request: ExportRequest) -> Exported:
        """Fill the column of grades; raises RefusedError if this is not a worksheet or the assignment is ambiguous."""
        filling, _, column = worksheet(request)
        sheet = filling.sheet
        assignment = the_assignment(request)
        most = _maximum(sheet, column)
        grades = _changeable(request.grades_of(assignment), filling)
        filling.fill(grades, column, most)
        _comment(grades, filling)
        return filling.finish()


def the_assignment(request: ExportRequest) -> Assignment:
    """Return the assignment of a worksheet; raises RefusedError if it is ambiguous."""
    assignments = request.assignments
    if len(assignments) != 1:
        raise RefusedError(
            "A grading worksheet is of one assignment; say which one with --assignment."
        )
    return assignments[0]


def worksheet(request: ExportRequest) -> tuple[Filling, int, int]:
    """Return the downloaded worksheet with its columns of participants and of grades; raises RefusedError without one."""
    sheet = open_sheet(
        request, "in Moodle, the assignment → Submissions → Download grading worksheet."
    )
    identifier = sheet.column(*moodle_columns.ID)
    if identifier is None:
        identifier = _column_of_participants(sheet)
    column = sheet.column(request.column) if request.column else sheet.column(*moodle_columns.GRADE)
    if identifier is None or column is None:
        titles = listed([f"`{shown(title)}`" for title in sheet.header])
        raise RefusedError(
            f"{sheet.name} is not a grading worksheet from Moodle: it has no columns `Identifier` and "
            f"`{shown(request.column or 'Grade')}`. If it is one in another language, name the column of grades with "
            f"--column; there are {titles}."
        )
    students = {
        row: _student(sheet, row, identifier)
        for row in range(len(sheet.rows))
        if sheet.cell(row, identifier)
    }
    return Filling(request, sheet, students, ""), identifier, column


def _student(sheet: Sheet, row: int, identifier: int) -> SheetRow:
    participant_cell = sheet.cell(row, identifier)
    number = participant(participant_cell)
    identifying = (moodle_columns.ID_NUMBER, moodle_columns.EMAIL, moodle_columns.USERNAME)
    keys = (sheet.cell(row, sheet.column(*titles)) for titles in identifying)
    ids = [Id(number, SITE) if number else Id(participant_cell), *map(Id, filter(None, keys))]
    who = sheet.column(*moodle_columns.NAME)
    name = sheet.cell(row, who) or first_and_last(sheet, row)
    if not name and who is None:  # of a language without a title here, or without names
        cells = (
            sheet.cell(row, column) for column in range(len(sheet.header)) if column != identifier
        )
        return SheetRow(
            Described(
                tuple(ids),
                (hidden_name(participant_cell) or participant_cell, *filter(None, cells)),
            ),
            participant_cell,
        )
    return SheetRow(Described(tuple(ids), (name,)), name)


def _column_of_participants(sheet: Sheet) -> int | None:
    """Return the first column in which every row has a word and a number, as in `Participant 17`."""
    for column in range(len(sheet.header)):
        cells = [sheet.cell(row, column) for row in range(len(sheet.rows))]
        if any(cells) and all(participant(cell) for cell in cells if cell):
            return column
    return None


def _maximum(sheet: Sheet, column: int) -> str:
    """Return the maximum grade as the worksheet writes it; raises RefusedError if it has none.

    Moodle writes it behind the grade; in a language without a title here, one number in all rows is
    the maximum.
    """
    titled = sheet.column(*moodle_columns.MAXIMUM)
    behind = column + 1 if titled is None else titled
    cells = {sheet.cell(row, behind) for row in range(len(sheet.rows))} - {""}
    title = shown(sheet.header[column])
    if len(cells) == 1 and read_number(min(cells)) is not None:
        return min(cells)
    grades = {sheet.cell(row, column) for row in range(len(sheet.rows))} - {"", "-"}
    texts = cells | grades if titled is not None else grades
    words = sorted(cell for cell in texts if any(map(str.isalpha, cell)))
    if words:
        raise RefusedError(
            f"{sheet.name}: `{title}` is a scale in words ({listed(list(map(shown, words)))}), so no score is written. "
            "Choose points as the type of the grade in the assignment's settings."
        )
    raise RefusedError(
        f"{sheet.name}: the maximum of `{title}` was not found, so no score is written. Moodle's worksheet has it in the "
        "column `Maximum grade`, right behind the grade, unless the grade is a scale in words: then choose points as the "
        "type of the grade in the assignment's settings. Download the worksheet again."
    )


def _comment(grades: list[Grade], filling: Filling) -> None:
    sheet = filling.sheet
    problems = filling.problems
    column = sheet.column(*moodle_columns.COMMENT)
    for grade in grades:
        text = filling.request.comments.get((grade.student, grade.assignment))
        row = filling.row(grade)
        if text is None or row is None:
            continue
        if column is None or column >= len(sheet.rows[row]):
            problems.append(
                f"{shown(filling.request.original(grade.student))}: {sheet.name} has no place for a comment."
            )
        elif sheet.cell(row, column) not in ("", text):
            problems.append(
                f"{shown(filling.request.original(grade.student))}: there is another comment already, which is kept."
            )
        else:
            sheet.fill(row, column, harmless(text))


def _changeable(grades: list[Grade], filling: Filling) -> list[Grade]:
    locked = filling.sheet.column(*moodle_columns.CHANGEABLE)
    if locked is None:
        return grades
    taken = []
    for grade in grades:
        row = filling.row(grade)
        if row is not None and filling.sheet.cell(row, locked).casefold() in map(
            str.casefold, moodle_columns.NEGATIVE
        ):
            filling.problems.append(
                f"{shown(filling.request.original(grade.student))}: Moodle says that this grade cannot be changed."
            )
        else:
            taken.append(grade)
    return taken
