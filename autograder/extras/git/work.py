"""Which files of a repository are the work for which assignment: a commit as a tree for `choose`."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath

from autograder.course.config import Course
from autograder.extras.git.store import Store, TreeEntry
from autograder.records import RefusedError
from autograder.source.gate import FILE_BYTES, too_large
from autograder.submissions.choose import (
    Chosen,
    NothingThereError,
    Tree,
    Wanted,
    assignment_called,
    assignments_in,
    choose,
)
from autograder.submissions.entries import (
    is_archive,
    is_furniture,
    is_given,
    is_source,
    is_work,
    label,
)
from autograder.submissions.files import (
    DEPTH,
    NOTEBOOK_BYTES,
    STUDENT_BYTES,
    File,
    Odd,
    folder_of,
    suffix,
)
from autograder.submissions.hand_in import content_digest, work_among

MOST_FILES = 20  # that are kept of one assignment if it is not clear which counts
FETCHED = 200  # maximum number of files with other names that are fetched


class FetchError(Exception):
    """The files of a commit could not be fetched, which says nothing about a student's work."""


@dataclass(frozen=True)
class BranchWork:
    """The files of one assignment in a commit; `problem` says why they cannot be used.

    Without `is_own`, they are as the student received them.
    """

    assignment: str
    files: tuple[File, ...] = ()
    entries: tuple[TreeEntry, ...] = ()
    problem: str = ""
    notes: tuple[str, ...] = ()
    is_own: bool = True

    def digest(self, released: Collection[str]) -> str:
        """Return a digest that changes when a student's own files do, whatever these are called.

        `released` are the digests of the files that students received.
        """
        read = [entry for entry in self.entries if not entry.odd]
        contents = [entry.oid for entry in self.entries if entry.odd]
        contents += map(_content_of, self.files, read)
        facts = [*sorted(work_among(contents, released)), self.problem]
        return content_digest("\n".join(facts).encode("utf-8", "surrogateescape"))


def _content_of(file: File, entry: TreeEntry) -> str:
    """Return the digest of a file's content, or git's name of it where it is not read."""
    try:
        return content_digest(file.read())
    except RefusedError:
        return entry.oid


