"""Submission times and students' display names, stored beside the journal as `times.json` and `names.json`."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from autograder.course.config import Course
from autograder.gradebook.lateness import Attempt
from autograder.gradebook.seals import seal
from autograder.gradebook.texts import StoredSubmission, files_of
from autograder.records import InfrastructureError, RefusedError, Submission
from autograder.source import gate
from autograder.source.stub import UNKNOWN, ReleasedStub, released_stub
from autograder.submissions.collected import FILE_NAME as COLLECTED
from autograder.submissions.collected import Collected, read_collected
from autograder.submissions.hand_in import counting_time
from autograder.text.files import write_whole
from autograder.text.moments import read_named_time, read_time
from autograder.text.names import shown

FILE_NAME = "times.json"
NAMES = "names.json"
STAMP = "timestamp.txt"  # nbgrader's
STAMP_BYTES = 200
SCHEMA = 1


@dataclass(frozen=True)
class KnownTime:
    """A time of hand-in, and whether it stands in a table of the instructor's."""

    moment: datetime
    by_table: bool = False


def keep_times(
    folder: Path,
    path: Path,
    submissions: list[StoredSubmission],
    trust_timestamps: bool = False,
    course: Course | None = None,
) -> None:
    """Store in `folder` the known submission times and display names for the submissions at `path`.

    `collected.json` is used only beside the students' folders, where students cannot place it.
    nbgrader's `timestamp.txt` lies in a student's own folder and is used only with
    `trust_timestamps`. Work that is known keeps its time as `counting_time` says, and late marks of
    a site that gave no time. Untouched files of the `course` beside the work do not count, and its
    time zone is that of times without one. Raises RefusedError if `collected.json` cannot be read.
    """
    around = _class_folder(path, [stored.submission for stored in submissions])
    collected = read_collected(around) if around else {}
    times, late = _read_times(folder)
    zone = ZoneInfo(course.timezone) if course else timezone.utc
    same_work = _SameWork(folder, course, tuple(times))
    for stored in submissions:
        submission = stored.submission
        attempt = (submission.student, submission.assignment, stored.digest)
        facts = None
        if around is not None and _is_collected(submission, around):
            facts = collected.get((submission.student, submission.assignment))
        moment = facts.moment if facts else None
        if moment is None and trust_timestamps and submission.path:
            place = submission.path
            moment = read_stamp(place if place.is_dir() else place.parent, zone)
        if moment is not None:
            time = KnownTime(moment, bool(facts and facts.by_table))
            for earlier in same_work.attempts(attempt):
                time = counting_time(times[earlier], time, zone)
            times[attempt] = time
        if facts and facts.late:
            late.add(attempt)
    _write_times(folder, times, late)
    _add_names(folder, collected.values())


class _SameWork:
    """Finds the attempts of a student whose own files have the same texts, whatever these are called."""

    def __init__(self, folder: Path, course: Course | None, attempts: Iterable[Attempt]) -> None:
        self._folder = folder
        self._course = course
        self._stubs: dict[str, ReleasedStub] = {}
        self._by_student: dict[tuple[str, str], list[Attempt]] = {}
        for attempt in attempts:
            self._by_student.setdefault(attempt[:2], []).append(attempt)

    def attempts(self, attempt: Attempt) -> list[Attempt]:
        """Return the earlier attempts with the work of this one, also itself if it has a time."""
        earlier = self._by_student.get(attempt[:2], [])
        others = [other for other in earlier if other != attempt]
        same = [attempt] if attempt in earlier else []
        if not others:
            return same
        work = self._work(attempt)
        return [*same, *(other for other in others if work and self._work(other) == work)]

    def _work(self, attempt: Attempt) -> frozenset[str]:
        _, name, digest = attempt
        if name not in self._stubs:
            self._stubs[name] = self._stub(name)
        stub = self._stubs[name]
        files = files_of(self._folder, digest)
        return frozenset(file.text for file in files if not stub.is_untouched(file))

    def _stub(self, name: str) -> ReleasedStub:
        assignment = self._course.find(name) if self._course else None
        return released_stub(self._course, assignment) if self._course and assignment else UNKNOWN


def _write_times(
    folder: Path, times: Mapping[Attempt, KnownTime], late: Collection[Attempt]
) -> None:
    if times or late:
        entries = [_timed(attempt, times[attempt]) for attempt in sorted(times)]
        marked = [_entry(attempt) for attempt in sorted(late)]
        _write(folder / FILE_NAME, {"times": entries, "late": marked})


