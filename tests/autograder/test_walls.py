"""Each wall of each tier, attacked by a real worker; and each reported as open when it is taken down.

What is probed at the start of each `grade` is the short form of it: five boundaries.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from autograder.walls.inside.jail import SAFE_TIERS, TIERS
from autograder.walls.outside import command, launcher
from autograder.walls.outside.launcher import PROBE_LIMITS, Sandbox
from autograder.walls.outside.unavailable import SandboxUnavailableError
from autograder.walls.outside.worker_process import WorkerProcess, receive
from tests.autograder import trials
from tests.autograder.sampling import sampled
from tests.autograder.test_sandbox import descendants, living
from tests.autograder.trials import LEFT_BEHIND, TRIALS, Facts
from tests.autograder.waiting import HANGS, wait_until

ROOT = Path(__file__).resolve().parents[2]
LIMITS = PROBE_LIMITS.model_copy(update={"submission_seconds": HANGS})
# what /proc says of a process without any right. Not its bounding set, which an ordinary user
# cannot empty: without new privileges nothing can be drawn from it
POWERLESS = {"NoNewPrivs": 1, "Seccomp": 2, "CapInh": 0, "CapPrm": 0, "CapEff": 0, "CapAmb": 0}
THREADS = "number of threads"


@pytest.fixture(scope="module")
def entry() -> Iterator[dict[str, Any]]:
    """A place for modules of the fork server; not one of pytest's folders, which are closed to other users."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        Path(folder, "trials.py").write_text(Path(trials.__file__).read_text())
        yield dict(entry="trials:run", folders=[Path(folder)], warm=False)


@contextmanager
def scenery() -> Iterator[dict[str, Any]]:
    """Provide targets: a course, a world-writable folder, a listening port, and a secret in the environment."""
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.create_server(("127.0.0.1", 0)) as listener,
        pytest.MonkeyPatch.context() as patch,
    ):
        hidden = Path(folder, "test_hidden.py")
        victim = Path(folder, "playground", "victim")
        victim.parent.mkdir()
        for file in (hidden, victim):
            file.write_text("ANSWER = 42\n")
        # the sandbox alone protects them
        for path, mode in (
            (folder, 0o755),
            (victim.parent, 0o777),
            (hidden, 0o644),
            (victim, 0o666),
        ):
            os.chmod(path, mode)
        token = secrets.token_hex(8)
        patch.setenv("GRADERS_SECRET", token)
        yield {
            "hidden": str(hidden),
            "course": [str(ROOT / name) for name in ("", "pyproject.toml", "tests", "solutions")],
            "playground": str(victim.parent),
            "home": str(Path.home()),
            "listener": listener.getsockname(),
            "grader": os.getpid(),
            "others": descendants(os.getpid()),
            "token": token,
        }


@contextmanager
def trying(
    trial: str, sandbox: Sandbox, facts: Facts, **limits: float
) -> Iterator[tuple[WorkerProcess, list[str] | None]]:
    """Yield a worker that has performed a trial, and its answer (None: no answer)."""
    allowed = LIMITS.model_copy(update=limits)
    request = {**facts, "others": [], "trial": trial, "limits": allowed.model_dump()}
    with sandbox.spawn(allowed) as worker:
        worker.socket.sendall(json.dumps(request).encode() + b"\n")
        line = receive(worker.socket, HANGS, end=b"\n") or b""
        yield worker, json.loads(line) if line.endswith(b"\n") else None


def tell(
    trial: str, sandbox: Sandbox, facts: Facts, killed_for: str = "", **limits: float
) -> list[str]:
    """Return the operations that the worker reports; one that ended otherwise than expected may have done anything."""
    with trying(trial, sandbox, facts, **limits) as (worker, operations):
        worker.socket.shutdown(socket.SHUT_WR)
        ending = worker.end(kill=False)
    if operations is not None:
        return operations
    if ending.reason == killed_for:
        return []
    return [f"end without an answer ({ending.reason} {ending.code})"]


