"""Which objectives each student has satisfied: a table of the parts with `satisfied_at`, as CSV and as a page."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autograder.course.config import Assignment, Part
from autograder.extras.lms.exports import Exported, Exporter, ExportRequest
from autograder.feedback.pages import write_page
from autograder.gradebook.final_scores import final_of
from autograder.gradebook.table import csv_lines, harmless
from autograder.records import Grade, RefusedError, total
from autograder.text.files import check_file, marked
from autograder.text.wording import counted, counted_are

TEMPLATES = Path(__file__).parents[1] / "templates"
MARK = "<title>Satisfied · ".encode()  # identifies a page written by an earlier export
SATISFIED = "satisfied"
NOT_YET = "not yet"


@dataclass(frozen=True)
class Objective:
    """A part, and the share of its points from which on it is satisfied."""

    assignment: Assignment
    part: Part
    least: float

    @property
    def title(self) -> str:
        return f"{self.assignment.title}: {self.part.title}"

    def state(self, grade: Grade) -> str:
        """Return whether a grade satisfies it, by the points of its tests and the decisions about them."""
        tests = [test for test in grade.tests if test.part == self.part.name]
        maximum = total(test.max_score for test in tests)
        reached = total(test.score for test in tests)
        return SATISFIED if maximum and reached >= total([self.least * maximum]) else NOT_YET


@dataclass(frozen=True)
class Row:
    """A student with the state of each objective; empty without a submission."""

    student: str
    name: str
    states: tuple[str, ...]

    @property
    def count(self) -> str:
        """`3 of 8`: excused ones are left out."""
        asked = [state for state in self.states if state != "excused"]
        return f"{asked.count(SATISFIED)} of {len(asked)}"


class SatisfiedExport(Exporter):
    """Objectives by student in place of points."""

    def export(self, request: ExportRequest) -> Exported:
        """Write `satisfied.csv` and a page beside it; raises RefusedError if no part has `satisfied_at`."""
        objectives = list(_objectives(request))
        if not objectives:
            raise RefusedError(
                "No part of these assignments has `satisfied_at` in course.yml, such as `satisfied_at: 0.8`."
            )
        rows = _rows(request, objectives)
        titles = ["student", "name", *(objective.title for objective in objectives), "satisfied"]
        cells = (
            [harmless(row.student), harmless(row.name), *row.states, row.count] for row in rows
        )
        table = csv_lines([[harmless(title) for title in titles]], cells)
        page = (request.output or Path("satisfied.csv")).with_suffix(".html")
        check_file(page, "`export`", marked(MARK))
        path = request.write("satisfied.csv", table, mark=b"student,name,")
        write_page(
            page,
            "satisfied.html.j2",
            TEMPLATES,
            course=request.course.title,
            objectives=objectives,
            rows=rows,
        )
        request.written.append(page)
        places = f"{path} and {page}, with {counted(len(objectives), 'objective')}."
        return Exported(f"{counted_are(len(rows), 'student')} in {places}", request.left_out)


def _objectives(request: ExportRequest) -> Iterator[Objective]:
    for assignment in request.assignments:
        for part in assignment.parts:
            least = part.satisfied_at or assignment.satisfied_at
            if least is not None:
                yield Objective(assignment, part, least)


def _rows(request: ExportRequest, objectives: list[Objective]) -> list[Row]:
    grades = {grade.key: grade for grade in request.wanted}
    graded = {student for student, _ in grades}
    absent = request.absent(graded)
    students = sorted({*graded, *absent}, key=lambda student: (student.casefold(), student))
    rows = []
    for student in students:
        states = [_state(request, grades, student, objective) for objective in objectives]
        name = absent.get(student) or request.name(student)
        rows.append(Row(request.original(student), name, tuple(states)))
    return rows


def _state(
    request: ExportRequest, grades: dict[tuple[str, str], Grade], student: str, objective: Objective
) -> str:
    key = (student, objective.assignment.name)
    final = request.finals.get(key)
    if final is not None and final.excused:
        return "excused"
    grade = grades.get(key)
    if grade is None:
        return ""
    final = final_of(grade, request.finals)
    counts_nothing = bool(final.raw) and not final.score
    return NOT_YET if counts_nothing else objective.state(grade)
