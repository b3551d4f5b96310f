"""nbgrader's exchange without its commands: hand-ins are graded where they arrive, and `nbgrader
fetch_feedback` finds the pages.

A hand-in is a folder `<student>+<assignment>+<time>+<random>` in `inbound`. Its last file is the
secret with which the student's server finds the feedback.
"""

import hashlib
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

from autograder.course.config import Course
from autograder.records import RefusedError, Submission
from autograder.source import gate
from autograder.submissions.choose import Wanted, submission_of, wanted_of
from autograder.submissions.files import DiskFolder
from autograder.text.files import write_whole
from autograder.text.moments import FIRST_YEAR, instant, read_named_time
from autograder.text.names import shown, student_name

INBOUND = "inbound"
FEEDBACK = "feedback"
SECRET = "submission_secret.txt"
SECRET_BYTES = 1000
FOLDER_MODE = 0o711  # whoever has the secret reads a page, and nobody lists them
PAGE_MODE = 0o644


# a user's name may contain a plus, an offset has one, and the random text can be turned off
_NAME = (
    r"(?P<user>.+)\+(?P<assignment>{})\+(?P<time>[^+]*(?:\+[0-9]{{2}}:?[0-9]{{2}})?)(?:\+[^+]*)?"
)
_UNKNOWN = datetime(FIRST_YEAR, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, order=True)
class _HandIn:
    """What the name of a folder in `inbound` says; ordered by the time of hand-in, an unreadable one first."""

    time: datetime
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
        self._zone = ZoneInfo(course.timezone)
        only = None if assignment is None else [assignment]
        names = "|".join(selected.name for selected in course.select(only))
        self._name = re.compile(_NAME.format(names), re.DOTALL)
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
        # nbgrader looks for a page of each notebook that was handed in; the release has this one
        notebook = self._course.notebook_file(self._course.assignment(submission.assignment)).stem
        digest = hashlib.md5((secret + notebook).encode(), usedforsecurity=False).hexdigest()
        place = self.feedback / f"{digest}.html"
        if not place.is_file() or place.read_bytes() != content:
            write_whole(place, content).chmod(PAGE_MODE)

    def _all(self, names: Collection[str]) -> Iterator[_HandIn]:
        for match in filter(None, map(self._name.fullmatch, names)):
            yield _HandIn(self._time(match["time"]), match[0], match["user"], match["assignment"])

    def _time(self, text: str) -> datetime:
        try:
            return instant(read_named_time(text, self._zone))
        except ValueError:
            return _UNKNOWN

    def _is_genuine(self, hand_in: _HandIn) -> bool:
        """Whether the folder is the student's own: a user of this machine hands in under the own name alone.

        Others would have as many turns and hours as they think of names. Folders of root, of the
        user who grades, and of users whom this machine does not know tell nothing.
        """
        whose = _owner(self.root / hand_in.name)
        if whose in (None, "root", hand_in.user):
            return True
        if whose == _user_of(os.geteuid()) and _user_of(hand_in.user) is None:
            return True  # all servers run as one user
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


def _owner(folder: Path) -> str | None:
    """Return the name of the user to whom a folder belongs; None if unknown."""
    try:
        return _user_of(folder.lstat().st_uid)
    except OSError:
        return None


def _user_of(user: int | str) -> str | None:
    """Return the name of a user of this machine, who is given by number or name; None if there is none."""
    if sys.platform == "win32":
        return None
    import pwd

    try:
        return (pwd.getpwuid(user) if isinstance(user, int) else pwd.getpwnam(user)).pw_name
    except (KeyError, ValueError):  # the latter for a name that is no text
        return None
