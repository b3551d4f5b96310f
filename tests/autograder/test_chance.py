"""A short form of `python tests/assignments/chance.py`, and tests that the script detects problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from autograder.course.reading import load_course
from tests.assignments.chance import ROOT, TESTS, Chance, Outcome, Trial
from tests.autograder.sampling import sampled

RUNS, CATCHES, SEED = 8, 2, 2026
SAMPLE = "test_dropout_acts_on_the_sum_in_training"


@pytest.fixture(scope="module")
def judged() -> Iterator[Callable[..., Outcome]]:
    """The outcome of a test; suites are collected once."""
    course, trials = load_course(ROOT), {}

    def judge(chance: Chance, runs: int = 8, catches: int = 2) -> Outcome:
        name = chance.assignment
        if name not in trials:
            trials[name] = Trial(course, course.assignment(name))
        return trials[name].judge(chance, SEED, runs, catches)

    yield judge
    for trial in trials.values():
        trial.close()


@pytest.mark.parametrize(
    "chance", sampled(TESTS, lambda chance: chance.test == SAMPLE, lambda chance: chance.test)
)
def test_reference_passes_and_every_mistake_fails(judged, chance):
    outcome = judged(chance, RUNS, CATCHES)
    assert outcome.problems == []
    assert set(outcome.caught.values()) <= {CATCHES}
    for measured in outcome.measured:
        if measured.share:
            limit = (measured.high - measured.low) / 2 / measured.share.deviation
            assert limit > 6.99, f"{measured.what}: a right answer may fall outside"
