"""`nbgrader autograde` for this course: students' code runs in the sandbox, graded as by `autograder grade`."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from fnmatch import fnmatch
from functools import cached_property
from glob import glob
from pathlib import Path
from typing import Any

import nbgrader.converters.base
from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters import Autograde
from nbgrader.converters.base import BaseConverter
from nbgrader.preprocessors import NbGraderPreprocessor, SaveAutoGrades
from nbgrader.utils import find_all_files, is_ignored
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError
from traitlets import Bool, Integer, Unicode

from autograder.course.config import Assignment, CourseError
from autograder.course.document import load_document
from autograder.course.notebook import to_notebook
from autograder.feedback.record import PageRecords
from autograder.gradebook import texts
from autograder.gradebook.decisions import Entry, read_decisions
from autograder.gradebook.final_scores import ClassList, Effective, what_counts
from autograder.gradebook.journal import FILE_NAME, Journal, Reading
from autograder.gradebook.lateness import Attempt, Final, GradeKey
from autograder.gradebook.run_state import OpenRun
from autograder.gradebook.times import keep_times, read_names, read_stamp, read_times
from autograder.nbgrader.converter import enter_due, first_and_last, open_course, refusal
from autograder.nbgrader.graded_notebook import show_grade, submitted_notebook
from autograder.nbgrader.grading import grade_all
from autograder.nbgrader.settings import upgrade_hint
from autograder.records import Grade, InfrastructureError, RefusedError, Submission
from autograder.runs.pool import Plan
from autograder.submissions.below import files_below
from autograder.submissions.choose import submission_of, wanted_of
from autograder.submissions.collected import Collected, read_collected
from autograder.submissions.files import DiskFolder
from autograder.text.names import safe_name, shown


class GradedExporter(NotebookExporter):
    """An exporter that gives nbgrader a student's notebook as text, with the course's own test cells."""

    journal = Unicode("grades", help="The folder with grades.jsonl, in the course's folder.").tag(
        config=True
    )
    pictures = Bool(True, help="Draw the pictures of failing parts into the notebooks.").tag(
        config=True
    )
    jobs = Integer(os.cpu_count() or 1, help="How many graders work at once.").tag(config=True)

    def __init__(self, config: Any = None, **kwargs: Any) -> None:
        super().__init__(config=config, **kwargs)
        converter: Any = kwargs.get("parent")
        self.converter = converter
        self.folder = converter.coursedir
        self.course, self.assignment = open_course(self.converter)
        try:
            self.release = to_notebook(
                self.assignment, load_document(self.course, self.assignment).stub
            )
        except CourseError as error:
            raise refusal(converter, str(error)) from None
        name = self.assignment.name
        if not gradebook_agrees(converter, self.assignment):
            sentence = (
                f"The gradebook does not have {name} with the parts and points of course.yml."
            )
            raise refusal(converter, f"{sentence} First: nbgrader generate_assignment {name}")
        self.begin()
        self.records = PageRecords(self._folder_of_journal, self.course)
        self._enter_names()

    def from_filename(self, filename: str, resources: Any = None, **kwargs: Any) -> Any:
        """Return the restored notebook: built from the submission first, then from nbgrader's folder."""
        student = resources["nbgrader"]["student"]
        if Path(filename).parent != self._submitted(student):
            return super().from_filename(filename, resources, **kwargs)
        submission = self.submissions[student]
        notebook = submitted_notebook(
            self.assignment, self.release, submission.files, submission.problem
        )
        return self.from_notebook_node(notebook, resources, **kwargs)

    def begin(self) -> None:
        """Read and grade the submissions that nbgrader will process; raises NbGraderException."""
        folder = self._folder_of_journal
        try:
            around = self._submitted(".").parent
            folders = {
                student: DiskFolder(self._submitted(student), around) for student in self._due()
            }
            wanted = wanted_of(self.course, self.assignment.name)
            self.submissions = {
                who: submission_of(who, wanted, [folder]) for who, folder in folders.items()
            }
            run = OpenRun(folder)
            journal = Journal(folder)
            stored = texts.put(folder, self.submissions.values())
            keep_times(folder, around, stored, trust_timestamps=True, course=self.course)
            plan = Plan(self.course, run.seed, "best", self.jobs, (self.assignment.name,))
            self.grades = grade_all(
                plan, self.submissions, run, journal, self.converter.log, self.pictures
            )
        except (CourseError, InfrastructureError, RefusedError) as error:
            raise refusal(self.converter, str(error)) from None

    @cached_property
    def decisions(self) -> tuple[Entry, ...]:
        """The decisions of the course."""
        return read_decisions(self.course)

    @cached_property
    def times(self) -> Mapping[Attempt, datetime]:
        """The times of hand-in beside the journal."""
        times, _ = read_times(self._folder_of_journal)
        return times

    @cached_property
    def collected(self) -> Mapping[GradeKey, Collected]:
        """What a collector noted of the submissions."""
        return read_collected(self._submitted(".").parent)

    @cached_property
    def finals(self) -> dict[str, dict[GradeKey, Final]]:
        """The final scores in the journal by student; it is complete before nbgrader asks for the first."""
        folder = self._folder_of_journal
        finals: dict[str, dict[GradeKey, Final]] = {}
        counts = what_counts(folder, self.course, Reading(folder / FILE_NAME))
        for key, final in counts.finals.items():
            finals.setdefault(key[0], {})[key] = final
        return finals

    def _enter_names(self) -> None:
        names = {
            safe_name(student): name
            for student, name in read_names(self._folder_of_journal).items()
        }
        with Gradebook(self.folder.db_url, self.folder.course_id) as gradebook:
            enter_due(gradebook, self.course, self.assignment)
            for identity in sorted(names.keys() & self.submissions.keys()):
                student = gradebook.update_or_create_student(identity)
                if not student.first_name and not student.last_name:
                    student.first_name, student.last_name = first_and_last(names[identity])
            gradebook.db.commit()

    @property
    def _folder_of_journal(self) -> Path:
        return Path(self.folder.root) / self.journal

    def _due(self) -> Iterator[str]:
        excluded = self.folder.student_id_exclude.split(",")
        for folder in sorted(self.converter.assignments):
            student = Path(folder).parent.name
            if student not in excluded and self._is_due(student):
                yield student

    def _is_due(self, student: str) -> bool:
        place = self.folder.format_path(
            self.folder.autograded_directory, student, self.assignment.name
        )
        if self.converter.force or not os.path.exists(
            os.path.join(place, f"{self.assignment.stem}.ipynb")
        ):
            return True
        new = self.folder.get_existing_timestamp(str(self._submitted(student)))
        old = self.folder.get_existing_timestamp(place)
        return new is not None and old is not None and new > old

    def _submitted(self, student: str) -> Path:
        return Path(
            self.folder.format_path(self.folder.submitted_directory, student, self.assignment.name)
        )


