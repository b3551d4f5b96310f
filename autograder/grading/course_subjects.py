"""Subjects for plain pytest in a course: the reference, or one submission in the sandbox."""

from pathlib import Path

import pytest

from autograder.bridge.outside.subject import Subject
from autograder.course.config import Assignment, Course, CourseError
from autograder.course.reading import load_course
from autograder.grading.reference import load_reference
from autograder.grading.workers import LoadedSubmission, WorkerFactory
from autograder.records import InfrastructureError, RefusedError
from autograder.submissions.files import disk_file, read_source
from autograder.suite.subjects import FilesBeside, file_beside
from autograder.walls.outside.launcher import Sandbox


class CourseSubjects(FilesBeside):
    """Finds the assignment of a test file by its folder; the subject of a released test file lies beside it."""

    def __init__(self, submission: Path | None = None, unsafe: bool = False) -> None:
        super().__init__()
        self._submission = submission
        self._unsafe = unsafe
        self._workers: WorkerFactory | None = None

    def subject(self, test_file: Path) -> Subject:
        if self._submission is None and file_beside(test_file):
            return super().subject(test_file)
        folder = test_file.parent
        if folder not in self._subjects:
            self._subjects[folder] = self._of_course(folder)
        return self._subjects[folder]

    def close(self) -> None:
        if self._workers is not None:
            self._workers.close()

    def _of_course(self, folder: Path) -> Subject:
        try:
            course = load_course(folder)
            assignment = course.assignment(folder.name)
            if self._submission is not None:
                return self._submitted(course, assignment, self._submission)
            reference = load_reference(course, assignment)
        except (CourseError, RefusedError, InfrastructureError, OSError) as error:
            raise pytest.UsageError(str(error)) from None
        return Subject(reference, reference, records=True)

    def _submitted(self, course: Course, assignment: Assignment, submission: Path) -> Subject:
        file = read_source(disk_file(submission))
        sandbox = Sandbox("unsafe" if self._unsafe else "best", hidden=course.hidden_folders)
        self._workers = WorkerFactory(
            sandbox,
            {assignment.name: load_reference(course, assignment)},
            {assignment.name: self.forbidden},
        )
        return LoadedSubmission(self._workers, assignment, file).subject()
