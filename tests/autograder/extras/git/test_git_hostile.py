"""Hostile repositories: nothing of them runs, fills this machine, asks for a password or delays the others."""

from __future__ import annotations

import os
import random
import shutil
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from autograder.course.config import Course
from autograder.extras.git import environment
from autograder.extras.git.branch import push
from autograder.extras.git.collecting import GitReport, collect_from_git, stores_of
from autograder.extras.git.command import Git, Limits, size_of
from autograder.extras.git.environment import environment as environment_for
from autograder.extras.git.repositories import Repository
from autograder.extras.git.store import Store
from autograder.extras.lms.collecting import CollectOptions
from autograder.records import RefusedError
from autograder.source.gate import MEGABYTE
from autograder.submissions.find import find_submissions
from tests.autograder.extras.git.hostile_objects import add_pack, tree_with, zeros_from_little
from tests.autograder.student_repositories import (
    LINK,
    NEEDS_GIT,
    SUBMODULE,
    StudentRepository,
    make_repository,
)

pytestmark = NEEDS_GIT

NAME = "01_adding"
MOMENT = datetime(2026, 11, 2, tzinfo=timezone.utc)
WORK = {"adding.py": "def add(a, b):\n    return a + b\n"}
SMALL = Limits(bytes=300_000, files=1_000, seconds=30, memory=400 * MEGABYTE, at_once=2)
LARGE = 450 * MEGABYTE  # more than the memory that git gets here
HOOKS = [
    *[
        "pre-receive", "update", "post-receive", "post-update", "reference-transaction",
        "proc-receive",
    ],
    *["pre-push", "post-checkout", "fsmonitor-watchman", "push-to-checkout", "pre-auto-gc"],
    "post-index-change",
]  # fmt: skip
PROGRAMS = ("git-lfs", "git-remote-evil", "git-evil", "git-credential-evil", "ssh", "gpg", "less")


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A program that leaves a mark when it runs."""
    program = tmp_path / "trap"
    program.write_text(f"#!/bin/sh\ntouch '{tmp_path}/sprung'\ncat >/dev/null\n", "utf-8")
    program.chmod(0o755)
    return program


@dataclass(frozen=True)
class Scene:
    """A student's repository, a program that must not run, and what ends with the test."""

    repository: StudentRepository
    trap: Path
    ending: ExitStack


@dataclass(frozen=True)
class Outcome:
    """What becomes of a hostile repository: it is collected; or not, with the begin of the sentence
    in `failed`; or what is collected is refused when it is graded, with the sentence in `problem`.

    `address` is another address than that of the repository on this machine.
    """

    failed: str = ""
    problem: str = ""
    branch: str = ""
    assignment: str = ""
    address: str = ""
    limits: Limits = field(default=SMALL)


def collect_between_others(
    folder: Path, course: Course, hostile: Repository, limits: Limits = SMALL
) -> tuple[GitReport, dict[str, str]]:
    """Collect a hostile repository between ordinary ones; return the report, and the problem of each submission."""
    ada = make_repository(folder, "ada", WORK)
    ben = make_repository(folder, "ben", WORK)
    listed = [Repository("ada", ada.url), hostile, Repository("ben", ben.url)]
    report = collect_from_git(
        listed, course, CollectOptions(folder / "submitted"), "table.csv", lambda *_: None, limits
    )
    found = find_submissions(folder / "submitted", course)
    return report, {one.student: one.problem or "" for one in found}


# ------------------------------------------------------------------ what could run


def hooks(scene: Scene) -> Outcome:
    scene.repository.commit(WORK)
    folder = scene.repository.path / "hooks"
    folder.mkdir()
    for name in HOOKS:
        (folder / name).symlink_to(scene.trap)
    return Outcome()


def settings(scene: Scene) -> Outcome:
    hooks(scene)
    repository = scene.repository
    values = {
        "core.sshCommand": scene.trap,
        "core.gitProxy": scene.trap,
        "core.pager": scene.trap,
        "core.editor": scene.trap,
        "core.hooksPath": repository.path / "hooks",
        "uploadpack.packObjectsHook": scene.trap,
        "uploadpack.allowFilter": "true",
        "gpg.program": scene.trap,
        "alias.upload-pack": f"!{scene.trap}",
        "remote.evil.url": "ssh://evil.example/x",
        "remote.evil.promisor": "true",
        "remote.evil.uploadpack": scene.trap,
    }
    for key, value in values.items():
        repository.git("config", key, str(value))
    return Outcome()


