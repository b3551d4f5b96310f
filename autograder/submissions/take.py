"""Select a student's files for one assignment from the files in a folder."""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace

from autograder.course.config import Assignment, Course
from autograder.records import RefusedError, SourceFile, Submission
from autograder.source.stub import ReleasedStub, released_stub
from autograder.submissions import files
from autograder.submissions.archives import open_archive
from autograder.submissions.files import (
    ARCHIVES,
    SOURCES,
    Entry,
    File,
    Folder,
    Odd,
    plain_stem,
    stem,
    suffix,
)
from autograder.text.names import shown
from autograder.text.wording import joined

DEPTH = 8  # maximum depth of nested folders
LISTED = 4  # maximum number of names in a message
COMPARED = 10  # maximum number of files of one kind to compare

NOTE = "NOT_COLLECTED.txt"  # in it, `collect` notes why files that it kept cannot be used
NOTE_BYTES = 2_000

_NUMBERED = re.compile(r"\d{2,}_[A-Za-z]\w*")  # the pattern of an assignment's folder

_NEVER_WORK = ("__macosx", "__pycache__", "pictures.py")
_FURNITURE = (  # created by operating systems and programs
    *(
        "__macosx",
        "__pycache__",
        "thumbs.db",
        "desktop.ini",
        ".ds_store",
        ".localized",
        ".appledouble",
    ),
    *(
        ".spotlight-v100",
        ".fseventsd",
        ".temporaryitems",
        ".earlier",
        ".ipynb_checkpoints",
        ".virtual_documents",
    ),
    *(
        ".git",
        ".github",
        ".gitlab",
        ".gitignore",
        ".svn",
        ".hg",
        ".idea",
        ".vscode",
        ".devcontainer",
    ),
    *(".venv", ".tox", ".nox", ".cache", ".config", ".local", ".jupyter", ".ipython"),
)


@dataclass(frozen=True)
class Wanted:
    """The assignment whose files are selected, and its stub as students received it.

    `elsewhere` are the names of other assignments' files: beside this one they are earlier work.
    """

    assignment: Assignment
    stub: ReleasedStub
    elsewhere: frozenset[str] = frozenset()

    @property
    def stem(self) -> str:
        return self.assignment.stem

    @property
    def expected(self) -> str:
        return " or ".join(f"{self.stem}{kind}" for kind in SOURCES)

    def is_expected(self, entry: Entry) -> bool:
        return _file_name(entry) in {f"{self.stem}{kind}" for kind in SOURCES}

    def is_called_like(self, entry: Entry) -> bool:
        return self.is_expected(entry) or plain_stem(_file_name(entry)) == self.stem

    def sources(self, entries: Iterable[Entry]) -> list[Entry]:
        """Return the sources that can be the student's own."""
        given = set(self.stub.given)
        if self.stub.names:
            given |= self.elsewhere
        return [entry for entry in entries if is_source(entry) and entry.name not in given]


def wanted_of(course: Course, name: str) -> Wanted:
    """Return the assignment with that name and its released stub; raises CourseError if there is none."""
    assignment = course.assignment(name)
    other_stems = {other.stem for other in course.assignments} - {assignment.stem}
    others = frozenset(f"{stem}{kind}" for stem, kind in itertools.product(other_stems, SOURCES))
    return Wanted(assignment, released_stub(course, assignment), others)


@dataclass(frozen=True)
class Taken:
    """The texts of a student's files, and notes about the choice for the instructor."""

    files: tuple[SourceFile, ...]
    notes: tuple[str, ...] = ()


@dataclass
class _Found:
    """The sources in a student's folder: those `called` like the module, or in its place, and
    `others`; and the names of files that seem to be copies of the module, but are no sources.
    """

    called: list[Entry] = field(default_factory=list)
    others: list[Entry] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    @classmethod
    def among(cls, entries: Iterable[Entry], folders: Iterable[Entry], wanted: Wanted) -> "_Found":
        """Sort the sources among `entries`, and those below `folders`."""
        here = wanted.sources(entries)
        called = [entry for entry in here if wanted.is_called_like(entry)]
        others = [entry for entry in here if entry not in called]
        below = _below(folders, wanted) if here else []
        called_below = [entry for entry in below if wanted.is_called_like(entry)]
        others_below = [entry for entry in below if entry not in called_below]
        first = sorted(called, key=lambda entry: not wanted.is_expected(entry))
        if not first:
            first = others
            others = []
        return cls([*first, *called_below], [*others, *others_below])


