"""Brightspace, "Download All Submissions": folders `123456-789012 - Ada Lovelace - Nov 27, 2026 1158 PM/`.

The numbers are those of the student and of the assignment's folder. Each attempt has a folder of
its own; the latest one counts. Some versions write the same before the names of files, with another
` - ` between.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from autograder.extras.lms.collecting.collector import Collector
from autograder.extras.lms.collecting.times import month_of
from autograder.extras.lms.identity import Described, Id
from autograder.extras.lms.raw_submission import Findings, RawSubmission, in_attempts
from autograder.extras.lms.roster import Roster
from autograder.submissions.below import files_below
from autograder.submissions.files import Entry, File, Odd
from autograder.text.names import shown
from autograder.text.wording import counted

SITE = "brightspace"
INDEX = "index.html"
NAME = re.compile(
    r"(?P<student>\d+)-\d+ - (?P<name>.+?) - (?P<time>[^-]*\d{4}[^-]*?\d{3,4}(?: [AP]M)?)(?: - (?P<file>.+))?",
    re.DOTALL,
)


class BrightspaceCollector(Collector):
    """Brightspace: folders named after number, student and time."""

    def fits(self, entries: Sequence[Entry]) -> bool:
        """Whether these entries look like a download from Brightspace."""
        return (
            2 * sum(NAME.fullmatch(entry.name) is not None for entry in entries) >= len(entries) > 0
        )

    def read(self, entries: Sequence[Entry], source: Path, roster: Roster) -> Findings:
        """Return the latest attempt of each student; entries with other names are reported as odd."""
        findings = Findings()
        attempts: dict[tuple[str, str], dict[datetime, list[File]]] = {}
        for entry in entries:
            match = NAME.fullmatch(entry.name)
            moment = _moment(match["time"]) if match else None
            if match is None or moment is None or isinstance(entry, Odd):
                if entry.name != INDEX:
                    findings.odd.append(
                        f"{shown(entry.name)} is not named like an entry from Brightspace."
                    )
                continue
            files = attempts.setdefault((match["student"], match["name"]), {}).setdefault(
                moment, []
            )
            if isinstance(entry, File):
                files.append(replace(entry, name=match["file"] or entry.name))
            else:
                files += files_below(entry, findings.odd)
        for (student, name), by_time in attempts.items():
            latest = max(by_time)
            if len(by_time) > 1:
                findings.notes.append(
                    f"{shown(name)} has {counted(len(by_time), 'attempt')}; the one of {latest} counts, "
                    "unless only an earlier one holds an answer."
                )
            findings.handed.append(
                RawSubmission(
                    student,
                    in_attempts(by_time),
                    Described((Id(student, SITE),), (name,)),
                    SITE,
                    name=name,
                    where=name,
                    file_time=latest.isoformat(),
                )
            )
        return findings


def _moment(text: str) -> datetime | None:
    """Parse `Nov 27, 2026 1158 PM`, also with the day first or without a half of the day; None if that fails."""
    words = re.findall(r"\w+", text)
    months = list(filter(None, map(month_of, words)))
    numbers = [word for word in words if word.isascii() and word.isdecimal()]
    if len(months) != 1 or len(numbers) != 3:
        return None
    day, year, clock = numbers
    hour = int(clock[:-2])
    minute = int(clock[-2:])
    if words[-1] in ("AM", "PM"):
        hour = hour % 12 + 12 * (words[-1] == "PM")
    try:
        return datetime(int(year), months[0], int(day), hour, minute)
    except ValueError:
        return None
