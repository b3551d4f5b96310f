"""Which files of a repository are the work for which assignment."""

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from autograder.course.config import Assignment, Course
from autograder.extras.git.store import ALGORITHMS, TreeEntry, object_name
from autograder.submissions.files import DEPTH, SOURCES, plain_stem, suffix
from autograder.submissions.take import is_furniture
from autograder.text.names import shown

MOST_FILES = 20  # of one assignment


@dataclass(frozen=True)
class Work:
    """The files of one assignment in a commit; `problem` says why they cannot be used, `note` what was left out."""

    assignment: str
    entries: tuple[TreeEntry, ...] = ()
    problem: str = ""
    note: str = ""


def released_blobs(course: Course) -> dict[str, frozenset[str]]:
    """Return git's names of the files that students received, by assignment."""
    blobs = {}
    for assignment in course.assignments:
        files = (course.stub_file(assignment), course.notebook_file(assignment))
        contents = [file.read_bytes() for file in files if file.is_file()]
        blobs[assignment.name] = frozenset(
            itertools.starmap(object_name, itertools.product(ALGORITHMS, ["blob"], contents))
        )
    return blobs


def work_in(
    tree: Sequence[TreeEntry],
    course: Course,
    assignment: Assignment | None,
    path: str,
    released: Mapping[str, Collection[str]],
) -> list[Work]:
    """Return the work in a commit: for this assignment, or for all of which there is more than the released files."""
    inside = _inside(tree, path)
    if assignment is not None:
        return [_of(inside, course, assignment) or _any_sources(inside, assignment)]
    works = [_of(inside, course, candidate) for candidate in course.assignments]
    return [
        work
        for work in works
        if work is not None and not _is_untouched(work, released[work.assignment])
    ]


def _inside(tree: Sequence[TreeEntry], path: str) -> list[TreeEntry]:
    """Return the entries below a folder of the repository, without those of programs and those that lie too deep."""
    folder = "".join(f"{part}/" for part in path.split("/") if part not in ("", "."))
    entries = []
    for entry in tree:
        parts = entry.path.split("/")
        if (
            entry.path.startswith(folder)
            and len(parts) <= DEPTH
            and not any(map(is_furniture, parts))
        ):
            entries.append(entry)
    return entries


def _of(inside: Sequence[TreeEntry], course: Course, assignment: Assignment) -> Work | None:
    """Return the work whose files have the expected names, from the folder that is meant if there are several."""
    folders: dict[str, list[TreeEntry]] = {}
    for entry in inside:
        file = PurePosixPath(entry.path)
        if entry.odd and file.name == assignment.name:
            return Work(
                assignment.name,
                problem=f"{shown(entry.path)} is {entry.odd}. Put the files themselves there.",
            )
        if suffix(file.name) in SOURCES and plain_stem(file.name) in (
            assignment.stem,
            assignment.name,
        ):
            folders.setdefault(str(file.parent), []).append(entry)
    if not folders:
        return None
    place = min(folders, key=lambda folder: _rank(folder, assignment))
    others = [
        folder for folder in folders if folder != place and _is_near(folder, assignment, course)
    ]
    note = (
        f"the work in {_called(place)} counts; there is more in {_called(others[0])}."
        if others
        else ""
    )
    return _usable(folders[place], assignment, note)


def _called(folder: str) -> str:
    return "the top folder" if folder == "." else shown(folder)


def _any_sources(inside: Iterable[TreeEntry], assignment: Assignment) -> Work:
    """Return all programs and notebooks as the work, if none has the expected name; `grade` chooses among them."""
    sources = [entry for entry in inside if suffix(entry.path) in SOURCES]
    return _usable(sources[:MOST_FILES], assignment, "")


def _usable(entries: list[TreeEntry], assignment: Assignment, note: str) -> Work:
    odd = [entry for entry in entries if entry.odd]
    problem = f"{shown(odd[0].path)} is {odd[0].odd}. Put the file itself there." if odd else ""
    regular = tuple(entry for entry in entries if not entry.odd)[:MOST_FILES]
    return Work(assignment.name, regular, problem, note)


def _rank(folder: str, assignment: Assignment) -> tuple[bool, int, str]:
    """The folder of the assignment's name comes first, then the one that lies highest."""
    path = PurePosixPath(folder)
    return path.name != assignment.name, len(path.parts), folder


def _is_near(folder: str, assignment: Assignment, course: Course) -> bool:
    """Whether this folder can be meant as well: it is not that of another assignment."""
    others = {other.name for other in course.assignments if other.name != assignment.name}
    return PurePosixPath(folder).name not in others


def _is_untouched(work: Work, released: Collection[str]) -> bool:
    """Whether all files are as students received them."""
    return not work.problem and all(entry.oid in released for entry in work.entries)
