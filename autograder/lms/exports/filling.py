"""Scores put into the table that an instructor downloaded: into the right column, and nothing else is touched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autograder.gradebook.final_scores import number
from autograder.lms.exports import Exported, ExportError, ExportRequest
from autograder.lms.roster import Directory
from autograder.lms.sheet import Sheet, read_sheet
from autograder.records import Grade
from autograder.text.files import check_file, check_folder, marked, write_whole
from autograder.text.names import shown
from autograder.text.wording import counted_are, listed

_NUMBER = re.compile(r"-?\d+([.,]\d+)?")


@dataclass
class Filling:
    """A sheet while it is filled. `keys` are the columns that tell whose a row is, the surest first."""

    request: ExportRequest
    sheet: Sheet
    rows: Sequence[int]
    keys: Sequence[int]
    kept: Sequence[str] = ()
    problems: list[str] = field(default_factory=list)
    filled: int = 0
    changed: int = 0
    missing: set[int] = field(default_factory=set)
    remarks: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._students = Directory()
        for row in self.rows:
            self._students.add(row, [self.sheet.cell(row, column) for column in self.keys])

    def also(self, row: int, *keys: str) -> None:
        """Further texts that tell whose a row is."""
        self._students.add(row, keys)

    def row(self, grade: Grade) -> int | None:
        """The row of the student, if exactly one fits."""
        return self._students.find(self.request.keys(grade.student))

    def fill(self, grades: Sequence[Grade], column: int, most: str) -> None:
        """Put these grades, all of one assignment, into a column whose maximum the sheet writes as `most`."""
        full = _read_number(most)
        points = grades[0].max_score if grades else 0
        if full is not None and grades and full != points:
            title = shown(self.sheet.header[column])
            self.remarks.append(
                f"{title} is out of {number(full)} there: scores out of {number(points)} are scaled."
            )
        found: dict[int, Grade] = {}
        for grade in grades:
            row = self.row(grade)
            if row is None:
                self.problems.append(
                    f"{shown(grade.student)}, {grade.assignment}: not found in {self.sheet.name}."
                )
            elif row in found:
                whose = f"{shown(grade.student)} and {shown(found[row].student)}"
                self.problems.append(f"{grade.assignment}: {whose} are the same row of {self.sheet.name}.")
            else:
                found[row] = grade
        for row, grade in found.items():
            self._put(row, column, grade, (full or points) / points if points else 1, "," in most)
        self.missing |= set(self.rows) - set(found)

    def _put(self, row: int, column: int, grade: Grade, scale: float, comma: bool) -> None:
        old = self.sheet.cell(row, column)
        if column >= len(self.sheet.rows[row]):
            self.problems.append(
                f"{shown(grade.student)}: the row in {self.sheet.name} ends before that column."
            )
            return
        if old and old in self.kept:
            self.problems.append(f"{shown(grade.student)}, {grade.assignment}: {old} stands there and stays.")
            return
        new = number(self.request.score(grade) * scale)
        before = _read_number(old)
        if before is not None and number(before) == new:
            self.filled += 1
            return
        self.sheet.fill(row, column, new.replace(".", ",") if comma else new)
        self.filled += 1
        self.changed += bool(old)

    def finish(self, who: int) -> Exported:
        """Write the filled sheet beside the one that was downloaded; `who` is the column with names.

        Where nothing was filled, nothing is written, and that is a problem.
        """
        if not self.filled:
            problems = self.problems or [f"There is no grade for {self.sheet.name}."]
            return Exported("Nothing was filled in, and no file was written.", problems)
        path = write_beside(self.request, self.sheet)
        parts = [f"{counted_are(self.filled, 'score')} in {path}."]
        if self.changed:
            parts.append(f"{self.changed} of them took the place of another.")
        parts += self.remarks
        if self.missing:
            names = [shown(self.sheet.cell(row, who)) for row in sorted(self.missing)]
            parts.append(f"Nothing was filled in for {listed(names, '; ')}.")
        return Exported(" ".join(parts), self.problems)


def is_number(text: str) -> bool:
    """Whether a cell is a number, with a point or a comma."""
    return _read_number(text) is not None


def open_sheet(request: ExportRequest, where: str) -> Sheet:
    """The sheet that was downloaded; raises ExportError when there is none. `where` says how to get it."""
    if request.sheet is None:
        raise ExportError(f"Say with --sheet which file to fill: {where}")
    return read_sheet(request.sheet)


def write_beside(request: ExportRequest, sheet: Sheet) -> Path:
    """Write what was filled into a file that is not there yet; what was downloaded stays as it is."""
    assert request.sheet is not None
    path, data = request.output or _filled(request.sheet), sheet.data
    if request.output is None:
        number = 1
        while path.exists() and path.read_bytes() != data:
            number += 1
            path = _filled(request.sheet, f"-{number}")
    elif path.exists():
        raise ExportError(f"{path} is there already. Name another file with --output.")
    check_folder(path.parent)
    write_whole(path, data)
    return path


def write(path: Path, data: bytes, mark: bytes) -> None:
    """Write a file and the folders on the way; one that is there gives way when an earlier export wrote its `mark`.

    Raises Refused where it cannot be written.
    """
    check_file(path, "`export`", marked(mark))
    write_whole(path, data)


def _filled(sheet: Path, ending: str = "") -> Path:
    return sheet.with_name(f"{sheet.stem}-filled{ending}{sheet.suffix}")


def _read_number(text: str) -> float | None:
    plain = text.strip()
    return float(plain.replace(",", ".")) if _NUMBER.fullmatch(plain) else None
