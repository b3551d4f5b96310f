"""One table of the class: a row per student, a column per assignment, and the total."""

from collections.abc import Mapping

from autograder.course.config import Assignment, WrittenAnswer
from autograder.extras.lms.exports import Exported, Exporter, ExportRequest
from autograder.gradebook.final_scores import csv_lines, final_of, harmless, number, points_of
from autograder.records import Grade
from autograder.text.names import shown
from autograder.text.wording import counted_are, listed


class TableExport(Exporter):
    """A table of the class as CSV."""

    adds_hand_grading = True

    def export(self, request: ExportRequest) -> Exported:
        """Write the table; a cell without a submission is empty. With a roster, every student in it has a row."""
        assignments = request.assignments
        names = {a.name for a in assignments}
        grades: dict[str, dict[str, Grade]] = {}
        for one in request.wanted:
            grades.setdefault(one.student, {})[one.assignment] = one
        excused = {place for place, final in request.finals.items() if final.excused and place[1] in names}
        graded = {*grades, *(student for student, _ in excused)}
        absent = request.absent(graded)
        students = sorted({*graded, *absent}, key=lambda name: (name.casefold(), name))
        comments = _comments(request, names)
        titles = ["student", "name"]
        most = ["", "points possible"]
        possible = 0.0
        answers = {assignment.name: _answers(request, assignment) for assignment in assignments}
        for assignment in assignments:
            points = points_of(assignment, request.grades, request.finals)
            possible += points
            titles += [assignment.name, *(f"{assignment.name}: {answer.name}" for answer in answers[assignment.name])]
            most += [number(points), *(number(answer.points) for answer in answers[assignment.name])]
        titles.append("total")
        rows = [[*titles, "comments"] if comments else titles]
        rows.append([*most, number(possible)])
        for student in students:
            cells, total = [], 0.0
            for a in assignments:
                grade, is_excused = grades.get(student, {}).get(a.name), (student, a.name) in excused
                score = final_of(grade, request.finals).score if grade else 0.0
                total += score
                cells.append("excused" if is_excused else number(score) if grade else "")
                given = request.answers.get((student, a.name), {})
                cells += [_cell(given, answer.name) for answer in answers[a.name]]
            people = [harmless(request.original(student)), harmless(absent.get(student) or request.name(student))]
            row = [*people, *cells, number(total)]
            rows.append([*row, harmless(comments.get(student, ""))] if comments else row)
        path = request.write("scores.csv", csv_lines(rows), mark=b"student,name,")
        summary = f"{counted_are(len(students), 'student')} in {path}."
        if absent:
            summary += f" No work of {listed([shown(name or student) for student, name in absent.items()])} was graded."
        return Exported(summary, request.left_out)


def _answers(request: ExportRequest, assignment: Assignment) -> tuple[WrittenAnswer, ...]:
    """Return the written answers of an assignment if nbgrader's gradebook has some of them."""
    return assignment.answers if assignment.name in {name for _, name in request.answers} else ()


def _cell(given: Mapping[str, float | None], answer: str) -> str:
    if answer not in given:
        return ""
    points = given[answer]
    return "waits" if points is None else number(points)


def _comments(request: ExportRequest, names: set[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for (student, assignment), comment in sorted(request.comments.items()):
        if assignment in names:
            found.setdefault(student, []).append(f"{assignment}: {comment}")
    return {student: "\n".join(comments) for student, comments in found.items()}
