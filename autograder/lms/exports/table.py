"""One table of the class: a row per student, a column per assignment, and the total."""

from autograder.gradebook.final_scores import answer_points, csv_lines, final_of, harmless, number, points_of
from autograder.lms.exports import Exported, ExportRequest
from autograder.records import Grade
from autograder.text.names import shown
from autograder.text.wording import counted_are, listed


def export(request: ExportRequest) -> Exported:
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
    for assignment in assignments:
        titles += [assignment.name, *(f"{assignment.name}: {answer.name}" for answer in assignment.answers)]
    titles.append("total")
    rows = [[*titles, "comments"] if comments else titles]
    points = [points_of(assignment, request.grades, request.finals) for assignment in assignments]
    most = [c for a, p in zip(assignments, points) for c in (number(p), *(number(one.points) for one in a.answers))]
    rows.append(["", "points possible", *most, number(sum(points))])
    for student in students:
        cells, total = [], 0.0
        for a in assignments:
            grade, is_excused = grades.get(student, {}).get(a.name), (student, a.name) in excused
            score = final_of(grade, request.finals).score if grade else 0.0
            total += score
            cells.append("excused" if is_excused else number(score) if grade else "")
            cells += answer_points(grade, [one.name for one in a.answers])
        people = [harmless(request.original(student)), harmless(absent.get(student) or request.name(student))]
        row = [*people, *cells, number(total)]
        rows.append([*row, harmless(comments.get(student, ""))] if comments else row)
    path = request.write("scores.csv", csv_lines(rows), mark=b"student,name,")
    summary = f"{counted_are(len(students), 'student')} in {path}."
    if absent:
        summary += f" No work of {listed([shown(name or student) for student, name in absent.items()])} was graded."
    return Exported(summary, request.left_out)


def _comments(request: ExportRequest, names: set[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for (student, assignment), comment in sorted(request.comments.items()):
        if assignment in names:
            found.setdefault(student, []).append(f"{assignment}: {comment}")
    return {student: "\n".join(comments) for student, comments in found.items()}
