"""A student's results in the whole course: the visible tests of each assignment, each in its own process."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from autograder.records import RefusedError
from autograder.selfcheck.check import CheckReport, check_work
from autograder.selfcheck.forked import Unfinished, run_in_child
from autograder.selfcheck.workspace import Work, find_works

SECONDS = 60.0


@dataclass(frozen=True)
class Standing:
    """One assignment: its report, or the reason that there is none."""

    work: Work
    report: CheckReport | None
    problem: str = ""


def standings(target: str | Path, tell: Callable[[int, int], None] = lambda done, total: None) -> list[Standing]:
    """Check every assignment in a folder, or in the course around it if it is an assignment; `tell` reports progress."""
    works = _course_around(Path(target))
    found = []
    for number, work in enumerate(works):
        tell(number, len(works))
        try:
            found.append(Standing(work, run_in_child(partial(check_work, work), SECONDS)))
        except (RefusedError, Unfinished) as problem:
            found.append(Standing(work, None, str(problem)))
    tell(len(works), len(works))
    return found


def _course_around(folder: Path) -> Sequence[Work]:
    """Return the assignments in this folder, or in its parent if it holds only one."""
    works = find_works(folder)
    if len(works) == 1 and works[0].folder.resolve() == folder.resolve():
        works = find_works(folder.resolve().parent)
    return works
