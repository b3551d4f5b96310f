"""`submitted/`: the collected submissions, in a folder per student with a folder per assignment."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

from autograder.course.config import Course
from autograder.records import RefusedError, unusable
from autograder.source import gate
from autograder.submissions.collected import FILE_BYTES, Collected, read_collected, write_collected
from autograder.submissions.files import DiskFolder, File, Odd
from autograder.submissions.hand_in import (
    content_digest,
    counting_time,
    released_contents,
    work_among,
)
from autograder.text.files import check_folder, make_folder, open_as_its_folder, write_whole
from autograder.text.moments import instant

EARLIER = ".earlier"
# where each submission goes, and the digests of its files, until they are all noted
BEGUN = ".collecting.jsonl"

ImportStatus = Literal["new", "unchanged", "replaced", "older", "changed by hand", "behind a link"]


@dataclass
class SubmissionFolder:
    """The output folder of an import, where nothing is deleted; `save` writes the facts about each submission."""

    folder: Path
    course: Course
    replace: bool = False

    def __post_init__(self) -> None:
        check_folder(self.folder)
        self.known = read_collected(self.folder)
        self._zone = ZoneInfo(self.course.timezone)
        self._released: dict[str, frozenset[str]] = {}
        self._begun = _read_begun(self.folder / BEGUN)

    def put(self, student_folder: str, facts: Collected, files: dict[str, bytes]) -> ImportStatus:
        """Store a submission, `files` by name and `facts` without digests, and return its status."""
        place = self.folder / student_folder / facts.assignment
        if place.is_symlink() or place.parent.is_symlink():
            return "behind a link"
        digests = _hashed(files)
        key = facts.student, facts.assignment
        before = self.known.get(key)
        there = _digests(place, self.folder)
        status = self._status(before, facts, place, there, digests)
        if status in ("older", "changed by hand"):
            return status
        if there != digests:
            self._begin(place, digests)
        if status == "replaced" or (status == "unchanged" and there != digests):
            for name, digest in there.items():
                aside = self.folder / EARLIER / place.parent.name / place.name / digest[:12]
                make_folder(aside, mode=None)
                (place / name).replace(aside / name)
        try:
            for name, data in files.items():
                write_whole(place / name, data)
        except OSError as error:
            raise unusable(f"{place} cannot be written", error) from None
        if before and status == "unchanged":  # times and names of earlier imports
            facts = replace(
                facts,
                **{
                    k: value for k, value in vars(before).items() if getattr(facts, k) in (None, "")
                },
            )
        if before and self._is_same_work(facts.assignment, before.files, digests):
            counts = counting_time(before, facts, self._zone)
            facts = replace(facts, submitted_at=counts.submitted_at, by_table=counts.by_table)
        self.known[key] = replace(facts, files=digests)
        return status

    def name_of(self, student: str) -> str:
        """Return the display name of a student collected before; empty if unknown."""
        return next(
            (
                submission.name
                for (owner, _), submission in self.known.items()
                if owner == student and submission.name
            ),
            "",
        )

    def names_of(self, student: str) -> set[str]:
        """Return the names under which work of this student was collected before."""
        of_student = [
            submission for (owner, _), submission in self.known.items() if owner == student
        ]
        return {
            submission.called or submission.name
            for submission in of_student
            if submission.called or submission.name
        }

    def holds(self, student_folder: str, assignment: str, files: dict[str, bytes]) -> bool:
        """Whether other files are already stored for this student and assignment."""
        return _digests(self.folder / student_folder / assignment, self.folder) not in (
            {},
            _hashed(files),
        )

    def save(self) -> None:
        make_folder(self.folder)
        write_collected(self.folder, self.known.values())
        (self.folder / BEGUN).unlink(missing_ok=True)

    def _begin(self, place: Path, digests: dict[str, str]) -> None:
        """Note what will be written, so that a killed command's files are known as its own."""
        line = json.dumps([str(place.relative_to(self.folder)), sorted(digests.values())])
        try:
            make_folder(self.folder)
            with open(
                self.folder / BEGUN, "a", encoding="utf-8", opener=open_as_its_folder
            ) as notes:
                notes.write(f"{line}\n")
        except OSError as error:
            raise unusable(f"{self.folder} cannot be written", error) from None

    def _is_by_hand(self, before: Collected | None, place: Path, there: dict[str, str]) -> bool:
        """Whether the files are neither those that were collected nor what a killed command left of both."""
        if before and before.files == there:
            return False
        begun = self._begun.get(str(place.relative_to(self.folder)), set())
        digests = begun.union(before.files.values() if before else ())
        return not begun or not digests.issuperset(there.values())

    def _status(
        self,
        before: Collected | None,
        facts: Collected,
        place: Path,
        there: dict[str, str],
        digests: dict[str, str],
    ) -> ImportStatus:
        if not there:
            return "new"
        if there == digests:
            return "unchanged"
        is_collected = before is not None and before.files == there
        if is_collected and self._is_same_work(facts.assignment, there, digests):
            return "unchanged"
        if self._is_by_hand(before, place, there):
            return "replaced" if self.replace else "changed by hand"
        return "older" if before and _is_older(facts, before, self._zone) else "replaced"

    def _is_same_work(
        self, assignment: str, first: Mapping[str, str], other: Mapping[str, str]
    ) -> bool:
        """Whether the student's own files have the same contents, as far as these are files with names and digests."""
        if assignment not in self._released:
            self._released[assignment] = released_contents(
                self.course, self.course.assignment(assignment)
            )
        released = self._released[assignment]
        return work_among(first.values(), released) == work_among(other.values(), released)


def _read_begun(file: Path) -> dict[str, set[str]]:
    """Return the digests of what a killed command began to write, by place; its last line may be torn."""
    digests_by_folder: dict[str, set[str]] = {}
    try:
        lines = gate.read_text(file, FILE_BYTES).splitlines() if file.exists() else []
    except RefusedError:
        return digests_by_folder
    for line in lines:
        with suppress(ValueError, TypeError):
            place, digests = json.loads(line)
            digests_by_folder.setdefault(place, set()).update(digests)
    return digests_by_folder


def _hashed(files: dict[str, bytes]) -> dict[str, str]:
    return {name: content_digest(data) for name, data in files.items()}


def _digests(place: Path, root: Path) -> dict[str, str]:
    """Return the digests of the stored files by name, and of what cannot be read a word that is no digest."""
    if not place.is_dir():
        return {}
    entries = [
        entry for entry in DiskFolder(place, root).entries() if isinstance(entry, File | Odd)
    ]
    return {entry.name: _digest(entry) for entry in entries if not entry.name.startswith(".")}


def _digest(entry: File | Odd) -> str:
    with suppress(RefusedError):
        if isinstance(entry, File):
            return content_digest(entry.read())
    return "unread"


def _is_older(first: Collected, other: Collected, zone: ZoneInfo) -> bool:
    """Whether the site says so, by a time, by its number of the attempt or of the file, or by the files' own times."""
    mine = first.moment
    theirs = other.moment
    if mine and theirs:
        return instant(mine, zone) < instant(theirs, zone)
    if first.site != other.site:
        return False
    if first.attempt is not None and other.attempt is not None:
        return first.attempt < other.attempt
    return "" < first.file_time < other.file_time
