"""The checks of an exercise that is not graded: a line for each, up to the first that fails or never ends."""

from __future__ import annotations

import pytest

from autograder.selfcheck import exercise


def right() -> None:
    """Two and two are four."""


def wrong() -> None:
    """One is two."""
    raise AssertionError("One is one.")


def endless() -> None:
    """It ends."""
    while True:
        pass


@pytest.mark.parametrize(
    ("checks", "said"),
    [
        ([right, wrong, right], "✓ Two and two are four.\n✗ One is two.\n    One is one.\n"),
        ([endless, right],
         "✗ It ends.\n    Stopped after 0.3 seconds of work. Is there a loop that never ends?\n"),
    ],
)  # fmt: skip
def test_checks_run_up_to_the_first_that_fails(checks, said, capsys, monkeypatch) -> None:
    monkeypatch.setattr(exercise, "SECONDS", 0.3)
    exercise.run_checks(checks)
    assert capsys.readouterr().out == said
