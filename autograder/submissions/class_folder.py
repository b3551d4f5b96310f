"""The folder of a class in which work arrives, entry by entry."""

from collections.abc import Collection, Iterator
from pathlib import Path

from autograder.course.config import Course
from autograder.records import RefusedError, Submission
from autograder.submissions.entries import label
from autograder.submissions.files import DiskFolder
from autograder.submissions.find import find_submissions
from autograder.text.names import student_name


class ClassFolder:
    """Finds the work of the students to whom some entries of the folder belong.

    Raises RefusedError if there is no such folder, or the course has no such assignment.
    """

    is_deep = True

    def __init__(
        self, root: Path, course: Course, assignment: str | None, trusts_stamps: bool = False
    ) -> None:
        if not root.is_dir():
            raise RefusedError(f"There is no folder {root}. `--watch` needs the folder of a class.")
        self.root = root.resolve()
        self.trusts_stamps = trusts_stamps
        self._course = course
        self._assignment = assignment

    def submissions(self, names: Collection[str]) -> Iterator[Submission]:
        """Yield the submissions of these students; raises RefusedError."""
        entries = DiskFolder(self.root).entries()
        students = {student_name(label(entry)) for entry in entries if entry.name in names}
        return find_submissions(self.root, self._course, self._assignment, students)
