"""Canvas, "Download Submissions": files named `lovelaceada_LATE_1234_5678_masked_heads.py`.

The numbers are Canvas's ids of the student and of the file. A typed text or link has no second number:
`lovelaceada_1234_text.html`, `lovelaceada_1234_link.html`. Anonymous grading omits the name and replaces the student's
id. A group's submission has the group's name and the number of one member.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from autograder.lms.collecting.raw_submission import Findings, RawSubmission
from autograder.submissions.files import Entry, File, Odd
from autograder.text.names import shown

NAME = re.compile(
    r"(?:(?P<name>(?:[^\W_]|_(?!LATE_|late_|\d))*?)_)??(?P<late>(?:LATE|late)_)?(?P<student>\d+|anon_[^\W_]+)"
    r"_(?:(?P<number>\d+)_(?P<file>.+)|(?P<typed>(?:text|link)\.html))",
    re.DOTALL,
)


def fits(entries: Sequence[Entry]) -> bool:
    """Whether these entries look like a download from Canvas."""
    files = [entry for entry in entries if isinstance(entry, File | Odd)]
    return 2 * sum(NAME.fullmatch(file.name) is not None for file in files) >= len(entries) > 0


def read(entries: Sequence[Entry], source: Path) -> Findings:
    """Return the submissions; files with other names are reported as odd."""
    found = Findings()
    students: dict[str, list[tuple[int, re.Match[str], File]]] = {}
    for entry in entries:
        match = NAME.fullmatch(entry.name)
        if match is None or not isinstance(entry, File):
            found.odd.append(f"{shown(entry.name)} is not named like a file from Canvas.")
        else:
            number = int((match["number"] or "0")[:18])
            students.setdefault(match["student"], []).append((number, match, entry))
    for student, items in students.items():
        items.sort(key=lambda item: item[0])
        newest = items[-1][1]
        files = tuple(replace(file, name=match["file"] or f"typed_{match['typed']}") for _, match, file in items)
        name, late = newest["name"] or "", newest["late"] is not None
        found.handed.append(RawSubmission((student, name), files, name=name, late=late, where=name or student))
    return found
