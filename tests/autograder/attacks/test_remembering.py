"""The replay cache gives a submission neither points nor losses through the calls of another submission."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.records import Grade
from autograder.walls.outside.doctor import TierReport
from tests.autograder.attacks import remembering
from tests.autograder.attacks.field import HEADS, TINY, Attack, Field, open_field
from tests.autograder.sampling import sampled

NEIGHBOURS = {
    TINY: ("return a + b", "return a - b", "return abs(a) + b", "return None"),
    HEADS: ("", "    mask = None\n", "    q = q + 0.0\n", "    v = v * 1.0000001\n"),
}


@pytest.fixture(scope="module")
def field(
    tiers: dict[str, TierReport], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Field]:
    tier = next((tier for tier, report in tiers.items() if report.works), "unsafe")
    if tier == "unsafe":
        pytest.skip("no tier with walls works here")
    with open_field(tier, tmp_path_factory.mktemp("field")) as found:
        yield found


def neighbours(field: Field, name: str) -> Iterator[str]:
    """Return answers with an equal beginning: the correct one, wrong ones, and correct ones in other code."""
    right = field.right[name]
    for line in NEIGHBOURS[name]:
        if name == TINY:
            yield right + f"\n\ndef add(a, b):\n    {line}\n"
        else:
            yield (
                right
                + f"\n\nbefore = attention\ndef attention(q, k, v, mask=None):\n{line}    return before(q, k, v, mask)\n"
            )


def forget(field: Field) -> None:
    """Start the same run, with the same inputs and an empty cache."""
    seed = field.grader.run_seed
    field.grader.reseed(seed + 1)
    field.grader.reseed(seed)


def without_time(grade: Grade) -> dict:
    return json.loads(replace(grade, seconds=0.0, test_seconds=()).to_json())


@pytest.mark.slow
@pytest.mark.parametrize(
    "attack",
    sampled(remembering.ATTACKS, remembering.ATTACKS[::6].__contains__, lambda attack: attack.name),
)
def test_replay_attacks_do_not_change_the_grades_of_other_submissions(
    field: Field, attack: Attack, tmp_path: Path
) -> None:
    texts = list(neighbours(field, attack.course))
    alone = []
    for text in texts:
        forget(field)
        alone.append(without_time(field.grade(attack.course, text)))
    assert alone[0]["score"] == alone[0]["max_score"] and alone[1]["score"] < alone[0]["score"]
    forget(field)
    best = field.honest[attack.course] + attack.gains
    for texts_in_order, grades in ((texts, alone), (texts[::-1], alone[::-1])):
        assert field.attack(attack, tmp_path).grade.score <= best
        assert [without_time(field.grade(attack.course, text)) for text in texts_in_order] == grades
    assert field.attack(attack, tmp_path).grade.score <= best
