"""In a class with one third of hostile submissions, the others have the same grades as without them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.course.config import Course
from autograder.gradebook import texts
from autograder.gradebook.journal import Journal
from autograder.records import SourceFile, Submission
from autograder.runs.pool import Plan
from autograder.runs.run import grade_class
from autograder.walls.outside.doctor import TierReport
from tests.autograder.attacks.field import HEADS, TINY, TINY_WRONG, Field, heads_wrong, open_field
from tests.autograder.attacks.test_attacks import ATTACKS

EVERY = 4  # of so many attacks one sits in the class
RIGHT_OTHERWISE = TINY_WRONG.replace("a - b", "b + a")


def honest(field: Field) -> list[Submission]:
    """Return different correct, partly correct, unfinished and invalid submissions."""
    texts = {
        TINY: [
            field.right[TINY], TINY_WRONG, RIGHT_OTHERWISE,
            "def add(a, b): raise NotImplementedError", "x = = 1",
        ],
        HEADS: [field.right[HEADS], heads_wrong(), "import torch\n" + TINY_WRONG],
    }  # fmt: skip
    return [
        submission(f"honest{number}-{place}", name, f"{text}\n# {number}\n")
        for name, answers in texts.items()
        for place, text in enumerate(answers)
        for number in range(5 if name == TINY else 2)
    ]


def hostile(field: Field) -> list[Submission]:
    """Return submissions that do not deserve points beside their attack."""
    attacks = [attack for _, attack in ATTACKS if attack.make is None and not attack.gains]
    chosen = [a for a in attacks[::EVERY] if "import" not in a.name]
    return [submission(f"hostile{n}", a.course, field.text(a)) for n, a in enumerate(chosen)]


def submission(student: str, name: str, text: str) -> Submission:
    return Submission(student, name, (SourceFile(f"{name.partition('_')[2]}.py", text),))


def grades(
    course: Course, tier: str, submissions: list[Submission], folder: Path
) -> dict[str, dict]:
    with Journal(folder) as journal:
        stored = texts.put(folder, submissions)
        outcome = grade_class(Plan(course, 11, tier, jobs=2), stored, journal, lambda _: None)
        assert outcome.failures == []
        assert outcome.graded + outcome.refused == len(submissions)
        return {
            key[0]: json.loads(replace(g, seconds=0.0, test_seconds=()).to_json())
            for key, g in journal.latest.items()
        }


@pytest.mark.slow
def test_honest_grades_are_unchanged_when_a_third_of_the_class_is_hostile(
    tiers: dict[str, TierReport], tmp_path: Path
) -> None:
    tier = next((tier for tier, report in tiers.items() if report.works), "unsafe")
    if tier == "unsafe":
        pytest.skip("no tier with walls works here")
    (tmp_path / "field").mkdir()
    with open_field(tier, tmp_path / "field") as field:
        good, bad = honest(field), hostile(field)
        assert len(bad) * 3 >= len(good) + len(bad)
        mixed = list(good)
        for number, attacker in enumerate(bad):
            mixed.insert(3 * number, attacker)
        alone = grades(field.course, tier, good, tmp_path / "alone")
        together = grades(field.course, tier, mixed, tmp_path / "together")
        assert {student: together[student] for student in alone} == alone
        limit = {TINY: 10, HEADS: 15}
        assert all(together[s.student]["score"] < limit[s.assignment] for s in bad)
        assert field.canary not in json.dumps(together)