def alternates(scene: Scene) -> Outcome:
    scene.repository.commit(WORK)
    other = make_repository(scene.trap.parent, "alternate", {"other.py": "x = 1\n"})
    (scene.repository.path / "objects/info").mkdir(exist_ok=True)
    (scene.repository.path / "objects/info/alternates").write_text(f"{other.path}/objects\n")
    scene.repository.git("config", "core.alternateRefsCommand", str(scene.trap))
    return Outcome(failed="it borrows its objects from another repository.")


def checked_out_where_it_says(scene: Scene) -> Outcome:
    """A push would check the feedback out, through a filter of the repository's own."""
    filters(scene)
    repository = scene.repository
    (scene.trap.parent / "tree").mkdir()
    (repository.path / "HEAD").write_text("ref: refs/heads/feedback\n", "utf-8")
    values = {
        "core.bare": "false",
        "receive.denyCurrentBranch": "updateInstead",
        "filter.evil.required": "true",
        "core.worktree": str(scene.trap.parent / "tree"),
    }
    for key, value in values.items():
        repository.git("config", "--file", "config", key, value)
    return Outcome(branch="main")


def private_repository(scene: Scene) -> Path:
    """A repository of the instructor's with work that would count."""
    return make_repository(scene.trap.parent / "private", "course", WORK).path


def leads_to_the_private(scene: Scene, place: str) -> Outcome:
    """Let a part of the repository be a link to the instructor's."""
    scene.repository.commit(WORK)
    private = private_repository(scene)
    link = scene.repository.path / place
    shutil.rmtree(link)
    link.symlink_to(private / place)
    return Outcome(failed=f"{place} in it is a link")


def link_for_objects(scene: Scene) -> Outcome:
    return leads_to_the_private(scene, "objects")


def link_for_the_repository(scene: Scene) -> Outcome:
    path = scene.repository.path
    path.rename(path.with_name("moved"))
    path.symlink_to(private_repository(scene))
    return Outcome(failed="eve.git is not the repository itself")


def file_that_names_a_folder(scene: Scene) -> Outcome:
    (scene.repository.path / ".git").write_text(f"gitdir: {private_repository(scene)}\n", "utf-8")
    return Outcome(failed=".git is not the repository itself")


def another_repository_s_tree(scene: Scene) -> Outcome:
    scene.repository.commit(WORK)
    (scene.repository.path / "commondir").write_text(f"{private_repository(scene)}\n", "utf-8")
    return Outcome(failed="it shares its objects and settings with another repository")


def folder_that_others_write(scene: Scene) -> Outcome:
    scene.repository.commit(WORK)
    scene.repository.path.chmod(0o777)
    return Outcome(failed="other users of this machine may write")


def settings_that_others_write(scene: Scene) -> Outcome:
    scene.repository.commit(WORK)
    (scene.repository.path / "config").chmod(0o666)
    return Outcome(failed="other users of this machine may write")


def folder_above_that_others_write(scene: Scene) -> Outcome:
    shared = scene.trap.parent / "shared"
    repository = make_repository(shared, "eve", WORK)
    shared.chmod(0o777)
    return Outcome(failed="other users of this machine may write", address=repository.url)


def included_settings(scene: Scene) -> Outcome:
    scene.repository.commit(WORK)
    text = f"[core]\n\tfsmonitor = {scene.trap}\n[uploadpack]\n\tpackObjectsHook = {scene.trap}\n"
    (scene.repository.path / "further").write_text(text, "utf-8")
    (scene.repository.path / "config.worktree").write_text(text, "utf-8")
    scene.repository.git("config", "extensions.worktreeConfig", "true")
    scene.repository.git("config", "include.path", "further")
    return Outcome()


