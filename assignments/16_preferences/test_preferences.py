"""Preferences: the tests that come with the assignment."""

import math

import torch

from autograder import checks, task


def numbers(*values):
    """A tensor of float64."""
    return torch.tensor(values, dtype=torch.float64)


def guesses(ids, probabilities):
    """Logits (B, T, V) in which each token after the first has the probability that is asked for, of five tokens."""
    logits = torch.randn(*ids.shape, 5, dtype=torch.float64)
    for row, line in enumerate(probabilities):
        for t, p in line.items():
            others = torch.rand(5, dtype=torch.float64) + 0.1
            others[ids[row, t]] = 0
            others = others / others.sum() * (1 - p)
            others[ids[row, t]] = p
            logits[row, t - 1] = others.log() + 3
    return logits


def two_answers():
    """Two rows: an answer at 3 and 4 with the probabilities 1/2 and 1/4, and one at 2 with the probability 1/2."""
    ids = torch.tensor([[4, 1, 0, 2, 3, 0], [3, 3, 1, 0, 2, 4]])
    answer = torch.zeros(2, 6, dtype=torch.bool)
    answer[0, 3:5] = True
    answer[1, 2] = True
    return guesses(ids, [{3: 0.5, 4: 0.25}, {2: 0.5}]), ids, answer


# Part 1: the log-probability of an answer


@task("answers", 0.5)
def test_two_tokens_worked_by_hand(student):
    """Two tokens with the probabilities 1/2 and 1/4 have the log-probability ln 1/8; a row without an answer has 0."""
    logits, ids, answer = two_answers()
    found = student.answer_log_probs(logits, ids, answer)
    checks.close(found, numbers(math.log(1 / 8), math.log(1 / 2)), "the log-probabilities", axes=("row",))
    answer[1] = False
    nothing = student.answer_log_probs(logits, ids, answer)
    what = "the log-probabilities, the second without an answer,"
    checks.close(nothing, numbers(math.log(1 / 8), 0.0), what, axes=("row",))


@task("answers", 0.25)
def test_first_token_is_refused(student):
    """An answer that includes the first token raises a ValueError that names it."""
    logits, ids, answer = two_answers()
    answer[1, 0] = True
    what = "answer_log_probs with an answer in row 1 that includes the first token"
    checks.raises(ValueError, student.answer_log_probs, logits, ids, answer, naming=("answer", 1), what=what)


@task("answers", 0.5)
def test_mean_of_three_tokens(student):
    """Answers with the probabilities 1/2, 1/4 and with 1/2 alone cost (ln 2 + ln 4 + ln 2) / 3 = 0.924."""
    loss = student.sft_loss(*two_answers())
    checks.shape(loss, (), "the loss")
    checks.close(loss, numbers(4 / 3 * math.log(2))[0], "the loss")
    logits, ids, answer = two_answers()
    checks.close(student.sft_loss(logits, ids, answer & False), numbers(0.0)[0], "the loss without any answer")


# Part 2: which answer is better?


@task("comparisons", 0.75)
def test_scores_two_and_one(student):
    """The scores 2 and 1 cost 0.313, and so do 102 and 101; equals cost ln 2; -5,000 and 5,000 cost 10,000."""
    one, equal = math.log(1 + math.exp(-1)), math.log(2)
    for chosen, rejected, expected in (
        (numbers(2.0), numbers(1.0), one),
        (numbers(102.0), numbers(101.0), one),
        (numbers(3.0), numbers(3.0), equal),
        (numbers(-5000.0), numbers(5000.0), 10_000.0),
        (numbers(2.0, 5.0, 0.0), numbers(1.0, 5.0, 1.0), (one + equal + one + 1) / 3),
    ):
        loss = student.bradley_terry_loss(chosen, rejected)
        what = f"the loss of the scores {chosen.tolist()} and {rejected.tolist()}"
        checks.shape(loss, (), what)
        checks.close(loss, numbers(expected)[0], what)


# Part 3: direct preference optimisation


@task("dpo", 0.75)
def test_margin_worked_by_hand(student):
    """-10, -11, -12 and -9 with beta = 0.1 have the margin 0.4 and the loss 0.513; with beta = 0.5, the margin 2."""
    pair = [numbers(-10.0), numbers(-11.0), numbers(-12.0), numbers(-9.0)]
    for settings, margin in (({}, 0.4), ({"beta": 0.5}, 2.0)):
        answer = student.dpo_loss(*pair, **settings)
        loss, margins = checks.unpack(answer, ("the loss", "the margins"), "the answer of dpo_loss")
        checks.close(margins, numbers(margin), "the margins")
        checks.shape(loss, (), "the loss")
        checks.close(loss, numbers(math.log(1 + math.exp(-margin)))[0], "the loss")


@task("dpo", 0.25)
def test_before_the_first_step(student):
    """Where policy and reference agree, every margin is 0 and the loss is ln 2, whatever the answers are."""
    chosen, rejected = numbers(-3.0, -40.0, -7.0), numbers(-5.0, -2.0, -7.0)
    answer = student.dpo_loss(chosen, rejected, chosen.clone(), rejected.clone())
    loss, margins = checks.unpack(answer, ("the loss", "the margins"), "the answer of dpo_loss")
    checks.close(margins, numbers(0.0, 0.0, 0.0), "the margins")
    checks.close(loss, numbers(math.log(2))[0], "the loss")


