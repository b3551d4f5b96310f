"""A student's results in the whole course: the visible tests of each assignment, each in its own process."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from autograder.records import RefusedError
from autograder.selfcheck.check import CheckReport, check_work
from autograder.selfcheck.forked import Unfinished, run_in_child
from autograder.selfcheck.remembered import remembered_report
from autograder.selfcheck.workspace import Work, find_works

SECONDS = 60.0


@dataclass(frozen=True)
class Standing:
    """One assignment: its report, or the reason that there is none."""

    work: Work
    report: CheckReport | None
    problem: str = ""

    @property
    def is_begun(self) -> bool:
        """Whether the student changed the file; one that cannot be checked counts as begun."""
        return self.report is None or not self.work.is_untouched()


def standings(
    target: str | Path, tell: Callable[[int, int], None] = lambda done, total: None
) -> list[Standing]:
    """Check every assignment in a folder, or in the course around it if it is an assignment; `tell` reports progress.

    An assignment that did not change since its last report is not run again.
    """
    folder = Path(target).resolve()
    works = find_works(target)
    if len(works) == 1 and works[0].folder.resolve() == folder:
        works = find_works(folder.parent)
    all_standings = []
    for number, work in enumerate(works):
        tell(number, len(works))
        try:
            in_child = partial(run_in_child, partial(check_work, work), SECONDS)
            all_standings.append(Standing(work, remembered_report(work, in_child)))
        except (RefusedError, Unfinished) as problem:
            all_standings.append(Standing(work, None, str(problem)))
    tell(len(works), len(works))
    return all_standings
