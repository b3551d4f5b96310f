"""Who is tested when a suite runs with plain pytest: the reference, one submission, or the file beside the tests."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from autograder.course.config import Assignment, Course, CourseError, load_course
from autograder.proxy.local import LocalStudent, load_file
from autograder.proxy.subject import Subject, uses_in
from autograder.records import InfrastructureError, RefusedError, SourceFile
from autograder.suite.plugin import SubjectProvider


def load_reference(course: Course, assignment: Assignment) -> LocalStudent:
    """The solution as a module; raises CourseError when it does not run, InfrastructureError when it cannot here."""
    import_needed(assignment)
    path = course.solution_file(assignment)
    try:
        reference = load_file(path, f"reference_{assignment.stem}")
    except OSError as error:
        raise CourseError(f"The solution of {assignment.name} cannot be read: {error}.") from None
    if reference.load_error is not None:
        raise CourseError(f"The solution of {assignment.name} does not run: {reference.load_error}.")
    return reference


def import_needed(assignment: Assignment) -> None:
    """Import here, too, what submissions find imported; raises InfrastructureError when it is not installed."""
    for module in assignment.preload:
        try:
            importlib.import_module(module)
        except ImportError as error:
            package = module.partition(".")[0]
            raise InfrastructureError(
                f"{assignment.name} needs {package}, which cannot be imported here ({error}). "
                f"Install it: pip install {package}"
            ) from None


class CourseSubjects(SubjectProvider):
    """Finds the assignment of a test file by its folder; scenes are kept for the whole session."""

    def __init__(self, submission: Path | None = None, unsafe: bool = False) -> None:
        self._submission = submission
        self._unsafe = unsafe
        self._subjects: dict[Path, Subject] = {}
        self._workers: Any = None

    def subject(self, test_file: Path) -> Subject:
        folder = test_file.parent
        if folder not in self._subjects:
            self._subjects[folder] = self._make(test_file)
        return self._subjects[folder]

    def is_for(self, test_file: Path) -> bool:
        """Whether a test file belongs to the assignment of the submission."""
        if self._submission is None:
            return True
        return test_file.parent.name.partition("_")[2] == self._submission.stem

    def close(self) -> None:
        if self._workers is not None:
            self._workers.close()

    def _make(self, test_file: Path) -> Subject:
        beside = test_file.with_name(test_file.name.removeprefix("test_"))
        if beside != test_file and beside.is_file() and self._submission is None:
            student = load_file(beside)
            return Subject(student, None, uses_in(beside.read_text("utf-8-sig"), beside.name))
        try:
            course = load_course(test_file)
            assignment = course.assignment(test_file.parent.name)
            reference = load_reference(course, assignment)
            if self._submission is not None:
                return self._submitted(course, assignment)
        except (CourseError, RefusedError, InfrastructureError, OSError) as error:
            raise pytest.UsageError(str(error)) from None
        text = course.solution_file(assignment).read_text("utf-8")
        return Subject(reference, reference, uses_in(text, f"{assignment.stem}.py"))

    def _submitted(self, course: Course, assignment: Assignment) -> Subject:
        from autograder.grading.grader import WorkerFactory
        from autograder.sandbox.launcher import Sandbox

        assert self._submission is not None
        file = SourceFile(self._submission.name, self._submission.read_text("utf-8-sig"))
        self._workers = WorkerFactory(
            course, Sandbox("unsafe" if self._unsafe else "best", hidden=course.hidden_folders)
        )
        subject: Subject = self._workers.subject(assignment, file)
        return subject
