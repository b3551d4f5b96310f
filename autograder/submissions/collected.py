"""`submitted/collected.json`: the student, the source and the submission time of each collected submission."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from autograder.records import RefusedError
from autograder.source import gate
from autograder.text.files import write_whole
from autograder.text.moments import read_time

FILE_NAME = "collected.json"
SCHEMA = 1
FILE_BYTES = 256 << 20  # enough for 100,000 students


@dataclass(frozen=True)
class Collected:
    """One collected submission; a field is None if the source does not provide it.

    `student` is the name in the grades, `name` the display name. `submitted_at` is ISO-8601, with
    the offset from UTC if it is known. `source` is the archive or folder of origin, `key` and
    `called` are the student's number and name there if they differ, and `files` maps the written
    file names to their digests. `original` is the student's id if `student` differs, because a
    folder cannot have its name. `site` is the course site whose number the student or the `key` is,
    and `file_time` the newest time of the files in the archive, with which attempts are put in
    order. `by_table` says that the time stands in a table of the instructor's.
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
    original: str = ""
    site: str = ""
    file_time: str = ""
    by_table: bool = False

    @property
    def shown_name(self) -> str:
        """The text by which messages name the student."""
        return self.name or self.original or self.student

    @property
    def moment(self) -> datetime | None:
        """`submitted_at` as a datetime, naive if it has no offset."""
        return None if self.submitted_at is None else read_time(self.submitted_at)


def read_collected(folder: Path) -> dict[tuple[str, str], Collected]:
    """Return the records of a folder of submissions by student and assignment; empty if it was not collected.

    Raises RefusedError if the file exists but is invalid.
    """
    path = folder / FILE_NAME
    if not path.is_file():
        return {}
    try:
        record = json.loads(gate.read_text(path, FILE_BYTES))
        if record["schema"] != SCHEMA:
            raise RefusedError(
                f"{path} was written by another version of autograder; collect again."
            )
        submissions = [_from_record(entry) for entry in record["submissions"]]
    except (RefusedError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise RefusedError(
            f"{path} cannot be read ({error}). Move it away and collect again."
        ) from None
    return {(collected.student, collected.assignment): collected for collected in submissions}


def write_collected(folder: Path, submissions: Iterable[Collected]) -> Path:
    """Write the file, sorted, by atomic replacement."""
    ordered = sorted(submissions, key=lambda collected: (collected.student, collected.assignment))
    record = {"schema": SCHEMA, "submissions": [asdict(collected) for collected in ordered]}
    return write_whole(folder / FILE_NAME, json.dumps(record, ensure_ascii=False, indent=1) + "\n")


def _from_record(record: dict[str, Any]) -> Collected:
    collected = Collected(
        **{field.name: record[field.name] for field in fields(Collected) if field.name in record}
    )
    texts = (
        collected.student,
        collected.assignment,
        collected.name,
        collected.source,
        collected.key,
        collected.called,
        collected.original,
        collected.site,
        collected.file_time,
    )
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a name is not a text")
    if collected.late not in (None, True, False) or not isinstance(collected.files, dict):
        raise ValueError("`late` is true, false or null")
    if not isinstance(collected.by_table, bool):
        raise ValueError("`by_table` is true or false")
    _ = collected.moment  # raises ValueError if it is no time
    return collected
