"""A branch with one commit and no history, made in a bare store and pushed only when it differs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import Literal

from autograder.extras.git.environment import REMOTE
from autograder.extras.git.store import ALGORITHMS, Head, Store, algorithm_of, object_name
from autograder.records import RefusedError
from autograder.text.names import shown

AUTHOR = "Autograder"
BRANCH = "feedback"  # if no other one is named
ADDRESS = "feedback@autograder.invalid"
SUBJECT = "Feedback"
Pushed = Literal["pushed", "unchanged"]


@dataclass
class Commit:
    """A commit without a history, and all objects of git that it needs, by their names."""

    algorithm: str
    name: str = ""
    objects: dict[str, tuple[str, bytes]] = field(default_factory=dict)

    def add(self, kind: str, content: bytes) -> str:
        """Add an object and return its name."""
        name = object_name(self.algorithm, kind, content)
        self.objects[name] = kind, content
        return name


def commit_of(
    files: Mapping[str, bytes], moment: datetime, algorithm: str = ALGORITHMS[0]
) -> Commit:
    """Return the commit of these files by path; equal files and times make the same commit."""
    commit = Commit(algorithm)
    tree = _tree(commit, files)
    who = f"{AUTHOR} <{ADDRESS}> {int(moment.timestamp())} +0000"
    content = f"tree {tree}\nauthor {who}\ncommitter {who}\n\n{SUBJECT}\n"
    commit.name = commit.add("commit", content.encode())
    return commit


def push(
    store: Store, branch: str, files: Mapping[str, bytes], moment: datetime, replace: bool = False
) -> Pushed:
    """Let the branch stand at the commit of these files; nothing else in the repository is touched.

    Raises RefusedError if the branch holds what the course did not write, unless it may be
    replaced, if another branch takes its name, and if the repository cannot be written.
    """
    ref = f"refs/heads/{branch}"
    above = [str(folder) for folder in PurePosixPath(ref).parents][:-3]
    refs = store.refs("HEAD", ref, f"{ref}/*", *above)
    algorithm = algorithm_of(next(iter(refs.values()), ""))
    there = refs.pop(ref, "")
    refs.pop("HEAD", None)
    if refs:
        other = shown(min(refs).removeprefix("refs/heads/"))
        raise RefusedError(
            f"its branch {other} takes the name, as git keeps no branch {branch} beside it. Name another with --branch."
        )
    store.use(algorithm)
    commit = commit_of(files, moment, algorithm)
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


def _tree(commit: Commit, files: Mapping[str, bytes]) -> str:
    """Add a tree of these files, of which the course itself chose the paths; return its name."""
    entries: dict[str, tuple[str, str]] = {}
    folders: dict[str, dict[str, bytes]] = {}
    for path, content in files.items():
        first, _, rest = path.partition("/")
        if rest:
            folders.setdefault(first, {})[rest] = content
        else:
            entries[first] = "100644", commit.add("blob", content)
    for folder, inside in folders.items():
        # the order in which git compares folders
        entries[f"{folder}/"] = "40000", _tree(commit, inside)
    ordered = sorted(entries.items(), key=lambda entry: entry[0].encode())
    rows = [
        f"{mode} {name.rstrip('/')}\0".encode() + bytes.fromhex(oid)
        for name, (mode, oid) in ordered
    ]
    return commit.add("tree", b"".join(rows))
