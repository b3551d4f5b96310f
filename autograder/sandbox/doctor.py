"""Which tiers of isolation work on this machine: found out by trying, never by guessing."""

from __future__ import annotations

from dataclasses import dataclass

from autograder.sandbox import cgroup, launcher
from autograder.sandbox.command import SandboxUnavailableError
from autograder.sandbox.jail import TIERS

PROMISES = {
    "namespaces": "Student code sees an empty machine: no network, no files but Python's, no processes.",
    "host-network": "The same, but the system-call filter alone keeps student code from the network.",
    "landlock": "Student code can read no file but Python's, and has no network, processes or disk.",
    "unsafe": "Student code runs in a process of its own, but it can read and write files as this user can.",
}


@dataclass(frozen=True)
class TierReport:
    """Whether one tier works here: `reason` says what it gives or why not, `hint` what to do about it."""

    tier: str
    works: bool
    reason: str
    hint: str = ""


def examine() -> list[TierReport]:
    """Tries every tier, the strongest first."""
    return [_examine(tier) for tier in TIERS]


def describe_groups() -> str:
    """Say whether the workers of a grader are also limited together."""
    if cgroup.delegated():
        return "cgroup v2 is delegated: the workers of a grader are also limited together (memory, processes, processor)."
    return (
        "cgroup v2 is not delegated: each worker has its limits, but the workers of a grader have none together. "
        "systemd-run --user --scope -p Delegate=yes autograder grade … delegates it."
    )


def _examine(tier: str) -> TierReport:
    try:
        note = launcher.try_tier(tier)
    except SandboxUnavailableError as problem:
        return TierReport(tier, False, problem.reason, problem.remedy)
    hint = "Use it only for files that you trust." if tier == "unsafe" else ""
    return TierReport(tier, True, f"{PROMISES[tier]} {note}".strip(), hint)