@task("dpo", 0.25)
def test_beta_must_be_positive(student):
    """A beta of 0 or below raises a ValueError that names it."""
    pair = [numbers(-1.0), numbers(-2.0), numbers(-3.0), numbers(-4.0)]
    for beta in (0.0, -0.1):
        checks.raises(ValueError, student.dpo_loss, *pair, beta=beta, naming=("beta", beta))


# Part 4: compared with the group


@task("advantages", 0.5)
def test_two_groups_of_four(student):
    """Rewards of 0, 0, 4, 4 have the advantages -1, -1, 1, 1, and so have 10, 10, 14, 14."""
    advantages = student.group_advantages(numbers([0.0, 0.0, 4.0, 4.0], [10.0, 10.0, 14.0, 14.0]), eps=1e-4)
    each = 2 / (2 + 1e-4)
    expected = numbers([-each, -each, each, each], [-each, -each, each, each])
    checks.close(advantages, expected, "the advantages", axes=("prompt", "answer"))


@task("advantages", 0.25)
def test_equals_have_no_advantage(student):
    """In a group of equals, and in a group of one, all advantages are 0."""
    equals = student.group_advantages(numbers([3.0, 3.0, 3.0], [1.0, 2.0, 3.0]), eps=1e-4)
    each = 1 / (math.sqrt(2 / 3) + 1e-4)
    expected = numbers([0.0, 0.0, 0.0], [-each, 0.0, each])
    checks.close(equals, expected, "the advantages", axes=("prompt", "answer"))
    alone = student.group_advantages(numbers([5.0], [-2.0]))
    checks.close(alone, numbers([0.0], [0.0]), "the advantages of groups of one", axes=("prompt", "answer"))


# Part 5: the clipped objective


@task("clipping", 0.5)
def test_four_cases(student):
    """Ratios of 0.5 and 1.5 with advantages of 1 and -1 give the four numbers of the table."""
    old, cases = numbers(-2.0), ((0.5, 1, 0.5), (1.5, 1, 1.2), (0.5, -1, -0.8), (1.5, -1, -1.5))
    losses = [student.clipped_loss(old + math.log(ratio), old, numbers(float(sign))) for ratio, sign, _ in cases]
    for loss, (ratio, advantage, objective) in zip(losses, cases):
        what = f"the loss for a ratio of {ratio} and an advantage of {advantage}"
        checks.shape(loss, (), what)
        checks.close(loss, numbers(-objective)[0], what)


@task("clipping", 0.25)
def test_nothing_is_cut_in_the_first_step(student):
    """Where nothing has moved yet, the loss is minus the mean advantage."""
    old = numbers(-1.0, -20.0, -3.0)
    loss = student.clipped_loss(old.clone(), old, numbers(1.0, 2.0, -6.0))
    checks.close(loss, numbers(1.0)[0], "the loss")


# Part 6: token by token


def answers_in_two_rows():
    """The example of the text: log-probabilities after and before, advantages, and where the answers stand (2, 5)."""
    answer = torch.tensor([[False, True, True, False, False], [False, False, True, True, True]])
    old = -3.0 - torch.rand(2, 5, dtype=torch.float64)
    ratios = numbers([1.0, 1.5, 1.0, 1.0, 1.0], [1.0, 1.0, 0.5, 1.0, 1.0])
    return old + ratios.log(), old, numbers(1.0, -1.0), answer


@task("tokens", 0.75)
def test_two_answers_token_by_token(student):
    """The ratios 1.5, 1 with A = 1 and 0.5, 1, 1 with A = -1 give -0.083: each answer has its mean, and counts once."""
    loss = student.token_clipped_loss(*answers_in_two_rows())
    checks.shape(loss, (), "the loss")
    checks.close(loss, numbers(-(2.2 / 2 - 2.8 / 3) / 2)[0], "the loss")


@task("tokens", 0.25)
def test_what_stands_outside_does_not_matter(student):
    """Other numbers outside of the answers change nothing."""
    log_probs, old, advantages, answer = answers_in_two_rows()
    elsewhere = torch.where(answer, log_probs, log_probs + torch.randn(2, 5, dtype=torch.float64))
    loss = student.token_clipped_loss(elsewhere, old, advantages, answer)
    checks.close(loss, numbers(-(2.2 / 2 - 2.8 / 3) / 2)[0], "the loss")


# Part 7: the leash


@task("kl", 0.5)
def test_divergence_worked_by_hand(student):
    """Where the policy gives two answers 1/2 each and the reference 1/4 and 3/4, the penalty is 0.144."""
    half, theirs = numbers(0.5, 0.5).log(), numbers(0.25, 0.75).log()
    penalty = student.kl_penalty(half, theirs)
    checks.shape(penalty, (), "the penalty")
    checks.close(penalty, numbers(0.5 * math.log(2) + 0.5 * math.log(2 / 3))[0], "the penalty")
    checks.close(student.kl_penalty(half, half.clone()), numbers(0.0)[0], "the penalty where both agree")
    first = student.kl_penalty(numbers(0.5).log(), numbers(0.25).log())
    checks.close(first, numbers(math.log(2) - 0.5)[0], "the penalty of the first answer alone")