def take_every_folder(converter: Any) -> None:
    """Make nbgrader process each student's folder once, whatever the names of its files.

    nbgrader itself searches for notebooks, and a submission of a `.py` has none.
    """
    folder = converter.coursedir
    converter.assignments = {}
    converter.notebooks = []
    if issubclass(converter.exporter_class, GradedExporter):
        _, assignment = open_course(converter)
        if fnmatch(assignment.stem, folder.notebook_id):
            read_through_the_gate(folder)
            pattern = folder.format_path(
                folder.submitted_directory, folder.student_id, assignment.name
            )
            places = [place for place in glob(pattern) if _is_folder_of_student(converter, place)]
            converter.assignments = {
                place: [f"{place}/{assignment.stem}.ipynb"] for place in places
            }
    if not converter.assignments:
        BaseConverter.init_notebooks(converter)  # logs the patterns that it searched for


Autograde.init_notebooks = take_every_folder


def read_through_the_gate(folder: Any) -> None:
    """Make nbgrader read and copy only regular files of students; `folder` is its CourseDirectory.

    nbgrader itself waits for pipes, follows links and ends at the first invalid `timestamp.txt`.
    """

    def files_to_copy(path: str, exclude: Sequence[str] = ()) -> list[str]:
        if not Path(path).is_relative_to(folder.format_path(folder.submitted_directory, ".", ".")):
            return list(find_all_files(path, list(exclude)))
        files = []
        for file in files_below(DiskFolder(Path(path)), []):
            with suppress(RefusedError):
                file.read()
                files.append(str(file.path))
        return [file for file in files if not is_ignored(file, list(exclude))]

    def stamp(path: str) -> datetime | None:
        moment = read_stamp(Path(path))
        return moment and moment.astimezone(timezone.utc).replace(tzinfo=None)

    nbgrader.converters.base.find_all_files = files_to_copy
    folder.get_existing_timestamp = stamp


