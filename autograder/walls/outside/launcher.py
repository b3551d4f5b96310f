"""The trusted side of the sandbox: starts sandboxed fork servers and requests workers from them."""

import functools
import json
import os
import tempfile
import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from autograder.course.config import Limits
from autograder.records import InfrastructureError
from autograder.walls.inside.jail import SAFE_TIERS, TIERS
from autograder.walls.outside.command import Layout, unavailable
from autograder.walls.outside.fork_server import ForkServer, ForkServerGoneError, Modules
from autograder.walls.outside.remedies import remedy
from autograder.walls.outside.unavailable import ForkServerNeededError, SandboxUnavailableError
from autograder.walls.outside.worker_process import WorkerProcess, receive

SERVER_ENTRY = "autograder.bridge.inside.worker:serve"
PROBE_ENTRY = "autograder.walls.inside.probe:run"
PROBE_LIMITS = Limits(
    cpu_seconds=5,
    submission_seconds=10,
    memory_mb=256,
    file_mb=1,
    scratch_mb=4,
    processes=16,
    open_files=64,
    output_kb=16,
)


class Sandbox(AbstractContextManager["Sandbox"]):
    """A source of sandboxed workers; a context manager.

    `tier` is one of `jail.TIERS`, or "best": the strongest safe tier that works on this machine.
    `hidden` lists folders that no worker may read. `entry`, `warm` and `folders` (added to the
    workers' import path, read-only) are for tests of the sandbox itself. The first fork server,
    which starts at once, imports the modules in `preload`. `servers` are the fork servers that were
    started, by the modules that they import. Raises SandboxUnavailableError.
    """

    def __init__(
        self,
        tier: str = "best",
        *,
        hidden: Iterable[Path] = (),
        entry: str = SERVER_ENTRY,
        warm: bool = True,
        folders: Iterable[Path] = (),
        preload: Iterable[str] = (),
    ) -> None:
        if tier not in (*TIERS, "best"):
            raise SandboxUnavailableError(
                f"There is no sandbox {tier!r}; there are {', '.join(TIERS)} and best."
            )
        self.tier = best_tier() if tier == "best" else tier
        self._lock = threading.Lock()
        self._starts_servers = True
        layout = Layout.of_this_python(folders)
        if self.tier != "unsafe":
            layout.refuse_to_show(hidden)
        self._start = functools.partial(ForkServer, self.tier, layout, entry, warm)
        self._first_modules = tuple(preload)
        self.servers: dict[Modules, ForkServer] = {
            self._first_modules: self._start(self._first_modules)
        }

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def note(self) -> str:
        """The guarantees of the tier that are weaker on this machine, as a sentence; usually empty."""
        with self._lock:
            return self._ready_server(self._first_modules).note

    def warm_up(self, preload: Iterable[str] = ()) -> None:
        """Wait until workers with these modules can be forked at once; raises SandboxUnavailableError."""
        with self._lock:
            self._ready_server(self._shared(tuple(preload)))

    def spawn(self, limits: Limits, preload: Iterable[str] = ()) -> WorkerProcess:
        """Start a new worker with these limits.

        Workers with the same modules in `preload` share a fork server that has imported them; it is
        started for the first of these workers, unless the first fork server has them anyway. A fork
        server that has died is restarted once. Raises InfrastructureError if it dies again.
        """
        last_words = ""
        with self._lock:
            modules = self._shared(tuple(preload))
            for _ in range(2):
                server = self._ready_server(modules)
                try:
                    return server.spawn(limits.model_dump())
                except ForkServerGoneError:
                    if not self._starts_servers:
                        raise ForkServerNeededError(modules) from None
                    last_words = server.last_words()
                    self._discard(modules)
        raise self._died_twice(last_words)

    def start_no_more(self) -> list[int]:
        """From now on, start no fork server in this process, a fork: where one is missing, `spawn` and
        `warm_up` raise ForkServerNeededError. Return the descriptors that those need which are there.
        """
        self._starts_servers = False
        return [server.control.fileno() for server in self.servers.values()]

    def renew(self, modules: Modules, again: bool) -> None:
        """Start the fork server that a fork has missed; raises InfrastructureError if it died `again`."""
        with self._lock:
            if modules in self.servers:
                last_words = self.servers[modules].last_words()
                self._discard(modules)
                if again:
                    raise self._died_twice(last_words)
            self._ready_server(modules)

    def _died_twice(self, last_words: str) -> InfrastructureError:
        return InfrastructureError(f"The sandbox ({self.tier}) died twice. {last_words}")

    def close(self) -> None:
        """End all fork servers and all their workers; no process remains."""
        with self._lock:
            for modules in list(self.servers):
                self._discard(modules)

    def _shared(self, modules: Modules) -> Modules:
        """Return the modules of the fork server that serves these: the first one's, if it has imported them, too."""
        if modules in self.servers or self._first_modules not in self.servers:
            return modules
        first = self._ready_server(self._first_modules)
        return self._first_modules if first.modules.issuperset(modules) else modules

    def _ready_server(self, modules: Modules) -> ForkServer:
        if modules not in self.servers:
            if not self._starts_servers:
                raise ForkServerNeededError(modules)
            self.servers[modules] = self._start(modules)
        server = self.servers[modules]
        try:
            server.wait_until_ready()
        except SandboxUnavailableError:
            self._discard(modules)
            raise
        return server

    def _discard(self, modules: Modules) -> None:
        self.servers.pop(modules).close()


