"""Test which sandbox tiers work on this machine, by starting a worker in each of them."""

from dataclasses import dataclass

from autograder.sandbox.inside.jail import TIERS
from autograder.sandbox.outside import cgroup, launcher
from autograder.sandbox.outside.unavailable import SandboxUnavailableError
from autograder.text.tables import read_table

SENTENCES: dict[str, str] = read_table(__file__, "doctor.yml")


@dataclass(frozen=True)
class MatrixCell:
    """One boundary in one tier: "held", "open", or "not promised" if it is open as documented."""

    wall: str
    verdict: str
    found: tuple[str, ...] = ()


@dataclass(frozen=True)
class TierReport:
    """The result for one tier: `reason` describes its guarantees or the failure, `hint` the next
    step.

    `cells` are its boundaries, if they were verified. `problems` name assignments of a course that
    cannot be graded.
    """

    tier: str
    works: bool
    reason: str
    hint: str = ""
    cells: tuple[MatrixCell, ...] = ()
    problems: tuple[str, ...] = ()


def examine() -> list[TierReport]:
    """Test every tier, the strongest first."""
    return [_examine(tier) for tier in TIERS]


def _examine(tier: str) -> TierReport:
    try:
        note = launcher.try_tier(tier)
    except SandboxUnavailableError as problem:
        return TierReport(tier, False, problem.reason, problem.remedy)
    together, hint = (
        (SENTENCES["grouped"], "") if cgroup.delegated() else ("", SENTENCES["not grouped"])
    )
    if tier == "unsafe":
        together = ""
        hint = "Use it only for files that you trust."
    return TierReport(tier, True, " ".join(filter(None, (SENTENCES[tier], note, together))), hint)
