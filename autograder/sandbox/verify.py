"""Verify every boundary of every sandbox tier on this machine by attacking it from a real worker.

`doctor` tests whether a tier works at all; `verify` tests each of its guarantees.
"""

import os
import secrets
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from autograder.records import InfrastructureError
from autograder.sandbox.jail import SAFE_TIERS, TIERS
from autograder.sandbox.launcher import PROBE_LIMITS, TRIAL_ENTRY, Sandbox, ask
from autograder.sandbox.worker_process import Ending, WorkerProcess

HELD, OPEN, NOT_PROMISED = "held", "open", "not promised"
SAFE, ALL, WITH_NAMESPACES = SAFE_TIERS, tuple(TIERS), ("namespaces", "host-network")
TRIAL_SECONDS = 60.0  # a busy machine may need long for two seconds of its processor
TRIAL_LIMITS = PROBE_LIMITS.model_copy(update={"submission_seconds": 50})
TOKEN_NAME = "AUTOGRADER_VERIFY"
GONE_SECONDS = 5
# what /proc says of a process without any right. Not its bounding set, which an ordinary user cannot empty:
# without new privileges nothing can be drawn from it
POWERLESS = {"NoNewPrivs": 1, "Seccomp": 2, "CapInh": 0, "CapPrm": 0, "CapEff": 0, "CapAmb": 0}


@dataclass(frozen=True)
class TrialContext:
    """The context of a trial: a sandbox, a function that starts another one, and the data for a worker."""

    sandbox: Sandbox
    start: Callable[[], Sandbox]
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Wall:
    """One guarantee: its description, the tiers that make it, and its trial.

    `attempt` returns the forbidden operations that succeeded; the boundary holds if the list is empty.
    """

    name: str
    promised: tuple[str, ...]
    attempt: Callable[[TrialContext], list[str]]


@dataclass(frozen=True)
class MatrixCell:
    """One boundary in one tier: "held", "open", or "not promised" if it is open as documented."""

    wall: str
    verdict: str
    found: tuple[str, ...] = ()


