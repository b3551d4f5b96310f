"""Canvas: the gradebook of "Export Entire Gradebook", with the scores filled in, for import.

An assignment's column is named `Title (1234)`. Rows without an id, such as the row of maximum
points, belong to no student; `EX`, `Excused` and `N/A` are kept.
"""

import re
from collections.abc import Sequence

from autograder.course.config import Assignment
from autograder.extras.lms import canvas_columns
from autograder.extras.lms.exports import Exported, Exporter, ExportRequest
from autograder.extras.lms.exports.filling import Filling, SheetRow, open_sheet
from autograder.extras.lms.identity import Described, Id, plain, without_punctuation
from autograder.extras.lms.sheet import Sheet
from autograder.records import RefusedError
from autograder.text.names import shown
from autograder.text.numbers import read_number
from autograder.text.wording import listed

SITE = "canvas"
_NUMBERED = re.compile(r"(?<!\s)\s*\((\d+)\)$")


class CanvasExport(Exporter):
    """The scores in the gradebook that was downloaded from Canvas."""

    adds_hand_grading = True

    def export(self, request: ExportRequest) -> Exported:
        """Fill each assignment's column; raises RefusedError if the sheet is not a gradebook of Canvas."""
        sheet = open_sheet(request, "in Canvas, Grades → Export → Export Entire Gradebook.")
        students = _students(sheet)
        others = sorted(set(range(len(sheet.rows))) - set(students))
        filling = Filling(request, sheet, students, "EX")
        if request.column is not None and len(request.assignments) != 1:
            raise RefusedError("One column is for one assignment; say which one with --assignment.")
        for assignment in request.assignments:
            column = _column(request, sheet, assignment, filling.problems)
            if column is not None:
                cells = (sheet.cell(row, column) for row in others)
                most = next((cell for cell in cells if read_number(cell) is not None), "")
                filling.fill(request.grades_of(assignment), column, most)
                filling.problems += _not_imported(sheet, assignment, column, others)
        filling.problems += request.left_out
        return filling.finish()


def _students(sheet: Sheet) -> dict[int, SheetRow]:
    """Return the rows with an id; raises RefusedError if there are no columns of names and ids."""
    number = sheet.column(*canvas_columns.NUMBER)
    ids = [sheet.column(title) for title in canvas_columns.ID]
    names = [sheet.column(*canvas_columns.LAST), sheet.column(*canvas_columns.FIRST)]
    who = sheet.column(*canvas_columns.NAME)
    is_without_names = who is None and None in names
    is_without_ids = all(column is None for column in (number, *ids))
    if is_without_names or is_without_ids:
        raise RefusedError(
            f"{sheet.name} is not a gradebook from Canvas: it has no columns `Student` and `ID`."
        )
    students = {}
    for row in range(len(sheet.rows)):
        identities = [Id(sheet.cell(row, number), SITE)]
        identities += [Id(sheet.cell(row, column)) for column in ids]
        last_and_first = (sheet.cell(row, column) for column in names)
        name = sheet.cell(row, who) or ", ".join(filter(None, last_and_first))
        described = Described(tuple(id for id in identities if id.text), (name,))
        if described.ids:
            students[row] = SheetRow(described, name)
    return students


def _not_imported(
    sheet: Sheet, assignment: Assignment, column: int, others: Sequence[int]
) -> list[str]:
    """Return a warning if Canvas ignores the column: by its title, or as it is read-only."""
    title = sheet.header[column]
    word = next((word for word in canvas_columns.NOT_IMPORTED if word in title), None)
    if word is not None:
        return [
            f"{assignment.name}: Canvas does not import the column “{shown(title)}”, because its title contains "
            f"“{word}”. Rename the assignment in Canvas, and export the gradebook again."
        ]
    if any("read only" in sheet.cell(row, column).casefold() for row in others):
        return [
            f"{assignment.name}: Canvas does not import the column “{shown(title)}”, because it is read-only."
        ]
    return []


def _column(
    request: ExportRequest, sheet: Sheet, assignment: Assignment, problems: list[str]
) -> int | None:
    if request.column is not None:
        wanted = request.column.strip()
        header = enumerate(sheet.header)
        column = next(
            (n for n, title in header if wanted in (title, _NUMBERED.sub("", title))), None
        )
        if column is None:
            raise RefusedError(
                f"{sheet.name} has no column {shown(request.column)!r}; {_columns(sheet)}."
            )
        return column
    names = {
        comparable_title(name) for name in (assignment.name, assignment.stem, assignment.title)
    }
    numbered = [n for n, title in enumerate(sheet.header) if _NUMBERED.search(title)]
    columns = [n for n in numbered if comparable_title(_NUMBERED.sub("", sheet.header[n])) in names]
    if len(columns) == 1:
        return columns[0]
    what = "more than one column" if columns else "no column"
    problems.append(
        f"{assignment.name}: {sheet.name} has {what} of that name or “{assignment.title}”. "
        f"Say which with --assignment and --column; {_columns(sheet)}."
    )
    return None


def _columns(sheet: Sheet) -> str:
    titles = [f"“{shown(title)}”" for title in sheet.header if _NUMBERED.search(title)]
    return f"there are {listed(titles)}" if titles else "it has no column of an assignment"


def comparable_title(title: str) -> str:
    """Return the letters and numbers of a title; `01` is `1`."""
    words = re.findall(r"\d+|[^\d ]+", without_punctuation(plain(title)))
    return "".join(word.lstrip("0") if word.isdecimal() else word for word in words)