def look_powerful(wall: str, sandbox: Sandbox, facts: Facts) -> list[str]:
    before = descendants(os.getpid())
    with trying("nothing", sandbox, facts):
        powers = list[str]()
        for pid in descendants(os.getpid()) - before:
            status = Path(f"/proc/{pid}/status").read_text()
            values = dict(re.findall(r"^(\w+):\t(\w+)$", status, re.MULTILINE))
            powers += [name for name in POWERLESS if int(values[name], 16) != POWERLESS[name]]
        return powers


def leave(wall: str, sandbox: Sandbox, facts: Facts) -> list[str]:
    """Check what remains of a worker that has ended, and of the sandbox, which is closed."""
    with trying("leave", sandbox, facts) as (worker, answer):
        if answer is None:
            return ["end without an answer"]
        worker.end()
        # no process holds the other end of a dead worker's socket
        remains = [] if receive(worker.socket, 5, end=None) == b"" else ["leave a process"]
    remains += tell("find", sandbox, facts)
    processes = descendants(os.getpid()) - facts["others"]
    sandbox.close()
    return remains if wait_until(lambda: not living(processes)) else [*remains, "outlive it"]


# trials that need the grader, too; all others are those of the worker alone
FROM_OUTSIDE: dict[str, Callable[[str, Sandbox, Facts], list[str]]] = {
    "processor time": partial(tell, killed_for="cpu", cpu_seconds=1),
    "wall clock": partial(tell, killed_for="wall", submission_seconds=1),
    "scratch space": partial(tell, killed_for="disk"),
    "no rights to gain": look_powerful,
    "nothing left over": leave,
}
# the tiers that promise each wall; the last of them closes the sandbox
WALLS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((*TRIALS, *FROM_OUTSIDE), SAFE_TIERS),
    **dict.fromkeys(
        ("size of a file", "descriptors", "processor time", "wall clock", "output"), tuple(TIERS)
    ),
    "names of hidden files": ("namespaces",),
}


def opened(tier: str, entry: dict[str, Any], walls: Iterable[str] = WALLS) -> dict[str, list[str]]:
    """Return the walls of a tier through which a worker came, with what it did."""
    with scenery() as facts, Sandbox(tier, **entry) as sandbox:
        threads_are_limited = not sandbox.note
        found = {wall: FROM_OUTSIDE.get(wall, tell)(wall, sandbox, facts) for wall in walls}
    if not threads_are_limited:
        found.pop(THREADS, None)
    return {wall: operations for wall, operations in found.items() if operations}


# ------------------------------------------------------------------ as it is


@pytest.mark.parametrize("tier", sampled(TIERS, "namespaces".__eq__))
def test_what_a_tier_promises_holds_and_nothing_remains(tiers, entry, tier):
    if not tiers[tier].works:
        pytest.skip(tiers[tier].reason)
    through = opened(tier, entry)
    assert {wall: through[wall] for wall in through if tier in WALLS[wall]} == {}
    if tier in SAFE_TIERS:  # what is not promised is open, as documented
        assert set(through) == {wall for wall in WALLS if tier not in WALLS[wall]}
    places = [Path(place) for place in ("/", "/tmp", "/dev/shm", Path.home())]
    assert [file for place in places for file in place.glob(f"{LEFT_BEHIND}_*")] == []


# ------------------------------------------------------------------ walls taken down

# takes one wall down in the fork server, before any worker is forked; the trials stay the same
WITHOUT = """
from autograder.walls.inside import jail, landlock, seccomp, zygote
from {module} import run
{removal}
"""
REMOVALS = {
    "limits": "jail.limit_resources = lambda *_: None",
    "filter": "jail.Walls.filter_calls = lambda self: None",
    "output": "zygote.redirect_output = lambda limit: None",
    "deadline": "zygote.Zygote.seconds_to_deadline = lambda self: None\n"
    "zygote.Zygote.enforce_deadlines = lambda self: None",
    "privileges": "jail.drop_privileges = lambda: jail.no_new_privileges()",
    "descriptors": "zygote.os.closerange = lambda *_: None",
    "landlock": "landlock.restrict = lambda *_: None",
    "scratch": "cover = jail.cover_shared_files\njail.cover_shared_files = lambda scratch_mb: cover(64)",
    "processes": "hide = jail.mount\njail.mount = lambda source, target, *rest: "
    "target != '/proc' and hide(source, target, *rest)",
    "files": "",  # by bubblewrap, see `with_files`
}  # fmt: skip


