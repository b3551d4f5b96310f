"""Tests that count what chance did, and the proof that chance decides no score.

    python tests/assignments/chance.py                      # 1,000 runs of the reference, 100 of each mistake
    python tests/assignments/chance.py 09_masked_language_model --runs 100 --catches 20

Every test in TESTS meets the reference in so many runs, each with a seed of its own, and must never fail. Every
mistake beside a test must fail in that very test in each of its runs, whatever else would catch it. Limits and
distances are told in standard deviations: those that the binomial distribution gives, which are themselves compared
with what was measured. Exit code 1: a false alarm, a mistake that got through, or a deviation that is not as stated.
"""

from __future__ import annotations

import argparse
import math
import secrets
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from autograder import checks
from autograder.bridge.outside.local import LocalStudent, load
from autograder.bridge.outside.subject import Subject
from autograder.checks import CheckFailed
from autograder.course.config import Assignment, Course, CourseError
from autograder.course.mistakes_file import load_mistakes
from autograder.course.reading import load_course
from autograder.grading.reference import load_reference
from autograder.suite.session import Examinee, SuiteSession, Test

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Share:
    """A number that a test compares with limits: how the test calls it, and its standard deviation.

    `lines` is how many such numbers the test looks at when it takes the smallest and the largest of them.
    """

    what: str
    deviation: float
    lines: int = 1


@dataclass(frozen=True)
class Chance:
    """A test with chance in it, and the mistakes that it alone must catch every time."""

    assignment: str
    test: str
    mistakes: tuple[str, ...] = ()
    shares: tuple[Share, ...] = ()


def binomial(p: float, n: int) -> float:
    """The standard deviation of a share of n throws, each a hit with chance p."""
    return math.sqrt(p * (1 - p) / n)


CALM = 0.8**4 / (0.8**4 + 0.2**4)  # the 80/20 coin at temperature 1/4
DRAWN = 0.1 / 11  # a random word, and one of 11 ordinary ones
DRAWN_WEIGHTS = {  # how many numbers each weight of a LanguageModel(199, 48, 4, 1, 7) holds
    "token_embed.weight": 199 * 48,
    "position_embed.weight": 7 * 48,
    "blocks.0.attention.qkv.weight": 144 * 48,
    "blocks.0.attention.proj.weight": 48 * 48,
    "blocks.0.ff.0.weight": 192 * 48,
    "blocks.0.ff.2.weight": 48 * 192,
}