def filters(scene: Scene) -> Outcome:
    for kind in ("smudge", "clean", "process"):
        scene.repository.git("config", f"filter.evil.{kind}", str(scene.trap))
    scene.repository.git("config", "diff.evil.textconv", str(scene.trap))
    scene.repository.git("config", "merge.evil.driver", str(scene.trap))
    attributes = "* filter=evil diff=evil merge=evil working-tree-encoding=UTF-16 eol=crlf\n"
    scene.repository.commit({**WORK, ".gitattributes": attributes})
    (scene.repository.path / "info").mkdir(exist_ok=True)
    (scene.repository.path / "info/attributes").write_text(attributes, "utf-8")
    return Outcome()


def large_files_elsewhere(scene: Scene) -> Outcome:
    pointer = (
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{'1' * 64}\nsize 9000000000\n"
    )
    files = {
        "data.bin": pointer,
        ".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n",
        ".lfsconfig": f"[lfs]\n\turl = ext::{scene.trap}\n\tstandalonetransferagent = evil\n",
    }
    scene.repository.commit({**WORK, **files})
    scene.repository.git("config", "filter.lfs.process", "git-lfs filter-process")
    scene.repository.git("config", "filter.lfs.required", "true")
    return Outcome()


def submodule_with_a_command(scene: Scene) -> Outcome:
    modules = '[submodule "x"]\n\tpath = x\n\turl = -u./evil\n\tupdate = !id\n'
    scene.repository.commit({**WORK, ".gitmodules": modules, "x": (SUBMODULE, "1" * 40)})
    return Outcome(failed="git says: ")


def question_for_a_password(scene: Scene) -> Outcome:
    class Asks(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="forge"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = scene.ending.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Asks))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    scene.ending.callback(server.shutdown)
    return Outcome(
        failed="git says: could not read Username",
        address=f"http://127.0.0.1:{server.server_port}/eve.git",
    )


def redirection(scene: Scene) -> Outcome:
    """The student's server leads to the forge, with a token in .netrc that is for the forge."""

    class Leads(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.startswith("/private.git"):
                scene.trap.with_name("sprung").touch()
            self.send_response(302)
            self.send_header("Location", f"/private.git{self.path.removeprefix('/eve.git')}")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = scene.ending.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Leads))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    scene.ending.callback(server.shutdown)
    return Outcome(
        failed="it leads to another address, and none is followed",
        address=f"http://127.0.0.1:{server.server_port}/eve.git",
    )


def protocol_of_a_program(scene: Scene) -> Outcome:
    return Outcome(failed="git says: transport 'ext' not allowed", address=f"ext::{scene.trap}")


# ------------------------------------------------------------------ names and links


def link(scene: Scene) -> Outcome:
    scene.repository.commit({"adding.py": (LINK, "/etc/passwd")})
    return Outcome(problem="adding.py is a link, not a file; hand in the file itself.")


def submodule_in_place_of_work(scene: Scene) -> Outcome:
    scene.repository.commit({NAME: (SUBMODULE, "1" * 40)})
    return Outcome(problem="01_adding is a submodule; hand in the file itself.")


def stand_at_tree(scene: Scene, tree: str) -> None:
    """Let main stand at a commit of this tree."""
    author = ("-c", "user.name=Eve", "-c", "user.email=eve@school.example")
    commit = scene.repository.git(*author, "commit-tree", "-m", "work", tree).strip()
    scene.repository.move("main", commit)


def tree_of_work(scene: Scene) -> str:
    scene.repository.commit(WORK)
    return scene.repository.git("rev-parse", "main^{tree}").strip()


def folder_called(scene: Scene, name: bytes) -> None:
    """Let main stand at a commit with the work in a folder of this name."""
    tree = tree_with("40000", name, tree_of_work(scene))
    add_pack(scene.repository, [tree])
    stand_at_tree(scene, tree.oid)


def path_outside(scene: Scene) -> Outcome:
    folder_called(scene, b"..")
    return Outcome(failed="git says: ")


def hidden_repository(scene: Scene) -> Outcome:
    folder_called(scene, b".git")
    return Outcome(failed="git says: ")


def name_that_writes_on_the_screen(scene: Scene) -> Outcome:
    folder_called(scene, b"\x1b[2J\nadding\x7f")
    return Outcome()


def name_too_long_for_a_disk(scene: Scene) -> Outcome:
    scene.repository.commit({f"{'a' * 3_000}.py": WORK["adding.py"]})
    return Outcome(assignment=NAME)


# ------------------------------------------------------------------ what could fill this machine


