"""Submission times from a table of the instructor's, which the downloads of Canvas and Moodle do not contain."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from autograder.course.config import Assignment, Course
from autograder.extras.lms.collecting.choose import named_in
from autograder.extras.lms.damaged_ids import damaged_id
from autograder.extras.lms.identity import Described, Directory
from autograder.extras.lms.roster import TRUSTED_SITE, row_description
from autograder.extras.lms.sheet import Sheet, read_sheet
from autograder.records import RefusedError
from autograder.text.moments import read_time
from autograder.text.names import shown

TIME_TITLES = (
    "submitted_at",
    "submitted at",
    "Submission Time",
    "submission_timestamp",  # of GitHub Classroom
    "Last modified (submission)",
    "Zuletzt geändert (Abgabe)",
)
_ENGLISH_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_GERMAN_MONTHS = (
    "januar", "februar", "märz", "april", "mai", "juni",
    "juli", "august", "september", "oktober", "november", "dezember",
)  # fmt: skip
_MONTH = {
    **{name: number for number, name in enumerate(_ENGLISH_MONTHS, start=1)},
    **{name: number for number, name in enumerate(_GERMAN_MONTHS, start=1)},
}
_IN_WORDS = re.compile(
    r"(?:[^\W\d]+,? )?"
    r"(?:(?P<day>[0-9]{1,2})\.? (?P<month>\w+)|(?P<month_first>\w+) (?P<day_behind>[0-9]{1,2})),? (?P<year>[0-9]{4}),? "
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}))?(?: ?(?P<half>[ap])\.?m\.?)?",
    re.IGNORECASE,
)


class SubmissionTimes:
    """The submission times of a class; `find` looks up one student and assignment.

    `damages` are sentences about ids that a spreadsheet has changed.
    """

    def __init__(self, sheet: Sheet, course: Course, default: Assignment | None) -> None:
        """Parse a sheet; `default` is the assignment of rows without one.

        Raises RefusedError for an unclear row.
        """
        self.name = sheet.name
        self._rows: dict[str, Directory[tuple[int, str]]] = {}
        self.damages: list[str] = []
        if sheet.column(*TIME_TITLES) is None:
            raise RefusedError(
                f"{sheet.name} has no column `submitted_at` with the times, and it is not a worksheet from Moodle. "
                f"Its columns are {_listed(sheet.header)}."
            )
        assignment = sheet.column("assignment")
        if assignment is None and default is None:
            raise RefusedError(
                f"{sheet.name} does not say for which assignment its times are. "
                "Say it with --assignment, or add a column `assignment`."
            )
        for row in range(len(sheet.rows)):
            moment = _moment(sheet, row, ZoneInfo(course.timezone))
            described = row_description(sheet, row)
            self.damages += filter(None, (damaged_id(id.text) for id in described.ids))
            if moment is not None:
                name = _assignment(sheet, row, assignment, course, default)
                rows = self._rows.setdefault(name, Directory(TRUSTED_SITE))
                rows.add((row, moment.isoformat()), described)

    def find(self, described: Described, assignment: str) -> str | None:
        """Return the time as ISO-8601; None if no row or several rows match."""
        rows = self._rows.get(assignment)
        row = rows.find(described) if rows else None
        return row and row[1]


def read_times(
    path: Path, course: Course, archives: Sequence[Path], assignment: Assignment | None
) -> SubmissionTimes:
    """Read the times in a CSV file; raises RefusedError if they cannot be determined.

    Without a column `assignment`, all rows are for `assignment`, or for the one in the name of the
    file or archives.
    """
    default = assignment or named_in(path.name, course)
    in_archives = [named_in(archive.name, course) for archive in archives]
    if default is None and in_archives:
        is_common = all(other == in_archives[0] for other in in_archives)
        default = in_archives[0] if is_common else None
    return SubmissionTimes(read_sheet(path), course, default)


def read_moment(text: str) -> datetime:
    """Parse a time in ISO-8601 or in Moodle's English and German formats; raises ValueError for any other.

    The result has an offset if the text has one. `03/04/2026` is rejected because its meaning
    depends on the locale.
    """
    plain = " ".join(text.split())
    match = _IN_WORDS.fullmatch(plain)
    return _in_words(plain, match) if match else read_time(plain).replace(microsecond=0)


def month_of(word: str) -> int | None:
    """Return the number of a month by its name or an abbreviation of at least three letters; None if it is none."""
    plain = word.casefold()
    numbers = {
        number for name, number in _MONTH.items() if len(plain) >= 3 and name.startswith(plain)
    }
    return numbers.pop() if len(numbers) == 1 else None


def _in_words(text: str, match: re.Match[str]) -> datetime:
    """Parse `Friday, 27 November 2026, 11:58 PM`, also with the month first or in German."""
    month = _MONTH.get((match["month"] or match["month_first"]).casefold())
    day = match["day"] or match["day_behind"]
    if month is None:
        raise ValueError(f"no month in {text}")
    hour = int(match["hour"])
    if match["half"]:
        if not 1 <= hour <= 12:
            raise ValueError(f"no hour in {text}")
        hour = hour % 12 + (12 if match["half"].casefold() == "p" else 0)
    clock = f"{hour:02}:{match['minute']}:{match['second'] or '00'}"
    return read_time(f"{match['year']}-{month:02}-{int(day):02} {clock}")


def _moment(sheet: Sheet, row: int, zone: ZoneInfo) -> datetime | None:
    text = sheet.first_filled(row, *TIME_TITLES)
    if text in ("", "-", "–"):
        return None
    try:
        moment = read_moment(text)
        return moment if moment.tzinfo else moment.replace(tzinfo=zone)
    except ValueError:
        whose = next((cell.strip() for cell in sheet.rows[row] if cell.strip()), "")
        raise RefusedError(
            f"{sheet.name}, in the row of {shown(whose)}: {shown(text)!r} is not a time that can be read; "
            "write it like 2026-11-27 23:58, with +01:00 behind it where the offset matters."
        ) from None


def _assignment(
    sheet: Sheet, row: int, column: int | None, course: Course, default: Assignment | None
) -> str:
    text = sheet.cell(row, column)
    if not text and default is not None:
        return default.name
    named = course.find(text) or named_in(text, course)
    if named is None:
        names = _listed([assignment.name for assignment in course.assignments])
        raise RefusedError(
            f"{sheet.name}: the course has no assignment {shown(text)!r}; there are {names}."
        )
    return named.name


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{shown(name)}`" for name in names)
