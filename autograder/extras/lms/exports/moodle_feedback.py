"""Moodle: the zip for "Upload multiple feedback files in a zip", with a feedback page for each participant.

Moodle identifies the participant by the file's name: `Ada Lovelace_657831_assignsubmission_file_`
and the name that the student sees. The number is that of `Participant 657831` in the assignment's
grading worksheet.
"""

from pathlib import Path

from autograder.extras.lms.exports import Exported, Exporter, ExportRequest
from autograder.extras.lms.exports.moodle import the_assignment, worksheet
from autograder.extras.lms.identity import without_punctuation
from autograder.extras.lms.roster import participant
from autograder.feedback.pages import feedback_path
from autograder.text.files import zipped
from autograder.text.wording import counted_are

KIND = "_assignsubmission_file_"


class MoodleFeedbackExport(Exporter):
    """The feedback pages as a zip for Moodle."""

    def export(self, request: ExportRequest) -> Exported:
        """Write the zip; raises RefusedError without a worksheet of Moodle, or if the assignment is ambiguous."""
        assignment = the_assignment(request)
        filling, identifier, _ = worksheet(request)
        pages: dict[str, Path] = {}
        problems = []
        for grade in request.grades_of(assignment):
            row = filling.row(grade)
            page = (request.folder or Path()) / feedback_path(grade)
            number = "" if row is None else participant(filling.sheet.cell(row, identifier))
            if not number:
                problems.append(filling.why_not(grade))
            elif not page.is_file():
                problems.append(f"{page} is not there; `autograder report` makes it.")
            else:
                pages[page_name(request.name(grade.student), number, assignment.name)] = page
        if not pages:
            return Exported(
                "No file was written.", problems or ["There is no grade of this assignment."]
            )
        data = zipped((name, page.read_bytes()) for name, page in pages.items())
        path = request.write(f"moodle-feedback-{assignment.name}.zip", data, mark=KIND.encode())
        return Exported(
            f"{counted_are(len(pages), 'page')} in {path}, for Moodle's feedback files.", problems
        )


def page_name(student: str, number: str, assignment: str) -> str:
    """Return a file name in the zip; punctuation in the student's name becomes a space, as an underscore ends it."""
    words = " ".join(without_punctuation(student).split())
    return f"{words or 'Participant'}_{number}{KIND}{assignment}.html"