def inflated(scene: Scene) -> Outcome:
    scene.repository.commit({"adding.py": "0" * 4_300_000})
    return Outcome(problem="adding.py is larger than 4 MB.")


def many_files(scene: Scene) -> Outcome:
    scene.repository.commit({f"{n}": "x" for n in range(1_500)})
    return Outcome(failed="it holds more than 1000 files.")


def tree_of_trees(scene: Scene) -> Outcome:
    tree = tree_of_work(scene)
    for _ in range(9):
        rows = "".join(f"040000 tree {tree}\tf{n}\n" for n in range(10))
        tree = scene.repository.git("mktree", given=rows).strip()
    stand_at_tree(scene, tree)
    return Outcome(failed="it holds more than 1000 files.")


def tree_without_end(scene: Scene) -> Outcome:
    trees = [tree_with("40000", b"f", tree_of_work(scene))]
    for _ in range(40_000):
        trees.append(tree_with("40000", b"f", trees[-1].oid))
    add_pack(scene.repository, trees)
    stand_at_tree(scene, trees[-1].oid)
    limits = Limits(files=1_000, memory=SMALL.memory, at_once=2)
    return Outcome(failed="reading it takes more than 400 MB of memory.", limits=limits)


def large_file(scene: Scene) -> Outcome:
    noise = random.Random(1).randbytes(300_000).hex()
    scene.repository.commit({**WORK, "data.csv": noise})
    return Outcome(failed="it sends more than 300000 bytes.")


def large_file_from_little(scene: Scene) -> Outcome:
    base, large = zeros_from_little(LARGE)
    tree = tree_with("100644", b"data.csv", large.oid)
    add_pack(scene.repository, [base, large, tree])
    stand_at_tree(scene, tree.oid)
    return Outcome(failed="reading it takes more than 400 MB of memory.")


def many_branches(scene: Scene) -> Outcome:
    commit = scene.repository.commit(WORK)
    packed_refs = "".join(f"{commit} refs/heads/{n:05d}-{'x' * 200}\n" for n in range(10_000))
    (scene.repository.path / "packed-refs").write_text(
        f"# pack-refs with: peeled fully-peeled sorted\n{packed_refs}", "utf-8"
    )
    return Outcome(branch="main")


def tag_of_a_file(scene: Scene) -> Outcome:
    oid = scene.repository.git("hash-object", "-w", "--stdin", given="x").strip()
    scene.repository.git("update-ref", "refs/tags/final", oid)
    return Outcome(failed="refs/tags/final is no commit.", branch="final")


# ------------------------------------------------------------------ what could delay the others


def listener(scene: Scene) -> socket.socket:
    server = scene.ending.enter_context(socket.socket())
    server.bind(("127.0.0.1", 0))
    server.listen()
    return server


def silent_server(scene: Scene) -> Outcome:
    port = listener(scene).getsockname()[1]
    limits = Limits(bytes=300_000, files=1_000, seconds=4, at_once=2)
    return Outcome(
        failed="it was not read within 4 seconds.",
        address=f"git://127.0.0.1:{port}/eve.git",
        limits=limits,
    )


ONE_OF_A_KIND = [
    hooks, redirection, checked_out_where_it_says, folder_that_others_write, link, path_outside,
    tree_of_trees, inflated,
]  # fmt: skip
LOCAL = [
    *(link_for_objects, link_for_the_repository, file_that_names_a_folder),
    *(another_repository_s_tree, settings_that_others_write, folder_above_that_others_write),
    alternates,
]
FURTHER = [
    *(settings, included_settings),
    *(filters, large_files_elsewhere, submodule_with_a_command),
    *(question_for_a_password, protocol_of_a_program),
    *(submodule_in_place_of_work, hidden_repository),
    *(name_that_writes_on_the_screen, name_too_long_for_a_disk),
    *(large_file_from_little, many_files, tree_without_end, large_file),
    *(many_branches, tag_of_a_file),
    silent_server,
]


