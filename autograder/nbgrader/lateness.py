"""nbgrader's late penalties by the policy of course.yml, as in `autograder grade`."""

from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.preprocessors import AssignLatePenalties

from autograder.gradebook.decisions import lay_over, read_decisions
from autograder.gradebook.final_scores import what_counts
from autograder.gradebook.journal import Reading
from autograder.gradebook.lateness import Final, final, with_late_days
from autograder.gradebook.times import read_times
from autograder.records import Grade
from autograder.submissions.collected import read_collected


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
            (decided,) = lay_over(exporter.course, read_decisions(exporter.course), [grade])
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
        folder = Path(self.parent.folder.root) / self.parent.journal
        finals = what_counts(folder, course, Reading(folder / "grades.jsonl")).finals
        others = {key: final for key, final in finals.items() if key[0] == grade.student}
        return with_late_days(course, others | {grade.key: count})[grade.key]

    def _time(self, stamp: datetime | None, grade: Grade) -> datetime | None:
        """Return the time that counts for this work, as grading keeps it; nbgrader's own without one."""
        exporter = self.parent
        times, _ = read_times(Path(exporter.folder.root) / exporter.journal)
        if grade.attempt in times:
            return times[grade.attempt]
        if stamp is not None:
            return stamp.replace(tzinfo=timezone.utc)
        folder = exporter.folder
        submitted = Path(folder.format_path(folder.submitted_directory, ".", "."))
        collected = read_collected(submitted).get((grade.student, grade.assignment))
        return collected.moment if collected else None
