"""Moodle, "Download all submissions": `Ada Lovelace_657831_assignsubmission_file/masked_heads.py`.

The number is that of `Participant 657831` in the grading worksheet. Without folders, the file's
name follows the same prefix after another underscore; texts that students typed are named
`onlinetext`. A group's submission has the same form with the group's name and number, or `Default
group` without a number. An anonymous submission is named `Participant_657831`, in the site's
language.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from autograder.extras.lms.collecting.collector import Collector
from autograder.extras.lms.identity import Described, Id
from autograder.extras.lms.raw_submission import Findings, RawSubmission, newest
from autograder.extras.lms.roster import Roster, is_participant_word
from autograder.submissions.below import files_below
from autograder.submissions.files import Entry, File, Odd
from autograder.text.names import shown

SITE = "moodle"
MARK = "_assignsubmission_"
NAME = re.compile(
    r"(?P<name>.+?)(?:_(?P<number>\d+))?_assignsubmission_(?:file|onlinetext)(?:_(?P<file>.*))?",
    re.DOTALL,
)


class MoodleCollector(Collector):
    """Moodle: a folder for each participant."""

    def fits(self, entries: Sequence[Entry]) -> bool:
        """Whether these entries look like a download from Moodle."""
        return (
            2 * sum(NAME.fullmatch(entry.name) is not None for entry in entries) >= len(entries) > 0
        )

    def read(self, entries: Sequence[Entry], source: Path, roster: Roster) -> Findings:
        """Return the submissions, including typed texts; entries with other names are reported as odd."""
        findings = Findings()
        students: dict[tuple[str, str], list[File]] = {}
        for entry in entries:
            match = NAME.fullmatch(entry.name)
            if match is None or isinstance(entry, Odd):
                findings.odd.append(f"{shown(entry.name)} is not named like an entry from Moodle.")
                continue
            if (
                entry.name.count(MARK) > 1
            ):  # students choose their own names and those of their files
                findings.odd.append(
                    f"{shown(entry.name)} contains Moodle's mark `{MARK}` twice, so its student is ambiguous."
                )
                continue
            files = students.setdefault((match["number"] or match["name"], match["name"]), [])
            if isinstance(entry, File):
                files.append(replace(entry, name=match["file"] or entry.name))
            else:
                files += files_below(entry, findings.odd)
        for (key, name), files in students.items():
            ids = (Id(key, SITE),) if key != name else ()
            names = () if is_participant_word(name) else (name,)
            findings.handed.append(
                RawSubmission(
                    key,
                    tuple(files),
                    Described(ids, names),
                    SITE if ids else "",
                    name=name,
                    where=name,
                    file_time=newest(files),
                )
            )
        return findings
