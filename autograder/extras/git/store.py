"""The bare store of one repository: what its heads are, fetched as little as possible, and read without a checkout."""

import hashlib
import re
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autograder.extras.git.command import Git, size_of
from autograder.extras.git.environment import REMOTE
from autograder.extras.git.on_this_machine import check_local
from autograder.records import RefusedError
from autograder.source.gate import MEGABYTE
from autograder.text.files import write_whole

_BRANCHES = "refs/heads/"
_HEADS_BYTES = 1 * MEGABYTE
_PATH_BYTES = 400  # of a tree's entry with its path, on average
_HEAD = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64})\t(\S+)")
_POINTER = re.compile(r"ref: (\S+)\tHEAD")
ALGORITHMS = ("sha1", "sha256")  # of the names of objects, the older one first
_CONFIG = {
    "sha1": "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
    "sha256": "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = sha256\n",
}
_BUSY = "autograder-busy"
_KINDS = {"120000": "a link", "160000": "a submodule", "040000": "a folder"}


class NotHandedInError(RefusedError):
    """There is no commit yet, or not the branch or tag that stands for the hand-in."""


@dataclass(frozen=True)
class TreeEntry:
    """A file, link or submodule of a commit."""

    path: str
    mode: str
    oid: str

    @property
    def odd(self) -> str:
        """What the entry is, if it is no file; else an empty text."""
        return _KINDS.get(self.mode, "" if self.mode.startswith("100") else "no file")


@dataclass(frozen=True)
class Head:
    """A branch or a tag, and the commit at which it stands.

    `other_branches` are those with other commits, if the repository itself chose.
    """

    ref: str
    commit: str
    other_branches: tuple[str, ...] = ()


def object_name(algorithm: str, kind: str, content: bytes) -> str:
    """Return git's name of an object in a repository of this algorithm."""
    digest = hashlib.new(
        algorithm, b"%s %d\0" % (kind.encode(), len(content)), usedforsecurity=False
    )
    digest.update(content)
    return digest.hexdigest()


