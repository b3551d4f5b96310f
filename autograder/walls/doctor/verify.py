"""Verify every boundary of every sandbox tier on this machine by attacking it from a real worker."""

import os
import re
import secrets
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from autograder.records import InfrastructureError
from autograder.walls.doctor.doctor import MatrixCell, TierReport
from autograder.walls.inside.jail import SAFE_TIERS, TIERS
from autograder.walls.inside.trials import TRIALS, Facts
from autograder.walls.outside.launcher import PROBE_LIMITS, TRIAL_ENTRY, Sandbox, ask
from autograder.walls.outside.worker_process import WorkerProcess, receive

TRIAL_SECONDS = 60.0  # a busy machine may need long for two seconds of its processor
TRIAL_LIMITS = PROBE_LIMITS.model_copy(update={"submission_seconds": 50})
TOKEN_NAME = "AUTOGRADER_VERIFY"
GONE_SECONDS = 5
# what /proc says of a process without any right. Not its bounding set, which an ordinary user
# cannot empty: without new privileges nothing can be drawn from it
POWERLESS = {"NoNewPrivs": 1, "Seccomp": 2, "CapInh": 0, "CapPrm": 0, "CapEff": 0, "CapAmb": 0}
THREADS = "number of threads"
RIGHTS = "no rights to gain"
REMAINS = "nothing left over"


def verify() -> list[TierReport]:
    """Test every boundary in every tier, the strongest tier first."""
    return [verify_tier(tier) for tier in TIERS]


def is_sound(reports: Iterable[TierReport]) -> bool:
    """Whether a safe tier works here, and all guarantees of each working tier hold."""
    safe = [report for report in reports if report.tier in SAFE_TIERS and report.works]
    return bool(safe) and not any(report.open_walls for report in safe)


def verify_tier(
    tier: str, entry: str = TRIAL_ENTRY, folders: Iterable[Path] = (), only: Iterable[str] = ()
) -> TierReport:
    """Test the boundaries of one tier, or those named in `only`.

    Other arguments serve tests of this module.
    """
    try:
        with (
            _scenery() as facts,
            Sandbox(tier, entry=entry, folders=folders, warm=False) as sandbox,
        ):
            note = sandbox.note
            _tell("nothing", sandbox, facts)  # raises when no worker can be walled in at all
            walls = [wall for wall in WALLS if not only or wall in only]
            cells = tuple(_cell(wall, sandbox, facts, note) for wall in walls)
            return TierReport(tier, True, note, cells=cells)
    except (InfrastructureError, OSError) as problem:
        return TierReport(tier, False, getattr(problem, "reason", str(problem)))


def _cell(wall: str, sandbox: Sandbox, facts: Facts, note: str) -> MatrixCell:
    """Attack one wall; a sandbox with a note does not promise to limit the threads."""
    attack = FROM_OUTSIDE.get(wall, _tell)
    breaches = tuple(attack(wall, sandbox, facts))
    is_promised = sandbox.tier in WALLS[wall] and not (wall == THREADS and note)
    verdict = "held"
    if breaches:
        verdict = "open" if is_promised else "not promised"
    return MatrixCell(wall, verdict, breaches)


@contextmanager
def _scenery() -> Iterator[dict[str, Any]]:
    """Provide targets: a course, a world-writable folder, a listening port, and a secret in the environment."""
    token = secrets.token_hex(8)
    home = os.path.expanduser("~")
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        hidden = Path(folder, "test_hidden.py")
        victim = Path(folder, "playground", "victim")
        victim.parent.mkdir()
        for file in (hidden, victim):
            file.write_text("ANSWER = 42\n")
        # the sandbox alone protects them
        os.chmod(folder, 0o755)
        os.chmod(victim.parent, 0o777)
        os.chmod(hidden, 0o644)
        os.chmod(victim, 0o666)
        os.environ[TOKEN_NAME] = token
        try:
            yield {
                "hidden": str(hidden),
                "playground": str(victim.parent),
                # some containers' users have no folder of their own
                "home": "/root" if home in ("/", "~") else home,
                "listener": listener.getsockname(),
                "grader": os.getpid(),
                "others": sorted(family(os.getpid())),
                "token": token,
            }
        finally:
            del os.environ[TOKEN_NAME]