TESTS = (
    Chance(
        "02_positional_encoding",
        "test_dropout_acts_on_the_sum_in_training",
        ("dropout_forgotten", "dropout_on_the_words_alone", "dropout_on_the_positions_alone"),
        (Share("the share of zeros", binomial(0.5, 5 * 29 * 20)),),
    ),
    Chance("05_encoder_block", "test_post_norm_dropout", ("dropout_in_eval", "dropout_forgotten")),
    Chance("05_encoder_block", "test_pre_norm_dropout", ("pre_norm_without_dropout",)),
    Chance(
        "05_encoder_block", "test_encoder_dropout", ("embeddings_without_dropout", "encoder_dropout_in_eval")
    ),
    Chance(
        "07_mini_gpt",
        "test_all_windows_are_equally_likely",
        (
            "last_window_never_drawn",
            "first_window_never_drawn",
            "one_window_for_the_whole_batch",
            "windows_side_by_side_only",
        ),
        (Share("the share of rows that begin at", binomial(1 / 5, 2_000)),),
    ),
    Chance(
        "07_mini_gpt",
        "test_batches_come_from_the_generator",
        (
            "batch_ignores_the_generator",
            "windows_always_from_the_start",
            "none_becomes_a_fresh_generator",
            "seed_set_inside",
        ),
    ),
    Chance("07_mini_gpt", "test_training_reports_every_loss"),
    Chance("07_mini_gpt", "test_one_window_is_learned_by_heart", ("never_steps", "gradients_thrown_away")),
    Chance(
        "07_mini_gpt",
        "test_batches_are_as_large_as_asked",
        ("one_batch_for_all_steps", "training_ignores_the_batch_size"),
    ),
    Chance(
        "07_mini_gpt",
        "test_training_can_be_repeated",
        ("training_ignores_the_generator", "training_without_a_generator_repeats_itself"),
    ),
    Chance(
        "07_mini_gpt",
        "test_a_coin_of_eighty_twenty",
        ("likeliest_word_always", "all_words_alike", "one_draw_for_all_rows"),
        (
            Share("the share of heads", binomial(0.8, 4_000)),
            Share("the share of tails", binomial(0.2, 4_000)),
        ),
    ),
    Chance(
        "07_mini_gpt",
        "test_temperature_calms_and_excites",
        (
            "multiplied_by_the_temperature",
            "temperature_ignored",
            "temperature_after_the_softmax",
            "temperature_lost_with_top_k",
            "top_k_ignored",
        ),
        (
            Share("the share of heads at temperature 0.25", binomial(CALM, 4_000)),
            Share("the share of heads at temperature 2.0", binomial(2 / 3, 4_000)),
            Share("the share of the likeliest word with top_k = 3", binomial(1296 / 1841, 4_000)),
        ),
    ),
    Chance(
        "07_mini_gpt",
        "test_only_the_likeliest_words_are_drawn",
        (
            "top_k_ignored",
            "unlikely_words_set_to_zero",
            "top_k_lets_one_more_in",
            "top_k_keeps_the_unlikely",
            "only_the_likeliest_of_top_k",
            "top_k_keeps_one_too_few",
        ),
        (
            Share("the share of the likeliest word without top_k", binomial(0.6, 4_000)),
            Share("the share of the likeliest word with top_k = 2", binomial(0.8, 4_000)),
            Share("the share of the likeliest word with top_k = 2 at temperature 2", binomial(2 / 3, 4_000)),
            Share("the share of the rarest word of five with top_k as large as the vocabulary", binomial(0.05, 4_000)),
            Share("the share of the rarest word of five with top_k beyond the vocabulary", binomial(0.05, 4_000)),
        ),
    ),
    Chance("07_mini_gpt", "test_each_row_keeps_its_own_words", ("one_threshold_for_all_rows",)),
    Chance(
        "07_mini_gpt",
        "test_what_is_written_can_be_repeated",
        (
            "writing_ignores_the_generator",
            "one_draw_for_all_rows",
            "one_noise_for_all_rows",
            "writing_starts_a_fresh_generator",
        ),
    ),
    Chance("08_encoder_decoder", "test_translator_dropout", ("translators_dropout_not_handed_on",)),
    Chance(
        "09_masked_language_model",
        "test_fifteen_in_a_hundred",
        ("share_of_all_words_taken_from_the_ordinary", "chosen_where_the_die_is_high"),
        (Share("the share of ordinary words that are chosen", binomial(0.15, 32_000)),),
    ),
    Chance(
        "09_masked_language_model",
        "test_eighty_ten_ten",
        (
            "always_the_mask",
            "nothing_is_kept",
            "nothing_is_replaced",
            "ten_percent_of_the_rest",
            "random_words_over_masks",
            "shares_in_the_wrong_order",
            "one_die_for_both_questions",
            "mask_is_drawn_as_a_random_word",
            "random_word_is_never_the_same",
        ),
        (
            Share("the share of chosen words that became the mask", binomial(0.8, 36_000)),
            Share("the share of chosen words that became another word", binomial(0.1, 36_000)),
            Share("the share of chosen words that stayed", binomial(0.1, 36_000)),
            Share("the share of masks in a vocabulary with two ordinary words", binomial(0.8, 36_000)),
            Share("the share of words that are as before", binomial(0.15, 36_000)),
        ),
    ),
    Chance(
        "09_masked_language_model",
        "test_what_becomes_of_a_hundred_words",
        (
            "always_the_mask",
            "nothing_is_kept",
            "nothing_is_replaced",
            "ten_percent_of_the_rest",
            "random_words_over_masks",
            "shares_in_the_wrong_order",
        ),
    ),
    Chance(
        "09_masked_language_model",
        "test_random_words_are_never_special",
        ("special_words_are_drawn", "mask_is_special_only_if_listed"),
    ),
    Chance(
        "09_masked_language_model",
        "test_all_ordinary_words_are_equally_likely",
        ("last_word_never_drawn", "one_random_word_for_the_whole_batch", "random_word_from_the_batch"),
        (Share("how often one word was drawn", binomial(DRAWN, 70_000) / DRAWN, lines=10),),
    ),
    Chance(
        "09_masked_language_model",
        "test_gaps_can_be_repeated",
        (
            "generator_ignored",
            "second_die_ignores_the_generator",
            "random_words_ignore_the_generator",
            "generator_started_anew",
        ),
    ),
    Chance("09_masked_language_model", "test_sentences_of_six_words", ("exactly_fifteen_in_a_hundred",)),
    Chance(
        "09_masked_language_model",
        "test_the_generator_decides",
        ("generator_ignored", "second_die_ignores_the_generator", "generator_started_anew"),
    ),
    Chance(
        "09_masked_language_model",
        "test_a_die_for_each_word",
        ("first_words_are_chosen", "exactly_fifteen_in_a_hundred", "one_die_for_a_whole_row"),
    ),
    Chance(
        "09_masked_language_model",
        "test_dice_are_rolled_for_each_word",
        ("first_words_are_chosen", "one_die_for_a_whole_row", "one_fate_for_a_row"),
        (
            Share("the share of chosen words in one", binomial(0.5, 200), lines=200),
            Share("the share of masks in one", binomial(0.8, 200), lines=200),
        ),
    ),
    Chance("09_masked_language_model", "test_one_batch_is_learned_by_heart"),
    Chance("10_ready_made", "test_encoder_layer_keeps_dropout", ("encoder_without_dropout",)),
    Chance("10_ready_made", "test_decoder_layer_keeps_dropout"),
    Chance("15_train_it_well", "test_first_loss_is_near_ln_v", ("std_taken_as_a_variance",)),
    Chance(
        "15_train_it_well",
        "test_weights_are_normal",
        (
            "embeddings_left_alone",
            "std_squared",
            "mean_is_not_zero",
            "uniform_between_plus_and_minus_std",
            "uniform_with_the_right_spread",
            "normal_numbers_cut_off",
            "weights_begin_as_zeros",
        ),
        tuple(
            share
            for name, n in DRAWN_WEIGHTS.items()
            for share in (
                Share(f"the mean of {name}, measured in std", 1 / math.sqrt(n)),
                Share(f"the standard deviation of {name}, measured in std", 1 / math.sqrt(2 * n)),
                Share(f"the share of {name} within one std", binomial(math.erf(math.sqrt(0.5)), n)),
            )
        ),
    ),
    Chance("15_train_it_well", "test_every_call_draws_anew", ("seed_set_in_init_weights",)),
)


