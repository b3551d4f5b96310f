"""The key of whoever grades, with which what a run believes of its folder of grades is sealed."""

import os
import secrets
import stat
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from autograder.records import InfrastructureError, RefusedError

VARIABLE = "AUTOGRADER_KEY"
LEAST_LETTERS = 16
LEAST_DIFFERENT = 8  # in text that somebody else could guess: `passwordpassword` has seven
_CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True)
class OwnerKey:
    """A key, where it comes from, and the `problem` of one that cannot be kept until the next run."""

    key: bytes
    source: str
    problem: str = ""


def owner_key() -> OwnerKey:
    """Return the key in AUTOGRADER_KEY, or that of this user on this machine, which the first call creates.

    Raises RefusedError for a key that is too short or monotonous, or a file that others can read.
    """
    given = os.environ.get(VARIABLE)
    if given is None:
        return _kept_key(key_file())
    if len(given) < LEAST_LETTERS:
        raise RefusedError(
            f"{VARIABLE} has fewer than {LEAST_LETTERS} characters. Make one: openssl rand -hex 32"
        )
    if len(set(given)) < LEAST_DIFFERENT:
        raise RefusedError(
            f"{VARIABLE} has fewer than {LEAST_DIFFERENT} different characters. Make one: openssl rand -hex 32"
        )
    return OwnerKey(given.encode("utf-8", "surrogateescape"), VARIABLE)


def key_file() -> Path | None:
    """Return the path of this user's key; None without a home folder."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(state):
        return Path(state, "autograder", "key")
    try:
        return Path.home() / ".local" / "state" / "autograder" / "key"
    except RuntimeError:
        return None


def _kept_key(file: Path | None) -> OwnerKey:
    if file is None:
        return _key_of_this_process("There is no home folder")
    try:
        if not os.path.lexists(file):
            _create(file)
        return OwnerKey(_read(file), str(file))
    except OSError as error:
        return _key_of_this_process(f"{file} cannot be used ({error.strerror})")


@cache
def _key_of_this_process(why: str) -> OwnerKey:
    problem = (
        f"{why}, so the next run cannot tell that you wrote these grades. "
        f"Set {VARIABLE} to the same secret text for all runs into this folder."
    )
    return OwnerKey(secrets.token_bytes(32), "a key of this run alone", problem)


def _create(file: Path) -> None:
    """Write a new key, whole at once: another run may be looking for it."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, draft = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(descriptor, "w") as opened:
            opened.write(secrets.token_hex(32) + "\n")
        os.link(draft, file)
    except FileExistsError:
        pass  # the other run was first
    finally:
        os.unlink(draft)


def _read(file: Path) -> bytes:
    with os.fdopen(os.open(file, os.O_RDONLY | _CAREFULLY), "rb") as opened:
        status = os.fstat(opened.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise RefusedError(
                f"Others can read or change {file}, your key. Remove it, or: chmod 600 {file}"
            )
        key = opened.read().strip()
    if len(key) < LEAST_LETTERS:
        raise InfrastructureError(
            f"{file} is not a key. Remove it and grade again: a new one is made."
        )
    return key
