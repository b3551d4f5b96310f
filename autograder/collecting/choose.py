"""Which of the files that a student handed in go to which assignment, and under what name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from autograder.collecting.handed import Handed
from autograder.course import Assignment, Course
from autograder.records import Refused
from autograder.submissions.files import FILE_BYTES, SOURCES, File, stem, suffix, too_large
from autograder.submissions.names import safe_name, shown
from autograder.submissions.take import is_given, is_work, names

_COUNTED = re.compile(r"[-_ ]?(?:\d+|\(\d+\))$")  # what stands behind a name that was there already


@dataclass
class Choice:
    """For each assignment the files, by name; and sentences: what is odd, what is only to be known."""

    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    odd: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def named_in(text: str, course: Course) -> Assignment | None:
    """The assignment that the name of an archive or a folder speaks of, if it is one alone."""
    words = f"_{_words(text)}_"
    spellings = {a.name: (a.name, a.stem, _words(a.title)) for a in course.assignments}
    found = {
        name: max((len(s) for s in some if f"_{s}_" in words), default=0) for name, some in spellings.items()
    }
    best = max(found.values(), default=0)
    longest = [name for name, length in found.items() if length == best]
    return course.assignment(longest[0]) if best and len(longest) == 1 else None


def choose(handed: Handed, course: Course, assignment: Assignment | None) -> Choice:
    """Sort a student's files; `assignment` is the one that they are for, None when their names have to tell."""
    choice = Choice()
    where = shown(handed.where)
    work = [file for file in handed.files if is_work(file) and not is_given(file)]
    if not work:
        there = f"there is only {names(handed.files)}" if handed.files else "nothing is there"
        choice.odd.append(f"{where}: {there}; a .py, an .ipynb or an archive is needed.")
    for target, files in _by_assignment(work, course, assignment, where, choice).items():
        taken = _read(files, where, choice)
        if taken:
            choice.files[target] = taken
    return choice


def _by_assignment(
    work: Sequence[File], course: Course, assignment: Assignment | None, where: str, choice: Choice
) -> dict[str, list[File]]:
    stems = {name: a.name for a in course.assignments for name in (a.stem, a.name)}
    shelves: dict[str, list[File]] = {}
    for file in work:
        file = _plainly_named(file, stems)
        if assignment is not None:
            shelves.setdefault(assignment.name, []).append(file)
        elif stem(file.name) in stems:
            shelves.setdefault(stems[stem(file.name)], []).append(file)
        else:
            choice.odd.append(
                f"{where}: {shown(file.name)} is called like no assignment; say which it is with --assignment."
            )
    if assignment is not None and shelves:
        files = shelves[assignment.name]
        expected = [file for file in files if file.name in {f"{assignment.stem}{end}" for end in SOURCES}]
        shelves[assignment.name] = expected or files
    return shelves


def _plainly_named(file: File, stems: dict[str, str]) -> File:
    """The file without a number behind its name, when it is then called like an assignment."""
    whole = stem(file.name)
    plain = _COUNTED.sub("", whole)
    if whole in stems or plain not in stems:
        return file
    return File(f"{plain}{suffix(file.name)}", file.load, file.path)


def _read(files: Sequence[File], where: str, choice: Choice) -> dict[str, bytes]:
    """The bytes by name; of two versions of the same name the later one counts."""
    taken: dict[str, bytes] = {}
    for file in files:
        try:
            data = file.load()
            if len(data) > FILE_BYTES:
                raise Refused(too_large(file.name, FILE_BYTES))
            if not data and suffix(file.name) not in SOURCES:
                raise Refused(f"{shown(file.name)} cannot be taken out of this archive; unpack it first.")
        except Refused as refusal:
            choice.odd.append(f"{where}: {refusal}")
            continue
        name = safe_name(stem(file.name)) + suffix(file.name)
        if taken.get(name, data) != data:
            choice.notes.append(f"{where}: {name} is there more than once; the last one counts.")
        taken[name] = data
    return taken


def _words(text: str) -> str:
    return "_".join(re.findall(r"[a-z]+|\d+", text.lower()))
