"""How long work shows that it goes on: a bar in a terminal, a line now and then in a pipe."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from autograder.cli import console
from autograder.records import Grade


class Clock:
    """Stands for the module `time`; each look at it is a second later."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """The lines on stderr, which is a pipe here."""
    monkeypatch.setattr(console, "time", Clock())
    monkeypatch.setattr(console, "LINE_SECONDS", 2.0)
    return lambda: capsys.readouterr().err.splitlines()


def grade(name: str) -> Grade:
    return Grade("ada", name, "graded", 1.0, 1.0)


def test_in_a_pipe_a_class_says_now_and_then_how_far_it_is(said):
    with console.watching(6, quiet=False) as tell:
        assert said() == ["Starting the graders: 0 of 6"]
        for each in (None, None, grade("01_adding"), grade("02_more"), grade("02_more"), grade("02_more")):
            tell(each)
    assert said() == ["Looking for what is new: 2 of 6", "Grading 02_more: 4 of 6", "Grading 02_more: 6 of 6"]


def test_quiet_is_quiet(said):
    with console.watching(1, quiet=True) as tell:
        tell(None)
    assert said() == []


def test_in_a_pipe_short_checks_say_nothing(said, monkeypatch):
    monkeypatch.setattr(console, "LINE_SECONDS", 10.0)
    with console.checking(quiet=False) as tell:
        tell(0, 2)
        tell(2, 2)
    assert said() == []


def test_in_a_terminal_the_bar_says_what_is_happening(said, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with console.watching(2, quiet=False) as tell:
        tell(grade("01_adding"))
        tell(grade("02_more"))
    bars = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", "\n".join(said()))
    assert re.search(r"Grading 02_more +━+ +2/2", bars)
