"""One table of the class: a row for each student, a column for each assignment, and the sum."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from autograder.gradebook.final_scores import harmless, number
from autograder.lms.exports import Exported, ExportRequest
from autograder.lms.exports.filling import write
from autograder.text.wording import counted_are

FILE_NAME = "scores.csv"


def export(request: ExportRequest) -> Exported:
    """Write the table; a cell is empty where nothing was handed in."""
    assignments = request.assignments
    names = {a.name for a in assignments}
    scores = {(g.student, g.assignment): request.score(g) for g in request.grades if g.assignment in names}
    students = sorted({student for student, _ in scores}, key=lambda name: (name.casefold(), name))
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(["student", "name", *(a.name for a in assignments), "total"])
    rows.writerow(
        [
            "",
            "points possible",
            *(number(a.points) for a in assignments),
            number(sum(a.points for a in assignments)),
        ]
    )
    for student in students:
        own = [scores.get((student, a.name)) for a in assignments]
        cells = ["" if score is None else number(score) for score in own]
        people = [harmless(student), harmless(request.name(student))]
        rows.writerow([*people, *cells, number(sum(score for score in own if score is not None))])
    path = request.output or Path(FILE_NAME)
    write(path, text.getvalue().encode("utf-8", "replace"), mark=b"student,name,")
    return Exported(f"{counted_are(len(students), 'student')} in {path}.", request.left_out)