@pytest.fixture
def without(tiers, entry, monkeypatch) -> Callable[[str, str, str], dict[str, Any]]:
    """Return the entry of a fork server whose workers lack one wall."""

    def of(tier: str, removal: str, module: str) -> dict[str, Any]:
        if not tiers[tier].works:
            pytest.skip(tiers[tier].reason)
        if removal == "files":
            monkeypatch.setitem(command.COMMANDS, tier, with_files)
        (folder,) = entry["folders"]
        text = WITHOUT.format(module=module, removal=REMOVALS[removal])
        (folder / "walls_down.py").write_text(text)
        return entry | {"entry": "walls_down:run"}

    return of


def with_files(layout: command.Layout, options: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
    """Return bubblewrap's command with the machine's folder for temporary files."""
    words, environment = bubblewrap(layout, options)
    at = words.index("--remount-ro")
    return [*words[:at], "--bind", *[tempfile.gettempdir()] * 2, *words[at:]], environment


bubblewrap = command.COMMANDS["namespaces"]
WALLS_DOWN = [
    (
        "namespaces",
        "limits",
        {"memory", THREADS, "descriptors", "processor time", "size of a file", "limits stay"},
    ),
    ("namespaces", "filter", {"network", "new processes", "other programs", "signals to others", "system-call filter"}),
    ("landlock", "filter", {"network", "new processes", "system-call filter", "nothing left over"}),
    ("landlock", "landlock", {"tests and solutions", "files of the system", "processes hidden"}),
    ("namespaces", "scratch", {"scratch space"}),
    ("namespaces", "processes", {"processes hidden"}),
    ("namespaces", "privileges", {"no rights to gain"}),
    ("namespaces", "output", {"output"}),
    ("namespaces", "deadline", {"wall clock"}),
    ("namespaces", "descriptors", {"descriptors"}),
    ("namespaces", "files", {"tests and solutions", "names of hidden files", "writing outside"}),
]  # fmt: skip
SAMPLE = (("namespaces", "filter"), ("landlock", "landlock"))


@pytest.mark.parametrize(
    ("tier", "removal", "expected"), sampled(WALLS_DOWN, lambda case: case[:2] in SAMPLE)
)
def test_worker_comes_through_a_wall_that_was_taken_down(without, tier, removal, expected):
    assert set(opened(tier, without(tier, removal, "trials"), sorted(expected))) == expected


# ------------------------------------------------------------------ the probe

HIDDEN, WRITE, NETWORK, PROGRAM, PROCESS = (
    "read a hidden file", "write outside its own folder", "open a network socket",
    "start a program", "reach another process",
)  # fmt: skip
PROBED = [
    ("namespaces", "filter", (NETWORK, PROGRAM, PROCESS)),
    ("namespaces", "processes", (PROCESS,)),
    ("namespaces", "files", (HIDDEN, WRITE)),
    ("landlock", "filter", (NETWORK, PROGRAM, PROCESS)),
    ("landlock", "landlock", (HIDDEN, WRITE, PROCESS)),
]


@pytest.mark.parametrize(("tier", "removal", "open_boundaries"), PROBED)
def test_probe_refuses_a_tier_without_a_wall(without, monkeypatch, tier, removal, open_boundaries):
    changed = without(tier, removal, "autograder.walls.inside.probe")
    monkeypatch.setattr(launcher, "PROBE_ENTRY", changed["entry"])
    monkeypatch.setattr(launcher, "Sandbox", partial(Sandbox, folders=changed["folders"]))
    with pytest.raises(SandboxUnavailableError) as refused:
        launcher.try_tier(tier)
    able = f"A worker was able to {' and to '.join(open_boundaries)}."
    assert refused.value.reason == f"The sandbox {tier!r} does not work here. {able}"


def test_probe_of_a_tier_with_all_its_walls_is_content(tiers):
    for tier in SAFE_TIERS:
        if tiers[tier].works:
            assert launcher.try_tier(tier) == tiers[tier].reason.partition("processes. ")[2]
