"""The common result of all sources: each student's files, and messages about unrecognized entries."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from autograder.records import RefusedError
from autograder.submissions.files import CLASS_ENTRIES, Entry, File, Folder, Odd
from autograder.extras.lms.identity import Described
from autograder.submissions.take import is_furniture
from autograder.text.names import shown

DEPTH = 16
TYPED = {  # texts typed on the site, by file name; the engine creates the names for Canvas
    "typed_text.html": "a typed text",
    "typed_link.html": "a typed link",
    "onlinetext.html": "a typed text",
}


@dataclass(frozen=True)
class RawSubmission:
    """One student's files, older ones first; `key` is the student's id at the source, or else the name.

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


@dataclass
class Findings:
    """All submissions of a source, and a message about each unclear entry."""

    handed: list[RawSubmission] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def newest(files: Iterable[File]) -> str:
    """Return the newest time of these files in their archive; empty if unknown."""
    return max((file.time for file in files), default="")


def visible(folder: Folder) -> list[Entry]:
    """Return the entries of a folder without system files; raises RefusedError if it cannot be read."""
    return [entry for entry in folder.entries() if not is_furniture(entry.name)]


def files_below(folder: Folder, odd: list[str]) -> Iterator[File]:
    """Yield all files in a folder and its subfolders; unreadable entries are added to `odd`."""
    count = 0
    waiting = list[tuple[int, Entry]]([(0, folder)])
    while waiting:
        (depth, entry) = waiting.pop()
        count = count + 1
        if isinstance(entry, File):
            yield entry
        elif isinstance(entry, Odd):
            odd.append(f"{shown(entry.name)} is {entry.what}.")
        elif depth > DEPTH or count > CLASS_ENTRIES:
            odd.append(f"{shown(entry.name)} lies too deep or among too many files.")
        else:
            try:
                inside = [inner for inner in visible(entry) if not inner.name.startswith(".")]
            except RefusedError as refusal:
                odd.append(str(refusal))
            else:
                waiting += [(depth + 1, inner) for inner in reversed(inside)]
