"""Fill scores into the right column of a downloaded table, and leave all other cells unchanged."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autograder.gradebook.final_scores import final_of, number
from autograder.lms.exports import Exported, ExportRequest
from autograder.lms.roster import Directory
from autograder.lms.sheet import Sheet, read_sheet
from autograder.records import Grade, RefusedError
from autograder.text.files import check_folder, numbered, write_whole
from autograder.text.names import shown
from autograder.text.wording import counted_are, listed

_NUMBER = re.compile(r"-?\d+([.,]\d+)?")


@dataclass
class Filling:
    """A sheet to fill in. `keys` are the columns that identify a student, most reliable first; `names` are those
    with students' names: a number counts only if the names match. `who` is the column to show in messages. `excused` is
    the text for an excused student; if it is empty, nothing is written.
    """

    request: ExportRequest
    sheet: Sheet
    rows: Sequence[int]
    keys: Sequence[int]
    names: Sequence[int]
    who: int
    excused: str
    kept: Sequence[str] = ()
    problems: list[str] = field(default_factory=list)
    filled: int = 0
    changed: int = 0
    missing: set[int] = field(default_factory=set)
    remarks: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.students = Directory[int]()
        for row in self.rows:
            keys, names = ([self.sheet.cell(row, n) for n in columns] for columns in (self.keys, self.names))
            self.students.add(row, keys, names)

    def row(self, grade: Grade) -> int | None:
        """Return the student's row if exactly one matches, and if the known names agree."""
        return self.students.find(self.request.keys(grade.student), self.request.known_names(grade))

    def why_not(self, grade: Grade) -> str:
        """Return the reason that a grade has no row."""
        name = next(iter(self.request.known_names(grade)), "")
        whose = shown(grade.student) + (f" ({shown(name)})" if name not in ("", grade.student) else "")
        other = self.students.find(self.request.keys(grade.student))
        if other is None:
            return f"{whose}, {grade.assignment}: not found in {self.sheet.name}."
        there = next(filter(None, (self.sheet.cell(other, n) for n in (*self.names, *self.keys))), "")
        return (
            f"{whose}, {grade.assignment}: that row of {self.sheet.name} is of {shown(there)}; nothing is written "
            "there. If both are one person, pass a roster with both names; for the work of a group, collect again with "
            "a roster that has a column `group`."
        )

    def fill(self, grades: Sequence[Grade], column: int, most: str) -> None:
        """Write these grades of one assignment to a column; `most` is the column's notation of the maximum."""
        full = read_number(most)
        others = sorted({grade.max_score for grade in grades} - {full})
        if full is not None and others:
            title = shown(self.sheet.header[column])
            points = " and ".join(map(number, others))
            self.remarks.append(f"{title} is out of {number(full)} there: scores out of {points} are scaled.")
        found: dict[int, Grade] = {}
        for grade in grades:
            row = self.row(grade)
            if row is None:
                self.problems.append(self.why_not(grade))
            elif row in found:
                whose = f"{shown(grade.student)} and {shown(found[row].student)}"
                self.problems.append(f"{grade.assignment}: {whose} match the same row of {self.sheet.name}.")
            else:
                found[row] = grade
        for row, grade in found.items():
            scale = full / grade.max_score if full and grade.max_score else 1
            self._put(row, column, grade, scale, "," in most)
        self.missing |= set(self.rows) - set(found)

    def _put(self, row: int, column: int, grade: Grade, scale: float, comma: bool) -> None:
        old = self.sheet.cell(row, column)
        if column >= len(self.sheet.rows[row]):
            self.problems.append(f"{shown(grade.student)}: the row in {self.sheet.name} ends before that column.")
            return
        if old and old in self.kept:
            self.problems.append(f"{shown(grade.student)}, {grade.assignment}: {old} is there already and is kept.")
            return
        final = final_of(grade, self.request.finals)
        if final.excused and not self.excused:
            self.problems.append(f"{shown(grade.student)}, {grade.assignment}: excused, so no grade is written.")
            return
        new = self.excused if final.excused else number(final.score * scale)
        before = read_number(old)
        self.filled += 1
        if old != new and (before is None or number(before) != new):
            self.sheet.fill(row, column, new.replace(".", ",") if comma else new)
            self.changed += bool(old)

    def finish(self) -> Exported:
        """Write the filled sheet beside the downloaded one; without a filled cell, write nothing and report a problem."""
        if not self.filled:
            problems = self.problems or [f"There is no grade for {self.sheet.name}."]
            return Exported("Nothing was filled in, and no file was written.", problems)
        path = write_beside(self.request, self.sheet)
        parts = [f"{counted_are(self.filled, 'score')} in {path}."]
        if self.changed:
            parts.append(f"{self.changed} of them replaced another score.")
        parts += self.remarks
        if self.missing:
            names = [shown(self.sheet.cell(row, self.who)) for row in sorted(self.missing)]
            parts.append(f"Nothing was filled in for {listed(names, '; ')}.")
        return Exported(" ".join(parts), self.problems)


def read_number(text: str) -> float | None:
    """Return a cell's number, with a decimal point or comma; None if it holds none."""
    plain = text.strip()
    return float(plain.replace(",", ".")) if _NUMBER.fullmatch(plain) else None


def open_sheet(request: ExportRequest, where: str) -> Sheet:
    """Read the downloaded sheet; raises RefusedError without one. `where` explains how to download it."""
    if request.sheet is None:
        raise RefusedError(f"Say with --sheet which file to fill: {where}")
    return read_sheet(request.sheet)


def write_beside(request: ExportRequest, sheet: Sheet) -> Path:
    """Write the filled sheet to a new file, leaving the downloaded one unchanged."""
    assert request.sheet is not None
    data, path = sheet.data, request.output
    if path is None:
        filled = request.sheet.with_name(f"{request.sheet.stem}-filled{request.sheet.suffix}")
        path = next(each for each in numbered(filled) if not each.exists() or each.read_bytes() == data)
    elif path.exists():
        raise RefusedError(f"{path} is there already. Name another file with --output.")
    check_folder(path.parent)
    return write_whole(path, data)
