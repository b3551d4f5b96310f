"""`nbgrader autograde` for this course: the students' code runs in our sandbox, graded as `autograder grade` does.

`GradedExporter` grades all submissions that nbgrader is about to process, several at once, and keeps the results in
the journal; what the journal holds already is not graded again. nbgrader's own preprocessors then read the scores
from the notebook that is made here, and write its gradebook.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatch
from glob import glob
from pathlib import Path
from types import ModuleType
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters import Autograde
from nbgrader.preprocessors import NbGraderPreprocessor
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError
from traitlets import Integer, Unicode

from autograder.authoring.build import to_notebook
from autograder.authoring.document import load_document
from autograder.cohort import grade_class
from autograder.course import Assignment, Course, CourseError
from autograder.digests import submission_digest, suite_digest
from autograder.exports.graded_notebook import show_grade, submitted_notebook
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
        converter: Any = kwargs.get("parent")
        self.converter, self.folder = converter, converter.coursedir
        self.course, self.assignment = open_course(self.converter)
        self.release = _release(self.converter, self.course, self.assignment)
        self._check_gradebook()
        self.submissions, self.grades = self.graded()

    def from_filename(self, filename: str, resources: Any = None, **kwargs: Any) -> Any:
        """First the submitted notebook, restored; then, from nbgrader's own folder, the restored one again."""
        student = resources["nbgrader"]["student"]
        if Path(filename).parent != self._submitted(student):
            return super().from_filename(filename, resources, **kwargs)
        submission = self.submissions[student]
        notebook = submitted_notebook(self.assignment, self.release, submission.files, submission.problem)
        return self.from_notebook_node(notebook, resources, **kwargs)

    def graded(self) -> tuple[dict[str, Submission], dict[str, Grade]]:
        """The submissions that nbgrader is about to process and their grades, by student.

        Raises NbGraderException when the course cannot be graded at all.
        """
        self._take_every_folder()
        submissions = {
            student: read_submission(self._submitted(student), self.course, self.assignment, student)
            for student in self._due()
        }
        with Journal(Path(self.folder.root) / self.journal) as journal:
            return submissions, self._grade(submissions, journal)

    def _grade(self, submissions: dict[str, Submission], journal: Journal) -> dict[str, Grade]:
        """The grades by student, without those that the machine could not give."""
        name = self.assignment.name
        suite = suite_digest(self.course, self.assignment)
        grades = {
            student: journal.latest[student, name]
            for student, submission in submissions.items()
            if journal.holds(student, name, submission_digest(submission), suite)
        }
        plan = Plan(self.course, run_seed(journal), "best", self.jobs, (name,))

        def tell(grade: Grade | None) -> None:
            if grade is not None:
                grades[grade.student] = grade
                self.converter.log.info("%s: %g of %g points", grade.student, grade.score, grade.max_score)

        try:
            with nothing_to_import():
                outcome = grade_class(plan, submissions.values(), journal, tell)
        except (CourseError, InfrastructureError) as error:
            raise refusal(self.converter, str(error)) from None
        for failure in outcome.failures:
            self.converter.log.error("Not graded: %s", failure)
        return grades

    def _check_gradebook(self) -> None:
        if not gradebook_agrees(self.converter, self.assignment):
            name = self.assignment.name
            raise refusal(
                self.converter,
                f"The gradebook does not have {name} with the parts and points of course.yml. "
                f"First: nbgrader generate_assignment {name}",
            )

    def _take_every_folder(self) -> None:
        """Let nbgrader process each student's folder once, whatever the files in it are called."""
        name, stem = self.assignment.name, self.assignment.stem
        folders = glob(self.folder.format_path(self.folder.submitted_directory, self.folder.student_id, name))
        if fnmatch(stem, self.folder.notebook_id):
            self.converter.assignments = {
                folder: [os.path.join(folder, f"{stem}.ipynb")] for folder in folders if os.path.isdir(folder)
            }

    def _due(self) -> Iterator[str]:
        """The students whose submissions nbgrader will not skip as done already."""
        excluded = self.folder.student_id_exclude.split(",")
        for folder in sorted(self.converter.assignments):
            student = Path(folder).parent.name
            if student not in excluded and self._is_due(student):
                yield student

    def _is_due(self, student: str) -> bool:
        place = self.folder.format_path(self.folder.autograded_directory, student, self.assignment.name)
        if self.converter.force or not os.path.exists(os.path.join(place, f"{self.assignment.stem}.ipynb")):
            return True
        new = self.folder.get_existing_timestamp(str(self._submitted(student)))
        old = self.folder.get_existing_timestamp(place)
        return new is not None and old is not None and new > old

    def _submitted(self, student: str) -> Path:
        return Path(self.folder.format_path(self.folder.submitted_directory, student, self.assignment.name))