@pytest.mark.parametrize(
    "prepare",
    [*ONE_OF_A_KIND, *LOCAL, *(pytest.param(each, marks=pytest.mark.slow) for each in FURTHER)],
)
def test_repository_runs_nothing_fills_nothing_and_stops_nobody(
    tmp_path: Path,
    course: Course,
    trap: Path,
    monkeypatch: pytest.MonkeyPatch,
    prepare: Callable[[Scene], Outcome],
) -> None:
    with ExitStack() as ending:
        scene = Scene(make_repository(tmp_path, "eve"), trap, ending)
        outcome = prepare(scene)
        address = outcome.address or scene.repository.url
        further = (
            [address.partition(":")[0]] if outcome.address.startswith(("git:", "http:")) else []
        )
        monkeypatch.setattr(environment, "PROTOCOLS", (*environment.PROTOCOLS, *further))
        (tmp_path / "programs").mkdir()
        for program in PROGRAMS:
            (tmp_path / "programs" / program).symlink_to(trap)
        monkeypatch.setenv("PATH", f"{tmp_path}/programs:{os.environ['PATH']}")
        (tmp_path / "drafts").mkdir()
        monkeypatch.setenv("TMPDIR", str(tmp_path / "drafts"))
        for name in ("GIT_ASKPASS", "SSH_ASKPASS", "GIT_EDITOR", "GIT_PAGER", "GIT_EXTERNAL_DIFF"):
            monkeypatch.setenv(name, str(trap))
        hostile = Repository("eve", address, outcome.assignment, outcome.branch)
        report, problems = collect_between_others(tmp_path, course, hostile, outcome.limits)
        returned = "" if outcome.address else feedback_to(tmp_path, address, outcome.limits)
    assert not (tmp_path / "sprung").exists()
    told = (
        [f"eve: {hostile.shown_url} was not collected: {outcome.failed}"] if outcome.failed else []
    )
    told += [outcome.problem] if outcome.problem else []
    assert len(report.odd) == len(told), report.odd
    assert all(sentence in line for sentence, line in zip(told, report.odd)), report.odd
    assert all(line.isprintable() for line in [*report.odd, *report.notes])
    eve = {} if outcome.failed else {"eve": outcome.problem}
    assert (report.failed, problems) == (bool(outcome.failed), {"ada": "", "ben": "", **eve})
    stores = stores_of(tmp_path / "submitted") / "stores"
    kept = {store.name.partition("-")[0] for store in stores.iterdir()}
    assert kept == set(problems)
    assert size_of(stores) < 100_000 and size_of(tmp_path / "submitted") < 100_000
    assert not list((tmp_path / "drafts").iterdir())
    if not outcome.failed:
        assert returned == "pushed"
        assert scene.repository.show("feedback", "README.md") == "well done"


def feedback_to(folder: Path, address: str, limits: Limits) -> str:
    """Push feedback to a repository; return what became of it."""
    store = Store(Git(folder / "returned.git", address, limits, threading.Event()))
    try:
        store.prepare()
        return push(store, "feedback", {"README.md": b"well done"}, MOMENT)
    except RefusedError as problem:
        return str(problem)


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
        "tests.autograder.student_repositories.ENVIRONMENT", {"PATH": os.environ["PATH"]}
    )
    report, _ = collect_between_others(tmp_path, course, Repository("eve", repository.url))
    assert (report.failed, report.fetched) == (0, 3)
    assert not (tmp_path / "sprung").exists()


def test_environment_of_git_is_made_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET_OF_THE_COURSE", "secret")
    made = environment_for("https://course:secret@forge.example/a.git", "/store")
    assert "A_SECRET_OF_THE_COURSE" not in made
    assert made["GIT_ALLOW_PROTOCOL"] == "https:ssh:file"
    assert {made[name] for name in ("GIT_ASKPASS", "SSH_ASKPASS", "GIT_TEMPLATE_DIR")} == {""}
    assert (made["GIT_TERMINAL_PROMPT"], made["GIT_CONFIG_NOSYSTEM"]) == ("0", "1")
    assert made["GIT_CONFIG_GLOBAL"] == os.devnull
    for own_command in ("", "ssh -i key -A"):
        monkeypatch.setenv("GIT_SSH_COMMAND", own_command)
        command = environment_for("ssh://forge.example/a.git", "/store")["GIT_SSH_COMMAND"]
        for lent in ("ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes"):
            assert lent in command.split()
    names = [value for name, value in made.items() if name.startswith("GIT_CONFIG_KEY_")]
    assert len(names) == len(set(names)) == int(made["GIT_CONFIG_COUNT"])
