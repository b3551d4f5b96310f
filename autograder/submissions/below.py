"""All files below a folder, whatever they are for; each is still unread."""

from collections.abc import Iterator
from dataclasses import replace

from autograder.records import RefusedError
from autograder.submissions.entries import is_furniture
from autograder.submissions.files import CLASS_ENTRIES, DEPTH, Entry, File, Folder, Odd
from autograder.text.names import shown


def visible(folder: Folder) -> list[Entry]:
    """Return the entries of a folder without system files; raises RefusedError if it cannot be read."""
    return [entry for entry in folder.entries() if not is_furniture(entry.name)]


def files_below(folder: Folder, odd: list[str]) -> Iterator[File]:
    """Yield all files in a folder, named by the way from it; unreadable entries are added to `odd`."""
    count = 0
    waiting = list[tuple[int, str, Entry]]([(0, "", folder)])
    while waiting:
        (depth, way, entry) = waiting.pop()
        count = count + 1
        if isinstance(entry, File):
            yield replace(entry, name=way)
        elif isinstance(entry, Odd):
            odd.append(f"{shown(entry.name)} is {entry.what}.")
        elif depth > DEPTH or count > CLASS_ENTRIES:
            odd.append(f"{shown(entry.name)} lies too deep or among too many files.")
        else:
            try:
                inside = [inner for inner in visible(entry) if not inner.name.startswith(".")]
            except RefusedError as refusal:
                odd.append(str(refusal))
            else:
                before = f"{way}/" if way else ""
                waiting += [
                    (depth + 1, f"{before}{inner.name}", inner) for inner in reversed(inside)
                ]
