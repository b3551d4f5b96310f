"""A branch with one commit and no history, made in a bare store and pushed only when it differs."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from autograder.extras.git.environment import REMOTE
from autograder.extras.git.store import Head, Store
from autograder.records import RefusedError

AUTHOR = "Autograder"
BRANCH = "feedback"  # if no other one is named
ADDRESS = "feedback@autograder.invalid"
SUBJECT = "Feedback"
Pushed = Literal["pushed", "unchanged"]


@dataclass(frozen=True)
class Commit:
    """A commit without a history, and all objects of git that it needs, by their names."""

    name: str
    objects: Mapping[str, tuple[str, bytes]]


def commit_of(files: Mapping[str, bytes], moment: datetime) -> Commit:
    """Return the commit of these files by path; equal files and times make the same commit."""
    objects: dict[str, tuple[str, bytes]] = {}
    tree = _tree(objects, files)
    who = f"{AUTHOR} <{ADDRESS}> {int(moment.timestamp())} +0000"
    content = f"tree {tree}\nauthor {who}\ncommitter {who}\n\n{SUBJECT}\n"
    return Commit(_add(objects, "commit", content.encode()), objects)


def push(store: Store, branch: str, commit: Commit, replace: bool = False) -> Pushed:
    """Let the branch stand at this commit; nothing else in the repository is touched.

    Raises RefusedError if the branch holds what the course did not write, unless it may be
    replaced, and if the repository cannot be written.
    """
    ref = f"refs/heads/{branch}"
    there = store.refs(ref).get(ref, "")
    if there == commit.name:
        return "unchanged"
    if there and not replace and not _is_ours(store, ref, there):
        raise RefusedError(
            f"its branch {branch} was not written by the course. Name another with --branch, or add --replace."
        )
    for kind, content in commit.objects.values():
        store.git.run("hash-object", "-w", "-t", kind, "--stdin", given=content)
    lease = f"--force-with-lease={ref}:{there}"
    store.git.run(
        "push", "--quiet", "--no-verify", "--no-follow-tags", lease, REMOTE, f"{commit.name}:{ref}"
    )
    return "pushed"


def _is_ours(store: Store, ref: str, there: str) -> bool:
    """Whether the commit at the head was made here, and has no history that would be lost."""
    commit = store.fetch(Head(ref, there))
    header = (
        store.git.run("cat-file", "commit", commit).decode("utf-8", "replace").partition("\n\n")[0]
    )
    lines = header.splitlines()
    is_alone = not any(line.startswith("parent ") for line in lines)
    return is_alone and any(line.startswith(f"committer {AUTHOR} <{ADDRESS}> ") for line in lines)


def _tree(objects: dict[str, tuple[str, bytes]], files: Mapping[str, bytes]) -> str:
    """Add a tree of these files, of which the course itself chose the paths; return its name."""
    entries: dict[str, tuple[str, str]] = {}
    folders: dict[str, dict[str, bytes]] = {}
    for path, content in files.items():
        first, _, rest = path.partition("/")
        if rest:
            folders.setdefault(first, {})[rest] = content
        else:
            entries[first] = "100644", _add(objects, "blob", content)
    for folder, inside in folders.items():
        # the order in which git compares folders
        entries[f"{folder}/"] = "40000", _tree(objects, inside)
    ordered = sorted(entries.items(), key=lambda entry: entry[0].encode())
    rows = [
        f"{mode} {name.rstrip('/')}\0".encode() + bytes.fromhex(oid)
        for name, (mode, oid) in ordered
    ]
    return _add(objects, "tree", b"".join(rows))


def _add(objects: dict[str, tuple[str, bytes]], kind: str, content: bytes) -> str:
    """Add an object and return its name."""
    name = hashlib.sha1(
        f"{kind} {len(content)}\0".encode() + content, usedforsecurity=False
    ).hexdigest()
    objects[name] = kind, content
    return name
