"""A repository on this machine (`file://`): git works in it as the instructor, so nobody else may have a say in it.

Settings that run programs are overridden (`environment`); what leads git elsewhere is refused here.
"""

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from autograder.records import RefusedError
from autograder.text.names import shown

SCHEME = "file://"
_ENDINGS = ("/.git", "", ".git/.git", ".git")  # where git looks for a repository
_BESIDE = stat.S_IWGRP | stat.S_IWOTH
_ELSEWHERE = {
    "commondir": "shares its objects and settings with another repository",
    "objects/info/alternates": "borrows its objects from another repository",
}


def check_local(url: str) -> None:
    """Raise RefusedError if another user may write into this repository, or if a file in it leads elsewhere.

    Addresses of other machines pass.
    """
    if not url.startswith(SCHEME):
        return
    named = os.path.normpath(unquote(url.removeprefix(SCHEME)))
    for ending in _ENDINGS:
        place = Path(named + ending)
        if os.path.lexists(place) and (not place.is_dir() or _is_repository(place)):
            _check_above(place)
            _check_inside(place)


def _is_repository(folder: Path) -> bool:
    return os.path.lexists(folder / "HEAD") and os.path.lexists(folder / "objects")


def _check_above(place: Path) -> None:
    """Refuse a repository that somebody else can move away, also behind a link."""
    above = {*place.parents, *Path(os.path.realpath(place)).parents}
    for folder in sorted(above):
        facts = folder.stat()
        if _is_open(facts) and not facts.st_mode & stat.S_ISVTX:
            raise RefusedError(_others_write(f"{folder.name or folder} above it"))


def _check_inside(folder: Path) -> None:
    if not folder.is_dir() or folder.is_symlink():
        raise RefusedError(
            f"{shown(folder.name)} is not the repository itself, but leads to another."
        )
    for file, what in _ELSEWHERE.items():
        if os.path.lexists(folder / file):
            raise RefusedError(f"it {what}. Clone it without that.")
    for path in _everything_in(folder):
        facts = os.lstat(path)
        if stat.S_ISLNK(facts.st_mode):
            inside = os.path.relpath(path, folder)
            raise RefusedError(f"{shown(inside)} in it is a link, which could lead anywhere.")
        if facts.st_uid not in (os.geteuid(), 0) or _is_open(facts):
            raise RefusedError(_others_write(os.path.relpath(path, folder.parent)))


def _everything_in(folder: Path) -> Iterator[str]:
    """Yield the folder and all below it, but for hooks, which never run; a folder comes before what is in it."""
    yield str(folder)
    for place, folders, files in os.walk(folder):
        if place == str(folder):
            folders[:] = [name for name in folders if name != "hooks"]
        for name in (*folders, *files):
            yield os.path.join(place, name)


def _is_open(facts: os.stat_result) -> bool:
    """Whether others than the owner may write; a group in which the owner is alone is no other."""
    beside = facts.st_mode & _BESIDE
    return bool(beside) and not (beside == stat.S_IWGRP and _is_alone(facts))


def _is_alone(facts: os.stat_result) -> bool:
    """Whether the group is the one that systems make for each user, with nobody else in it."""
    if sys.platform == "win32":
        return False
    import grp
    import pwd

    try:
        user = pwd.getpwuid(facts.st_uid)
        group = grp.getgrgid(facts.st_gid)
    except KeyError:
        return False
    return group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}


def _others_write(what: str) -> str:
    return (
        f"other users of this machine may write {shown(what)}, and git would work there in your name. "
        "Take the right from them, or collect from a server."
    )