def _is_folder_of_student(converter: Any, place: str) -> bool:
    student = os.path.dirname(place)
    if (
        os.path.islink(place)
        or os.path.islink(student)
        or not os.path.basename(student).isprintable()
    ):
        converter.log.error("%s is a link or has an odd name, so it is not graded.", shown(place))
        return False
    return os.path.isdir(place)


class FromJournal(Autograde):
    """nbgrader's Autograde for students with existing grades only."""

    def __init__(self, work: dict[str, tuple[Submission, Grade]], **kwargs: Any) -> None:
        super().__init__(force=True, exporter_class=KnownGrades, **kwargs)
        self.work = work

    def init_notebooks(self) -> None:
        """Select one notebook for each student."""
        course, assignment = open_course(self)
        folders = (self._format_source(assignment.name, student) for student in self.work)
        self.assignments = {
            folder: [os.path.join(folder, f"{assignment.stem}.ipynb")] for folder in folders
        }


class KnownGrades(GradedExporter):
    """A source of existing grades."""

    def begin(self) -> None:
        self.submissions = {
            student: submission for student, (submission, _) in self.converter.work.items()
        }
        self.grades = {student: grade for student, (_, grade) in self.converter.work.items()}


class ShowGrade(NbGraderPreprocessor):
    """A replacement for nbgrader's Execute that writes the grader's results to the test cells."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Return the notebook with feedback and scores; raises InfrastructureError if the machine failed."""
        exporter = self.parent
        student = resources["nbgrader"]["student"]
        grade = exporter.grades.get(student)
        if grade is None:
            raise InfrastructureError(
                f"{student} could not be graded; see above. This is not a score."
            )
        counted = Effective([grade], {}, [], ClassList())
        show_grade(nb, exporter.assignment, exporter.records.page(grade, counted, scores=True))
        return nb, resources


class SaveGrades(SaveAutoGrades):
    """nbgrader's SaveAutoGrades: a refused submission needs grading by hand, so that formgrader does not hide it."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Save the scores, and return the notebook unchanged."""
        nb, resources = super().preprocess(nb, resources)
        about = resources["nbgrader"]
        grade = self.parent.grades[about["student"]]
        if grade.status == "refused":
            with Gradebook(about["db_url"]) as gradebook:
                saved = gradebook.find_submission_notebook(
                    about["notebook"], about["assignment"], about["student"]
                )
                for cell in saved.grades:
                    cell.needs_manual_grade = True
                gradebook.db.commit()
        return nb, resources


def gradebook_agrees(owner: Any, assignment: Assignment) -> bool:
    """Whether the gradebook has the assignment with the parts and points of course.yml.

    `owner` is a command or converter of nbgrader. Raises NbGraderException if the gradebook cannot
    be opened.
    """
    url = owner.coursedir.db_url
    try:
        with Gradebook(url, owner.coursedir.course_id) as gradebook:
            notebook = gradebook.find_notebook(assignment.stem, assignment.name)
            maxima = {cell.name: cell.max_score for cell in notebook.grade_cells}
    except MissingEntry:
        return False
    except (SQLAlchemyError, ModuleNotFoundError) as error:
        reason = str(error).strip().split("\n")[0]
        sentence = f"The gradebook {_address(url)} cannot be used: {reason}"
        raise refusal(owner, f"{sentence}.{upgrade_hint(error)}") from None
    return maxima == assignment.points_in_nbgrader


def _address(url: str) -> str:
    try:
        return make_url(url).render_as_string(hide_password=True)
    except SQLAlchemyError:
        return "of that address"
