"""Canvas, "Download Submissions": files named `lovelaceada_LATE_1234_5678_masked_heads.py`.

The numbers are Canvas's ids of the student and of the file. A typed text or link has no second
number: `lovelaceada_1234_text.html`, `lovelaceada_1234_link.html`. Anonymous grading omits the name
and replaces the student's id. A group's submission has the group's name and the number of one
member.

Students choose their names and those of their files, so `anna_2_303_9003_x.py` can be read in two
ways: as the file `9003_x.py` of student 2, or as the file `x.py` of the student 303 who is called
`anna_2`.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from autograder.extras.lms.collecting.collector import Collector
from autograder.extras.lms.identity import Described, Id, is_word_character, plain, same_name
from autograder.extras.lms.raw_submission import Findings, RawSubmission
from autograder.extras.lms.roster import Roster
from autograder.submissions.files import Entry, File, Odd
from autograder.text.names import shown

SITE = "canvas"
ANONYMOUS = "anon"
TYPED = ("text.html", "link.html")
NEAR = 4  # how many times larger or smaller a number of the same kind can be
_LATE = ("LATE", "late")
_NUMBER = re.compile(r"[1-9]\d*", re.ASCII)
_IN_A_NAME = re.compile(r"_\d+_", re.ASCII)  # Canvas takes these underscores out of names
_ANONYMOUS_ID = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Reading:
    """One way to read the name of a file: whose it is, its number on the site, 0 if it was typed, and its own name."""

    name: str
    student: str
    number: int
    file: str
    late: bool = False


def readings(text: str) -> list[Reading]:
    """Return the ways in which Canvas can have made this name; empty if it is not from Canvas."""
    pieces = text.split("_")
    ways = itertools.chain.from_iterable(
        _reading(pieces, start) for start in range(len(pieces) - 1)
    )
    return [reading for reading in ways if _can_be_a_name(reading.name)]


def _reading(pieces: Sequence[str], start: int) -> Iterator[Reading]:
    """Yield the way to read a file's name in which the student's id begins with this piece, if there is one."""
    before = list(pieces[:start])
    late = bool(before) and before[-1] in _LATE
    if late:
        before.pop()
    student = pieces[start]
    rest = pieces[start + 1 :]
    if student == ANONYMOUS and not before and _ANONYMOUS_ID.fullmatch(rest[0]):
        student = f"{ANONYMOUS}_{rest[0]}"
        rest = rest[1:]
    elif not _NUMBER.fullmatch(student):
        return
    name = "_".join(before)
    if "_".join(rest) in TYPED:
        yield Reading(name, student, 0, f"typed_{rest[0]}", late)
    elif len(rest) > 1 and _NUMBER.fullmatch(rest[0]) and "_".join(rest[1:]):
        yield Reading(name, student, int(rest[0][:18]), "_".join(rest[1:]), late)


def _can_be_a_name(name: str) -> bool:
    return all(map(is_word_character, name)) and not _IN_A_NAME.search(name)


class CanvasCollector(Collector):
    """Canvas: files named after student, number and file."""

    def fits(self, entries: Sequence[Entry]) -> bool:
        """Whether these entries look like a download from Canvas."""
        files = [entry for entry in entries if isinstance(entry, File | Odd)]
        return 2 * sum(bool(readings(file.name)) for file in files) >= len(entries) > 0

    def read(self, entries: Sequence[Entry], source: Path, roster: Roster) -> Findings:
        """Return the submissions; files with other names, and those that can be of two students, are reported as odd."""
        findings = Findings()
        possible: dict[str, list[Reading]] = {}
        files: dict[str, File] = {}
        for entry in entries:
            ways = readings(entry.name)
            if not ways or not isinstance(entry, File):
                findings.odd.append(f"{shown(entry.name)} is not named like a file from Canvas.")
                continue
            possible[entry.name] = ways
            files[entry.name] = entry
        students: dict[str, list[tuple[Reading, File]]] = {}
        for name, way in _chosen(possible, roster, findings).items():
            students.setdefault(way.student, []).append((way, files[name]))
        for student, items in students.items():
            findings.handed.append(_handed(student, items))
        return findings


def _chosen(
    possible: dict[str, list[Reading]], roster: Roster, findings: Findings
) -> dict[str, Reading]:
    """Return how each name is read.

    The names with one reading, and the roster, tell who is a student, and how large the numbers
    are.
    """
    clear = [ways[0] for ways in possible.values() if len(ways) == 1]
    names = {way.student: way.name for way in clear}
    numbers = [way.number for way in clear if way.number]
    students = [int(way.student) for way in clear if way.student.isdecimal()]
    chosen = {}
    for name, ways in possible.items():
        fitting = [
            way for way in ways if plain(names.get(way.student, way.name)) == plain(way.name)
        ]
        sized = [
            way
            for way in fitting
            if _is_near(way.number, numbers) and _is_near(_number(way.student), students)
        ]
        of_known_students = [
            way for way in sized if way.student in names or _is_listed(way, roster)
        ]
        best = next((some for some in (of_known_students, sized, fitting) if len(some) == 1), None)
        if best is None:
            whose = " or ".join(way.student for way in ways)
            findings.odd.append(
                f"{shown(name)} can be of student {whose}; it is left out. A roster with a column `canvas` of "
                "Canvas's numbers tells whose it is."
            )
        else:
            chosen[name] = best[0]
    return chosen


def _is_listed(way: Reading, roster: Roster) -> bool:
    """Whether the roster has this student, called so."""
    person = roster.find(_described(way))
    return person is not None and any(same_name(way.name, name) for name in person.identity.names)


def _described(way: Reading) -> Described:
    return Described((Id(way.student, SITE),), (way.name,) if way.name else ())


def _number(student: str) -> int:
    return int(student) if student.isdecimal() else 0


def _is_near(number: int, others: Sequence[int]) -> bool:
    """Whether a number is as large as those of the other files; 0 stands for none.

    Canvas counts them through.
    """
    if not number or not others:
        return True
    return min(others) <= number * NEAR and number <= max(others) * NEAR


def _handed(student: str, items: list[tuple[Reading, File]]) -> RawSubmission:
    items.sort(key=lambda item: item[0].number)
    newest = items[-1][0]
    files = tuple(replace(file, name=way.file) for way, file in items)
    return RawSubmission(
        student,
        files,
        _described(newest),
        SITE,
        name=newest.name,
        late=newest.late,
        attempt=newest.number or None,
        where=newest.name or student,
        is_in_order=True,
    )
