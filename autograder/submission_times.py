"""When each submission came, kept beside the journal as `times.json`.

Grading notes what `collected.json` or nbgrader's `timestamp.txt` says of the texts it was given. So pages can be made
again without the submissions, and an earlier attempt keeps its own time when a later one has taken its place.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

from autograder.collecting.record import FILE_NAME as COLLECTED
from autograder.collecting.record import read_collected
from autograder.feedback.kept import Kept
from autograder.records import InfrastructureError, Submission
from autograder.writing import write_whole

FILE_NAME = "times.json"
STAMP = "timestamp.txt"  # nbgrader's
SCHEMA = 1

Times = dict[tuple[str, str, str], datetime]


def keep_times(folder: Path, path: Path, submissions: Iterable[Kept]) -> None:
    """Note in `folder` when the submissions at `path` came, as far as it is known; what was noted before stays.

    Raises Refused when `collected.json` cannot be read.
    """
    collected = read_collected(_collected_folder(path))
    times = read_times(folder)
    for one in submissions:
        submission = one.submission
        known = collected.get((submission.student, submission.assignment))
        moment = known.moment if known else None
        moment = moment or _stamped(submission)
        if moment is not None:
            times[submission.student, submission.assignment, one.digest] = moment
    if times:
        _write(folder, times)


def read_times(folder: Path) -> Times:
    """By student, assignment and digest, when it was handed in; nothing when no time was ever known.

    Raises InfrastructureError when the file is there and cannot be read: without it, scores would be too high.
    """
    path = folder / FILE_NAME
    if not path.is_file():
        return {}
    try:
        entries = json.loads(path.read_text("utf-8"))["times"]
        return {
            (entry["student"], entry["assignment"], entry["submission_sha256"]): datetime.fromisoformat(
                entry["at"]
            )
            for entry in entries
        }
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InfrastructureError(
            f"{path} cannot be read ({error}). Move it away and grade again: `autograder grade` writes it."
        ) from None


def _write(folder: Path, times: Times) -> None:
    entries = [
        {"student": student, "assignment": assignment, "submission_sha256": digest, "at": moment.isoformat()}
        for (student, assignment, digest), moment in sorted(times.items(), key=lambda item: item[0])
    ]
    text = json.dumps({"schema": SCHEMA, "times": entries}, ensure_ascii=False, indent=1)
    write_whole(folder / FILE_NAME, text + "\n")


def _collected_folder(path: Path) -> Path:
    """The folder that was collected: `path` itself, or the one around it when it is one student's."""
    here = path.absolute()
    return next((place for place in (here, *here.parents[:2]) if (place / COLLECTED).is_file()), here)


def _stamped(submission: Submission) -> datetime | None:
    """What nbgrader wrote beside a submission; it means UTC where it does not say."""
    if submission.path is None:
        return None
    folder = submission.path if submission.path.is_dir() else submission.path.parent
    try:
        return _read_stamp((folder / STAMP).read_text("utf-8").split())
    except (OSError, ValueError):
        return None


def _read_stamp(words: list[str]) -> datetime:
    """`2026-11-27 22:59:00.5 UTC`, with a zone, an offset or neither; raises ValueError when it is none of these."""
    moment = datetime.fromisoformat(" ".join(words[:2]))
    if moment.tzinfo or len(words) < 3:
        return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    if words[2][0] in "+-":
        return moment.replace(tzinfo=datetime.strptime(words[2], "%z").tzinfo)
    try:
        return moment.replace(tzinfo=ZoneInfo(words[2]))
    except KeyError:  # what zoneinfo raises for a zone that it does not know
        raise ValueError(f"there is no time zone {words[2]}") from None
