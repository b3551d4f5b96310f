"""Assign a student's files to assignments, and choose the names under which they are stored."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from autograder.course.config import Assignment, Course
from autograder.extras.lms.raw_submission import TYPED, RawSubmission
from autograder.records import RefusedError
from autograder.submissions.files import SOURCES, File, plain_stem, stem, suffix
from autograder.submissions.take import NOTE, is_given, is_work, names
from autograder.text.files import numbered
from autograder.text.names import safe_name, shown

MOST_KEPT = 20  # maximum number of unusable files of one student
_NOT_TOLD = " Name the assignment with --assignment to keep it, so that `grade` can refuse it."


@dataclass
class Choice:
    """The files of each assignment by name, with warnings and notes.

    `unusable` holds the assignments whose files `grade` will refuse. They are stored all the same,
    so that every student with a submission appears in the grades.
    """

    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    unusable: set[str] = field(default_factory=set)
    odd: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def named_in(text: str, course: Course) -> Assignment | None:
    """Return the assignment in the name of an archive or folder, if it contains exactly one."""
    words = f"_{_words(text)}_"
    spellings = {a.name: (a.name, a.stem, _words(a.title)) for a in course.assignments}
    length_of = {}
    for name, its_spellings in spellings.items():
        contained = [spelling for spelling in its_spellings if f"_{spelling}_" in words]
        length_of[name] = max(map(len, contained), default=0)
    best = max(length_of.values(), default=0)
    longest = [name for name, length in length_of.items() if length == best]
    return course.assignment(longest[0]) if best and len(longest) == 1 else None


def the_only_one(submissions: Iterable[RawSubmission], course: Course) -> Assignment | None:
    """Return the assignment of all files with a known name, if there is exactly one."""
    stems = _stems(course)
    names: set[str] = set()
    for submission in submissions:
        work = filter(is_work, submission.files)
        names.update(stem(_plainly_named(file, stems).name) for file in work)
    assignments = {stems[name] for name in names if name in stems}
    return course.assignment(assignments.pop()) if len(assignments) == 1 else None


def choose(
    raw: RawSubmission,
    course: Course,
    assignment: Assignment | None,
    meant: Assignment | None = None,
) -> Choice:
    """Sort a student's files by assignment; with `assignment` None, the files' names determine it.

    `meant` is the assignment for unusable files: the one that the rest of the class handed in.
    """
    meant = assignment or meant
    choice = Choice()
    where = shown(raw.where)
    work = [file for file in raw.files if is_work(file) and not is_given(file)]
    if raw.problem and assignment is not None:
        choice.odd.append(f"{where}, {assignment.name}: {raw.problem}")
        _keep_unusable(raw.files, assignment.name, choice, raw.problem)
        return choice
    if not work:
        there = _only(raw.files)
        kept = " It is kept, and `grade` refuses it." if meant else _NOT_TOLD
        choice.odd.append(f"{where}: {there}; a .py, an .ipynb or an archive is needed.{kept}")
        if meant is not None:
            _keep_unusable(raw.files, meant.name, choice)
    for target, files in _by_assignment(work, course, assignment, where, choice).items():
        taken = _read(files, where, choice)
        if taken:
            choice.files[target] = taken
        else:
            _keep_unusable(files, target, choice)
    return choice


def _only(files: Sequence[File]) -> str:
    typed = sorted({TYPED[file.name] for file in files if file.name in TYPED})
    if files and all(file.name in TYPED for file in files):
        return f"{' and '.join(typed)} was handed in, no file"
    return f"there is only {names(files)}" if files else "nothing is there"


def _keep_unusable(
    files: Sequence[File], assignment: str, choice: Choice, reason: str = ""
) -> None:
    """Store unusable files as they are, limited in number and size, with a note for `grade` of the `reason`.

    Without a reason, `grade` finds it in the files; if none can be stored, the note says why.
    """
    choice.unusable.add(assignment)
    kept: dict[str, bytes] = {}
    for file in files[:MOST_KEPT]:
        try:
            data = file.read()
        except RefusedError as refusal:
            reason = reason or str(refusal)
            continue
        kept[_free_name(_plain_file(file.name), data, kept)] = data
    if kept and not reason:
        choice.files[assignment] = kept
        return
    note = reason or "Nothing was handed in."
    choice.files[assignment] = kept | {NOTE: f"{note}\n".encode("utf-8", "replace")}


def _free_name(name: str, data: bytes, kept: dict[str, bytes]) -> str:
    """Return the name, with a number if another file is kept under it."""
    free = (candidate.name for candidate in numbered(Path(name)))
    return next(candidate for candidate in free if kept.get(candidate, data) == data)


def _by_assignment(
    work: Sequence[File], course: Course, assignment: Assignment | None, where: str, choice: Choice
) -> dict[str, list[File]]:
    stems = _stems(course)
    files = [_plainly_named(file, stems) for file in work]
    if assignment is not None:
        # `grade` decides which of them holds the work
        return {assignment.name: files} if files else {}
    grouped: dict[str, list[File]] = {}
    for file in files:
        if stem(file.name) in stems:
            grouped.setdefault(stems[stem(file.name)], []).append(file)
        else:
            choice.odd.append(
                f"{where}: {shown(file.name)} is not named like an assignment; name the assignment with --assignment."
            )
    return grouped


def _stems(course: Course) -> dict[str, str]:
    return {name: a.name for a in course.assignments for name in (a.stem, a.name)}


def _plainly_named(file: File, stems: dict[str, str]) -> File:
    whole = stem(file.name)
    plain = plain_stem(file.name)
    if whole in stems or plain not in stems:
        return file
    return replace(file, name=f"{plain}{suffix(file.name)}")


def _read(files: Sequence[File], where: str, choice: Choice) -> dict[str, bytes]:
    taken: dict[str, bytes] = {}
    for file in files:
        try:
            data = file.read()
            if not data and suffix(file.name) not in SOURCES:
                raise RefusedError(
                    f"{shown(file.name)} cannot be taken out of this archive; unpack it first."
                )
        except RefusedError as refusal:
            choice.odd.append(f"{where}: {refusal}")
            continue
        name = _plain_file(file.name)
        if taken.get(name, data) != data:
            choice.notes.append(f"{where}: {name} is there more than once; the last one counts.")
        taken[name] = data
    return taken


def _plain_file(name: str) -> str:
    return safe_name(stem(name)) + suffix(name)


def _words(text: str) -> str:
    return "_".join(re.findall(r"[a-z]+|\d+", text.lower()))