@dataclass
class Measured:
    """One number of one test over many runs: its values, and how near they came to a limit."""

    what: str
    low: float
    high: float
    share: Share | None
    values: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float | None:
        """The measured deviation over the stated one; None where there is nothing to compare."""
        if self.share is None or self.share.lines > 1 or len(self.values) < 2:
            return None
        return statistics.stdev(self.values) / self.share.deviation

    @property
    def as_stated(self) -> bool:
        """Whether the measured deviation agrees with the stated one, within six of its own deviations."""
        return self.ratio is None or abs(self.ratio - 1) < 6 / math.sqrt(2 * len(self.values))

    def __str__(self) -> str:
        if self.share is None:
            seen = f"{min(self.values):.3g} to {max(self.values):.3g}"
            return f"{self.what}: {seen}, allowed {self.low:.3g} to {self.high:.3g}"
        limit = (self.high - self.low) / 2 / self.share.deviation
        margin = min(min(v - self.low, self.high - v) for v in self.values) / self.share.deviation
        stated = "" if self.ratio is None else f", deviation {self.ratio:.2f} of the stated"
        return f"{self.what}: limit at {limit:.1f} σ, nearest run {margin:.1f} σ inside{stated}"


class Listener:
    """Hears every number that a test compares with limits, also those after the first that is outside."""

    def __init__(self, shares: Iterable[Share]) -> None:
        self.measured: dict[str, Measured] = {}
        self.failure: CheckFailed | None = None  # of this run
        self.outside = 0.0  # how far the farthest number of this run is outside, in deviations
        self._shares = tuple(shares)
        self._between = checks.between

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen to one run."""
        self.failure, self.outside = None, 0.0
        with patch.object(checks, "between", self._hear):
            yield

    def _hear(
        self, actual: float, low: float, high: float, what: str = "the result", *, telling: str = ""
    ) -> None:
        if what not in self.measured:
            found = [share for share in self._shares if what.startswith(share.what)]
            share = max(found, key=lambda share: len(share.what), default=None)
            self.measured[what] = Measured(what, low, high, share)
        measured = self.measured[what]
        measured.values.append(float(actual))
        if measured.share:
            distance = max(low - actual, actual - high) / measured.share.deviation
            self.outside = max(self.outside, distance)
        try:
            self._between(actual, low, high, what, telling=telling)
        except CheckFailed as failure:
            self.failure = self.failure or failure


@dataclass
class Outcome:
    """What came of one test: how often the reference failed, and how often each mistake did."""

    chance: Chance
    runs: int
    alarms: list[str]
    measured: list[Measured]
    catches: int
    caught: dict[str, int]
    outside: dict[str, float]  # by mistake, where a share gives it away: how far at least, in deviations

    @property
    def problems(self) -> list[str]:
        name = f"{self.chance.assignment}, {self.chance.test}"
        found = [f"{name}: false alarm in {alarm}" for alarm in self.alarms]
        found += [
            f"{name}: {mistake} was caught in {count} of {self.catches} runs only."
            for mistake, count in self.caught.items()
            if count < self.catches
        ]
        found += [
            f"{name}: the deviation of {m.what} is {m.ratio:.2f} times the stated one."
            for m in self.measured
            if not m.as_stated
        ]
        stated = {share.what for share in self.chance.shares}
        heard = {m.share.what for m in self.measured if m.share}
        return found + [f"{name} compares no number that it calls “{what}”." for what in stated - heard]


class Trial:
    """One assignment, its suite collected once, and its reference."""

    def __init__(self, course: Course, assignment: Assignment) -> None:
        self.assignment = assignment
        self.reference = load_reference(course, assignment)
        self.mistakes = {mistake.id: mistake.source for mistake in load_mistakes(course, assignment)}
        files = [course.visible_test_file(assignment), course.hidden_test_file(assignment)]
        self.session = SuiteSession(files, course.root)
        self.tests = {test.name: test for test in self.session.tests()}

    def judge(self, chance: Chance, first_seed: int, runs: int, catches: int) -> Outcome:
        """Raises CourseError when the suite has no such test or the assignment no such mistake."""
        test = self._known(chance)
        listener = Listener(chance.shares)
        right = Subject(self.reference, self.reference)
        alarms = list(self._failures(test, right, range(first_seed, first_seed + runs), listener))
        caught, outside = {}, {}
        for mistake in chance.mistakes:
            wrong, heard = self._mistaken(mistake), Listener(chance.shares)
            failures = self._failures(test, wrong, range(first_seed, first_seed + catches), heard)
            distances = [heard.outside for _ in failures]
            caught[mistake] = len(distances)
            if distances and min(distances) > 0:
                outside[mistake] = min(distances)
        return Outcome(chance, runs, alarms, list(listener.measured.values()), catches, caught, outside)

    def close(self) -> None:
        self.session.close()

    def _known(self, chance: Chance) -> Test:
        if chance.test not in self.tests:
            raise CourseError(f"{self.assignment.name} has no test {chance.test}.")
        for mistake in chance.mistakes:
            if mistake not in self.mistakes:
                raise CourseError(f"{self.assignment.name} has no mistake {mistake}.")
        return self.tests[chance.test]

    def _mistaken(self, mistake: str) -> Subject:
        text, name = self.mistakes[mistake], f"{self.assignment.stem}.py"
        loaded = load(text, name, f"chance_{self.assignment.stem}_{mistake}")
        if loaded.problem:
            raise CourseError(f"{self.assignment.name}: {mistake} does not run: {loaded.problem}.")
        return Subject(LocalStudent(loaded.module), self.reference)

    def _failures(self, test: Test, subject: Subject, seeds: range, listener: Listener) -> Iterator[str]:
        """Each run in which the test failed: its seed, and what the test said."""
        for seed in seeds:
            with listener.listening():
                (ending,) = self.session.examine(Examinee(subject), seed, [test])
            error = listener.failure or ending.error
            if error is not None:
                yield f"run {seed}: {type(error).__name__}: {error}"


def judge_all(
    chances: Sequence[Chance], first_seed: int, runs: int, catches: int, root: Path = ROOT
) -> Iterator[Outcome]:
    """The outcome of each test, one assignment after the other."""
    course = load_course(root)
    by_assignment: dict[str, list[Chance]] = defaultdict(list)
    for chance in chances:
        by_assignment[chance.assignment].append(chance)
    for name, its in by_assignment.items():
        trial = Trial(course, course.assignment(name))
        try:
            for chance in its:
                yield trial.judge(chance, first_seed, runs, catches)
        finally:
            trial.close()


def told(outcome: Outcome) -> str:
    """A test's outcome, a line for each number and for each mistake."""
    lines = [f"{outcome.chance.assignment} · {outcome.chance.test}"]
    lines.append(f"    {len(outcome.alarms)} false alarms in {outcome.runs} runs")
    lines += [f"    {measured}" for measured in outcome.measured]
    for mistake, count in outcome.caught.items():
        far = outcome.outside.get(mistake)
        outside = "" if far is None else f", at least {far:.1f} σ outside"
        lines.append(f"    {mistake}: caught in {count} of {outcome.catches}{outside}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Prove that chance decides no score.")
    parser.add_argument("assignments", nargs="*", metavar="ASSIGNMENT", help="all that have such tests")
    parser.add_argument("--runs", type=int, default=1000, help="of the reference in each test (1000)")
    parser.add_argument("--catches", type=int, default=100, help="runs of each mistake (100)")
    parser.add_argument("--seed", type=int, default=secrets.randbits(24), help="of the first run")
    wishes = parser.parse_args(arguments)
    known = {chance.assignment for chance in TESTS}
    if odd := [name for name in wishes.assignments if name not in known]:
        parser.error(f"{odd[0]} has no test with chance in it; there are {', '.join(sorted(known))}.")
    chosen = [c for c in TESTS if not wishes.assignments or c.assignment in wishes.assignments]
    print(f"--seed {wishes.seed} --runs {wishes.runs} --catches {wishes.catches}", flush=True)
    outcomes, begun = [], time.process_time()
    for outcome in judge_all(chosen, wishes.seed, wishes.runs, wishes.catches):
        print(told(outcome), flush=True)
        outcomes.append(outcome)
    return conclude(outcomes, time.process_time() - begun)


def conclude(outcomes: Sequence[Outcome], seconds: float) -> int:
    """Print the sum of it all and every problem; the exit code."""
    runs, alarms = sum(o.runs for o in outcomes), sum(len(o.alarms) for o in outcomes)
    mistakes = [count == o.catches for o in outcomes for count in o.caught.values()]
    print(f"{len(outcomes)} tests, {runs} runs of the reference: {alarms} false alarms.")
    print(f"{len(mistakes)} mistakes, {sum(mistakes)} of them caught in every run. {seconds:.0f} s of CPU.")
    problems = [problem for outcome in outcomes for problem in outcome.problems]
    print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