def take(entries: Sequence[Entry], wanted: Wanted, beside: Sequence[Entry] = ()) -> Taken:
    """Return the texts of a student's `.py` and `.ipynb` among `entries`, or in their only folder or archive.

    Files with the name of the assignment's module are used, also with a number suffix, in a
    subfolder, or in one of `beside`; without them, the only other file of its kind. If they hold no
    answer, a file with another name that holds one is used. Raises RefusedError if two of them
    differ.
    """
    if len(entries) > 1 and not all(map(is_source, entries)):
        raise RefusedError(f"Found {names(entries)}; hand in only one of them.")
    if not is_source(entries[0]):
        return _take_from(entries[0], wanted, DEPTH, beside=beside)
    candidates = _Found.among(entries, beside, wanted)
    if not candidates.called:
        candidates.called = list(entries)
    candidates.others += _work_beside(beside, wanted)
    return _chosen(candidates, wanted)


def submission_of(
    student: str, wanted: Wanted, entries: Sequence[Entry], beside: Sequence[Entry] = ()
) -> Submission:
    """Return what `take` finds as a submission, which has a problem if it cannot be used."""
    path = entries[0].path
    name = wanted.assignment.name
    try:
        taken = take(entries, wanted, beside)
    except RefusedError as refusal:
        return Submission(student, name, problem=str(refusal), path=path)
    return Submission(student, name, taken.files, path=path, notes=taken.notes)


def _take_from(
    holder: Entry, wanted: Wanted, depth: int, another: str = "", beside: Sequence[Entry] = ()
) -> Taken:
    """Search a folder; inside `another` assignment's folder, only files with this module's name are used."""
    if depth < DEPTH and _is_of_another(label(holder), wanted.assignment):
        another = label(holder)
    with opened(holder) as folder:
        folder.inspect()
        entries = folder.entries()
        _refuse_as_noted(entries)
        work = [entry for entry in entries if is_work(entry) and not is_given(entry)]
        inner = [entry for entry in work if not is_source(entry)]
        packed = [entry for entry in inner if is_archive(entry)]
        usable = [entry for entry in work if not another or wanted.is_called_like(entry)]
        candidates = _Found.among(usable, inner, wanted)
        if candidates.called and packed and not wanted.is_expected(candidates.called[0]):
            raise RefusedError(
                f"Found {names([*candidates.called, *packed])}; {wanted.expected} is expected."
            )
        if candidates.called:
            candidates.others += _work_beside(beside, wanted)
            candidates.unread = [entry.name for entry in entries if _is_unread(entry, wanted)]
            return _chosen(candidates, wanted)
        if len(inner) > 1:
            inner = _with_answer(inner, wanted)
        if len(inner) == 1 and depth > 0:
            return _take_from(inner[0], wanted, depth - 1, another)
        there = (
            f"{shown(folder.name)} is empty" if not entries else f"there is only {names(entries)}"
        )
        where = f" in {shown(another)}, which is named like another assignment" if another else ""
        raise RefusedError(f"No file {wanted.expected} was handed in; {there}{where}.")


def _with_answer(folders: Sequence[Entry], wanted: Wanted) -> list[Entry]:
    """Return the only one of these folders that holds a file called like the module, or the first of equal copies."""
    called = {folder.name: _called_below(folder, wanted) for folder in folders}
    several = list(itertools.chain.from_iterable(called.values()))
    if several:
        _chosen(_Found(several), wanted)  # raises RefusedError if they differ
    return [folder for folder in folders if called[folder.name]][:1]


def _called_below(folder: Entry, wanted: Wanted) -> list[Entry]:
    return [entry for entry in _below([folder], wanted) if wanted.is_called_like(entry)]


