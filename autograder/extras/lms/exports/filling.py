"""Fill scores into the right column of a downloaded table, and leave all other cells unchanged."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autograder.extras.lms.damaged_ids import damage_of
from autograder.extras.lms.exports import Exported, ExportRequest
from autograder.extras.lms.identity import Described, Directory, Match
from autograder.extras.lms.sheet import Sheet, read_sheet
from autograder.gradebook.final_scores import final_of, number
from autograder.records import Grade, RefusedError
from autograder.text.files import check_folder, numbered, write_whole
from autograder.text.names import shown
from autograder.text.numbers import read_number
from autograder.text.wording import counted_are, listed

NO_SCORE = ("", "-")  # Moodle writes the dash


@dataclass(frozen=True)
class SheetRow:
    """What a row says of its student, and the text by which messages name the student."""

    described: Described
    shown: str


@dataclass
class Filling:
    """A sheet to fill in. `students` are the rows of students; a number counts only if the names
    match. `excused` is the text for an excused student; if it is empty, nothing is written. A text in
    place of a score, such as `EX` or `Excused`, is never replaced.
    """

    request: ExportRequest
    sheet: Sheet
    students: Mapping[int, SheetRow]
    excused: str
    problems: list[str] = field(default_factory=list)
    filled: int = 0
    changed: int = 0
    titles: list[str] = field(default_factory=list)
    missing: dict[int, list[str]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._directory = Directory[int]()
        self._matches: dict[str, dict[str, Match[int]]] = {}
        for row, student in self.students.items():
            self._directory.add(row, student.described)

    def row(self, grade: Grade) -> int | None:
        """Return the student's row if exactly one matches, and if the known names agree."""
        match = self._match(grade)
        return match.place if match else None

    def _match(self, grade: Grade) -> Match[int] | None:
        """Return the match of a grade, beside all students with grades: a name is turned round for one of them only."""
        if grade.assignment not in self._matches:
            grades = self.request.grades
            of_this = [other for other in grades if other.assignment == grade.assignment]
            grade_of_student = {other.student: other for other in [*grades, *of_this]}
            described = {
                student: self.request.described(other)
                for student, other in grade_of_student.items()
            }
            self._matches[grade.assignment] = self._directory.match_all(described)
        return self._matches[grade.assignment].get(grade.student)

    def why_not(self, grade: Grade) -> str:
        """Return the reason that a grade has no row."""
        described = self.request.described(grade)
        whose = f"{self._whose(grade)}, {grade.assignment}"
        candidates = [
            self.students[row].shown for row in sorted(self._directory.candidates(described))
        ]
        if len(candidates) > 1:
            return f"{whose}: more than one row of {self.sheet.name} fits: {listed(list(map(shown, candidates)))}."
        if not candidates:
            damage = damage_of(described, (row.described for row in self.students.values()))
            reason = f" {damage}" if damage else ""
            return f"{whose}: not found in {self.sheet.name}.{reason}"
        return (
            f"{whose}: that row of {self.sheet.name} is of {shown(candidates[0])}; nothing is written "
            "there. If both are one person, pass a roster with both names; for the work of a group, collect again with "
            "a roster that has a column `group`."
        )

    def _whose(self, grade: Grade) -> str:
        student = shown(self.request.original(grade.student))
        name = shown(next(iter(self.request.known_names(grade)), ""))
        return f"{student} ({name})" if name not in ("", student) else student

    def fill(self, grades: Sequence[Grade], column: int, most: str) -> None:
        """Write these grades of one assignment to a column; `most` is the column's notation of the maximum."""
        full = read_number(most)
        others = sorted({grade.max_score for grade in grades} - {full})
        if full == 0 and others:
            title = shown(self.sheet.header[column])
            points = " and ".join(map(number, others))
            self.remarks.append(
                f"{title} is out of 0 there, so scores out of {points} are written as they are; give it its points."
            )
        elif full is not None and others:
            title = shown(self.sheet.header[column])
            points = " and ".join(map(number, others))
            self.remarks.append(
                f"{title} is out of {number(full)} there: scores out of {points} are scaled."
            )
        grades_by_row = self._grades_by_row(grades)
        for row, grade in grades_by_row.items():
            scale = full / grade.max_score if full and grade.max_score else 1
            self._put(row, column, grade, scale, "," in most)
        title = shown(self.sheet.header[column])
        self.titles.append(title)
        for row in set(self.students) - set(grades_by_row):
            self.missing.setdefault(row, []).append(title)

    def _grades_by_row(self, grades: Sequence[Grade]) -> dict[int, Grade]:
        """Return the grade of each row; none of several that match one row, as only one of them can be its student's."""
        matching: dict[int, list[Grade]] = {}
        for grade in grades:
            match = self._match(grade)
            if match is None:
                self.problems.append(self.why_not(grade))
                continue
            matching.setdefault(match.place, []).append(grade)
            if match.turned:
                row = shown(self.students[match.place].shown)
                self.remarks.append(
                    f"{self._whose(grade)} is taken for {row}, the only one so called, turned round."
                )
        for same in matching.values():
            if len(same) > 1:
                whose = " and ".join(map(self._whose, same))
                self.problems.append(
                    f"{same[0].assignment}: {whose} match the same row of {self.sheet.name}; neither score is written."
                )
        return {row: same[0] for row, same in matching.items() if len(same) == 1}

    def _put(self, row: int, column: int, grade: Grade, scale: float, comma: bool) -> None:
        old = self.sheet.cell(row, column)
        if column >= len(self.sheet.rows[row]):
            self.problems.append(
                f"{shown(self.request.original(grade.student))}: the row in {self.sheet.name} ends before that column."
            )
            return
        if old not in NO_SCORE and read_number(old) is None:
            whose = f"{shown(self.request.original(grade.student))}, {grade.assignment}"
            self.problems.append(f"{whose}: {shown(old)} is there already and is kept.")
            return
        final = final_of(grade, self.request.finals)
        if final.excused and not self.excused:
            self.problems.append(
                f"{shown(self.request.original(grade.student))}, {grade.assignment}: excused, so no grade is written."
            )
            return
        new = self.excused if final.excused else number(final.score * scale)
        before = read_number(old)
        self.filled += 1
        if old != new and (before is None or number(before) != new):
            self.sheet.fill(row, column, new.replace(".", ",") if comma else new)
            self.changed += old not in NO_SCORE

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
            parts.append(f"Nothing was filled in for {listed(list(self._without_scores()))}.")
        return Exported(" ".join(parts), self.problems)

    def _without_scores(self) -> Iterator[str]:
        """Yield the students without a score, with the columns if there are scores in others."""
        for row in sorted(self.missing):
            student = shown(self.students[row].shown)
            some = len(self.missing[row]) < len(self.titles)
            yield f"{student} ({' and '.join(self.missing[row])})" if some else student


def open_sheet(request: ExportRequest, where: str) -> Sheet:
    """Read the downloaded sheet; raises RefusedError without one.

    `where` explains how to download it.
    """
    if request.sheet is None:
        raise RefusedError(f"Say with --sheet which file to fill: {where}")
    return read_sheet(request.sheet)


def write_beside(request: ExportRequest, sheet: Sheet) -> Path:
    """Write the filled sheet to a new file, leaving the downloaded one unchanged."""
    assert request.sheet is not None
    data = sheet.data
    path = request.output
    if path is None:
        filled = request.sheet.with_name(f"{request.sheet.stem}-filled{request.sheet.suffix}")
        path = next(
            candidate
            for candidate in numbered(filled)
            if not candidate.exists() or candidate.read_bytes() == data
        )
    elif path.exists():
        raise RefusedError(f"{path} is there already. Name another file with --output.")
    check_folder(path.parent)
    return write_whole(path, data)
