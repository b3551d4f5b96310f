"""nbgrader's exchange without its commands: hand-ins are graded where they arrive, and `nbgrader
fetch_feedback` finds the pages.

A hand-in is a folder `<student>+<assignment>+<time>+<random>` in `inbound`. Its last file is the
secret with which the student's server finds the feedback.
"""

import hashlib
import os
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from autograder.course.config import Course
from autograder.records import RefusedError, Submission
from autograder.source import gate
from autograder.submissions.choose import Wanted, submission_of, wanted_of
from autograder.submissions.files import DiskFolder
from autograder.text.files import write_whole
from autograder.text.names import shown, student_name

INBOUND = "inbound"
FEEDBACK = "feedback"
SECRET = "submission_secret.txt"
SECRET_BYTES = 1000
FOLDER_MODE = 0o711  # whoever has the secret reads a page, and nobody lists them
PAGE_MODE = 0o644


@dataclass(frozen=True, order=True)
class _HandIn:
    """What the name of a folder in `inbound` says; ordered by the time of hand-in."""

    time: str
    name: str
    user: str
    assignment: str

    @property
    def student(self) -> str:
        """The student in the grades."""
        return student_name(self.user)


class Inbound:
    """The `inbound` folder of a course in nbgrader's exchange; of each student and assignment, the
    newest hand-in counts.
    """

    is_deep = False
    trusts_stamps = True

    def __init__(
        self,
        root: Path,
        course: Course,
        assignment: str | None = None,
        tell: Callable[[str], None] = print,
    ) -> None:
        self.root = root.resolve()
        self._tell = tell
        self.feedback = self.root.parent / FEEDBACK
        self._course = course
        self._only = None if assignment is None else course.assignment(assignment).name
        self._wanted: dict[str, Wanted] = {}

    @staticmethod
    def fits(folder: Path) -> bool:
        """Whether this is such a folder, by its name and by that of its contents or neighbours."""
        root = folder.resolve()
        return root.name == INBOUND and (root.parent / "outbound").is_dir()

    def submissions(self, names: Collection[str]) -> Iterator[Submission]:
        """Yield the newest complete hand-in of each student and assignment that these names are of."""
        touched = {(hand_in.student, hand_in.assignment) for hand_in in self._all(names)}
        newest: dict[tuple[str, str], _HandIn] = {}
        for hand_in in sorted(self._all(os.listdir(self.root))):
            key = hand_in.student, hand_in.assignment
            if (
                key in touched
                and self._secret(self.root / hand_in.name)
                and self._is_genuine(hand_in)
            ):
                newest[key] = hand_in
        for hand_in in newest.values():
            folder = DiskFolder(self.root / hand_in.name, self.root)
            yield submission_of(hand_in.student, self._released(hand_in.assignment), [folder])

    def publish(self, submission: Submission, page: Path) -> None:
        """Put a page where the student's `nbgrader fetch_feedback` finds it; raises OSError."""
        secret = self._secret(submission.path) if submission.path else ""
        if not secret or submission.path is None or not page.is_file():
            return
        content = page.read_bytes()
        if not self.feedback.is_dir():
            self.feedback.mkdir(mode=FOLDER_MODE)
            self.feedback.chmod(FOLDER_MODE)
        for notebook in self._notebooks(submission.path):
            digest = hashlib.md5((secret + notebook).encode(), usedforsecurity=False).hexdigest()
            place = self.feedback / f"{digest}.html"
            if not place.is_file() or place.read_bytes() != content:
                write_whole(place, content).chmod(PAGE_MODE)

    def _all(self, names: Collection[str]) -> Iterator[_HandIn]:
        wanted = [self._only]
        if self._only is None:
            wanted = [assignment.name for assignment in self._course.assignments]
        for name in names:
            # a user's name may contain a plus, and the random text can be turned off
            for parts in (name.rsplit("+", 3), name.rsplit("+", 2)):
                if len(parts) > 2 and parts[0] and parts[1] in wanted:
                    yield _HandIn(parts[2], name, parts[0], parts[1])
                    break

    def _is_genuine(self, hand_in: _HandIn) -> bool:
        """Whether the folder is the student's own, as far as the machine's list of users tells."""
        whose = _owner(self.root / hand_in.name)
        if whose in (None, "root", hand_in.user) or not _is_user(hand_in.user):
            return True
        self._tell(f"{shown(hand_in.name)} was handed in by {shown(str(whose))}; it is not graded.")
        return False

    def _released(self, assignment: str) -> Wanted:
        if assignment not in self._wanted:
            self._wanted[assignment] = wanted_of(self._course, assignment)
        return self._wanted[assignment]

    def _secret(self, folder: Path) -> str:
        """Return a hand-in's secret; empty if it is not there yet, or no text."""
        try:
            data = gate.read_bytes(folder / SECRET, SECRET_BYTES, self.root)
            return data.decode("utf-8")
        except (RefusedError, UnicodeDecodeError):
            return ""

    def _notebooks(self, folder: Path) -> list[str]:
        """Return the names of the notebooks for which nbgrader looks for feedback."""
        try:
            entries = DiskFolder(folder, self.root).entries()
        except RefusedError:  # it is gone
            return []
        return [entry.name[:-6] for entry in entries if entry.name.endswith(".ipynb")]


def _owner(folder: Path) -> str | None:
    """Return the name of the user to whom a folder belongs; None if unknown."""
    if sys.platform == "win32":
        return None
    import pwd

    try:
        return pwd.getpwuid(folder.lstat().st_uid).pw_name
    except (OSError, KeyError):
        return None


def _is_user(name: str) -> bool:
    """Whether this machine has a user of that name."""
    if sys.platform == "win32":
        return False
    import pwd

    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
