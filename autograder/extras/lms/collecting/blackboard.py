"""Blackboard, "Assignment File Download": files named `Masked heads_ada1_attempt_2026-11-27-23-58-10_masked_heads.py`.

The assignment's title, the student's login and the time of the attempt stand before the file's
name. A text of the same name without a file names the student: `Name: Ada Lovelace (ada1)`. The
latest attempt counts.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from autograder.extras.lms.collecting.collector import Collector
from autograder.extras.lms.identity import Described, Id
from autograder.extras.lms.raw_submission import Findings, RawSubmission, in_attempts
from autograder.extras.lms.roster import Roster
from autograder.records import RefusedError
from autograder.submissions.files import Entry, File
from autograder.text.names import shown
from autograder.text.wording import counted

SITE = "blackboard"
NAME = re.compile(
    r"(?P<head>.+?)_attempt_(?P<time>\d{4}(?:-\d\d){5})(?:_(?P<file>.+)|\.txt)",
    re.DOTALL | re.ASCII,
)
_STUDENT = re.compile(r"[^:]*:(?P<name>.*)\((?P<login>[^()]+)\)\s*")


@dataclass(frozen=True)
class _Student:
    login: str
    name: str = ""


class BlackboardCollector(Collector):
    """Blackboard: files named after student and attempt."""

    def fits(self, entries: Sequence[Entry]) -> bool:
        """Whether these entries look like a download from Blackboard."""
        return (
            2 * sum(NAME.fullmatch(entry.name) is not None for entry in entries) >= len(entries) > 0
        )

    def read(self, entries: Sequence[Entry], source: Path, roster: Roster) -> Findings:
        """Return the latest attempt of each student; entries with other names are reported as odd."""
        findings = Findings()
        attempts: dict[str, dict[str, list[File]]] = {}
        texts: dict[str, File] = {}
        for entry in entries:
            match = NAME.fullmatch(entry.name)
            if match is None or not isinstance(entry, File):
                findings.odd.append(
                    f"{shown(entry.name)} is not named like a file from Blackboard."
                )
                continue
            files = attempts.setdefault(match["head"], {}).setdefault(match["time"], [])
            if match["file"]:
                files.append(replace(entry, name=match["file"]))
            else:
                texts[match["head"]] = entry
        for head, student in _students(attempts, texts, findings).items():
            by_time = attempts[head]
            latest = max(by_time)
            where = student.name or student.login
            if len(by_time) > 1:
                findings.notes.append(
                    f"{shown(where)} has {counted(len(by_time), 'attempt')}; the one of {latest} counts, "
                    "unless only an earlier one holds an answer."
                )
            names = (student.name,) if student.name else ()
            findings.handed.append(
                RawSubmission(
                    student.login,
                    in_attempts(by_time),
                    Described((Id(student.login, SITE),), names),
                    SITE,
                    name=student.name,
                    where=where,
                    file_time=latest,
                )
            )
        return findings


def _students(
    heads: Iterable[str], texts: Mapping[str, File], findings: Findings
) -> dict[str, _Student]:
    """Return whose attempts these are, as the first lines of Blackboard's texts say.

    Without a text, the login is what follows the title that the others have; a login can hold
    underscores as well. Those that would have one login are reported as odd.
    """
    named = {head: _told(head, texts[head]) for head in heads if head in texts}
    students = {head: student for head, student in named.items() if student is not None}
    titles = {head.removesuffix(f"_{student.login}") for head, student in students.items()}
    title = titles.pop() if len(titles) == 1 else ""
    for head in heads:
        if head not in students:
            behind = head.removeprefix(f"{title}_")
            students[head] = _Student(behind if title and behind != head else _last(head))
    shared = Counter(student.login for student in students.values())
    for head, student in list(students.items()):
        if shared[student.login] > 1 and named.get(head) is None:
            findings.odd.append(
                f"{shown(head)} was left out: its student is not clear, as Blackboard's text with the name is missing."
            )
            del students[head]
    return students


def _told(head: str, text: File) -> _Student | None:
    match = _STUDENT.fullmatch(_first_line(text))
    if match is None or not head.endswith(f"_{match['login']}"):
        return None
    return _Student(match["login"], match["name"].strip())


def _last(head: str) -> str:
    return head.rpartition("_")[2]


def _first_line(text: File) -> str:
    try:
        lines = text.read().decode("utf-8-sig", "replace").splitlines()
    except RefusedError:
        return ""
    return lines[0] if lines else ""
