"""Long commands show their progress: a bar in a terminal, a line from time to time in a pipe."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from autograder.cli import console


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Callable[[], list[str]]:
    """Return the lines on stderr since the last call; stderr is a pipe here."""
    return lambda: capsys.readouterr().err.splitlines()


def test_progress_in_a_pipe_prints_a_line_per_tenth(lines: Callable[[], list[str]]) -> None:
    with console.progress(quiet=False) as steps:
        grading = steps("Grading")
        for done in range(41):
            grading(done, 40)
    assert lines() == [f"Grading: {done} of 40" for done in range(0, 41, 4)]


def test_step_is_printed_when_it_begins(lines: Callable[[], list[str]]) -> None:
    with console.progress(quiet=False) as steps:
        first, _ = steps("Grading"), steps("Drawing")
        first(1, 1)
    assert lines() == ["Grading: 1 of 1"]


def test_quiet_progress_prints_nothing(lines: Callable[[], list[str]]) -> None:
    with console.progress(quiet=True) as steps:
        steps("Grading")(1, 1)
    assert lines() == []


def test_progress_in_a_terminal_shows_a_bar(
    lines: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with console.progress(quiet=False) as steps:
        steps("Grading")(2, 2)
    bars = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", "\n".join(lines()))
    assert re.search(r"Grading +━+ +2/2", bars)
