"""Test which sandbox tiers work on this machine, by starting a worker in each of them."""

from dataclasses import dataclass

from autograder.walls.inside.jail import TIERS
from autograder.walls.outside import cgroup, launcher, shut_in
from autograder.walls.outside.unavailable import SandboxUnavailableError

GUARANTEES = {
    "namespaces": "Student code sees an empty machine: no network, no files but Python's, no processes.",
    "landlock": "Student code can read no file but Python's, and has no network and no processes.",
    "unsafe": "Student code runs in a process of its own, but it can read and write files as this user can.",
}
LIMITED_TOGETHER = "All workers of a grader together are limited, too: cgroup v2 is delegated."
NOT_LIMITED_TOGETHER = (
    "cgroup v2 is not delegated: each worker has its limits, all of a grader's together have none "
    "(systemd-run --user --scope -p Delegate=yes autograder grade … sets some)."
)
FORK_IS_OPEN = "This kernel has no {}: the grader's fork, which handles what submissions answer, is not wholly shut in."


@dataclass(frozen=True)
class MatrixCell:
    """One boundary in one tier: "held", "open", or "not promised" if it is open as documented."""

    wall: str
    verdict: str
    found: tuple[str, ...] = ()


@dataclass(frozen=True)
class TierReport:
    """The result for one tier: `reason` describes its guarantees or the failure, `hint` the next step.

    `cells` are its boundaries, if they were verified. `problems` name assignments of a course that
    cannot be graded.
    """

    tier: str
    works: bool
    reason: str
    hint: str = ""
    cells: tuple[MatrixCell, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def open_walls(self) -> list[str]:
        """The boundaries that the tier promises and does not hold."""
        return [cell.wall for cell in self.cells if cell.verdict == "open"]


def examine() -> list[TierReport]:
    """Test every tier, the strongest first."""
    return [_examine(tier) for tier in TIERS]


def _examine(tier: str) -> TierReport:
    try:
        note = launcher.try_tier(tier)
    except SandboxUnavailableError as problem:
        return TierReport(tier, False, problem.reason, problem.remedy)
    guarantees = [GUARANTEES[tier], note]
    hint = ""
    if tier == "unsafe":
        hint = "Use it only for files that you trust."
    elif cgroup.delegated():
        guarantees.append(LIMITED_TOGETHER)
    else:
        hint = NOT_LIMITED_TOGETHER
    lacking = shut_in.lacking_here()
    if lacking:
        hint = f"{hint} {FORK_IS_OPEN.format(' and no '.join(lacking))}".strip()
    return TierReport(tier, True, " ".join(filter(None, guarantees)), hint)
