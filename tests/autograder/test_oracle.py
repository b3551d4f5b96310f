"""Feedback pages are no oracle: a student who reads every number off them and hands in again gains nothing.

The player hands in one number, reads on the page by how much it was wrong, and hands in the numbers that this leaves.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

import pytest

import autograder
from tests.autograder.tiny_course import write_tiny_course

NAME = "01_adding"
FRACTIONS = '''

@pytest.mark.part("add")
@pytest.mark.points(2)
def test_fractions(student, reference):
    """Fractions are added, too."""
    a, b = random.uniform(-9, 9), random.uniform(-9, 9)
    checks.close(student.add(a, b), reference.add(a, b), "add(a, b)")
'''
ANSWERS = """
def add(a, b):
    return {answer!r} if isinstance(a, float) else None
"""
TAG = re.compile(r"<(style|script).*?</\1>|<[^>]*>", re.DOTALL)
OFF = re.compile(r"off by (?:at most )?(\d+(?:\.\d+)?(?:e-?\d+)?)")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


class Player:
    """A student who answers with one number and learns from the feedback page."""

    def __init__(self, root: Path) -> None:
        self.root = write_tiny_course(root / "course")
        rules = self.root / "course.yml"
        rules.write_text(rules.read_text("utf-8").replace("points: 4", "points: 6"), "utf-8")
        hidden = self.root / "tests" / "assignments" / NAME / "test_hidden.py"
        needed = '@pytest.mark.needs("test_two_and_three_are_five")\n'
        hidden.write_text(hidden.read_text("utf-8").replace(needed, "") + FRACTIONS, "utf-8")
        self.file = self.root / "class" / "mallory" / NAME / "adding.py"
        self.file.parent.mkdir(parents=True)
        self.told: dict[float, float] = {}  # by answer: how far off it was
        self.candidates = {0.0}

    def hand_in(self, seed: int | None = None) -> bool:
        """Whether the hidden test passed with the next answer."""
        answer = min(self.candidates - self.told.keys(), key=self.contradiction)
        self.file.write_text(ANSWERS.format(answer=answer), "utf-8")
        run = autograder.grade(
            self.root / "class", self.root, self.root / "grades", jobs=1, seed=seed, regrade=True
        )
        (grade,) = run.grades
        (test,) = (test for test in grade.tests if test.name == "test_fractions")
        assert test.outcome in ("passed", "failed")
        page = (self.root / "grades" / "feedback" / "mallory" / f"{NAME}.html").read_text("utf-8")
        text = TAG.sub(" ", page)
        distances = [float(number) for number in OFF.findall(text)]
        self.told[answer] = distances[0] if distances else 1.0
        numbers = map(float, NUMBER.findall(text))
        self.candidates |= {each for n in numbers for each in (answer + n, answer - n, n, -n)}
        return test.outcome == "passed"

    def contradiction(self, candidate: float) -> float:
        """How badly a candidate fits all that the pages have told."""
        return sum(
            abs(math.log((abs(candidate - answer) + 1e-9) / (distance + 1e-9)))
            for answer, distance in self.told.items()
        )


@pytest.mark.slow
def test_three_resubmissions_gain_nothing(tmp_path: Path) -> None:
    player = Player(tmp_path)
    assert [player.hand_in() for _ in range(3)] == [False] * 3
    assert all(player.told.values())


@pytest.mark.skipif(
    os.environ.get("ORACLE") != "all",
    reason="Takes many minutes; ORACLE=all in the environment runs it.",
)
def test_twenty_resubmissions_gain_nothing(tmp_path: Path) -> None:
    player = Player(tmp_path)
    assert [player.hand_in() for _ in range(20)] == [False] * 20


@pytest.mark.slow
def test_the_player_wins_where_the_inputs_stay_the_same(tmp_path: Path) -> None:
    """Or the tests above would prove nothing."""
    player = Player(tmp_path)
    assert any(player.hand_in(seed=7) for _ in range(20))
