"""Names that students chose, made fit to be shown, kept and used for folders."""

from __future__ import annotations

import hashlib
import re
import unicodedata

SHOWN_LENGTH = 60
STUDENT_LENGTH = 80
_MARKED = re.compile(r"-[0-9a-f]{10}$")
_COMMAND = re.compile(r"::+|##+")
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?$", re.IGNORECASE)  # on Windows


def shown(name: str, limit: int = SHOWN_LENGTH) -> str:
    """The name as it may stand in a sentence: one short line without control characters."""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name[:limit])
    return text + "…" if len(name) > limit else text


def student_name(raw: str) -> str:
    """The name of a folder or file as a student's name: printable, bounded, no path, never empty, no command.

    Programs that build software take what they read behind `::` or `##` for commands, wherever a line begins so.
    Different names stay different: a name that had to be changed ends in a digest of what it was.
    """
    kept = "".join(c if c.isprintable() and c not in "/\\" else "_" for c in raw).strip()
    return _marked(raw, _COMMAND.sub("_", kept))


def safe_name(student: str) -> str:
    """The name of the folder for what is written about a student, the same on every file system.

    Letters, digits and ` ._@+-` stay; two different students never get the same folder.
    """
    return _marked(student, _kept(student))


def folder_name(name: str) -> str:
    """As `safe_name`, and different even where a file system does not tell capitals from small letters.

    A name without capitals stays; any other carries its digest, so `Ada` and `ada` never meet. `name` is one that
    `student_name` or `safe_name` gave: if it ends in a digest already, no other name of a class does in the same one.
    """
    if _MARKED.search(name) and _kept(name) == name:
        return name
    safe = safe_name(name)
    return safe if safe != name or safe == safe.casefold() else _with_digest(name, safe)


def _kept(name: str) -> str:
    """What every file system takes of a name."""
    normal = unicodedata.normalize("NFC", name)
    kept = "".join(c if c.isalnum() or c in " ._@+-" else "_" for c in normal)
    kept = kept.lstrip(" .-").rstrip(" .")
    return f"_{kept}" if _DEVICES.match(kept) else kept


def _marked(raw: str, kept: str) -> str:
    """`kept`, with a digest of `raw` when something was lost or the end looks like such a digest."""
    if kept == raw and kept not in ("", ".", "..") and len(raw) <= STUDENT_LENGTH and not _MARKED.search(raw):
        return raw
    return _with_digest(raw, kept)


def _with_digest(raw: str, kept: str) -> str:
    digest = hashlib.sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{kept[: STUDENT_LENGTH - 20].strip(' .') or 'student'}-{digest}"
