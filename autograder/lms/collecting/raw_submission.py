"""What every source is turned into: each student's files, and sentences about what was not understood."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from autograder.records import RefusedError
from autograder.submissions.archives import open_archive
from autograder.submissions.files import ARCHIVES, CLASS_ENTRIES, DiskFolder, Entry, File, Folder, Odd, suffix
from autograder.submissions.take import is_furniture
from autograder.text.names import shown

DEPTH = 16
TYPED = {  # what is called so was typed at the site; Canvas's names are made here
    "typed_text.html": "a typed text",
    "typed_link.html": "a typed link",
    "onlinetext.html": "a typed text",
}


@dataclass(frozen=True)
class RawSubmission:
    """One student's files, older ones first. `keys` are what the source calls the student, the id first.

    `assignment` is empty when the source does not say it, `where` names the place in sentences. `problem` says why none
    of it can be used, where the source found that out. `maybe_group`: the number among the keys can be that of a group.
    """

    keys: tuple[str, ...]
    files: tuple[File, ...]
    name: str = ""
    assignment: str = ""
    submitted_at: str | None = None
    late: bool | None = None
    attempt: int | None = None
    where: str = ""
    problem: str = ""
    maybe_group: bool = False


@dataclass
class Findings:
    """All that a source gave: what students handed in, and a sentence about each thing that is not clear."""

    handed: list[RawSubmission] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def opened(path: Path) -> AbstractContextManager[Folder]:
    """A folder, or an archive as one; raises Refused when it is neither."""
    if path.is_dir():
        return nullcontext(DiskFolder(path.resolve()))
    if suffix(path.name) not in ARCHIVES:
        raise RefusedError(
            "It cannot be unpacked here; unpack it and collect the folder, or pack it as a zip archive."
        )
    return open_archive(path, whole_class=True)


def visible(folder: Folder) -> list[Entry]:
    """What lies in a folder, without what systems put there; raises Refused when that cannot be said."""
    return [entry for entry in folder.entries() if not is_furniture(entry.name)]


def files_below(folder: Folder, odd: list[str]) -> Iterator[File]:
    """All files in a folder and in those inside it; what cannot be read is told in `odd`."""
    yield from _below([folder], 0, [0], odd)


def _below(entries: Sequence[Entry], depth: int, count: list[int], odd: list[str]) -> Iterator[File]:
    for entry in entries:
        count[0] += 1
        if isinstance(entry, File):
            yield entry
        elif isinstance(entry, Odd):
            odd.append(f"{shown(entry.name)} is {entry.what}.")
        elif depth > DEPTH or count[0] > CLASS_ENTRIES:
            odd.append(f"{shown(entry.name)} lies too deep or among too many files.")
        else:
            try:
                inside = [one for one in visible(entry) if not one.name.startswith(".")]
            except RefusedError as refusal:
                odd.append(str(refusal))
                continue
            yield from _below(inside, depth + 1, count, odd)
