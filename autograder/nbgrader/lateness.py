"""nbgrader's late penalties by the policy of course.yml, as in `autograder grade`."""

from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.preprocessors import AssignLatePenalties

from autograder.gradebook.decisions import lay_over
from autograder.gradebook.lateness import Final, final, with_late_days
from autograder.records import Grade


class LatePenalties(AssignLatePenalties):
    """nbgrader's AssignLatePenalties by the policy of course.yml; without a policy or due date, the original applies."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Store the deduction for lateness in the gradebook, and return the notebook unchanged."""
        exporter = self.parent
        about = resources["nbgrader"]
        if exporter.course.late is None or exporter.assignment.due is None:
            return super().preprocess(nb, resources)
        name = about["assignment"]
        student = about["student"]
        with Gradebook(about["db_url"]) as gradebook:
            stamp = gradebook.find_submission(name, student).timestamp
            notebook = gradebook.find_submission_notebook(about["notebook"], name, student)
            grade = replace(exporter.grades[student], score=notebook.score)
            (decided,) = lay_over(exporter.course, exporter.decisions, [grade])
            count = final(exporter.course, grade, self._time(stamp, grade), decided.made)
            count = self._with_late_days(grade, count)
            notebook.late_submission_penalty = count.minus or None
            gradebook.db.commit()
        if not count.known:
            self.log.warning("%s: the submission time is unknown, so nothing is deducted.", student)
        elif count.days:
            self.log.warning("%s: %s.", student, count.sentence)
        return nb, resources

    def _with_late_days(self, grade: Grade, count: Final) -> Final:
        """Return the final score after the late days that the student's other work in the journal leaves."""
        course = self.parent.course
        if course.late is None or course.late.free_days is None:
            return count
        others = self.parent.finals.get(grade.student, {})
        return with_late_days(course, others | {grade.key: count})[grade.key]

    def _time(self, stamp: datetime | None, grade: Grade) -> datetime | None:
        """Return the time that counts for this work, as grading keeps it; nbgrader's own without one."""
        exporter = self.parent
        if grade.attempt in exporter.times:
            moment: datetime = exporter.times[grade.attempt]
            return moment
        if stamp is not None:
            return stamp.replace(tzinfo=timezone.utc)
        collected = exporter.collected.get(grade.key)
        return collected.moment if collected else None