def _add_names(folder: Path, collected: Iterable[Collected]) -> None:
    """Add the names and ids that a course site has for the students."""
    names = read_names(folder)
    originals = read_originals(folder)
    for student in collected:
        if student.name:
            names[student.student] = student.name
        if student.original:
            originals[student.student] = student.original
    if names or originals:
        record = {
            "names": dict(sorted(names.items())),
            "originals": dict(sorted(originals.items())),
        }
        _write(folder / NAMES, record)


def read_times(folder: Path) -> tuple[dict[Attempt, datetime], set[Attempt]]:
    """Return the known submission times, and the submissions that a course site marked as late, with or without a time.

    Both are empty without a file. Raises InfrastructureError if it cannot be read, as scores would
    be too high.
    """
    times, late = _read_times(folder)
    return {attempt: time.moment for attempt, time in times.items()}, late


def _read_times(folder: Path) -> tuple[dict[Attempt, KnownTime], set[Attempt]]:
    with _reading(folder / FILE_NAME) as record:
        times = {
            _attempt(entry): KnownTime(read_time(entry["at"]), bool(entry.get("by_table")))
            for entry in record["times"]
        }
        return times, {_attempt(entry) for entry in record.get("late", [])}


def read_names(folder: Path) -> dict[str, str]:
    """Return the known display names by the student ids in the grades; raises as `read_times`."""
    with _reading(folder / NAMES) as record:
        return {str(student): str(name) for student, name in record["names"].items()}


def read_originals(folder: Path) -> dict[str, str]:
    """Return the ids, as the roster or the course site has them, of students who are called otherwise in the grades.

    The grades use the names of folders, which cannot hold every character.
    """
    with _reading(folder / NAMES) as record:
        return {
            str(student): str(original) for student, original in record.get("originals", {}).items()
        }


def with_name(student: str, names: Mapping[str, str], originals: Mapping[str, str]) -> str:
    """Return `1001 Ada Lovelace`, or the id alone if the name is unknown."""
    name = names.get(student, "")
    called = shown_id(student, originals)
    return f"{called} {shown(name)}" if name and name != called else called


def shown_id(student: str, originals: Mapping[str, str]) -> str:
    """Return the id of a student to show to people."""
    return shown(originals[student]) if student in originals else student


@contextmanager
def _reading(path: Path) -> Iterator[dict[str, Any]]:
    try:
        yield json.loads(path.read_text("utf-8")) if path.is_file() else {"times": [], "names": {}}
        return
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        problem = str(error)
    raise InfrastructureError(
        f"{path} cannot be read ({problem}). Move it away and grade again: `autograder grade` writes it."
    )


def _attempt(entry: Mapping[str, str]) -> Attempt:
    return entry["student"], entry["assignment"], entry["submission_sha256"]


def _entry(attempt: Attempt) -> dict[str, str]:
    return dict(zip(("student", "assignment", "submission_sha256"), attempt))


def _timed(attempt: Attempt, time: KnownTime) -> dict[str, Any]:
    by_table = {"by_table": True} if time.by_table else {}
    return {**_entry(attempt), "at": time.moment.isoformat(), **by_table}


def _write(path: Path, record: dict[str, Any]) -> None:
    text = (json.dumps({"schema": SCHEMA, **record}, ensure_ascii=False, indent=1) + "\n").encode(
        "utf-8", "replace"
    )
    seal(path.parent, path.name, text)
    write_whole(path, text)


def _class_folder(path: Path, submissions: Sequence[Submission]) -> Path | None:
    """Return the collected folder: `path`, or a parent if `path` holds the work of one student only; None if neither."""
    here = path.resolve()  # as `find_submissions` names its files
    places = (
        place for place in (*reversed(here.parents[:2]), here) if (place / COLLECTED).is_file()
    )
    return next(
        (
            place
            for place in places
            if any(_is_collected(submission, place) for submission in submissions)
        ),
        None,
    )


def _is_collected(submission: Submission, folder: Path) -> bool:
    """Whether `collect` wrote the submission there; a `collected.json` further inside is the student's."""
    place = submission.path.resolve() if submission.path else folder
    parts = place.relative_to(folder).parts if place.is_relative_to(folder) else ()
    return len(parts) >= 2 and parts[1] == submission.assignment


def read_stamp(folder: Path, zone: tzinfo = timezone.utc) -> datetime | None:
    """Return the time in nbgrader's `timestamp.txt`, as `read_named_time`; None if it cannot be read."""
    with suppress(RefusedError, ValueError):
        return read_named_time(gate.read_text(folder / STAMP, STAMP_BYTES), zone)
    return None