class Store:
    """A bare store, which is a cache: it is made again if a killed command left it unfinished, or if it is too large.

    Its objects have names of the same algorithm as those of the repository.
    """

    def __init__(self, git: Git) -> None:
        self.git = git
        self._algorithm = ALGORITHMS[0]
        self._busy = git.store / _BUSY

    def prepare(self) -> None:
        """Make the store if there is none that can be used.

        Raises RefusedError for a repository on this machine in which git must not work.
        """
        check_local(self.git.url)
        if self._busy.exists() or size_of(self.git.store) > self.git.limits.bytes // 2:
            shutil.rmtree(self.git.store)
        self._algorithm = _algorithm_in(self.git.store / "config")
        if not (self.git.store / "objects").is_dir():
            self.git.store.mkdir(parents=True, exist_ok=True)
            self._busy.touch()
            for folder in ("objects", "refs"):
                (self.git.store / folder).mkdir(exist_ok=True)
            # all that `git init` would make
            write_whole(self.git.store / "HEAD", "ref: refs/heads/main\n")
            self._settle()

    def discard(self) -> None:
        """Remove what a repository that cannot be used has filled."""
        shutil.rmtree(self.git.store, ignore_errors=True)

    def head(self, branch: str) -> Head:
        """Return the head of a branch or tag, of the repository's own choice if `branch` is empty.

        Raises NotHandedInError if there is none.
        """
        if not branch:
            return self._default()
        branches = f"refs/heads/{branch}"
        tags = f"refs/tags/{branch}"
        commits = self.refs(branches, tags, f"{tags}^{{}}")
        for name, ref in ((branches, branches), (f"{tags}^{{}}", tags), (tags, tags)):
            if name in commits:
                return Head(ref, commits[name])
        raise NotHandedInError(f"there is no branch or tag {branch}.")

    def refs(self, *names: str) -> dict[str, str]:
        """Return the commits of the refs with exactly these names, or below `name/*`, those that exist."""
        below = tuple(name.removesuffix("*") for name in names if name.endswith("/*"))
        lines = (
            self.git.run("ls-remote", REMOTE, *names, most=_HEADS_BYTES)
            .decode("utf-8", "replace")
            .splitlines()
        )
        commits = dict[str, str]()
        for match in filter(None, map(_HEAD.fullmatch, lines)):
            if match[2] in names or match[2].startswith(below):
                commits[match[2]] = match[1]
        return commits

    def fetch(self, head: Head) -> str:
        """Fetch a head without its history and, if the server can, without its files; return the commit that came."""
        name = _local(head.ref)
        options = (
            "--depth=1",
            "--no-tags",
            "--no-write-fetch-head",
            "--filter=blob:none",
            "--quiet",
        )
        self.use(algorithm_of(head.commit))
        self._busy.touch()
        self.git.run("fetch", *options, REMOTE, f"+{head.ref}:{name}")
        self._settle()
        commit = self.commit_of(head.ref)
        if not commit:
            raise RefusedError(f"{head.ref} is no commit.")
        return commit

    def use(self, algorithm: str) -> None:
        """Make the store anew if its objects have names of another algorithm."""
        if self._algorithm != algorithm:
            self.discard()
            self.prepare()
            self._algorithm = algorithm
            self._busy.touch()
            self._settle()

    def commit_of(self, ref: str) -> str:
        """Return the commit of a head that was fetched; empty if it was not."""
        try:
            return (
                self.git.run("rev-parse", "--verify", "--quiet", f"{_local(ref)}^{{commit}}")
                .decode()
                .strip()
            )
        except RefusedError:
            return ""

    def tree(self, commit: str) -> list[TreeEntry]:
        """Return all entries of a commit; raises RefusedError if there are too many."""
        most = self.git.limits.files
        try:
            listed = self.git.run(
                "ls-tree", "-r", "-z", "--full-tree", commit, most=most * _PATH_BYTES
            )
        except RefusedError as problem:
            if "sends more" in str(problem):
                raise RefusedError(f"it holds more than {most} files.") from None
            raise
        entries = [_entry(line) for line in listed.split(b"\0") if line]
        if len(entries) > most:
            raise RefusedError(f"it holds more than {most} files.")
        return entries

    def sizes(self, oids: Collection[str]) -> dict[str, int]:
        """Return the sizes of these blobs, which are fetched if they are missing."""
        sizes = self._known(oids)
        missing = [oid for oid in oids if oid not in sizes]
        if not missing:
            return sizes
        self._busy.touch()
        options = ("--no-tags", "--no-write-fetch-head", "--filter=blob:none", "--quiet", "--stdin")
        self.git.run(
            "fetch", *options, REMOTE, given="".join(f"{oid}\n" for oid in missing).encode()
        )
        self._settle()
        return self._known(oids)

    def contents(self, sizes: Mapping[str, int]) -> dict[str, bytes]:
        """Return the contents of these blobs of known sizes."""
        asked = "".join(f"{oid}\n" for oid in sizes).encode()
        most = sum(sizes.values()) + 200 * len(sizes)
        return (
            dict(_batch(self.git.run("cat-file", "--batch", given=asked, most=most)))
            if sizes
            else {}
        )

    def _known(self, oids: Collection[str]) -> dict[str, int]:
        asked = "".join(f"{oid}\n" for oid in oids).encode()
        lines = (
            self.git.run("cat-file", "--batch-check", given=asked).decode().splitlines()
            if oids
            else []
        )
        facts = [line.split() for line in lines]
        return {oid: int(rest[1]) for oid, *rest in facts if len(rest) == 2 and rest[0] == "blob"}

    def _default(self) -> Head:
        asked = ("ls-remote", "--symref", REMOTE, "HEAD")
        try:
            listed = self.git.run(*asked, f"{_BRANCHES}*", most=_HEADS_BYTES)
        except RefusedError as problem:
            if "sends more" not in str(problem):
                raise
            listed = self.git.run(*asked, most=_HEADS_BYTES)  # there are too many branches
        lines = listed.decode("utf-8", "replace")
        pointer = _POINTER.search(lines)
        commits = {
            match[2]: match[1] for match in filter(None, map(_HEAD.fullmatch, lines.splitlines()))
        }
        if "HEAD" not in commits:
            raise NotHandedInError("there is no commit yet.")
        ref = pointer[1] if pointer and pointer[1].startswith(_BRANCHES) else "HEAD"
        head = commits["HEAD"]
        others = [name for name, commit in commits.items() if commit != head]
        others = [name.removeprefix(_BRANCHES) for name in others if name.startswith(_BRANCHES)]
        return Head(ref, head, tuple(sorted(others)))

    def _settle(self) -> None:
        """Take back what git wrote into the store's settings: a missing object is not fetched unasked."""
        write_whole(self.git.store / "config", _CONFIG[self._algorithm])
        self._busy.unlink()


def algorithm_of(name: str) -> str:
    """Return the algorithm of an object's name, by its length."""
    return ALGORITHMS[len(name) == hashlib.sha256().digest_size * 2]


def _algorithm_in(config: Path) -> str:
    with suppress(OSError):
        if config.read_text("utf-8", "replace") == _CONFIG["sha256"]:
            return "sha256"
    return "sha1"


def _local(ref: str) -> str:
    return f"refs/handin/{hashlib.sha256(ref.encode()).hexdigest()[:20]}"


def _entry(line: bytes) -> TreeEntry:
    facts, _, path = line.partition(b"\t")
    mode, _, oid = facts.decode().split()
    return TreeEntry(path.decode("utf-8", "surrogateescape"), mode, oid)


def _batch(printed: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the objects that `cat-file --batch` printed."""
    place = 0
    while place < len(printed):
        end = printed.index(b"\n", place)
        oid, _, size = printed[place:end].decode().split()
        begin = end + 1
        place = begin + int(size) + 1
        yield oid, printed[begin : place - 1]
