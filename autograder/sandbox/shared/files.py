"""The folder that a test and a submission share: the test's `tmp_path`, and its copy on the student's side.

After each message, both hold the same folders and regular files: names and bytes, no links, devices, modes or times.
"""

from itertools import islice
from pathlib import Path, PurePath
from typing import Any

from autograder.records import RefusedError
from autograder.sandbox.shared import claims
from autograder.source import gate
from autograder.text.names import shown

MAX_FILES = 200  # and folders
MAX_BYTES = 4 << 20  # of all files
MAX_DEPTH = 8
MAX_NAME = 255  # bytes between two slashes
Contents = dict[str, bytes | None]  # by name relative to the folder; None is a folder


class SharedFolder:
    """One side's folder, and the contents that both sides know."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: Contents | None = None  # before the first message

    def name_of(self, path: PurePath) -> str | None:
        """Return the name of a path in the folder, `.` for the folder itself; None for a path elsewhere."""
        try:
            name = path.relative_to(self.path).as_posix()
            return name if name == "." else check_name(name)
        except (ValueError, RefusedError):
            return None

    def news(self) -> dict[str, Any]:
        """Return the contents as an entry of the next message, or nothing if the other side knows them.

        Raises RefusedError for what cannot be sent.
        """
        known, self._known = self._known, _read(self.path)
        return {} if self._known == known else {"files": self._known}

    def write(self, contents: Contents) -> None:
        """Replace the contents by the other side's, which are `checked`; raises OSError."""
        known, self._known = self._known or {}, contents
        for name in sorted(known, reverse=True):  # what a folder holds comes before the folder
            if name not in contents or (contents[name] is None) != (known[name] is None):
                place = self.path / name
                place.rmdir() if known[name] is None else place.unlink(missing_ok=True)
        for name, data in contents.items():
            if data is None:
                (self.path / name).mkdir(exist_ok=True)
            elif known.get(name) != data:
                gate.write_bytes(self.path / name, data, self.path)


def check_name(name: str) -> str:
    """Return the name of something below the folder; raises RefusedError if it is unusual or leads elsewhere."""
    parts = name.split("/")
    for part in parts:
        if part in ("", ".", "..") or not part.isprintable() or len(part.encode()) > MAX_NAME:
            raise RefusedError(f"{shown(name)} is no usual name of a file.")
    if len(parts) > MAX_DEPTH:
        raise RefusedError(f"{shown(name)} lies deeper than {MAX_DEPTH} folders.")
    return name


def checked(contents: Any) -> Contents:
    """Return the contents of a folder, parents first; raises RefusedError if it cannot be shared.

    Contents that an untrusted side made up can raise any other exception.
    """
    if len(claims.table(contents)) > MAX_FILES:
        raise RefusedError(f"`tmp_path` holds more than {MAX_FILES} files and folders.")
    for name, data in contents.items():
        if type(data) not in (bytes, type(None)):
            raise RefusedError(f"{shown(claims.text(name))} is neither a file nor a folder.")
    if sum(len(data) for data in contents.values() if data) > MAX_BYTES:
        raise RefusedError(f"The files in `tmp_path` are larger than {MAX_BYTES >> 20} MB.")
    for name in contents:
        parent = check_name(claims.text(name)).rpartition("/")[0]
        if parent and contents[parent] is not None:
            raise RefusedError(f"{shown(name)} is not in a folder.")
    return dict(sorted(contents.items()))


def _read(folder: Path) -> Contents:
    found: Contents = {}
    waiting = [folder]
    while waiting and len(found) <= MAX_FILES:
        for place in islice(waiting.pop().iterdir(), MAX_FILES + 1):
            is_folder = place.is_dir() and not place.is_symlink()
            found[place.relative_to(folder).as_posix()] = (
                None if is_folder else gate.read_bytes(place, MAX_BYTES, folder)
            )
            waiting += [place] if is_folder else []
    return checked(found)
