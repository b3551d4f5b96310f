"""Test which sandbox tiers work on this machine, by starting a worker in each of them."""

from __future__ import annotations

from dataclasses import dataclass

from autograder.sandbox import launcher
from autograder.sandbox.command import HINTS, SandboxUnavailableError
from autograder.sandbox.jail import TIERS

PROMISES = {
    "namespaces": "Student code sees an empty machine: no network, no files but Python's, no processes.",
    "landlock": "Student code can read no file but Python's, and has no network, processes or disk.",
    "unsafe": "Student code runs in a process of its own, but it can read and write files as this user can.",
}


@dataclass(frozen=True)
class TierReport:
    """The result for one tier: `reason` describes its guarantees or the failure, `hint` the next step."""

    tier: str
    works: bool
    reason: str
    hint: str = ""


def examine() -> list[TierReport]:
    """Test every tier, the strongest first."""
    return [_examine(tier) for tier in TIERS]


def _examine(tier: str) -> TierReport:
    try:
        note = launcher.try_tier(tier)
    except SandboxUnavailableError as problem:
        reason = str(problem).removesuffix(HINTS[tier]).strip()
        return TierReport(tier, False, reason, HINTS[tier])
    hint = "Use it only for files that you trust." if tier == "unsafe" else ""
    return TierReport(tier, True, f"{PROMISES[tier]} {note}".strip(), hint)
