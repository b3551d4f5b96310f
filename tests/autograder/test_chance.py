"""A short form of `python tests/assignments/chance.py`, and tests that the script detects problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from autograder.course.config import CourseError, load_course
from tests.assignments.chance import (
    ROOT,
    TESTS,
    Chance,
    Outcome,
    Share,
    Trial,
    binomial,
    conclude,
    main,
    told,
)
from tests.autograder.sampling import sampled

RUNS, CATCHES, SEED = 8, 2, 2026
SAMPLE = "test_dropout_acts_on_the_sum_in_training"
COIN = next(chance for chance in TESTS if chance.test == "test_a_coin_of_eighty_twenty")


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


def test_undetected_mistake_is_a_problem(judged):
    harmless = Chance(COIN.assignment, COIN.test, ("top_k_ignored",))
    outcome = judged(harmless)
    assert outcome.caught == {"top_k_ignored": 0}
    assert [p for p in outcome.problems if "top_k_ignored was caught in 0 of 2 runs only" in p]
    assert conclude([outcome], 1.0) == 1


def test_failures_of_the_reference_are_counted(judged, monkeypatch):
    monkeypatch.setattr("autograder.checks.between", refuse_everything)
    outcome = judged(Chance(COIN.assignment, COIN.test))
    assert len(outcome.alarms) == 8
    assert "8 false alarms in 8 runs" in told(outcome)
    assert conclude([outcome], 1.0) == 1


def refuse_everything(actual, low, high, what):
    from autograder.checks import CheckFailed

    raise CheckFailed(f"{what} is never right", "never right")


def test_deviation_that_differs_from_the_stated_one_is_a_problem(judged):
    wrong = Share("the share of heads", 10 * binomial(0.8, 20_000))
    (problem,) = judged(Chance(COIN.assignment, COIN.test, shares=(wrong,)), runs=100).problems
    assert "times the stated one" in problem


def test_stated_share_that_no_test_compares_is_a_problem(judged):
    (problem,) = judged(
        Chance(COIN.assignment, COIN.test, shares=(Share("the edge", 1.0),))
    ).problems
    assert "compares no number that it calls “the edge”" in problem


def test_margin_is_measured_in_standard_deviations(judged):
    text = told(judged(COIN))
    assert "the share of heads: limit at 7.0 σ, nearest run" in text
    assert "likeliest_word_always: caught in 2 of 2, at least 6" in text


@pytest.mark.parametrize(
    ("chance", "sentence"),
    [
        (Chance(COIN.assignment, "test_of_nothing"), "07_mini_gpt has no test test_of_nothing."),
        (Chance(COIN.assignment, COIN.test, ("no_such",)), "07_mini_gpt has no mistake no_such."),
    ],
)
def test_unknown_names_are_reported(judged, chance, sentence):
    with pytest.raises(CourseError, match=sentence):
        judged(chance)


def test_command_prints_a_summary_last(capsys):
    assert main(["02_positional_encoding", "--runs", "12", "--catches", "2", "--seed", "5"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("--seed 5 --runs 12 --catches 2\n")
    assert "1 tests, 12 runs of the reference: 0 false alarms." in said
    assert "3 mistakes, 3 of them caught in every run." in said


def test_command_accepts_only_assignments_with_random_tests(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["03_masked_heads"])
    assert "03_masked_heads has no test with chance in it" in capsys.readouterr().err
