"""Feedback pages are no oracle: a student who reads every number off them and hands in again gains nothing.

The player hands in one number, reads on the page by how much it was wrong, and hands in the numbers that this leaves.
"""

from __future__ import annotations

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
        self.tried: set[float] = set()
        self.candidates = [0.0]

    def hand_in(self, seed: int | None) -> bool:
        """Whether the hidden test passed with the next answer."""
        answer = next((c for c in self.candidates if c not in self.tried), float(len(self.tried)))
        self.tried.add(answer)
        self.file.write_text(ANSWERS.format(answer=answer), "utf-8")
        run = autograder.grade(self.root / "class", self.root, self.root / "grades", jobs=1, seed=seed)
        (grade,) = run.grades
        page = (self.root / "grades" / "feedback" / "mallory" / f"{NAME}.html").read_text("utf-8")
        numbers = {float(number) for number in NUMBER.findall(TAG.sub(" ", page))}
        self.candidates = [
            each for n in sorted(numbers, reverse=True) for each in (answer + n, answer - n, n, -n)
        ]
        (test,) = (test for test in grade.tests if test.name == "test_fractions")
        assert test.outcome in ("passed", "failed")
        return test.outcome == "passed"


def test_three_resubmissions_gain_nothing(tmp_path: Path) -> None:
    player = Player(tmp_path)
    assert [player.hand_in(seed=None) for _ in range(3)] == [False] * 3


@pytest.mark.slow
def test_twenty_resubmissions_gain_nothing(tmp_path: Path) -> None:
    player = Player(tmp_path)
    assert not any(player.hand_in(seed=None) for _ in range(20))
