"""Select a student's files for one assignment from the files in a folder."""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from autograder.course.config import Assignment
from autograder.records import RefusedError, SourceFile, Submission
from autograder.submissions import files
from autograder.submissions.archives import open_archive
from autograder.submissions.files import ARCHIVES, SOURCES, Entry, File, Folder, Odd, plain_stem, stem, suffix
from autograder.text.names import shown
from autograder.text.wording import joined

DEPTH = 4  # maximum depth of nested folders
LISTED = 4  # maximum number of names in a message
COMPARED = 10  # maximum number of files of one kind to compare

NOTE = "NOT_COLLECTED.txt"  # in it, `collect` notes why files that it kept cannot be used
NOTE_BYTES = 2_000

_NUMBERED = re.compile(r"\d{2,}_[A-Za-z]\w*")  # the pattern of an assignment's folder

_NEVER_WORK = ("__macosx", "__pycache__", "pictures.py")
_FURNITURE = (  # created by operating systems and programs
    *("__macosx", "__pycache__", "thumbs.db", "desktop.ini", ".ds_store", ".localized", ".appledouble"),
    *(".spotlight-v100", ".fseventsd", ".temporaryitems", ".earlier", ".ipynb_checkpoints", ".virtual_documents"),
    *(".git", ".github", ".gitlab", ".gitignore", ".svn", ".hg", ".idea", ".vscode", ".devcontainer"),
    *(".venv", ".tox", ".nox", ".cache", ".config", ".local", ".jupyter", ".ipython"),
)


def take(entries: Sequence[Entry], assignment: Assignment, beside: Iterable[Entry] = ()) -> tuple[SourceFile, ...]:
    """Return the texts of a student's `.py` and `.ipynb` among `entries`, or in their only folder or archive.

    Files with the name of the assignment's module are used, also with a number suffix, in a subfolder, or in one of
    `beside`; without them, the only other file of its kind. Raises RefusedError if two of them differ.
    """
    if len(entries) > 1 and not all(map(is_source, entries)):
        raise RefusedError(f"Found {names(entries)}; hand in only one of them.")
    if is_source(entries[0]):
        texts = _texts([*_candidates(entries, assignment), *_below(beside, assignment)])
        return with_modules(texts, beside, assignment)
    return _take_from(entries[0], assignment, DEPTH)


def submission_of(
    student: str, assignment: Assignment, entries: Sequence[Entry], beside: Iterable[Entry] = ()
) -> Submission:
    """Return what `take` finds as a submission, which has a problem if it cannot be used."""
    path = entries[0].path
    try:
        return Submission(student, assignment.name, take(entries, assignment, beside), path=path)
    except RefusedError as refusal:
        return Submission(student, assignment.name, problem=str(refusal), path=path)


def _take_from(holder: Entry, assignment: Assignment, depth: int, another: str = "") -> tuple[SourceFile, ...]:
    """Search a folder; inside `another` assignment's folder, only files with this module's name are used."""
    if depth < DEPTH and _NUMBERED.fullmatch(label(holder)) and label(holder) != assignment.name:
        another = label(holder)
    with opened(holder) as folder:
        folder.inspect()
        entries = folder.entries()
        _refuse_as_noted(entries)
        work = [entry for entry in entries if is_work(entry) and not is_given(entry)]
        found = [entry for entry in _candidates(work, assignment) if not another or _is_called_like(entry, assignment)]
        inner = [entry for entry in work if not is_source(entry)]
        packed = [entry for entry in inner if is_archive(entry)]
        if found and packed and not _is_expected(found[0], assignment):
            raise RefusedError(f"Found {names([*found, *packed])}; {_expected(assignment)} is expected.")
        if found:
            return with_modules(_texts([*found, *_below(inner, assignment)]), entries, assignment)
        if len(inner) == 1 and depth > 0:
            return _take_from(inner[0], assignment, depth - 1, another)
        there = f"{shown(folder.name)} is empty" if not entries else f"there is only {names(entries)}"
        where = f" in {shown(another)}, which is named like another assignment" if another else ""
        raise RefusedError(f"No file {_expected(assignment)} was handed in; {there}{where}.")


