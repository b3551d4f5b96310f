"""What is known about each collected submission, `submitted/collected.json`: whose it is, and when it came.

Reports and rules about late work read it with `read_collected`; a folder that was not collected has none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from autograder.records import RefusedError
from autograder.source import gate
from autograder.text.files import write_whole

FILE_NAME = "collected.json"
SCHEMA = 1
FILE_BYTES = 256 << 20  # of a class of a hundred thousand


class CollectError(RefusedError):
    """A file that collecting needs cannot be understood; its `str` is a sentence for the instructor."""


@dataclass(frozen=True)
class Collected:
    """One submission as it was collected. None means that the source did not say.

    `student` is the name that grades carry, `name` the one for people. `submitted_at` is ISO-8601, with the offset
    from UTC where that is known. `source` is the archive or folder that it came from, `key` and `called` are the
    student's number and name there, where they are others, and `files` are the names and digests of what was written.
    """

    student: str
    assignment: str
    name: str = ""
    submitted_at: str | None = None
    late: bool | None = None
    attempt: int | None = None
    source: str = ""
    files: dict[str, str] = field(default_factory=dict)
    key: str = ""
    called: str = ""

    @property
    def moment(self) -> datetime | None:
        """`submitted_at` as a moment, without an offset where it was not said."""
        return None if self.submitted_at is None else _moment(self.submitted_at)


def read_collected(folder: Path) -> dict[tuple[str, str], Collected]:
    """By student and assignment, what is known of a folder of submissions; nothing when it was not collected.

    Raises CollectError when the file is there and is not one of ours.
    """
    path = folder / FILE_NAME
    if not path.is_file():
        return {}
    try:
        record = json.loads(gate.read_text(path, FILE_BYTES))
        if record["schema"] != SCHEMA:
            raise CollectError(f"{path} was written by another version of autograder; collect again.")
        submissions = [_from_record(entry) for entry in record["submissions"]]
    except (RefusedError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise CollectError(f"{path} cannot be read ({error}). Move it away and collect again.") from None
    return {(one.student, one.assignment): one for one in submissions}


def write_collected(folder: Path, submissions: Iterable[Collected]) -> Path:
    """Write the file, sorted; whoever reads it meanwhile meets the old one or the new one."""
    ordered = sorted(submissions, key=lambda one: (one.student, one.assignment))
    record = {"schema": SCHEMA, "submissions": [asdict(one) for one in ordered]}
    path = folder / FILE_NAME
    write_whole(path, json.dumps(record, ensure_ascii=False, indent=1) + "\n")
    return path


def _from_record(record: dict[str, Any]) -> Collected:
    """Raises TypeError or ValueError when it is none; fields that a newer version added are passed over."""
    known = {name: record[name] for name in _NAMES if name in record}
    one = Collected(**known)
    if not all(
        isinstance(text, str)
        for text in (one.student, one.assignment, one.name, one.source, one.key, one.called)
    ):
        raise ValueError("a name is not a text")
    if one.late not in (None, True, False) or not isinstance(one.files, dict):
        raise ValueError("`late` is true, false or null")
    if one.submitted_at is not None:
        _moment(one.submitted_at)
    return one


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.removesuffix("Z") + "+00:00" if text.endswith("Z") else text)


_NAMES = tuple(f.name for f in fields(Collected))
