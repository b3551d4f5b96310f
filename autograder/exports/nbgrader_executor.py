"""`nbgrader autograde` for this course: the students' code runs in our sandbox, graded as `autograder grade` does.

`GradedExporter` grades all submissions that nbgrader is about to process, several at once, and keeps the results in
the journal; what the journal holds already is not graded again. nbgrader's own preprocessors then read the scores
from the notebook that is made here, and write its gradebook.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatch
from glob import glob
from pathlib import Path
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters.base import BaseConverter
from nbgrader.preprocessors import NbGraderPreprocessor
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError
from traitlets import Integer, Unicode

from autograder.authoring.build import to_notebook
from autograder.authoring.document import load_document
from autograder.cohort import grade_class
from autograder.course import Assignment, CourseError
from autograder.exports.graded_notebook import part_score, show_grade, submitted_notebook
from autograder.exports.nbgrader_release import open_course, refusal
from autograder.journal import Journal
from autograder.pool import Plan
from autograder.records import Grade, InfrastructureError, Submission
from autograder.submissions import SubmissionsError, find_submissions


class GradedExporter(NotebookExporter):
    """Stands where nbgrader reads a submitted notebook: gives it as text, with the course's own test cells."""

    journal = Unicode("grades", help="The folder with grades.jsonl, in the course's folder.").tag(config=True)
    jobs = Integer(os.cpu_count() or 1, help="How many graders work at once.").tag(config=True)

    def __init__(self, config: Any = None, **kwargs: Any) -> None:
        super().__init__(config=config, **kwargs)
        self.course, self.assignment = open_course(self.parent)
        self.folder = self.parent.coursedir
        self._check_gradebook()
        self.release = self._release()
        self._take_every_folder()
        self.submissions = {student: self._submission(student) for student in self._due()}
        self.grades = self.grade(list(self.submissions.values()))

    def from_filename(self, filename: str, resources: Any = None, **kwargs: Any) -> tuple[str, Any]:
        """First the submitted notebook, restored; then, from nbgrader's own folder, the restored one again."""
        student = resources["nbgrader"]["student"]
        if Path(filename).parent != self._submitted(student):
            return super().from_filename(filename, resources, **kwargs)
        submission = self.submissions[student]
        notebook = submitted_notebook(self.assignment, self.release, submission.files, submission.problem)
        return self.from_notebook_node(notebook, resources, **kwargs)

    def grade(self, submissions: list[Submission]) -> dict[str, Grade]:
        """The grades by student; raises NbGraderException when the course cannot be graded at all."""
        with Journal(Path(self.folder.root) / self.journal) as journal:
            plan = Plan(self.course, run_seed(journal), "best", self.jobs, (self.assignment.name,))
            try:
                outcome = grade_class(plan, submissions, journal, self._tell)
            except (CourseError, InfrastructureError) as error:
                raise refusal(self.parent, str(error)) from None
            for failure in outcome.failures:
                self.parent.log.error("Not graded: %s", failure)
            return {
                name: journal.latest[name, self.assignment.name]
                for name in (submission.student for submission in submissions)
                if (name, self.assignment.name) in journal.latest
            }

    def _tell(self, grade: Grade | None) -> None:
        if grade is not None:
            self.parent.log.info("%s: %g of %g points", grade.student, grade.score, grade.max_score)

    def _release(self) -> NotebookNode:
        try:
            return to_notebook(self.assignment, load_document(self.course, self.assignment).stub)
        except CourseError as error:
            raise refusal(self.parent, str(error)) from None

    def _check_gradebook(self) -> None:
        """The gradebook must know the parts and their points as course.yml has them."""
        known = _known_points(self.parent, self.assignment)
        name = self.assignment.name
        if known is None:
            raise refusal(
                self.parent,
                f"The gradebook has no {name} yet. First: nbgrader generate_assignment {name} --force",
            )
        if known != {part.name: part.points for part in self.assignment.parts}:
            raise refusal(
                self.parent,
                f"course.yml has other parts or points for {name} than the gradebook. "
                f"First: nbgrader generate_assignment {name} --force",
            )

    def _take_every_folder(self) -> None:
        """Let nbgrader process each student's folder once, under the assignment's notebook, whatever files are there."""
        name = self.assignment.name
        folders = glob(self.folder.format_path(self.folder.submitted_directory, self.folder.student_id, name))
        if fnmatch(self.assignment.stem, self.folder.notebook_id):
            self.parent.assignments = {
                folder: [os.path.join(folder, f"{self.assignment.stem}.ipynb")]
                for folder in folders
                if os.path.isdir(folder)
            }

    def _due(self) -> Iterable[str]:
        """The students whose submissions nbgrader will not skip as done already."""
        excluded = self.folder.student_id_exclude.split(",")
        for folder in self.parent.assignments:
            student = Path(folder).parent.name
            if student not in excluded and self._is_due(student):
                yield student

    def _is_due(self, student: str) -> bool:
        place = self.folder.format_path(self.folder.autograded_directory, student, self.assignment.name)
        if self.parent.force or not os.path.exists(place):
            return True
        new = self.folder.get_existing_timestamp(str(self._submitted(student)))
        old = self.folder.get_existing_timestamp(place)
        is_complete = os.path.exists(os.path.join(place, f"{self.assignment.stem}.ipynb"))
        return not is_complete or (new is not None and old is not None and new > old)

    def _submitted(self, student: str) -> Path:
        return Path(self.folder.format_path(self.folder.submitted_directory, student, self.assignment.name))

    def _submission(self, student: str) -> Submission:
        """What lies in the student's folder, read as `autograder grade` reads it."""
        return read_submission(self._submitted(student), self.course, self.assignment, student)


class ShowGrade(NbGraderPreprocessor):
    """In place of nbgrader's Execute: writes what the grader found into the test cells."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """The notebook with feedback and scores; raises InfrastructureError when the machine could not grade it."""
        exporter, student = self.parent, resources["nbgrader"]["student"]
        grade = exporter.grades.get(student)
        if grade is None:
            raise InfrastructureError(f"{student} could not be graded; see above. This is not a score.")
        show_grade(nb, exporter.assignment, grade)
        return nb, resources


def read_submission(folder: Path, course: Any, assignment: Assignment, student: str) -> Submission:
    """The submission in a student's folder; one that cannot be used has a problem, as in `find_submissions`."""
    try:
        found = next(iter(find_submissions(folder, course, assignment.name)))
    except SubmissionsError as error:
        return Submission(student, assignment.name, problem=str(error), path=folder)
    return replace(found, student=student, assignment=assignment.name)


def run_seed(journal: Journal) -> int:
    """The seed of the run that is in the journal, or a fresh secret one."""
    return next(reversed(journal.latest.values())).seed if journal.latest else secrets.randbits(31)


def _known_points(converter: BaseConverter, assignment: Assignment) -> dict[str, float] | None:
    """The gradebook's parts and points of an assignment; None when it has no such assignment."""
    url = converter.coursedir.db_url
    try:
        with Gradebook(url, converter.coursedir.course_id) as gradebook:
            notebook = gradebook.find_notebook(assignment.stem, assignment.name)
            return {cell.name: cell.max_score for cell in notebook.grade_cells}
    except MissingEntry:
        return None
    except (SQLAlchemyError, ModuleNotFoundError) as error:
        reason = str(error).strip().split("\n")[0]
        shown = make_url(url).render_as_string(hide_password=True)
        raise refusal(converter, f"The gradebook {shown} cannot be used: {reason}") from None


__all__ = ["GradedExporter", "ShowGrade", "part_score", "read_submission", "run_seed"]