def with_modules(
    texts: Iterable[SourceFile], entries: Iterable[Entry], assignment: Assignment
) -> tuple[SourceFile, ...]:
    """Return the texts with the further modules of the assignment that are among `entries`; raises RefusedError."""
    modules = tuple(_text(entry) for entry in entries if entry.name in assignment.files)
    return tuple(replace(text, modules=modules) for text in texts)


def _candidates(entries: Iterable[Entry], assignment: Assignment) -> list[Entry]:
    sources = [entry for entry in entries if is_source(entry) and entry.name not in assignment.files]
    called = [entry for entry in sources if _is_called_like(entry, assignment)]
    return sorted(called, key=lambda entry: not _is_expected(entry, assignment)) or sources


def _below(entries: Iterable[Entry], assignment: Assignment) -> list[Entry]:
    return [
        replace(entry, name=f"{way}{entry.name}")
        for way, entry in itertools.islice(_walk(entries, "", DEPTH), files.STUDENT_ENTRIES)
        if isinstance(entry, File) and _is_called_like(entry, assignment)
    ]


def _walk(entries: Iterable[Entry], way: str, depth: int) -> Iterator[tuple[str, Entry]]:
    for folder in entries:
        if isinstance(folder, File | Odd) or not is_work(folder):
            continue
        try:
            inside = folder.entries()
        except RefusedError:
            continue
        here = f"{way}{folder.name}/"
        yield from ((here, entry) for entry in inside if is_source(entry))
        if depth > 0:
            yield from _walk(inside, here, depth - 1)


def _texts(sources: Sequence[Entry]) -> tuple[SourceFile, ...]:
    """Return the text of one file of each kind, the first of equal ones; raises RefusedError if they differ."""
    kinds = [[entry for entry in sources if suffix(entry.name) == kind] for kind in SOURCES]
    for same in kinds:
        if len(same) > COMPARED:
            raise RefusedError(_not_clear(same))
    texts = []
    for same in filter(None, kinds):
        try:
            own = [_text(entry) for entry in same]
        except RefusedError as refusal:
            others = [entry for entry in sources if entry not in same]
            too = f" The submission also contains {names(others)}; hand in only one file." if others else ""
            raise RefusedError(f"{refusal}{too}") from None
        if len({"\n".join(text.text.splitlines()) for text in own}) > 1:
            raise RefusedError(_not_clear(same))
        texts.append(replace(own[0], name=own[0].name.rpartition("/")[2]))
    return tuple(texts)


def _text(entry: Entry) -> SourceFile:
    if not isinstance(entry, File):
        what = entry.what if isinstance(entry, Odd) else "a folder"
        raise RefusedError(f"{shown(entry.name)} is {what}, not a file; hand in the file itself.")
    return files.read_source(entry)


def _not_clear(same: Sequence[Entry]) -> str:
    return f"Found {names(same)} with different contents; hand in only one of them."


def opened(entry: Entry) -> AbstractContextManager[Folder]:
    """Open a folder, or an archive as a folder; raises RefusedError for any other entry."""
    if isinstance(entry, Odd):
        raise RefusedError(f"{shown(entry.name)} is {entry.what}; hand in the file itself.")
    if not isinstance(entry, File):
        return nullcontext(entry)
    if entry.path is None:
        raise RefusedError(f"{shown(entry.name)} is an archive inside an archive. Hand in the file itself.")
    return open_archive(entry.path)


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
    return bool(entries) and all(map(is_source, entries)) and (stems == {module} or (packed and len(stems) == 1))


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


def _is_expected(entry: Entry, assignment: Assignment) -> bool:
    return entry.name in {f"{assignment.stem}{kind}" for kind in SOURCES}


def _is_called_like(entry: Entry, assignment: Assignment) -> bool:
    return _is_expected(entry, assignment) or plain_stem(entry.name) == assignment.stem


def _expected(assignment: Assignment) -> str:
    return " or ".join(f"{assignment.stem}{kind}" for kind in SOURCES)
