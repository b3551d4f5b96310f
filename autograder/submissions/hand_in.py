"""When work was handed in: one rule for all that know a time of it.

Unchanged work keeps its first time by whatever road it comes again, unless a table of the
instructor's says otherwise.
"""

import hashlib
from collections.abc import Iterable
from datetime import datetime, timezone, tzinfo
from typing import Protocol, TypeVar

from autograder.course.config import Assignment, Course
from autograder.source.stub import source_files
from autograder.text.moments import instant


class HandedIn(Protocol):
    """A time of hand-in, None if it is unknown, and whether it stands in a table of the instructor's."""

    @property
    def moment(self) -> datetime | None: ...

    @property
    def by_table(self) -> bool: ...


Known = TypeVar("Known", bound=HandedIn)


def counting_time(before: Known | None, now: Known, zone: tzinfo = timezone.utc) -> Known:
    """Return which of two times of the same work counts: that of a table, the newer of two; else the earlier one.

    A time without an offset is of `zone`.
    """
    if before is None or before.moment is None:
        return now
    if now.moment is None:
        return before
    if now.by_table or before.by_table:
        return now if now.by_table else before
    return now if instant(now.moment, zone) < instant(before.moment, zone) else before


def content_digest(content: bytes) -> str:
    """Return the digest by which contents of files are compared."""
    return hashlib.sha256(content).hexdigest()


def released_contents(course: Course, assignment: Assignment) -> frozenset[str]:
    """Return the digests of the files that students received."""
    files = source_files(course.release_folder(assignment))
    return frozenset(content_digest(file.read_bytes()) for file in files)


def work_among(digests: Iterable[str], released: Iterable[str]) -> frozenset[str]:
    """Return the digests of a student's own files: their names and untouched files beside them do not count."""
    return frozenset(digests).difference(released)