class FromJournal(Autograde):
    """nbgrader's Autograde for grades that are known already, and for nobody else."""

    def __init__(self, work: dict[str, tuple[Submission, Grade]], **kwargs: Any) -> None:
        super().__init__(force=True, exporter_class=KnownGrades, **kwargs)
        self.work = work

    def init_notebooks(self) -> None:
        """One notebook for each student of the work."""
        course, assignment = open_course(self)
        folders = (self._format_source(assignment.name, student) for student in self.work)
        self.assignments = {folder: [os.path.join(folder, f"{assignment.stem}.ipynb")] for folder in folders}


class KnownGrades(GradedExporter):
    """Shows grades that are known already."""

    def graded(self) -> tuple[dict[str, Submission], dict[str, Grade]]:
        work = self.converter.work.items()
        return {name: pair[0] for name, pair in work}, {name: pair[1] for name, pair in work}


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


@contextmanager
def nothing_to_import() -> Iterator[None]:
    """Processes that start meanwhile do not import the command that started them.

    All of nbgrader, or of a Jupyter server, takes each grader longer to import than a class of ten to grade.
    """
    command = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = command


def read_submission(folder: Path, course: Course, assignment: Assignment, student: str) -> Submission:
    """The submission in a student's folder; one that cannot be used has a problem, as in `find_submissions`."""
    try:
        found = next(iter(find_submissions(folder, course, assignment.name)))
    except SubmissionsError as error:
        return Submission(student, assignment.name, problem=str(error), path=folder)
    return replace(found, student=student, assignment=assignment.name)


def run_seed(journal: Journal) -> int:
    """The seed of the run that is in the journal, or a fresh secret one."""
    return next(reversed(journal.latest.values())).seed if journal.latest else secrets.randbits(31)


def gradebook_agrees(owner: Any, assignment: Assignment) -> bool:
    """Whether the gradebook has the assignment with the parts and points of course.yml.

    `owner` is a command or converter of nbgrader; raises NbGraderException when there is no way to the gradebook.
    """
    url = owner.coursedir.db_url
    try:
        with Gradebook(url, owner.coursedir.course_id) as gradebook:
            notebook = gradebook.find_notebook(assignment.stem, assignment.name)
            known = {cell.name: cell.max_score for cell in notebook.grade_cells}
    except MissingEntry:
        return False
    except (SQLAlchemyError, ModuleNotFoundError) as error:
        reason = str(error).strip().split("\n")[0]
        raise refusal(owner, f"The gradebook {_address(url)} cannot be used: {reason}") from None
    return known == {part.name: part.points for part in assignment.parts}


def _address(url: str) -> str:
    """A database's address without its password."""
    try:
        return make_url(url).render_as_string(hide_password=True)
    except SQLAlchemyError:
        return "of that address"


def _release(converter: Any, course: Course, assignment: Assignment) -> NotebookNode:
    try:
        return to_notebook(assignment, load_document(course, assignment).stub)
    except CourseError as error:
        raise refusal(converter, str(error)) from None
