"""How a student stands in the whole course: every assignment's visible tests, each file checked in a process apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.records import RefusedError
from autograder.selfcheck.check import CheckReport, check_work
from autograder.selfcheck.forked import Unfinished, run_in_child
from autograder.selfcheck.workspace import Work, find_works

SECONDS = 60.0


@dataclass(frozen=True)
class Standing:
    """One assignment: its report, or the sentence why there is none."""

    work: Work
    report: CheckReport | None
    problem: str = ""


def standings(
    target: str | Path, tell: Callable[[int, int], None] = lambda done, total: None
) -> list[Standing]:
    """How every assignment in a folder stands, or around it when it is one assignment's own; tells how far it is."""
    works = _course_around(Path(target))
    found = []
    for number, work in enumerate(works):
        tell(number, len(works))
        found.append(_standing(work))
    tell(len(works), len(works))
    return found


def _course_around(folder: Path) -> Sequence[Work]:
    """The works in this folder; beside it, when it holds only one."""
    works = find_works(folder)
    if len(works) == 1 and works[0].folder.resolve() == folder.resolve():
        works = find_works(folder.resolve().parent)
    return works


def _standing(work: Work) -> Standing:
    try:
        record = run_in_child(lambda: check_work(work).as_record(), SECONDS)
    except (RefusedError, Unfinished) as problem:
        return Standing(work, None, str(problem))
    return Standing(work, CheckReport.from_record(record) if isinstance(record, dict) else None)
