"""Seals: a run believes only what its owner wrote into the folder of grades.

A folder of grades can be planted, for example by a student in whose checkout a course grades. A
later run relies on the seed of a stopped run, the lines of the journal, submission times, names and
suites. Each of them is therefore sealed with the owner's key before it is written: `seals.txt` has
one line for each, an HMAC of the file's name and the text, below one for itself.
"""

import hashlib
import hmac
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from autograder.gradebook.owner_key import VARIABLE, owner_key
from autograder.records import InfrastructureError, RefusedError
from autograder.text.files import make_folder, open_as_its_folder
from autograder.text.names import shown

FILE_NAME = "seals.txt"
JOURNAL = "grades.jsonl"
# each sealed as a whole, as the files of suites are
WHOLE_FILES = ("run.json", "times.json", "names.json")
SUITES = "suites"
FOLDERS = (SUITES, "submissions", "pictures", "feedback", "status", "sheets")
OURS = (JOURNAL, *WHOLE_FILES, *FOLDERS, "grades.csv", "index.html", FILE_NAME)
_SEAL_LETTERS = 32


def seal(folder: Path, name: str, *texts: bytes) -> None:
    """Seal texts that are about to be written to this file of a folder of grades; raises OSError."""
    make_folder(folder)
    key = owner_key().key
    lines = [_seal(key, name, text) + b"\n" for text in texts]
    with open(folder / FILE_NAME, "a+b", opener=open_as_its_folder) as opened:
        if opened.seek(0, os.SEEK_END) == 0:
            opened.write(_seal(key, FILE_NAME, b"") + b"\n")
        elif _is_cut_off(opened):  # perhaps in the first line
            opened.write(b"\n" + _seal(key, FILE_NAME, b"") + b"\n")
        opened.writelines(lines)


def _is_cut_off(opened: BinaryIO) -> bool:
    """Whether the last line was not written to its end, as on a full disk."""
    opened.seek(-1, os.SEEK_END)
    return opened.read(1) != b"\n"


def check_owner(folder: Path, trusted: bool = False) -> str:
    """Raise RefusedError if the state in a folder of grades was not written with the owner's key.

    With `trusted`, all of it is sealed instead. Returns a message about a key that cannot be kept,
    or an empty string.
    """
    refuse_links(folder)
    key = owner_key()
    if trusted:
        for name in (*WHOLE_FILES, *_suites(folder), JOURNAL):
            seal(folder, name, *_texts(folder, name))
        return key.problem
    sealed = set(_read(folder / FILE_NAME).splitlines())
    for name in (*WHOLE_FILES, *_suites(folder), JOURNAL):
        if any(_seal(key.key, name, text) not in sealed for text in _texts(folder, name)):
            raise RefusedError(
                _refusal(folder, f"{name} is not sealed with your key ({key.source})")
            )
    present = [name for name in OURS if os.path.lexists(folder / name)]
    if present == [FILE_NAME] and b"\n" not in _read(folder / FILE_NAME):
        return key.problem  # a run was killed while it wrote its first line
    if present and _seal(key.key, FILE_NAME, b"") not in sealed:
        raise RefusedError(
            _refusal(folder, f"{present[0]} is there, but no seal of your key ({key.source})")
        )
    return key.problem


def doubt(folder: Path) -> str:
    """Return a sentence if the seals in a folder are the owner's, but not those of its scores; else an empty text."""
    sealed = set(_read(folder / FILE_NAME).splitlines())
    try:
        key = owner_key().key
    except (InfrastructureError, RefusedError):
        return ""
    if _seal(key, FILE_NAME, b"") not in sealed:
        return ""  # of another person or machine, about which nothing is known here
    for name in (*_suites(folder), JOURNAL):
        if any(_seal(key, name, text) not in sealed for text in _texts(folder, name)):
            return f"{folder / name} was changed by somebody else than `autograder grade`, which refuses it."
    return ""


def refuse_links(folder: Path) -> None:
    """Raise RefusedError if a folder in which only we write, or anything in it, is a link, a pipe or a device."""
    if os.path.lexists(folder) and not _is_plain(os.lstat(folder).st_mode):
        raise RefusedError(_not_plain(folder))
    for place, _, _ in os.walk(folder):
        with os.scandir(place) as entries:
            for entry in entries:
                if not (
                    entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)
                ):
                    raise RefusedError(_not_plain(Path(entry.path)))


def _is_plain(mode: int) -> bool:
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def _not_plain(path: Path) -> str:
    what = "a link" if path.is_symlink() else "neither a file nor a folder"
    return f"{shown(str(path))} is {what}. Nothing is read or written through one: use the folder itself, or another."


def _suites(folder: Path) -> list[str]:
    return [f"{SUITES}/{file.name}" for file in sorted((folder / SUITES).glob("*.json"))]


def _texts(folder: Path, name: str) -> Iterator[bytes]:
    """Yield the text of a file, of the journal each line; what cannot be read as a record is not relied on."""
    if (folder / name).is_file():
        # with the journal's own lines
        with (folder / name).open("r", encoding="utf-8", errors="replace") as opened:
            for text in opened if name == JOURNAL else [opened.read()]:
                if _is_record(text):
                    yield text.encode()


def _is_record(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except RecursionError:  # a reader that is called from elsewhere may get further
        return True
    except ValueError:
        return False


def _read(file: Path) -> bytes:
    return file.read_bytes() if file.is_file() else b""


def _seal(key: bytes, name: str, text: bytes) -> bytes:
    digest = hmac.new(
        key, name.encode() + b"\0" + text.removesuffix(b"\n"), hashlib.sha256
    ).hexdigest()
    return digest[:_SEAL_LETTERS].encode()


def _refusal(folder: Path, why: str) -> str:
    return (
        f"{folder} may have been written by somebody else: {why}. Name another folder with --output. If you know that "
        "the grades there are genuine (yours of an earlier version, or of another machine), add --trust-grades once. "
        f"{VARIABLE} sets one key for several machines or people."
    )
