"""Make names chosen by students safe for messages, storage and folders."""

import hashlib
import re
import unicodedata
from functools import lru_cache

SHOWN_LENGTH = 60
STUDENT_LENGTH = 80
FOLDER_BYTES = 200
_MARKED = re.compile(r"-[0-9a-f]{10}$")
_COMMAND = re.compile(r"::+|##+")
_RESERVED = re.compile(  # on Windows, or ignored among submissions
    r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?$|(__pycache__|__macosx|pictures\.py)$|readme",
    re.IGNORECASE,
)


def shown(name: str) -> str:
    """Return the name for a message: one short line without control characters."""
    text = "".join(
        c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name[:SHOWN_LENGTH]
    )
    return text + "…" if len(name) > SHOWN_LENGTH else text


def student_name(raw: str) -> str:
    """Convert a folder or file name to a student's name: printable, bounded, never a path, empty, or a command.

    CI programs interpret lines that begin with `::` or `##` as commands. Different names stay
    different: a changed name ends in a digest of the original.
    """
    kept = "".join(c if c.isprintable() and c not in "/\\" else "_" for c in raw).strip()
    return _marked(raw, _COMMAND.sub("_", kept))


def safe_name(student: str) -> str:
    """Return a folder name for a student's files that works on every file system.

    Letters with their marks, digits and ` ._@+-` are kept; two different students never get the
    same folder.
    """
    return _marked(student, _kept(student))


def submission_folder(identity: str) -> str:
    """Return the folder of a student in `submitted/`, short enough for every file system."""
    name = safe_name(identity)
    if len(name.encode()) <= FOLDER_BYTES:
        return name
    digest = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()
    return safe_name(f"{identity[:20]} {digest[:20]}")


@lru_cache(maxsize=100_000)
def graded_name(identity: str) -> str:
    """Return the id in the grades of a student who has this id in the roster: the name of the folder."""
    return student_name(submission_folder(identity))


@lru_cache(maxsize=1_000)
def folder_name(name: str) -> str:
    """As `safe_name`, and distinct even on case-insensitive file systems.

    A name in lower case is kept; any other ends in its digest, so `Ada` and `ada` never collide.
    `name` is a result of `student_name` or `safe_name`: if it already ends in a digest, no other
    name of the class has the same one in this form.
    """
    if _MARKED.search(name) and _kept(name) == name:
        return name
    safe = safe_name(name)
    return safe if safe != name or safe == safe.casefold() else _with_digest(name, safe)


def _kept(name: str) -> str:
    """Keep the characters of a name that every file system accepts."""
    normal = unicodedata.normalize("NFC", name)
    kept = "".join(
        c if c.isalnum() or unicodedata.category(c)[0] == "M" or c in " ._@+-" else "_"
        for c in normal
    )
    kept = kept.lstrip(" .-").rstrip(" .")
    return f"_{kept}" if _RESERVED.match(kept) else kept


def _marked(raw: str, kept: str) -> str:
    """Return `kept`, with a digest of `raw` if characters were lost or its end looks like such a digest."""
    if (
        kept == raw
        and kept not in ("", ".", "..")
        and len(raw) <= STUDENT_LENGTH
        and not _MARKED.search(raw)
    ):
        return raw
    return _with_digest(raw, kept)


def _with_digest(raw: str, kept: str) -> str:
    digest = hashlib.sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{kept[: STUDENT_LENGTH - 20].strip(' .') or 'student'}-{digest}"
