"""`status/index.html`: what automatic grading is doing, for everybody.

It names no student and no test, and shows no score.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.feedback.pages import write_page

FOLDER = "status"
REFRESH_SECONDS = 5


@dataclass(frozen=True)
class Recent:
    """One of the last hand-ins: when something became of it, its assignment, and what."""

    at: str
    title: str
    result: str


@dataclass(frozen=True)
class Status:
    """The contents of the page; `postponed` hand-ins wait for the quota, or after a failure."""

    title: str
    state: str
    since: str
    at: str
    graded: int = 0
    waiting: int = 0
    running: int = 0
    postponed: int = 0
    troubled: bool = False
    recent: Sequence[Recent] = ()


def write_status(folder: Path, status: Status) -> Path:
    """Write the page into a folder of grades, and return its path; raises OSError."""
    place = folder / FOLDER / "index.html"
    return write_page(place, "status.html.j2", refresh=REFRESH_SECONDS, **vars(status))
