"""A course of two assignments, and how a test collects for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.course.config import Course
from autograder.course.reading import load_course
from autograder.extras.lms.collecting import CollectOptions, CollectReport, collect
from autograder.extras.lms.roster import Roster, read_roster
from tests.autograder.tiny_course import FILES, write_tiny_course

OTHER = """\
  - name: 02_many_heads
    title: Many heads
    minutes: 10
    parts:
      - {name: add, title: Two numbers, points: 4}
"""


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Course:
    """The tiny course with a second assignment that exists only in course.yml."""
    root = write_tiny_course(tmp_path_factory.mktemp("course"))
    (root / "course.yml").write_text(FILES["course.yml"] + OTHER, "utf-8")
    return load_course(root)


@pytest.fixture
def gather(course: Course, tmp_path: Path) -> Callable[..., CollectReport]:
    def run(*paths: Path, assignment: str | None = None, **options: object) -> CollectReport:
        wanted = course.assignment(assignment) if assignment else None
        return collect(paths, course, CollectOptions(tmp_path / "submitted", wanted, **options))  # type: ignore[arg-type]

    return run


@pytest.fixture
def roster(tmp_path: Path) -> Callable[[str], Roster]:
    def read(text: str) -> Roster:
        (tmp_path / "roster.csv").write_text(text, "utf-8")
        return read_roster(tmp_path / "roster.csv")

    return read
