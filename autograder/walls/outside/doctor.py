"""Test which sandbox tiers work on this machine, by starting a worker in each of them."""

from dataclasses import dataclass

from autograder.walls.inside.jail import TIERS
from autograder.walls.outside import launcher, shut_in
from autograder.walls.outside.unavailable import SandboxUnavailableError

GUARANTEES = {
    "namespaces": "Student code sees an empty machine: no network, no files but Python's, no processes.",
    "landlock": "Student code can read no file but Python's, and has no network and no processes.",
    "unsafe": "Student code runs in a process of its own, but it can read and write files as this user can.",
}
FORK_IS_OPEN = "This kernel has no {}: the grader's fork, which handles what submissions answer, is not wholly shut in."


@dataclass(frozen=True)
class TierReport:
    """The result for one tier: `reason` describes its guarantees or the failure, `hint` the next step.

    `problems` name assignments of a course that cannot be graded.
    """

    tier: str
    works: bool
    reason: str
    hint: str = ""
    problems: tuple[str, ...] = ()


def examine() -> list[TierReport]:
    """Test every tier, the strongest first."""
    return [_examine(tier) for tier in TIERS]


def _examine(tier: str) -> TierReport:
    try:
        note = launcher.try_tier(tier)
    except SandboxUnavailableError as problem:
        return TierReport(tier, False, problem.reason, problem.remedy)
    hints = []
    if tier == "unsafe":
        hints.append("Use it only for files that you trust.")
    lacking = shut_in.lacking_here()
    if lacking:
        hints.append(FORK_IS_OPEN.format(" and no ".join(lacking)))
    return TierReport(tier, True, f"{GUARANTEES[tier]} {note}".strip(), " ".join(hints))