@dataclass(frozen=True)
class Column:
    """One tier: its boundaries, or the reason that it does not work here."""

    tier: str
    works: bool
    reason: str
    cells: tuple[MatrixCell, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every guarantee of this tier holds."""
        return all(cell.verdict != OPEN for cell in self.cells)


def verify() -> list[Column]:
    """Test every boundary in every tier, the strongest tier first."""
    return [verify_tier(tier) for tier in TIERS]


def is_sound(columns: Iterable[Column]) -> bool:
    """Whether a safe tier works here, and all guarantees of each working tier hold."""
    safe = [column for column in columns if column.tier in SAFE and column.works]
    return bool(safe) and all(column.holds for column in safe)


def verify_tier(tier: str, entry: str = TRIAL_ENTRY, folders: Iterable[Path] = (), only: Iterable[str] = ()) -> Column:
    """Test the boundaries of one tier, or those named in `only`. Other arguments serve tests of this module."""
    walls = [wall for wall in WALLS if not only or wall.name in only]
    start = partial(Sandbox, tier, entry=entry, folders=tuple(folders), warm=False)
    try:
        with _scenery() as facts, start() as sandbox:
            context = TrialContext(sandbox, start, facts)
            _tell("stay", context)  # raises when no worker can be walled in at all
            cells = [_try(wall, context) for wall in walls]
            return Column(tier, True, sandbox.note, tuple(cells))
    except (InfrastructureError, OSError) as problem:
        return Column(tier, False, getattr(problem, "reason", str(problem)))


def _try(wall: Wall, context: TrialContext) -> MatrixCell:
    found = tuple(wall.attempt(context))
    tier = context.sandbox.tier
    promised = tier in wall.promised and not (wall.name == THREADS and context.sandbox.note)
    verdict = HELD if not found else OPEN if promised else NOT_PROMISED
    return MatrixCell(wall.name, verdict, found)


@contextmanager
def _scenery() -> Iterator[dict[str, Any]]:
    """Provide targets: a course, a world-writable folder, a listening port, and a secret in the environment."""
    token = secrets.token_hex(8)
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as listener:
        os.chmod(folder, 0o755)
        os.environ[TOKEN_NAME] = token
        try:
            yield {
                "course": [
                    _target(Path(folder, "tests", "test_hidden.py"), 0o755, 0o644),
                    _target(Path(folder, "solutions", "solution.py"), 0o755, 0o644),
                ],
                "playground": os.path.dirname(_target(Path(folder, "playground", "victim"), 0o777, 0o666)),
                "home": _home(),
                "listener": listener.getsockname(),
                "grader": os.getpid(),
                "token": token,
            }
        finally:
            del os.environ[TOKEN_NAME]


def _target(file: Path, folder_rights: int, rights: int) -> str:
    """Create a file that only the sandbox protects, in a folder of its own."""
    file.parent.mkdir()
    file.write_text("ANSWER = 42\n")
    file.chmod(rights)
    file.parent.chmod(folder_rights)
    return str(file)


def _home() -> str:
    home = os.path.expanduser("~")
    return "/root" if home in ("/", "~") else home  # some containers' users have no folder of their own


@contextmanager
def _trying(trial: str, context: TrialContext, **limits: float) -> Iterator[tuple[WorkerProcess, list[str] | None]]:
    """Yield a worker that performs a trial, and its answer (None: no answer)."""
    allowed = TRIAL_LIMITS.model_copy(update=limits)
    with context.sandbox.spawn(allowed) as worker:
        yield worker, ask(worker, {**context.facts, "trial": trial, "limits": allowed.model_dump()}, TRIAL_SECONDS)


def _perform(trial: str, context: TrialContext, **limits: float) -> tuple[list[str] | None, Ending, int]:
    """Return a worker's answer, its ending, and how much it printed."""
    with _trying(trial, context, **limits) as (worker, found):
        printed = len(worker.output(1 << 30))
        worker.socket.shutdown(socket.SHUT_WR)
        return found, worker.end(kill=False), printed


def _tell(trial: str, context: TrialContext) -> list[str]:
    """Return the operations that the worker reports; a worker without an answer may have done anything."""
    found, ending, _ = _perform(trial, context)
    return [f"end without an answer ({ending.reason} {ending.code})"] if found is None else found


def _be_stopped(trial: str, context: TrialContext, reason: str, **limits: float) -> list[str]:
    """Check that the worker is killed for this reason before it can answer."""
    found, ending, _ = _perform(trial, context, **limits)
    if found is not None:
        return found
    return [] if ending.reason == reason else [f"end otherwise ({ending.reason})"]


def _print(context: TrialContext) -> list[str]:
    found, _, printed = _perform("print_too_much", context)
    complete = [] if found == [] else ["end while it printed"]
    return complete + ([f"print {printed} bytes"] if printed > TRIAL_LIMITS.output_kb * 1024 else [])


def _look_powerful(context: TrialContext) -> list[str]:
    """Check the worker's privileges, as listed by the kernel and by trying to use them."""
    before = family(os.getpid())
    with _trying("stay", context) as (_, found):
        if found is None:
            return ["end without an answer"]
        new = family(os.getpid()) - before
        found = [line for pid in new for line in _powers(pid)] if new else ["hide from the grader"]
    return found + _tell("gain_rights", context)


def _powers(pid: int) -> list[str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    status = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return [
        f"keep {name} {status[name]}"
        for name, wanted in POWERLESS.items()
        if name in status and int(status[name], 16) != wanted
    ]


def _leave(context: TrialContext) -> list[str]:
    """Check what remains of a worker that has ended, and of a sandbox that was closed."""
    before = family(os.getpid())
    with context.start() as sandbox:
        own = replace(context, sandbox=sandbox)
        with _trying("leave_things", own) as (worker, answer):
            if answer is None:
                return ["end without an answer"]
            worker.end()
            found = [] if _is_let_go(worker) else ["leave a process"]
        found += _tell("find_things", own)
        processes = family(os.getpid()) - before
    if not _vanish(processes):
        found.append("outlive the sandbox")
    return found


def _is_let_go(worker: WorkerProcess) -> bool:
    """Whether no process holds the other end of a dead worker's socket."""
    worker.socket.settimeout(GONE_SECONDS)
    try:
        return worker.socket.recv(1) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def _vanish(processes: set[int]) -> bool:
    until = time.monotonic() + GONE_SECONDS
    while processes & set(_parents()):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def family(pid: int) -> set[int]:
    """Return all living descendants of `pid`; empty if the system does not provide them."""
    parents, found, new = _parents(), set[int](), {pid}
    while new:
        new = {child for child, parent in parents.items() if parent in new}
        found |= new
    return found


def _parents() -> dict[int, int]:
    """Return the parent of each living process."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")) if sys.platform == "linux" else ():
        with suppress(OSError):
            state, parent = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(name)] = int(parent)
    return parents


def _wall(name: str, promised: tuple[str, ...], trial: str) -> Wall:
    return Wall(name, promised, partial(_tell, trial))


THREADS = "number of threads"
WALLS = (
    _wall("tests and solutions", SAFE, "read_course"),
    _wall("your home", SAFE, "read_home"),
    _wall("files of the system", SAFE, "read_system"),
    _wall("names of hidden files", WITH_NAMESPACES, "see_names"),
    _wall("environment", SAFE, "read_environment"),
    _wall("writing outside", SAFE, "write_outside"),
    _wall("scratch space", SAFE, "fill_scratch"),
    _wall("size of a file", ALL, "grow_a_file"),
    _wall("network", SAFE, "use_network"),
    _wall("new processes", SAFE, "fork"),
    _wall("other programs", SAFE, "run_programs"),
    _wall("signals to others", SAFE, "signal_others"),
    _wall("processes hidden", SAFE, "see_processes"),
    _wall("system-call filter", SAFE, "make_rare_calls"),
    Wall("no rights to gain", SAFE, _look_powerful),
    _wall("limits stay", SAFE, "raise_limits"),
    _wall("memory", SAFE, "take_memory"),
    _wall(THREADS, SAFE, "start_threads"),
    _wall("descriptors", ALL, "open_files"),
    Wall("processor time", ALL, partial(_be_stopped, "compute_too_long", reason="cpu", cpu_seconds=1)),
    Wall("wall clock", ALL, partial(_be_stopped, "wait_too_long", reason="wall", submission_seconds=1)),
    Wall("output", ALL, _print),
    Wall("nothing left over", SAFE, _leave),
)