def _chosen(candidates: _Found, wanted: Wanted) -> Taken:
    """Return one file of each kind, the first of equal ones; raises RefusedError if they differ."""
    stub = wanted.stub
    called = _texts(candidates.called, [])
    if any(map(stub.is_answer, called)):
        others = _readable(candidates.others)
    else:
        others = _texts(candidates.others, candidates.called) if stub.names else []
    chosen = stub.choose(called, others)
    taken = []
    for is_notebook in (False, True):
        same = [text for text in chosen if text.is_notebook == is_notebook]
        if len({"\n".join(text.text.splitlines()) for text in same}) > 1:
            raise RefusedError(_not_clear([text.name for text in same]))
        taken += same[:1]
    notes = _notes(taken, called, others, candidates.unread, stub)
    return Taken(
        tuple(replace(text, name=text.name.rpartition("/")[2]) for text in taken), tuple(notes)
    )


def _notes(
    taken: Sequence[SourceFile],
    called: Sequence[SourceFile],
    others: Sequence[SourceFile],
    unread: Sequence[str],
    stub: ReleasedStub,
) -> Iterator[str]:
    """Yield what an instructor should know about the choice among several files."""
    renamed = [text.name for text in taken if text in others]
    without = [text.name for text in called if text not in taken or not stub.is_answer(text)]
    further = [text.name for text in stub.further_answers(taken, others)]
    answered = any(map(stub.is_answer, taken))
    if renamed:
        yield f"{_joined(renamed)} was graded: there is no answer in {_joined(without)}."
    elif further and answered:
        yield f"{_joined([text.name for text in taken])} was graded. There is another answer in {_joined(further)}."
    elif stub.names and (others or unread) and not answered:
        sentence = f"There is no answer in {_joined([text.name for text in (*taken, *others)])}."
        if unread:
            sentence += f" {_joined(unread)} beside it was not read: only .py and .ipynb files are."
        yield sentence


def _below(folders: Iterable[Entry], wanted: Wanted) -> list[Entry]:
    """Return the sources in these folders that can be the student's own, named with their way.

    In the folder of another assignment, these are only files that are called like the module.
    """
    entries: list[Entry] = []
    for way, entry in itertools.islice(_walk(folders, "", DEPTH), files.STUDENT_ENTRIES):
        in_place = not any(_is_of_another(name, wanted.assignment) for name in way.split("/"))
        if wanted.sources([entry]) and (in_place or wanted.is_called_like(entry)):
            entries.append(replace(entry, name=f"{way}{entry.name}"))
    return entries


def _work_beside(entries: Iterable[Entry], wanted: Wanted) -> list[Entry]:
    return [entry for entry in wanted.sources(entries) if is_work(entry) and not is_given(entry)]


def _walk(entries: Iterable[Entry], way: str, depth: int) -> Iterator[tuple[str, File]]:
    """Yield the sources below these folders that can be work, each with its way."""
    for folder in entries:
        if isinstance(folder, File | Odd) or not is_work(folder):
            continue
        try:
            inside = folder.entries()
        except RefusedError:
            continue
        here = f"{way}{folder.name}/"
        sources = (entry for entry in inside if isinstance(entry, File) and is_source(entry))
        yield from ((here, entry) for entry in sources if is_work(entry) and not is_given(entry))
        if depth > 0:
            yield from _walk(inside, here, depth - 1)


def _is_unread(entry: Entry, wanted: Wanted) -> bool:
    """Whether this is a file that has the module's name, but not that of a source: bank.py.txt."""
    return isinstance(entry, File) and wanted.stem in entry.name.lower() and not is_work(entry)


def _is_of_another(name: str, assignment: Assignment) -> bool:
    """Whether a folder with this name seems to be that of another assignment."""
    return name != assignment.name and _NUMBERED.fullmatch(name) is not None


def _file_name(entry: Entry) -> str:
    """Return the name of a file without the way to it."""
    return entry.name.rpartition("/")[2]


def _texts(sources: Sequence[Entry], beside: Sequence[Entry]) -> list[SourceFile]:
    """Return the texts of these sources; raises RefusedError if one cannot be read, or there are too many of a kind."""
    kinds = [[entry for entry in sources if suffix(entry.name) == kind] for kind in SOURCES]
    texts = []
    for same in kinds:
        if len(same) > COMPARED:
            raise RefusedError(_not_clear([entry.name for entry in same]))
        try:
            texts += [_text(entry) for entry in same]
        except RefusedError as refusal:
            others = [entry for entry in (*sources, *beside) if entry not in same]
            too = (
                f" The submission also contains {names(others)}; hand in only one file."
                if others
                else ""
            )
            raise RefusedError(f"{refusal}{too}") from None
    return texts