class Commit:
    """The files of a commit below a folder, of which the contents are fetched when they are needed."""

    def __init__(self, store: Store, commit: str, course: Course, folder: str = "") -> None:
        self._store = store
        self._course = course
        self._contents: dict[str, bytes | None] = {}
        self._entries = {entry.path: entry for entry in _inside(store.tree(commit), folder)}
        files = {path: self._file(entry) for path, entry in self._entries.items()}
        self.tree = Tree.below(folder_of(files.items()))

    def works(self, wanted: Mapping[str, Wanted], assignment: str = "") -> list[BranchWork]:
        """Return the work for an assignment, or for all of which there is more than what students received."""
        if assignment:
            return [self._work(wanted[assignment])]
        works = [self._work(wanted[name]) for name in assignments_in(self.tree, self._course)]
        return [work for work in works if work.is_own]

    def strange(self) -> list[str]:
        """Return the names of the programs and notebooks that can be a student's, but of no assignment."""
        sources = [leaf for leaf in self.tree.leaves if _can_be_work(leaf.entry)]
        return [
            leaf.path
            for leaf in sources
            if not any(assignment_called(folder, self._course) for folder in leaf.folders)
            and not assignments_in(Tree((), [leaf]), self._course)
        ]

    def _work(self, wanted: Wanted) -> BranchWork:
        """Return what counts; archives, which `grade` opens, only where nothing else does."""
        chosen = Chosen(())
        problem = ""
        try:
            chosen = choose(self.tree.without_archives, wanted)
        except NothingThereError:
            pass  # it is said when there is nothing to store
        except RefusedError as refusal:
            problem = str(refusal)
        paths = list(chosen.paths)
        if problem:
            sources = [leaf for leaf in self.tree.leaves if is_source(leaf.entry)]
            called = [leaf.path for leaf in sources if wanted.is_called(leaf.entry.name)]
            paths = (called or [leaf.path for leaf in sources])[:MOST_FILES]
        elif not chosen.has_work:
            archives = [leaf for leaf in self.tree.leaves if is_archive(leaf.entry)]
            paths += [
                leaf.path for leaf in archives if not paths or wanted.is_called(leaf.entry.name)
            ]
        entries = tuple(self._entries[path] for path in paths)
        files = tuple(self._read(entry) for entry in entries if not entry.odd)
        is_own = bool(problem) or chosen.has_work or len(paths) > len(chosen.paths)
        return BranchWork(wanted.name, files, entries, problem, chosen.notes, is_own)

    def _read(self, entry: TreeEntry) -> File:
        """Return a file with its contents, or with the reason that it has none, without the rest of the commit."""
        try:
            return File(entry.path, partial(_first, self._load(entry, _limit(entry))))
        except RefusedError as refusal:
            return File(entry.path, partial(_refuse, str(refusal)))

    def _file(self, entry: TreeEntry) -> File | Odd:
        if entry.odd:
            return Odd(entry.path, entry.odd)
        return File(entry.path, partial(self._load, entry))

    def _load(self, entry: TreeEntry, limit: int) -> bytes:
        """Return the beginning of a file; raises RefusedError if it is too large, and so is not read."""
        if entry.oid not in self._contents:
            try:
                self._fetch(self._with(entry))
            except RefusedError as problem:
                raise FetchError(str(problem)) from None
        content = self._contents[entry.oid]
        if content is None:
            raise RefusedError(too_large(PurePosixPath(entry.path).name, _limit(entry)))
        return content[: limit + 1]

    def _with(self, entry: TreeEntry) -> list[TreeEntry]:
        """Return the files that will be needed, too: all with the names of modules, or all others of a student."""
        is_called = self._is_called(entry)
        alike = [
            self._entries[leaf.path]
            for leaf in self.tree.leaves
            if _can_be_work(leaf.entry) and self._is_called(self._entries[leaf.path]) == is_called
        ]
        return [entry, *alike[:FETCHED]]

    def _is_called(self, entry: TreeEntry) -> bool:
        file = Odd(PurePosixPath(entry.path).name, "")
        return is_source(file) and assignment_called(label(file), self._course) is not None

    def _fetch(self, entries: Sequence[TreeEntry]) -> None:
        """Read the first of these files, and the others as long as they are not large together."""
        limits = {entry.oid: _limit(entry) for entry in reversed(entries)}
        sizes = self._store.sizes([oid for oid in limits if oid not in self._contents])
        left = STUDENT_BYTES
        small = dict[str, int]()
        for oid in reversed(limits):
            size = sizes.get(oid)
            if size is not None and size > limits[oid]:
                self._contents[oid] = None
            elif size is not None and (not small or size <= left):
                small[oid] = size
                left -= size
        self._contents |= self._store.contents(small)


def _inside(tree: Sequence[TreeEntry], path: str) -> Iterator[TreeEntry]:
    """Yield the entries below a folder of the repository, without those of programs and those that lie too deep."""
    folder = "".join(f"{part}/" for part in path.split("/") if part not in ("", "."))
    for entry in tree:
        parts = entry.path.split("/")
        is_inside = entry.path.startswith(folder) and len(parts) <= DEPTH
        if is_inside and not any(map(is_furniture, parts)):
            yield entry


def _first(content: bytes, limit: int) -> bytes:
    return content[: limit + 1]


def _refuse(reason: str, limit: int) -> bytes:
    raise RefusedError(reason)


def _can_be_work(entry: File | Odd) -> bool:
    return is_source(entry) and is_work(entry) and not is_given(entry)


def _limit(entry: TreeEntry) -> int:
    return NOTEBOOK_BYTES if suffix(entry.path) == ".ipynb" else FILE_BYTES
