"""Plain folders and archives: `<student>/<assignment>/<file>` and all other layouts of `autograder grade`."""

from functools import partial
from pathlib import Path

from autograder.course.config import Course
from autograder.lms.collecting.raw_submission import Findings, RawSubmission
from autograder.submissions import find_submissions
from autograder.submissions.files import File
from autograder.text.names import shown


def read(path: Path, course: Course, assignment: str | None) -> Findings:
    """Return the submissions at a path; raises RefusedError if its layout is not understood."""
    found = Findings()
    for submission in find_submissions(path, course, assignment):
        where, name, problem = shown(submission.student), submission.assignment, submission.problem or ""
        if problem and course.find(name) is None:
            found.odd.append(f"{where}: {problem}")
            continue
        sources = (each for whole in submission.files for each in (whole, *whole.modules))
        files = tuple(File(source.name, partial(_encoded, source.text)) for source in sources)
        found.handed.append(RawSubmission((submission.student,), files, assignment=name, where=where, problem=problem))
    return found


def _encoded(text: str, limit: int) -> bytes:
    return text.encode()[: limit + 1]
