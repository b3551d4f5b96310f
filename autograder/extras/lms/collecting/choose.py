"""Assign a student's files to assignments, and choose the names under which they are stored."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from autograder.course.config import Assignment, Course
from autograder.extras.lms.raw_submission import TYPED, RawSubmission
from autograder.records import RefusedError
from autograder.submissions.choose import (
    NOTE,
    Chosen,
    Leaf,
    Tree,
    Wanted,
    assignments_in,
    wanted_of,
)
from autograder.submissions.choose import choose as choose_from
from autograder.submissions.entries import is_archive, is_given, is_work, names
from autograder.submissions.files import SOURCES, File, Odd, folder_of, plain_stem, stem, suffix
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
    names = set[str]()
    for raw in submissions:
        names.update(assignments_in(_tree(raw, course), course))
    return course.assignment(names.pop()) if len(names) == 1 else None


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
    tree = _tree(raw, course)
    entries = _files(leaf.entry for leaf in tree.leaves)
    work = [entry for entry in entries if is_work(entry) and not is_given(entry)]
    if raw.problem and assignment is not None:
        choice.odd.append(f"{where}, {assignment.name}: {raw.problem}")
        _keep_unusable(entries, assignment.name, choice, raw.problem)
        return choice
    if not work:
        there = _only(entries)
        kept = " It is kept, and `grade` refuses it." if meant else _NOT_TOLD
        choice.odd.append(f"{where}: {there}; a .py, an .ipynb or an archive is needed.{kept}")
        if meant is not None:
            _keep_unusable(entries, meant.name, choice)
        return choice
    named = {leaf.path: assignments_in(_alone(leaf), course) for leaf in tree.leaves}
    counting = set[str]()
    for target in [assignment.name] if assignment else assignments_in(tree, course):
        wanted = wanted_of(course, target)
        chosen = _outcome(tree, wanted)
        paths = set(chosen.paths) if isinstance(chosen, Chosen) else set()
        counting |= paths
        files = [
            leaf.entry
            for leaf in tree.leaves
            if leaf.entry in work
            and (assignment or leaf.path in paths or target in named[leaf.path])
        ]
        _store(files, tree, wanted, chosen, where, choice)
    if assignment is None:
        for leaf in tree.leaves:
            if leaf.entry in work and not named[leaf.path] and leaf.path not in counting:
                choice.odd.append(
                    f"{where}: {shown(leaf.entry.name)} is not named like an assignment; "
                    "name the assignment with --assignment."
                )
    return choice


def _tree(raw: RawSubmission, course: Course) -> Tree:
    """Return a student's files as a tree, in which earlier files of a name lie in folders of attempts."""
    stems = {assignment.stem for assignment in course.assignments}
    stems |= {assignment.name for assignment in course.assignments}
    by_way: dict[str, list[File]] = {}
    for file in raw.files:
        way = _plain_way(file.name, stems) if raw.is_in_order else file.name
        by_way.setdefault(way, []).append(file)
    placed = list[tuple[str, File]]()
    for way, same in by_way.items():
        for number, file in enumerate(same[:-1], start=1):
            duplicate = f"{stem(way)} ({number}){suffix(way)}"
            placed.append((f"{number}/{way}" if raw.is_in_order else duplicate, file))
        is_attempt = raw.is_in_order and len(same) > 1
        placed.append((f"{len(same)}/{way}" if is_attempt else way, same[-1]))
    return Tree.below(folder_of(placed))


def _files(entries: Iterable[File | Odd]) -> list[File]:
    return [entry for entry in entries if isinstance(entry, File)]


def _alone(leaf: Leaf) -> Tree:
    return Tree((), (leaf,))


def _outcome(tree: Tree, wanted: Wanted) -> Chosen | str:
    """Return what counts, or the reason that nothing does; `grade` opens archives."""
    try:
        return choose_from(tree.without_archives, wanted)
    except RefusedError as refusal:
        return str(refusal)


def _store(
    files: Sequence[File],
    tree: Tree,
    wanted: Wanted,
    chosen: Chosen | str,
    where: str,
    choice: Choice,
) -> None:
    """Keep all of a student's files if `grade` chooses the same among them, otherwise only those that count."""
    stored, replaced = _read(files, wanted, where, choice)
    among_them = _outcome(Tree.below(folder_of(_in_memory(stored))), wanted)
    if isinstance(chosen, str):
        if stored and (among_them == chosen or any(map(is_archive, files))):
            choice.files[wanted.name] = stored
        else:
            if stored:
                choice.odd.append(f"{where}: {chosen}")
            _keep_unusable(files, wanted.name, choice, chosen if stored else "")
        return
    texts = [file.text for file in chosen.files]
    if not isinstance(among_them, Chosen) or [file.text for file in among_them.files] != texts:
        counting = [leaf.entry for leaf in tree.leaves if leaf.path in chosen.paths]
        stored, replaced = _read(_files(counting), wanted, where, choice)
    choice.notes += [f"{where}: {note}" for note in chosen.notes or replaced]
    choice.files[wanted.name] = stored


def _in_memory(stored: Mapping[str, bytes]) -> Iterator[tuple[str, File]]:
    for name, data in stored.items():
        yield name, File(name, partial(_first, data))


def _first(data: bytes, limit: int) -> bytes:
    return data[: limit + 1]


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


def _plain_way(way: str, stems: Collection[str]) -> str:
    """Return the way to a file whose name is a module's with the number of a duplicate, without that number."""
    folder, slash, name = way.rpartition("/")
    if stem(name) in stems or plain_stem(name) not in stems:
        return way
    return f"{folder}{slash}{plain_stem(name)}{suffix(name)}"


def _read(
    entries: Sequence[File], wanted: Wanted, where: str, choice: Choice
) -> tuple[dict[str, bytes], list[str]]:
    """Return the contents of files by the names under which they are stored, and which names stand for several."""
    taken: dict[str, bytes] = {}
    replaced = list[str]()
    for entry in entries:
        try:
            data = entry.read()
            if not data and suffix(entry.name) not in SOURCES:
                raise RefusedError(
                    f"{shown(entry.name)} cannot be taken out of this archive; unpack it first."
                )
        except RefusedError as refusal:
            choice.odd.append(f"{where}: {refusal}")
            continue
        name = _plain_file(_plain_way(entry.name, (wanted.stem, wanted.name)))
        if taken.get(name, data) != data:
            replaced.append(f"{name} is there more than once; the last one counts.")
        taken[name] = data
    return taken, replaced


def _plain_file(name: str) -> str:
    return safe_name(stem(name)) + suffix(name)


def _words(text: str) -> str:
    return "_".join(re.findall(r"[a-z]+|\d+", text.lower()))
