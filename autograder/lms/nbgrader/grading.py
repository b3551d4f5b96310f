"""Grade a class in the background while nbgrader writes the first notebooks."""

import logging
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import replace
from types import ModuleType

from autograder.course.digests import submission_digest, suite_digest
from autograder.feedback.painter import draw_pictures
from autograder.gradebook.decisions import lay_over, read_decisions
from autograder.gradebook.journal import Journal
from autograder.gradebook.run_state import OpenRun
from autograder.grading.pool import Plan
from autograder.grading.run import grade_class
from autograder.lms.nbgrader.by_hand import by_part
from autograder.records import Grade, Submission

WORTH_ANOTHER = 8  # starting a grader takes about as long as grading this many submissions


class BackgroundRun:
    """The grades of a class for one assignment: existing grades at once, others as soon as they are finished.

    `plan` is for that assignment alone; `submissions` are by student, in the order in which their grades will be
    requested. With `pictures`, those of failing parts are drawn behind the wall, after all submissions were graded.
    Raises CourseError or InfrastructureError if nothing can be graded.
    """

    def __init__(
        self,
        plan: Plan,
        submissions: dict[str, Submission],
        run: OpenRun,
        journal: Journal,
        log: logging.Logger,
        pictures: bool = False,
    ) -> None:
        self._run, self._journal, self._log, self._pictures = run, journal, log, pictures
        self.drawn = threading.Event()  # set once all pictures are drawn, or none will be
        self._decisions = read_decisions(plan.course)
        self._grades: dict[str, Future[Grade | None]] = {student: Future() for student in submissions}
        suite = suite_digest(plan.course, *plan.course.select(plan.names))
        self._due = [s for s in submissions.values() if not self._is_known(s, suite)]
        self._plan = replace(plan, jobs=min(plan.jobs, 1 + len(self._due) // WORTH_ANOTHER))
        news = [grade for grade in self._grades.values() if not grade.done()]
        threading.Thread(target=self._grade_all, name="grading").start()
        for first in wait(news, return_when=FIRST_COMPLETED).done:
            first.result()

    def grade(self, student: str) -> Grade | None:
        """Wait for a student's grade after the decisions; None if the machine failed, with the reason in the log."""
        grade, course = self._grades[student].result(), self._plan.course
        decided = lay_over(course, self._decisions, [grade] if grade else [], folder=self._journal.path.parent)
        return by_part(decided[0].grade, course.assignment(decided[0].grade.assignment)) if decided else None

    def _is_known(self, submission: Submission, suite: str) -> bool:
        if not self._journal.holds(submission, submission_digest(submission), suite):
            return False
        known = self._journal.latest[submission.student, submission.assignment]
        self._grades[submission.student].set_result(known)
        return True

    def _grade_all(self) -> None:
        problem: BaseException | None = None
        try:
            with nothing_to_import(), self._run, self._journal:
                outcome = grade_class(self._plan, self._while_wanted(), self._journal, self._tell)
                for failure in outcome.failures:
                    self._log.error("Not graded: %s", failure)
                if self._pictures and threading.main_thread().is_alive():
                    self._draw()
        except BaseException as error:  # raised again for the waiting caller, including KeyboardInterrupt
            problem = error
            self._log.error("The grader has ended: %s", error)
        for grade in self._grades.values():
            if grade.done():
                continue
            if problem is None:
                grade.set_result(None)
            else:
                grade.set_exception(problem)
        self.drawn.set()

    def _draw(self) -> None:
        for grade in (future for future in self._grades.values() if not future.done()):
            grade.set_result(None)
        grades = (self.grade(student) for student in self._grades)
        folder = self._journal.path.parent
        for problem in draw_pictures(self._plan, folder, filter(None, grades), lambda *_: None):
            self._log.warning("No picture: %s", problem)

    def _while_wanted(self) -> Iterator[Submission]:
        for submission in self._due:
            if not threading.main_thread().is_alive():
                return
            yield submission

    def _tell(self, grade: Grade) -> None:
        self._log.info("%s: %g of %g points", grade.student, grade.score, grade.max_score)
        self._grades[grade.student].set_result(grade)


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
