"""One table of the class: a row per student, a column per assignment, and the total."""

from collections.abc import Mapping

from autograder.course.config import Assignment, WrittenAnswer
from autograder.extras.lms.exports import Exported, Exporter, ExportRequest
from autograder.gradebook.final_scores import final_of, number, points_of
from autograder.gradebook.lateness import GradeKey
from autograder.gradebook.table import csv_lines, harmless
from autograder.text.names import shown
from autograder.text.wording import counted_are, listed


class TableExport(Exporter):
    """A table of the class as CSV."""

    adds_hand_grading = True

    def export(self, request: ExportRequest) -> Exported:
        """Write the table; a cell without a submission is empty.

        With a roster, every student in it has a row.
        """
        table = _Table(request)
        path = request.write("scores.csv", csv_lines(table.rows()), mark=b"student,name,")
        summary = f"{counted_are(len(table.students), 'student')} in {path}."
        if table.absent:
            people = [shown(name or student) for student, name in table.absent.items()]
            summary += f" No work of {listed(people)} was graded."
        return Exported(summary, request.left_out)


class _Table:
    """The rows of a class; `absent` are the names of students in the roster without a grade, by id."""

    def __init__(self, request: ExportRequest) -> None:
        names = {assignment.name for assignment in request.assignments}
        self._request = request
        self._grades = {grade.key: grade for grade in request.wanted}
        self._excused = {
            key for key, final in request.finals.items() if final.excused and key[1] in names
        }
        self._comments = _comments(request, names)
        self._late_days = {
            student: f"{final.left}"
            for (student, _), final in request.finals.items()
            if final.left is not None
        }
        self._answers = {
            assignment.name: _answers(request, assignment) for assignment in request.assignments
        }
        graded = {student for student, _ in (*self._grades, *self._excused)}
        self.absent = request.absent(graded)
        self.students = sorted(
            {*graded, *self.absent}, key=lambda student: (student.casefold(), student)
        )

    def rows(self) -> list[list[str]]:
        """Return the titles, the points possible, and a row for each student."""
        rows = [self._titles(), self._points_possible()]
        rows += [self._row(student) for student in self.students]
        return rows

    def _titles(self) -> list[str]:
        titles = ["student", "name"]
        for name, answers in self._answers.items():
            titles.append(name)
            titles += [f"{name}: {answer.name}" for answer in answers]
        titles.append("total")
        titles += ["late days left"] if self._late_days else []
        return [*titles, "comments"] if self._comments else titles

    def _points_possible(self) -> list[str]:
        cells = ["", "points possible"]
        total = 0.0
        for assignment in self._request.assignments:
            points = points_of(assignment, self._request.grades, self._request.finals)
            total += points
            cells.append(number(points))
            cells += [number(answer.points) for answer in self._answers[assignment.name]]
        return [*cells, number(total)]

    def _row(self, student: str) -> list[str]:
        name = self.absent.get(student) or self._request.name(student)
        cells = [harmless(self._request.original(student)), harmless(name)]
        total = 0.0
        for assignment, answers in self._answers.items():
            key = (student, assignment)
            score = self._score(key)
            total += score or 0.0
            cells.append("excused" if key in self._excused else _number_or_nothing(score))
            points_of_answers = self._request.answers.get(key, {})
            cells += [_cell(points_of_answers, answer.name) for answer in answers]
        cells.append(number(total))
        cells += [self._late_days.get(student, "")] if self._late_days else []
        return [*cells, harmless(self._comments.get(student, ""))] if self._comments else cells

    def _score(self, key: GradeKey) -> float | None:
        grade = self._grades.get(key)
        return None if grade is None else final_of(grade, self._request.finals).score


def _number_or_nothing(score: float | None) -> str:
    return "" if score is None else number(score)


def _answers(request: ExportRequest, assignment: Assignment) -> tuple[WrittenAnswer, ...]:
    """Return the written answers of an assignment if nbgrader's gradebook has some of them."""
    return assignment.answers if assignment.name in {name for _, name in request.answers} else ()


def _cell(given: Mapping[str, float | None], answer: str) -> str:
    if answer not in given:
        return ""
    points = given[answer]
    return "waits" if points is None else number(points)


def _comments(request: ExportRequest, names: set[str]) -> dict[str, str]:
    by_student: dict[str, list[str]] = {}
    for (student, assignment), comment in sorted(request.comments.items()):
        if assignment in names:
            by_student.setdefault(student, []).append(f"{assignment}: {comment}")
    return {student: "\n".join(comments) for student, comments in by_student.items()}
