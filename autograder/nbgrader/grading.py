"""Grade a class before nbgrader writes its notebooks, which show the grades and the pictures of failing parts."""

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType

from autograder.course.digests import submission_digest, suite_digest
from autograder.feedback.painter import draw_pictures
from autograder.gradebook.decisions import lay_over, read_decisions
from autograder.gradebook.journal import Journal
from autograder.gradebook.run_state import OpenRun
from autograder.gradebook.texts import StoredSubmission
from autograder.nbgrader.decided_points import by_part
from autograder.records import Grade, Submission
from autograder.runs.pool import Plan
from autograder.runs.run import grade_class


def grade_all(
    plan: Plan,
    submissions: Mapping[str, Submission],
    run: OpenRun,
    journal: Journal,
    log: logging.Logger,
    pictures: bool = False,
) -> dict[str, Grade]:
    """Return the grades of a class for one assignment, by student, after the decisions.

    `plan` is for that assignment alone, and the texts are stored in the journal's folder. Unchanged
    submissions are not graded again. A student whom the machine failed has no grade, and the log
    has the reason. With `pictures`, those of failing parts are drawn behind the wall. Raises
    CourseError or InfrastructureError if nothing can be graded.
    """
    course = plan.course
    decisions = read_decisions(plan.course)
    grades = dict[str, Grade]()
    (assignment,) = course.select(plan.names)
    suite = suite_digest(course, assignment)

    def enter(grade: Grade) -> None:
        (decided,) = lay_over(course, decisions, [grade])
        grades[grade.student] = by_part(decided.grade, assignment)

    def tell(grade: Grade) -> None:
        log.info("%s: %g of %g points", grade.student, grade.score, grade.max_score)
        enter(grade)

    due = []
    for student, submission in submissions.items():
        digest = submission_digest(submission)
        if journal.holds(submission, digest, suite):
            enter(journal.latest[student, assignment.name])
        else:
            due.append(StoredSubmission(submission, digest))
    graded_before = len(grades)
    plan = plan.for_submissions(len(due))
    try:
        with nothing_to_import(), run, journal:
            for failure in grade_class(plan, due, journal, tell).failures:
                log.error("Not graded: %s", failure)
            if pictures:
                for problem in draw_pictures(
                    plan, journal.path.parent, grades.values(), lambda *_: None
                ):
                    log.warning("No picture: %s", problem)
    except Exception as error:
        if due and len(grades) == graded_before:
            raise
        log.error("The grader has ended: %s", error)
    return grades


@contextmanager
def nothing_to_import() -> Iterator[None]:
    """Prevent processes started in this context from importing the main module of the command.

    Importing nbgrader or a Jupyter server takes a grader longer than grading ten submissions.
    """
    command = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = command
