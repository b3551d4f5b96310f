"""What an entry of a folder can be by its name: work, an archive, a given file, or furniture of programs."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from autograder.records import RefusedError
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

_NEVER_WORK = ("__macosx", "__pycache__", "pictures.py")
# created by operating systems and programs
# fmt: off
_FURNITURE = (
    "__macosx", "__pycache__", "thumbs.db", "desktop.ini", ".ds_store", ".localized", ".appledouble",
    ".spotlight-v100", ".fseventsd", ".temporaryitems", ".earlier", ".ipynb_checkpoints",
    ".virtual_documents", ".git", ".github", ".gitlab", ".gitignore", ".svn", ".hg", ".idea", ".vscode",
    ".devcontainer", ".venv", ".tox", ".nox", ".cache", ".config", ".local", ".jupyter", ".ipython",
)
# fmt: on
_ENVIRONMENT = "pyvenv.cfg"  # in the folder of a virtual environment


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


def is_environment(entries: Sequence[Entry]) -> bool:
    """Whether these are the entries of a virtual environment of Python."""
    return any(entry.name == _ENVIRONMENT for entry in entries)


def is_given(entry: Entry) -> bool:
    """Whether this is a test file, which students receive and hand in again."""
    return is_source(entry) and entry.name.startswith("test_")


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