@functools.cache
def best_tier() -> str:
    """Return the strongest safe tier that works on this machine; raises SandboxUnavailableError if none does."""
    reasons = []
    for tier in SAFE_TIERS:
        try:
            try_tier(tier)
        except SandboxUnavailableError as problem:
            reasons.append(str(problem))
        else:
            return tier
    advice = "With --unsafe students' code runs unprotected: it can read this user's files."
    raise SandboxUnavailableError("\n".join([*reasons, advice]))


def require_tier(wanted: str, minimum: str | None) -> str:
    """Return the tier that is meant by `wanted`, which may be "best"; raises SandboxUnavailableError if it is
    weaker than `minimum`.
    """
    order = list(TIERS)
    tier = best_tier() if wanted == "best" else wanted
    if minimum is not None and order.index(tier) > order.index(minimum):
        asked = f"`min_tier` in course.yml asks for {minimum!r}"
        sentence = f"Nothing was graded: the sandbox would be {tier!r}, and {asked}."
        raise SandboxUnavailableError(sentence, remedy(minimum) if wanted == "best" else "")
    return tier


def try_tier(tier: str) -> str:
    """Test a tier: start a fork server without PyTorch, and let a worker probe five boundaries.

    Returns `Sandbox.note`. Raises SandboxUnavailableError if the tier does not work or a boundary
    is open.
    """
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "hidden").touch()
        os.chmod(folder, 0o777)  # the sandbox alone protects it
        with Sandbox(tier, entry=PROBE_ENTRY, warm=False) as sandbox:
            try:
                answer = _probe(sandbox, folder)
            except SandboxUnavailableError:
                raise
            except (InfrastructureError, OSError, ValueError) as problem:
                raise unavailable(tier, str(problem)) from None
            if answer["opened"] and tier != "unsafe":
                raise unavailable(
                    tier, f"A worker was able to {' and to '.join(answer['opened'])}."
                )
            if answer["unreadable"]:
                packages = ", ".join(answer["unreadable"])
                raise unavailable(
                    tier, f"An unprivileged user cannot read these packages: {packages}."
                )
            return sandbox.note


def _probe(sandbox: Sandbox, folder: str) -> dict[str, list[str]]:
    """Return what a worker was able to do, and could not read; raises InfrastructureError without an answer."""
    with sandbox.spawn(PROBE_LIMITS) as worker:
        with suppress(OSError):
            worker.socket.sendall(json.dumps(folder).encode() + b"\n")
        line = receive(worker.socket, PROBE_LIMITS.submission_seconds, end=b"\n") or b""
        if not line.endswith(b"\n"):
            ending = worker.end(kill=False)
            raise InfrastructureError(
                f"A worker ended without an answer ({ending.reason} {ending.code})."
            )
    answer: dict[str, list[str]] = json.loads(line)
    return answer
