"""Moodle, "Download all submissions": `Ada Lovelace_657831_assignsubmission_file/masked_heads.py`.

The number is the one of `Participant 657831` in the grading worksheet. Without folders, the file's name follows the
same beginning after a further underscore; texts that students typed are called `onlinetext`. Work of a group looks the
same, with the name and the number of the group, or `Default group` and no number. Anonymous work is called
`Participant_657831`, in the site's language.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from autograder.lms.collecting.raw_submission import Findings, RawSubmission, files_below
from autograder.submissions.files import Entry, File, Odd
from autograder.text.names import shown

MARK = "_assignsubmission_"
HIDDEN_NAMES = ("Participant", "Teilnehmerin", "Teilnehmer/in")
NAME = re.compile(
    r"(?P<name>.+?)(?:_(?P<number>\d+))?_assignsubmission_(?:file|onlinetext)(?:_(?P<file>.*))?",
    re.DOTALL,
)


def fits(entries: Sequence[Entry]) -> bool:
    """Whether these look like a download of Moodle."""
    return 2 * sum(NAME.fullmatch(entry.name) is not None for entry in entries) >= len(entries) > 0


def read(entries: Sequence[Entry]) -> Findings:
    """Who handed in what, typed texts among it; whatever has another name is odd."""
    found = Findings()
    students: dict[tuple[str, str], list[File]] = {}
    for entry in entries:
        match = NAME.fullmatch(entry.name)
        if match is None or isinstance(entry, Odd):
            found.odd.append(f"{shown(entry.name)} has no name as Moodle gives them.")
            continue
        if entry.name.count(MARK) > 1:  # students choose their names, and those of files
            found.odd.append(
                f"{shown(entry.name)} holds Moodle's mark `{MARK}` twice; whose it is, is not clear."
            )
            continue
        student = match["number"] or match["name"], match["name"]
        files = students.setdefault(student, [])
        files += _files(entry, match["file"], found.odd)
    for student, files in students.items():
        name = student[1]
        named = name not in HIDDEN_NAMES
        found.handed.append(RawSubmission(student, tuple(files), name=name, where=name, maybe_group=named))
    return found


def _files(entry: Entry, name: str | None, odd: list[str]) -> list[File]:
    if isinstance(entry, File):
        return [replace(entry, name=name or entry.name)]
    return [] if isinstance(entry, Odd) else list(files_below(entry, odd))
