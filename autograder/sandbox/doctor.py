"""Test which sandbox tiers work on this machine by starting each of them."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from types import SimpleNamespace

from autograder.records import InfrastructureError
from autograder.sandbox.command import HINTS, SandboxUnavailableError, unavailable
from autograder.sandbox.jail import TIERS
from autograder.sandbox.launcher import Sandbox

PROBE_ENTRY = "autograder.sandbox.probe:report_isolation"
PROBE_SECONDS = 10
PROBE_LIMITS = SimpleNamespace(
    call_seconds=5,
    load_seconds=5,
    cpu_seconds=5,
    submission_seconds=PROBE_SECONDS,
    memory_mb=256,
    file_mb=1,
    scratch_mb=4,
    processes=16,
    open_files=64,
    output_kb=16,
)
PROMISES = {
    "namespaces": "Student code sees an empty machine: no network, no files but Python's, no processes.",
    "landlock": "Student code can read no file but Python's, and has no network, processes or disk.",
    "unsafe": "Student code runs in a process of its own, but it can read and write files as this user can.",
}


@dataclass(frozen=True)
class TierReport:
    """The result for one tier: `reason` describes its isolation or the failure, `hint` a remedy."""

    tier: str
    works: bool
    reason: str
    hint: str = ""


def examine() -> list[TierReport]:
    """Test every tier, the strongest first."""
    return [_examine(tier) for tier in TIERS]


def _examine(tier: str) -> TierReport:
    try:
        note = try_tier(tier)
    except SandboxUnavailableError as problem:
        reason = str(problem).removesuffix(HINTS[tier]).strip()
        return TierReport(tier, False, reason, HINTS[tier])
    hint = "Use it only for files that you trust." if tier == "unsafe" else ""
    return TierReport(tier, True, f"{PROMISES[tier]} {note}".strip(), hint)


def try_tier(tier: str) -> str:
    """Start a fork server (without PyTorch) and a worker that tests its own isolation.

    Returns the deviations from the tier's guarantees, usually empty; raises SandboxUnavailableError.
    """
    with (
        tempfile.NamedTemporaryFile() as hidden,
        Sandbox(tier, entry=PROBE_ENTRY, warm=False) as sandbox,
    ):
        try:
            facts = _ask(sandbox, hidden.name)
        except (InfrastructureError, OSError, ValueError) as problem:
            if isinstance(problem, SandboxUnavailableError):
                raise
            raise unavailable(tier, str(problem)) from None
        if facts["succeeded"] and tier != "unsafe":
            raise unavailable(tier, f"A worker was able to {' and to '.join(facts['succeeded'])}.")
        if facts["unreadable"]:
            packages = ", ".join(facts["unreadable"])
            raise unavailable(tier, f"An unprivileged user cannot read these packages: {packages}.")
        return sandbox.note


def _ask(sandbox: Sandbox, hidden: str) -> dict[str, list[str]]:
    with sandbox.spawn(PROBE_LIMITS) as worker:
        worker.socket.settimeout(PROBE_SECONDS)
        worker.socket.sendall(hidden.encode())
        answer = worker.socket.recv(65536)
        if not answer:
            ending = worker.end(kill=False)
            raise InfrastructureError(f"A worker ended without an answer ({ending.reason} {ending.code}).")
        facts: dict[str, list[str]] = json.loads(answer)
        return facts
