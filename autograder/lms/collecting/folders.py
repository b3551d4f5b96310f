"""Plain folders and archives: `<student>/<assignment>/<file>` and all other layouts of `autograder grade`."""

from __future__ import annotations

from pathlib import Path

from autograder.course.config import Course
from autograder.lms.collecting.raw_submission import Findings, RawSubmission
from autograder.records import Submission
from autograder.submissions import find_submissions
from autograder.submissions.files import File
from autograder.text.names import shown


def read(path: Path, course: Course, assignment: str | None) -> Findings:
    """Return the submissions at a path; raises RefusedError if its layout is not understood."""
    found = Findings()
    for submission in find_submissions(path, course, assignment):
        if submission.problem and course.find(submission.assignment) is None:
            found.odd.append(f"{shown(submission.student)}: {submission.problem}")
        else:
            found.handed.append(_handed(submission))
    return found


def _handed(submission: Submission) -> RawSubmission:
    texts = ((source.name, source.text.encode("utf-8")) for source in submission.files)
    files = tuple(File(name, lambda data=data: data) for name, data in texts)  # type: ignore[misc]
    return RawSubmission(
        (submission.student,),
        files,
        assignment=submission.assignment,
        where=shown(submission.student),
        problem=submission.problem or "",
    )
