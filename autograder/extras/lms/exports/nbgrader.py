"""Export graded submissions to nbgrader's gradebook and folders with nbgrader's own converters."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.course.config import Assignment, Course
from autograder.course.digests import submission_digest
from autograder.extras.lms.exports import Exported, Exporter, ExportRequest
from autograder.gradebook.final_scores import final_of, number
from autograder.installation.distribution import install_extra
from autograder.nbgrader.decided_points import by_part
from autograder.records import Grade, InfrastructureError, RefusedError, Submission
from autograder.submissions.files import SOURCES
from autograder.submissions.find import find_submissions
from autograder.text.names import safe_name
from autograder.text.wording import counted_are

if TYPE_CHECKING:
    from nbgrader.apps.baseapp import NbGrader

CONFIG = "nbgrader_config.py"
Work = dict[str, tuple[Submission, Grade]]  # by nbgrader's student id


class NbgraderExport(Exporter):
    """The grades in nbgrader's gradebook and folders."""

    follows_nbgrader = True

    def export(self, request: ExportRequest) -> Exported:
        """Add each grade to the gradebook if its submission is found unchanged; the others are problems."""
        course = request.course
        app = _application(course)
        submissions = request.submissions or Path(
            app.coursedir.format_path(app.coursedir.submitted_directory, ".", ".")
        )
        problems: list[str] = []
        texts = _texts(course, submissions)
        done = 0
        for assignment in request.assignments:
            work: Work = {}
            for grade in request.grades_of(assignment):
                submission = texts.get(grade.key)
                whose = f"{grade.student}, {grade.assignment}"
                if submission is None:
                    problems.append(
                        f"{whose}: the submission is not there, so the grade is not exported."
                    )
                elif submission_digest(submission) != grade.submission_sha256:
                    problems.append(
                        f"{whose}: the submission is not the one that was graded. Grade it again."
                    )
                else:
                    work[safe_name(grade.student)] = submission, by_part(grade, assignment)
                if final_of(grade, request.finals).excused:
                    problems.append(f"{whose}: nbgrader cannot excuse, and counts the score.")
            if any(grade.max_score < assignment.points for grade in request.grades_of(assignment)):
                most = number(sum(assignment.points_in_nbgrader.values()))
                problems.append(
                    f"{assignment.name}: nbgrader keeps the maximum of {most} points although a test was dropped. With "
                    "`counts: full`, the test gives its points there, too."
                )
            if work:
                _hand_in(app, assignment, work)
                done += _bring(app, assignment, work, problems)
        wanted = [
            grade for grade in request.grades if request.assignment in (None, grade.assignment)
        ]
        unknown = sum(course.find(grade.assignment) is None for grade in wanted)
        if unknown:
            for_others = counted_are(unknown, "grade")
            problems.append(f"{for_others} for assignments that are not in this course.")
        summary = f"{done} of {len(wanted)} grades are in nbgrader's gradebook."
        after = "`nbgrader formgrader` shows them, `nbgrader generate_feedback` makes pages."
        return Exported(f"{summary} {after}", problems)


def _application(course: Course) -> "NbGrader":
    try:
        from nbgrader.apps.baseapp import NbGrader
    except ModuleNotFoundError:
        missing = "nbgrader is not installed."
        raise InfrastructureError(f"{missing} Install it: {install_extra('nbgrader')}") from None
    if not (course.root / CONFIG).is_file():
        raise InfrastructureError(
            f"There is no {CONFIG} in {course.root}; `autograder new` writes one into a new course: copy it from there."
        )
    app = NbGrader(log_level=logging.ERROR)
    app.initialize([], root=str(course.root))
    return app


def _texts(course: Course, path: Path) -> dict[tuple[str, str], Submission]:
    try:
        submissions = list(find_submissions(path, course))
    except RefusedError as error:
        raise RefusedError(f"{error} Say where the submissions are with --submissions.") from None
    return {(submission.student, submission.assignment): submission for submission in submissions}


def _hand_in(app: "NbGrader", assignment: Assignment, work: Work) -> None:
    for student, (submission, _) in work.items():
        folder = Path(
            app.coursedir.format_path(app.coursedir.submitted_directory, student, assignment.name)
        )
        if submission.path is not None and submission.path.resolve() in (folder, *folder.glob("*")):
            continue
        folder.mkdir(parents=True, exist_ok=True)
        for file in folder.iterdir():
            if file.suffix in SOURCES:
                file.unlink()
        for source in submission.files:
            usual_name = f"{assignment.stem}{'.ipynb' if source.is_notebook else '.py'}"
            (folder / usual_name).write_text(source.text, encoding="utf-8", newline="")


def _bring(app: "NbGrader", assignment: Assignment, work: Work, problems: list[str]) -> int:
    from nbgrader.converters import GenerateAssignment
    from nbgrader.converters.base import NbGraderException
    from nbgrader.utils import temp_attrs

    from autograder.nbgrader.executor import FromJournal, gradebook_agrees

    with temp_attrs(app.coursedir, assignment_id=assignment.name, student_id="*"):
        try:
            if not gradebook_agrees(app, assignment):
                GenerateAssignment(coursedir=app.coursedir, parent=app, force=True).start()
            FromJournal(work, coursedir=app.coursedir, parent=app).start()
        except NbGraderException as error:
            problems.append(f"{assignment.name}: {error}")
            return 0
    return len(work)
