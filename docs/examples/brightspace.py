"""Grades for Brightspace, whose columns are called `Username` and `03_masked_heads Points Grade`."""

from autograder.extras.lms.exports import Exported, Exporter, ExportRequest
from autograder.gradebook.final_scores import final_of, number
from autograder.gradebook.table import csv_lines


class BrightspaceExport(Exporter):
    adds_hand_grading = True  # points that were entered in nbgrader's formgrader count

    def export(self, request: ExportRequest) -> Exported:
        names = [assignment.name for assignment in request.assignments]
        scores: dict[str, dict[str, str]] = {}
        for grade in request.wanted:
            final = final_of(grade, request.finals)
            scores.setdefault(grade.student, {})[grade.assignment] = (
                "" if final.excused else number(final.score)
            )
        rows = [["Username", *(f"{name} Points Grade" for name in names), "End-of-Line Indicator"]]
        for student, by_assignment in sorted(scores.items()):
            cells = [by_assignment.get(name, "") for name in names]
            rows.append([request.original(student), *cells, "#"])
        path = request.write("brightspace.csv", csv_lines(rows), mark=b"Username,")
        return Exported(
            f"{len(scores)} students in {path}, for the import of Brightspace.", request.left_out
        )