def _readable(sources: Sequence[Entry]) -> list[SourceFile]:
    """Return the texts of the first of these sources, without those that cannot be read."""
    texts = []
    for entry in sources[:COMPARED]:
        with suppress(RefusedError):
            texts.append(_text(entry))
    return texts


def _text(entry: Entry) -> SourceFile:
    if not isinstance(entry, File):
        what = entry.what if isinstance(entry, Odd) else "a folder"
        raise RefusedError(f"{shown(entry.name)} is {what}, not a file; hand in the file itself.")
    return files.read_source(entry)


def opened(entry: Entry) -> AbstractContextManager[Folder]:
    """Open a folder, or an archive as a folder; raises RefusedError for any other entry."""
    if isinstance(entry, Odd):
        raise RefusedError(f"{shown(entry.name)} is {entry.what}; hand in the file itself.")
    if not isinstance(entry, File):
        return nullcontext(entry)
    if entry.path is None:
        raise RefusedError(
            f"{shown(entry.name)} is an archive inside an archive. Hand in the file itself."
        )
    return open_archive(entry.path, root=entry.root)


def is_source(entry: Entry) -> bool:
    """Whether this is a .py or .ipynb, or a special file with such a name."""
    return suffix(entry.name) in SOURCES and isinstance(entry, File | Odd)


def is_archive(entry: Entry) -> bool:
    return suffix(entry.name) in ARCHIVES and isinstance(entry, File | Odd)


def is_work(entry: Entry) -> bool:
    """Whether this can be or contain a student's work, unlike system files and readmes."""
    name = entry.name.lower()
    if name.startswith((".", "readme")) or name in _NEVER_WORK:
        return False
    return is_source(entry) or is_archive(entry) or not isinstance(entry, File)


def is_furniture(name: str) -> bool:
    """Whether operating systems and programs create files and folders with this name."""
    lower = name.lower()
    is_cache = lower.startswith(".") and lower.endswith("_cache")
    return lower in _FURNITURE or lower.startswith(("._", ".trash", ".~")) or is_cache


def is_given(entry: Entry) -> bool:
    """Whether this is a test file, which students receive and hand in again."""
    return is_source(entry) and entry.name.startswith("test_")


def _refuse_as_noted(entries: Iterable[Entry]) -> None:
    """Raise RefusedError with the reason that `collect` noted beside the files, if it did."""
    for entry in entries:
        if entry.name == NOTE and isinstance(entry, File):
            note = entry.read(NOTE_BYTES).decode("utf-8", "replace")
            raise RefusedError("".join(letter for letter in note if letter.isprintable()))


def is_one_file(entries: Sequence[Entry], module: str, packed: bool) -> bool:
    """Whether one student's file is all there is: it has the module's name, or is alone in an archive."""
    stems = {module if plain_stem(entry.name) == module else stem(entry.name) for entry in entries}
    return (
        bool(entries)
        and all(map(is_source, entries))
        and (stems == {module} or (packed and len(stems) == 1))
    )


def holds_work(entry: Entry, depth: int = DEPTH) -> bool:
    """Whether the entry contains a source or an archive; an unreadable folder counts as well."""
    if isinstance(entry, File | Odd):
        return is_source(entry) or is_archive(entry)
    try:
        inside = [inner for inner in entry.entries() if is_work(inner)]
    except RefusedError:
        return True
    return any(holds_work(inner, depth - 1) for inner in inside) if depth else False


def label(entry: Entry) -> str:
    """Return a file's name without its suffix, or a folder's name."""
    return stem(entry.name) if isinstance(entry, File | Odd) else entry.name


def names(entries: Sequence[Entry]) -> str:
    """Format names for a message: `a.py, b.py and 3 more`."""
    return joined([shown(entry.name) for entry in entries], LISTED)


def _not_clear(same: Sequence[str]) -> str:
    return f"Found {_joined(same)} with different contents; hand in only one of them."


def _joined(texts: Sequence[str]) -> str:
    return joined([shown(name) for name in texts], LISTED)
