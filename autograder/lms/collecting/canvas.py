"""Canvas, "Download Submissions": files called `lovelaceada_LATE_1234_5678_masked_heads.py`.

The numbers are Canvas's own for the student and for the file. A text or a link that was typed has no second number:
`lovelaceada_1234_text.html`, `lovelaceada_1234_link.html`. Anonymous grading leaves out the name, and puts a made-up id
in place of the student's. Work of a group has the group's name, and the number of one of its members.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from autograder.lms.collecting.raw_submission import Findings, RawSubmission
from autograder.submissions.files import Entry, File, Odd
from autograder.text.names import shown

NAME = re.compile(
    r"(?:(?P<name>(?:[^\W_]|_(?!LATE_|late_|\d))*?)_)??(?P<late>(?:LATE|late)_)?(?P<student>\d+|anon_[^\W_]+)"
    r"_(?:(?P<number>\d+)_(?P<file>.+)|(?P<typed>(?:text|link)\.html))",
    re.DOTALL,
)


def fits(entries: Sequence[Entry]) -> bool:
    """Whether these look like a download of Canvas."""
    files = [entry for entry in entries if isinstance(entry, File | Odd)]
    return 2 * sum(NAME.fullmatch(file.name) is not None for file in files) >= len(entries) > 0


def read(entries: Sequence[Entry]) -> Findings:
    """Who handed in what; whatever has another name is odd."""
    found = Findings()
    students: dict[str, list[tuple[int, re.Match[str], File]]] = {}
    for entry in entries:
        match = NAME.fullmatch(entry.name)
        if match is None or not isinstance(entry, File):
            found.odd.append(f"{shown(entry.name)} has no name as Canvas gives them.")
        else:
            number = int((match["number"] or "0")[:18])
            students.setdefault(match["student"], []).append((number, match, entry))
    for student, items in students.items():
        items.sort(key=lambda item: item[0])
        newest = items[-1][1]
        files = tuple(replace(file, name=_name(match)) for _, match, file in items)
        name = newest["name"] or ""
        found.handed.append(
            RawSubmission(
                (student, name), files, name=name, late=newest["late"] is not None, where=name or student
            )
        )
    return found


def _name(match: re.Match[str]) -> str:
    """What the student called the file; `typed_text.html` or `typed_link.html` where there was none."""
    return match["file"] or f"typed_{match['typed']}"
