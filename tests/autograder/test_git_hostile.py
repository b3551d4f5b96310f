"""Hostile repositories: nothing of them runs, fills this machine, asks for a password or delays the others."""

from __future__ import annotations

import os
import random
import socket
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path

import pytest

from autograder.course.config import Course, load_course
from autograder.extras.git import environment
from autograder.extras.git.branch import commit_of, push
from autograder.extras.git.collecting import GitReport, collect_from_git, stores_of
from autograder.extras.git.command import Git, size_of
from autograder.extras.git.environment import environment as environment_for
from autograder.extras.git.limits import Limits
from autograder.extras.git.repositories import Repository
from autograder.extras.git.store import Store
from autograder.extras.lms.collecting import CollectOptions
from autograder.submissions import find_submissions
from tests.autograder.student_repositories import (
    LINK,
    NEEDS_GIT,
    SUBMODULE,
    StudentRepository,
    make_repository,
)
from tests.autograder.tiny_course import write_tiny_course

pytestmark = NEEDS_GIT

NAME = "01_adding"
MOMENT = datetime(2026, 11, 2, tzinfo=timezone.utc)
WORK = {"adding.py": "def add(a, b):\n    return a + b\n"}
SMALL = Limits(bytes=300_000, files=1_000, seconds=30, at_once=2)
HOOKS = (
    *(
        "pre-receive",
        "update",
        "post-receive",
        "post-update",
        "reference-transaction",
        "proc-receive",
    ),
    *(
        "pre-push",
        "post-checkout",
        "fsmonitor-watchman",
        "push-to-checkout",
        "pre-auto-gc",
        "post-index-change",
    ),
)
Hostile = Callable[[StudentRepository, Path], object]


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return load_course(write_tiny_course(tmp_path_factory.mktemp("course")))


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A program that leaves a mark when it runs."""
    program = tmp_path / "trap"
    program.write_text(f"#!/bin/sh\ntouch '{tmp_path}/sprung'\ncat >/dev/null\n", "utf-8")
    program.chmod(0o755)
    return program


def collect_beside_ben(
    folder: Path, course: Course, hostile: Repository, limits: Limits = SMALL
) -> tuple[GitReport, dict[str, str]]:
    """Collect a hostile repository before an ordinary one; return the report, and the problem of each submission."""
    ben = make_repository(folder, "ben", WORK)
    listed = [hostile, Repository("ben", ben.url)]
    report = collect_from_git(
        listed, course, CollectOptions(folder / "submitted"), "table.csv", lambda *_: None, limits
    )
    found = find_submissions(folder / "submitted", course)
    return report, {one.student: one.problem or "" for one in found}


# ------------------------------------------------------------------ nothing runs


def hooks(repository: StudentRepository, trap: Path) -> None:
    repository.commit(WORK)
    folder = repository.path / "hooks"
    folder.mkdir()
    for name in HOOKS:
        (folder / name).symlink_to(trap)


def settings(repository: StudentRepository, trap: Path) -> None:
    hooks(repository, trap)
    values = {
        "core.fsmonitor": trap,
        "core.sshCommand": trap,
        "core.askPass": trap,
        "core.gitProxy": trap,
        "core.pager": trap,
        "core.editor": trap,
        "core.alternateRefsCommand": trap,
        "core.hooksPath": repository.path / "hooks",
        "uploadpack.packObjectsHook": trap,
        "uploadpack.allowFilter": "true",
        "credential.helper": f"!{trap}",
        "gpg.program": trap,
        "alias.upload-pack": f"!{trap}",
        "filter.lfs.smudge": trap,
        "filter.lfs.process": trap,
        "remote.evil.url": "ssh://evil.example/x",
        "remote.evil.promisor": "true",
        "remote.evil.uploadpack": trap,
    }
    for key, value in values.items():
        repository.git("config", key, str(value))
    alternate = make_repository(trap.parent, "alternate", {"other.py": "x = 1\n"})
    (repository.path / "objects/info").mkdir(exist_ok=True)
    (repository.path / "objects/info/alternates").write_text(f"{alternate.path}/objects\n", "utf-8")


def attributes(repository: StudentRepository, trap: Path) -> None:
    repository.git("config", "filter.evil.smudge", str(trap))
    repository.commit(
        {
            **WORK,
            ".gitattributes": "* filter=evil diff=evil merge=evil\n*.py filter=lfs\n",
            ".gitconfig": f"[core]\n\tfsmonitor = {trap}\n",
            ".lfsconfig": f"[lfs]\n\turl = ext::{trap}\n",
            ".mailmap": "a <b@c.example>\n",
        }
    )


def submodules(repository: StudentRepository, trap: Path) -> None:
    modules = '[submodule "x"]\n\tpath = x\n\turl = https://forge.invalid/x.git\n'
    repository.commit({**WORK, ".gitmodules": modules, "x": (SUBMODULE, "1" * 40)})
    repository.git("config", "submodule.x.update", f"!{trap}")
    repository.git("config", "submodule.recurse", "true")


@pytest.mark.parametrize(
    "hostile",
    [
        hooks,
        settings,
        pytest.param(attributes, marks=pytest.mark.slow),
        pytest.param(submodules, marks=pytest.mark.slow),
    ],
)
def test_nothing_of_a_repository_runs(
    tmp_path: Path, course: Course, trap: Path, hostile: Hostile
) -> None:
    repository = make_repository(tmp_path, "eve")
    hostile(repository, trap)
    report, problems = collect_beside_ben(tmp_path, course, Repository("eve", repository.url))
    assert (report.odd, problems) == ([], {"eve": "", "ben": ""})
    store = Store(Git(tmp_path / "returned.git", repository.url, SMALL, threading.Event()))
    store.prepare()
    assert push(store, "feedback", commit_of({"README.md": b"well done"}, MOMENT)) == "pushed"
    assert not (tmp_path / "sprung").exists()
    assert repository.show("feedback", "README.md") == "well done"


def test_settings_of_this_machine_do_not_apply(
    tmp_path: Path, course: Course, trap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = make_repository(tmp_path, "eve", WORK)
    hooks_of = tmp_path / "hooks"
    hooks_of.mkdir()
    for name in HOOKS:
        (hooks_of / name).symlink_to(trap)
    own = f'[core]\n\thooksPath = {hooks_of}\n\tfsmonitor = {trap}\n[url "https://forge.invalid/"]\n\tinsteadOf = file://\n'
    (tmp_path / ".gitconfig").write_text(own, "utf-8")
    (tmp_path / "template").mkdir()
    (tmp_path / "template/config").write_text(own, "utf-8")
    set_here = {
        "HOME": tmp_path,
        "XDG_CONFIG_HOME": tmp_path,
        "GIT_CONFIG_GLOBAL": tmp_path / ".gitconfig",
        "GIT_TEMPLATE_DIR": tmp_path / "template",
        "GIT_DIR": tmp_path / "elsewhere.git",
        "GIT_ASKPASS": trap,
        "SSH_ASKPASS": trap,
        "GIT_EXTERNAL_DIFF": trap,
        "GIT_EXEC_PATH": tmp_path,
    }
    for name, value in set_here.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr(
        "tests.autograder.student_repositories._ENVIRONMENT", {"PATH": os.environ["PATH"]}
    )
    report, _ = collect_beside_ben(tmp_path, course, Repository("eve", repository.url))
    assert (report.failed, report.fetched) == (0, 2)
    assert not (tmp_path / "sprung").exists()


def test_environment_of_git_is_made_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET_OF_THE_COURSE", "secret")
    made = environment_for("https://course:secret@forge.example/a.git", "/store")
    assert "A_SECRET_OF_THE_COURSE" not in made
    assert made["GIT_ALLOW_PROTOCOL"] == "https:ssh:file"
    assert {made[name] for name in ("GIT_ASKPASS", "SSH_ASKPASS", "GIT_TEMPLATE_DIR")} == {""}
    assert (
        made["GIT_TERMINAL_PROMPT"],
        made["GIT_CONFIG_NOSYSTEM"],
        made["GIT_CONFIG_GLOBAL"],
    ) == ("0", "1", os.devnull)
    names = [value for name, value in made.items() if name.startswith("GIT_CONFIG_KEY_")]
    assert len(names) == len(set(names)) == int(made["GIT_CONFIG_COUNT"])


# ------------------------------------------------------------------ names and links


def link(repository: StudentRepository, folder: Path) -> str:
    repository.commit({"adding.py": (LINK, "/etc/passwd")})
    return "adding.py is a link. Put the file itself there."


def link_of_a_folder(repository: StudentRepository, folder: Path) -> str:
    repository.commit({NAME: (LINK, "/etc")})
    return "01_adding is a link. Put the files themselves there."


def submodule_in_place_of_work(repository: StudentRepository, folder: Path) -> str:
    repository.commit({NAME: (SUBMODULE, "1" * 40)})
    return "01_adding is a submodule. Put the files themselves there."


def inflated(repository: StudentRepository, folder: Path) -> str:
    repository.commit({"adding.py": "0" * 4_300_000})
    return "adding.py is larger than 4 MB."


@pytest.mark.parametrize(
    "hostile",
    [
        link,
        pytest.param(link_of_a_folder, marks=pytest.mark.slow),
        pytest.param(submodule_in_place_of_work, marks=pytest.mark.slow),
        inflated,
    ],
)
def test_entry_that_is_no_file_of_a_usual_size_is_refused_when_graded(
    tmp_path: Path, course: Course, hostile: Callable[[StudentRepository, Path], str]
) -> None:
    repository = make_repository(tmp_path, "eve")
    sentence = hostile(repository, tmp_path)
    report, problems = collect_beside_ben(tmp_path, course, Repository("eve", repository.url))
    assert problems == {"eve": sentence, "ben": ""}
    assert report.failed == 0 and any(sentence in line for line in report.odd)


# ------------------------------------------------------------------ what cannot be read


def literal_tree(repository: StudentRepository, name: str, oid: str, mode: str = "40000") -> None:
    """Let main stand at a commit whose tree has an entry that git itself would not make."""
    content = f"{mode} {name}\0".encode() + bytes.fromhex(oid)
    written = repository.path / "literal"
    written.write_bytes(content)
    tree = repository.git("hash-object", "-t", "tree", "-w", "--literally", str(written)).strip()
    commit_tree(repository, tree)


def commit_tree(repository: StudentRepository, tree: str) -> None:
    """Let main stand at a commit of this tree."""
    author = ("-c", "user.name=Eve", "-c", "user.email=eve@school.example")
    commit = repository.git(*author, "commit-tree", "-m", "work", tree).strip()
    repository.move("main", commit)


def tree_of_work(repository: StudentRepository) -> str:
    repository.commit(WORK)
    return repository.git("rev-parse", "main^{tree}").strip()


def path_outside(repository: StudentRepository, folder: Path) -> str:
    literal_tree(repository, "..", tree_of_work(repository))
    return "git says: "


def hidden_repository(repository: StudentRepository, folder: Path) -> str:
    literal_tree(repository, ".git", tree_of_work(repository))
    return "git says: "


def bad_module(repository: StudentRepository, folder: Path) -> str:
    text = '[submodule "x"]\n\tpath = x\n\turl = -u./evil\n\tupdate = !id\n'
    repository.commit({**WORK, ".gitmodules": text, "x": (SUBMODULE, "1" * 40)})
    return "git says: "


def tree_of_trees(repository: StudentRepository, folder: Path) -> str:
    tree = tree_of_work(repository)
    for _ in range(9):
        rows = "".join(f"040000 tree {tree}\tf{n}\n" for n in range(10))
        tree = repository.git("mktree", given=rows).strip()
    commit_tree(repository, tree)
    return "it holds more than 1000 files."


def many_files(repository: StudentRepository, folder: Path) -> str:
    repository.commit({f"{n}": "x" for n in range(1_500)})
    return "it holds more than 1000 files."


def large_file(repository: StudentRepository, folder: Path) -> str:
    noise = random.Random(1).randbytes(300_000).hex()
    repository.commit({**WORK, "data.csv": noise})
    return "it sends more than 300000 bytes."


def large_file_in_place_of_work(repository: StudentRepository, folder: Path) -> str:
    repository.git("config", "uploadpack.allowFilter", "true")
    repository.commit({"adding.py": random.Random(1).randbytes(300_000).hex()})
    return "it sends more than 300000 bytes."


def no_commit(repository: StudentRepository, folder: Path) -> str:
    oid = repository.git("hash-object", "-w", "--stdin", given="x").strip()
    (repository.path / "refs/tags").mkdir(exist_ok=True)
    (repository.path / "refs/tags/final").write_text(f"{oid}\n", "utf-8")
    return "refs/tags/final is no commit."


UNREADABLE = [path_outside, tree_of_trees, large_file]
FURTHER = [hidden_repository, bad_module, many_files, large_file_in_place_of_work, no_commit]


@pytest.mark.parametrize(
    "hostile", [*UNREADABLE, *(pytest.param(each, marks=pytest.mark.slow) for each in FURTHER)]
)
def test_repository_that_cannot_be_used_is_a_sentence_and_fills_nothing(
    tmp_path: Path, course: Course, hostile: Callable[[StudentRepository, Path], str]
) -> None:
    repository = make_repository(tmp_path, "eve")
    sentence = hostile(repository, tmp_path)
    branch = "final" if hostile is no_commit else ""
    report, problems = collect_beside_ben(
        tmp_path, course, Repository("eve", repository.url, branch=branch)
    )
    assert (report.failed, problems) == (1, {"ben": ""})
    assert (
        f"eve: {repository.url} was not collected: {sentence}" in report.odd[0]
        and len(report.odd) == 1
    )
    stores = stores_of(tmp_path / "submitted") / "stores"
    assert [store.name.partition("-")[0] for store in stores.iterdir()] == ["ben"]
    assert size_of(stores) < 50_000


@pytest.mark.slow
def test_many_branches_are_not_listed(tmp_path: Path, course: Course) -> None:
    repository = make_repository(tmp_path, "eve", WORK)
    commit = repository.head("main")
    packed = "".join(f"{commit} refs/heads/{n:05d}-{'x' * 200}\n" for n in range(10_000))
    (repository.path / "packed-refs").write_text(
        f"# pack-refs with: peeled fully-peeled sorted\n{packed}", "utf-8"
    )
    report, problems = collect_beside_ben(
        tmp_path, course, Repository("eve", repository.url, branch="main")
    )
    assert (report.failed, problems) == (0, {"eve": "", "ben": ""})


@pytest.fixture
def silent_server() -> Iterator[str]:
    """A server that takes connections and says nothing."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield f"git://127.0.0.1:{server.getsockname()[1]}/eve.git"


def test_server_that_does_not_answer_delays_nobody_for_long(
    tmp_path: Path, course: Course, silent_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "PROTOCOLS", (*environment.PROTOCOLS, "git"))
    limits = Limits(bytes=300_000, files=1_000, seconds=4, at_once=2)
    report, problems = collect_beside_ben(
        tmp_path, course, Repository("eve", silent_server), limits
    )
    assert problems == {"ben": ""}
    assert report.odd == [
        f"table.csv: eve: {silent_server} was not collected: it was not read within 4 seconds."
    ]


def test_protocol_that_is_not_allowed_is_not_spoken(
    tmp_path: Path, course: Course, silent_server: str
) -> None:
    report, problems = collect_beside_ben(tmp_path, course, Repository("eve", silent_server))
    assert problems == {"ben": ""} and "transport 'git' not allowed" in report.odd[0]
