"""Which files of a repository are the work for which assignment."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from autograder.course.config import Assignment, Course
from autograder.extras.git.store import TreeEntry
from autograder.records import CATCH_FILE
from autograder.submissions.files import DEPTH, SOURCES, plain_stem, suffix
from autograder.submissions.take import is_furniture
from autograder.text.names import shown

MOST_FILES = 20  # of one assignment


@dataclass(frozen=True)
class Work:
    """The files of one assignment in a commit; `problem` says why they cannot be used, `note` what
    was left out.
    """

    assignment: str
    entries: tuple[TreeEntry, ...] = ()
    problem: str = ""
    note: str = ""

    @property
    def digest(self) -> str:
        """A digest that changes when the work does."""
        facts = [
            f"{PurePosixPath(each.path).name}\0{each.mode}\0{each.oid}" for each in self.entries
        ]
        return hashlib.sha256(
            "\n".join([*sorted(facts), self.problem]).encode("utf-8", "surrogateescape")
        ).hexdigest()


def released_blobs(course: Course) -> dict[str, frozenset[str]]:
    """Return git's names of the files that students received, by assignment."""
    found = {}
    for assignment in course.assignments:
        files = (
            course.stub_file(assignment),
            course.notebook_file(assignment),
            course.release_folder(assignment) / CATCH_FILE,
        )
        found[assignment.name] = frozenset(_blob(file) for file in files if file.is_file())
    return found


def work_in(
    tree: Sequence[TreeEntry],
    course: Course,
    assignment: Assignment | None,
    path: str,
    released: Mapping[str, Collection[str]],
) -> list[Work]:
    """Return the work in a commit: for this assignment, or for all of which there is more than the
    released files.
    """
    inside = _inside(tree, path)
    if assignment is not None:
        found = _of(inside, course, assignment)
        return [found or _any_sources(inside, assignment)]
    every = [(each, _of(inside, course, each)) for each in course.assignments]
    return [
        work
        for each, work in every
        if work is not None and not _is_untouched(work, released[each.name])
    ]


def _inside(tree: Sequence[TreeEntry], path: str) -> list[TreeEntry]:
    """Return the entries below a folder of the repository, without those of programs and those that
    lie too deep.
    """
    folder = "".join(f"{part}/" for part in path.split("/") if part not in ("", "."))
    found = []
    for each in tree:
        parts = each.path.split("/")
        if (
            each.path.startswith(folder)
            and len(parts) <= DEPTH
            and not any(map(is_furniture, parts))
        ):
            found.append(each)
    return found


def _of(inside: Sequence[TreeEntry], course: Course, assignment: Assignment) -> Work | None:
    """Return the work whose files have the expected names, from the folder that is meant if there
    are several.
    """
    folders: dict[str, list[TreeEntry]] = {}
    for each in inside:
        file = PurePosixPath(each.path)
        if each.odd and file.name == assignment.name:
            return Work(
                assignment.name,
                problem=f"{shown(each.path)} is {each.odd}. Put the files themselves there.",
            )
        if suffix(file.name) in SOURCES and plain_stem(file.name) in (
            assignment.stem,
            assignment.name,
        ):
            folders.setdefault(str(file.parent), []).append(each)
    if not folders:
        return None
    place = min(folders, key=lambda folder: _rank(folder, assignment))
    others = [
        folder for folder in folders if folder != place and _is_near(folder, assignment, course)
    ]
    note = (
        f"the work in {shown(place)} counts; there is more in {shown(others[0])}." if others else ""
    )
    return _usable([*folders[place], *_catch_file_in(place, inside, assignment)], assignment, note)


def _catch_file_in(
    folder: str, inside: Iterable[TreeEntry], assignment: Assignment
) -> list[TreeEntry]:
    """Return the catch.py of a folder, if the assignment has points for it."""
    if assignment.catch_points is None:
        return []
    path = PurePosixPath(folder, CATCH_FILE)
    return [each for each in inside if PurePosixPath(each.path) == path]


def _any_sources(inside: Iterable[TreeEntry], assignment: Assignment) -> Work:
    """Return all programs and notebooks as the work, if none has the expected name; `grade` chooses
    among them.
    """
    sources = [each for each in inside if suffix(each.path) in SOURCES]
    return _usable(sources[:MOST_FILES], assignment, "")


def _usable(entries: list[TreeEntry], assignment: Assignment, note: str) -> Work:
    odd = [each for each in entries if each.odd]
    problem = f"{shown(odd[0].path)} is {odd[0].odd}. Put the file itself there." if odd else ""
    regular = tuple(each for each in entries if not each.odd)[:MOST_FILES]
    return Work(assignment.name, regular, problem, note)


def _rank(folder: str, assignment: Assignment) -> tuple[bool, int, str]:
    """The folder of the assignment's name comes first, then the one that lies highest."""
    path = PurePosixPath(folder)
    return path.name != assignment.name, len(path.parts), folder


def _is_near(folder: str, assignment: Assignment, course: Course) -> bool:
    """Whether this folder can be meant as well: it is not that of another assignment."""
    return PurePosixPath(folder).name not in {each.name for each in course.assignments} - {
        assignment.name
    }


def _is_untouched(work: Work, released: Collection[str]) -> bool:
    """Whether all files are as students received them."""
    return not work.problem and all(each.oid in released for each in work.entries)


def _blob(file: Path) -> str:
    """Return git's name of a file's contents."""
    content = file.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
