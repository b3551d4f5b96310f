"""The common result of all sources: each student's files, and messages about unrecognized entries."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from autograder.extras.lms.identity import Described
from autograder.submissions.files import File

TYPED = {  # texts typed on the site, by file name; the engine creates the names for Canvas
    "typed_text.html": "a typed text",
    "typed_link.html": "a typed link",
    "onlinetext.html": "a typed text",
}


@dataclass(frozen=True)
class RawSubmission:
    """One student's files; `key` is the student's id at the source, or else the name.

    The name of a file is the way to it in the student's folder. With `is_in_order`, the site says
    that of two files with one name, the later one belongs to a later attempt.
    `described` is all that the source says of the student, `site` the site that gave the `key`.
    `assignment` is empty if the source does not provide it; `where` names the origin in messages.
    `problem` is the reason if the source cannot use the submission. `file_time` is the newest time
    of its files in the archive.
    """

    key: str
    files: tuple[File, ...]
    described: Described = Described()
    site: str = ""
    name: str = ""
    assignment: str = ""
    submitted_at: str | None = None
    late: bool | None = None
    attempt: int | None = None
    where: str = ""
    file_time: str = ""
    problem: str = ""
    is_in_order: bool = False


@dataclass
class Findings:
    """All submissions of a source, and a message about each unclear entry."""

    handed: list[RawSubmission] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def in_attempts(by_time: Mapping[Any, Sequence[File]]) -> tuple[File, ...]:
    """Return the files of a student's attempts, each attempt's in a folder with its number."""
    files = list[File]()
    for number, time in enumerate(sorted(by_time), start=1):
        way = f"{number}/" if len(by_time) > 1 else ""
        files += [replace(file, name=f"{way}{file.name}") for file in by_time[time]]
    return tuple(files)


def newest(files: Iterable[File]) -> str:
    """Return the newest time of these files in their archive; empty if unknown."""
    return max((file.time for file in files), default="")