@contextmanager
def _trying(
    trial: str, sandbox: Sandbox, facts: Facts, **limits: float
) -> Iterator[tuple[WorkerProcess, list[str] | None]]:
    """Yield a worker that has performed a trial, and its answer (None: no answer)."""
    allowed = TRIAL_LIMITS.model_copy(update=limits)
    with sandbox.spawn(allowed) as worker:
        yield (
            worker,
            ask(worker, {**facts, "trial": trial, "limits": allowed.model_dump()}, TRIAL_SECONDS),
        )


def _tell(
    trial: str, sandbox: Sandbox, facts: Facts, killed_for: str = "", **limits: float
) -> list[str]:
    """Return the operations that the worker reports; one that ended otherwise than expected may have done anything."""
    with _trying(trial, sandbox, facts, **limits) as (worker, operations):
        worker.socket.shutdown(socket.SHUT_WR)
        ending = worker.end(kill=False)
    if operations is not None:
        return operations
    if ending.reason == killed_for:
        return []
    return [f"end without an answer ({ending.reason} {ending.code})"]


def _look_powerful(wall: str, sandbox: Sandbox, facts: Facts) -> list[str]:
    before = family(os.getpid())
    with _trying("nothing", sandbox, facts):
        new = family(os.getpid()) - before
        powers: list[str] = []
        for pid in new:
            powers += _powers(pid)
        return powers if new else ["hide from the grader"]


def _powers(pid: int) -> list[str]:
    """Return the powers that a process keeps: `keep CapEff 00000000a80425fb`."""
    status = Path(f"/proc/{pid}/status").read_text()
    values = re.findall(r"^(\w+):\t(\w+)$", status, re.MULTILINE)
    return [
        f"keep {name} {value}"
        for name, value in values
        if name in POWERLESS and int(value, 16) != POWERLESS[name]
    ]


def _leave(wall: str, sandbox: Sandbox, facts: Facts) -> list[str]:
    """Check what remains of a worker that has ended, and of the sandbox, which is closed."""
    with _trying("leave", sandbox, facts) as (worker, answer):
        if answer is None:
            return ["end without an answer"]
        worker.end()
        # no process holds the other end of a dead worker's socket
        remains = [] if receive(worker.socket, GONE_SECONDS) == b"" else ["leave a process"]
    remains += _tell("find", sandbox, facts)
    processes = family(os.getpid()) - set(facts["others"])
    sandbox.close()
    return remains if _vanish(processes) else [*remains, "outlive the sandbox"]


def _vanish(processes: set[int]) -> bool:
    until = time.monotonic() + GONE_SECONDS
    while processes & set(_parents()):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def family(pid: int) -> set[int]:
    """Return all living descendants of `pid`; empty if the system does not provide them."""
    parents = _parents()
    descendants = set[int]()
    generation = {pid}
    while generation:
        generation = {child for child, parent in parents.items() if parent in generation}
        descendants |= generation
    return descendants


def _parents() -> dict[int, int]:
    parents: dict[int, int] = {}
    if sys.platform != "linux":
        return parents
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            state, parent = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(name)] = int(parent)
    return parents


# trials that need the grader, too; all others are those of the worker alone
FROM_OUTSIDE: dict[str, Callable[[str, Sandbox, Facts], list[str]]] = {
    "processor time": partial(_tell, killed_for="cpu", cpu_seconds=1),
    "wall clock": partial(_tell, killed_for="wall", submission_seconds=1),
    "scratch space": partial(_tell, killed_for="disk"),
    RIGHTS: _look_powerful,
    REMAINS: _leave,
}
# the tiers that promise each boundary
WALLS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((*TRIALS, RIGHTS, REMAINS), SAFE_TIERS),
    **dict.fromkeys(
        ("size of a file", "descriptors", "processor time", "wall clock", "output"), tuple(TIERS)
    ),
    "names of hidden files": ("namespaces",),
}
