"""Subjects for plain pytest without a course: the student's file beside the test file."""

from pathlib import Path

import pytest

from autograder.bridge.outside.local import LocalStudent, load
from autograder.bridge.outside.subject import Subject
from autograder.suite.markers import SubjectProvider


class FilesBeside(SubjectProvider):
    """Provides the file beside each test file, such as `adding.py` for `test_adding.py`; loads it once per session."""

    def __init__(self) -> None:
        self._subjects: dict[Path, Subject] = {}

    def subject(self, test_file: Path) -> Subject:
        if test_file not in self._subjects:
            beside = file_beside(test_file)
            if beside is None:
                raise pytest.UsageError(f"There is no file to test beside {test_file.name}.")
            loaded = load(beside.read_text("utf-8-sig"), str(beside))
            student = LocalStudent(loaded.module, loaded.failures)
            self._subjects[test_file] = Subject(student, records=True)
        return self._subjects[test_file]


def file_beside(test_file: Path) -> Path | None:
    """Return `adding.py` for `test_adding.py` in the same folder; None if it does not exist."""
    beside = test_file.with_name(test_file.name.removeprefix("test_"))
    return beside if beside != test_file and beside.is_file() else None
