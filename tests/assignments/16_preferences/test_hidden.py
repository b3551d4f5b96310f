"""Preferences: the tests that only graders see."""

import itertools
import math
import random
from functools import partial

import torch

from autograder import checks, task

DTYPES = (torch.float64, torch.float32)


def some(*shape, scale=1.0, dtype=torch.float64):
    """Random normal numbers."""
    return scale * torch.randn(shape, dtype=dtype)


def some_answers(dtype=torch.float64):
    """Logits, ids and an answer anywhere in each row but at its first token; one row has none."""
    B, T, V = 5, random.randint(7, 9), 11
    ids = torch.randint(V, (B, T))
    answer = torch.rand(B, T) < 0.5
    answer[:, 0] = False
    answer[0] = False
    answer[1, -1] = True
    return some(B, T, V, scale=2.0, dtype=dtype), ids, answer


def with_answer(function, ids, answer, logits):
    return function(logits, ids, answer)


def well_behaved(function, name, dtype):
    """The function, whose arguments must keep their values in each call, and whose loss must have the number type."""

    def call(*given):
        loss = checks.input_untouched(function, *given, what=name)
        checks.dtype(loss, dtype, "the loss")
        return loss

    return call


def same_with_gradients(ours, theirs, *inputs, what, gradient, atol=1e-6, gradient_atol=1e-6, axes=None):
    """One call gives the expected result and, if so, the expected gradients."""
    expected = theirs(*inputs)

    def compared(*given):
        found = ours(*given)
        checks.close(found, expected, what, atol=atol, axes=axes)
        return found

    checks.gradients_close(compared, theirs, *inputs, what=gradient, atol=gradient_atol)


# Part 1: the log-probability of an answer


@task("answers", 0.5, promise=(
    "The logits at position t - 1 predict the token at t",
    "A row without an answer gives 0.",
    "The result has the dtype of logits (float32, float64)",
    "No argument is modified.",
))
def test_answers_anywhere(student, reference):
    """Each row's log-probability is the sum over its answer, wherever that stands."""
    for dtype in DTYPES:
        logits, ids, answer = some_answers(dtype)
        found = checks.input_untouched(student.answer_log_probs, logits, ids, answer, what="answer_log_probs")
        checks.dtype(found, dtype, "the log-probabilities")
        expected = reference.answer_log_probs(logits, ids, answer)
        checks.close(found, expected, "the log-probabilities", axes=("row",), atol=1e-5)


@task("answers", 0.25, promise="which may be as large as 10,000, in both directions.")
def test_large_logits(student, reference):
    """Logits of several hundred and of 10,000, in both directions, give finite log-probabilities and gradients."""
    sizes = torch.tensor([300.0, 10_000.0, 300.0, 300.0, 10_000.0])  # one for each row; the first has no answer
    for name, dtype in itertools.product(("answer_log_probs", "sft_loss"), DTYPES):
        logits, ids, answer = some_answers(dtype)
        what = f"{name} of logits of up to 10000 and -10000"
        same_with_gradients(
            partial(with_answer, getattr(student, name), ids, answer),
            partial(with_answer, getattr(reference, name), ids, answer),
            sizes[:, None, None] * logits.sign(),
            what=what,
            gradient=f"the gradient of {what}",
            atol=1e-2,  # float32 rounds 10,000 to a thousandth, for each token
            gradient_atol=1e-3,
        )


@task("answers", 0.5, promise="Tokens outside of the answer may even be impossible (a logit of -inf)")
def test_impossible_tokens_outside_of_the_answer(student, reference):
    """A token outside of the answer with a logit of -inf changes neither the results nor the gradients."""
    logits, ids, answer = some_answers()
    for row, t in (~answer).nonzero().tolist():
        if t > 0 and random.random() < 0.7:
            logits[row, t - 1, ids[row, t]] = -math.inf
    logits[0, 2, ids[0, 3]] = -math.inf
    same_with_gradients(
        partial(with_answer, student.answer_log_probs, ids, answer),
        partial(with_answer, reference.answer_log_probs, ids, answer),
        logits,
        what="the log-probabilities",
        gradient="the gradient of answer_log_probs",
        axes=("row",),
    )
    checks.close(student.sft_loss(logits, ids, answer), reference.sft_loss(logits, ids, answer), "the loss")


@task("answers", 0.25, promise=(
    "raises ValueError that names answer and the number of the first row",
    "Raises ValueError as `answer_log_probs` does.",
))
def test_first_tokens_are_refused_in_any_row(student):
    """An answer that includes the first token of any row raises a ValueError, in both functions."""
    for function in (student.answer_log_probs, student.sft_loss):
        logits, ids, answer = some_answers()
        row = random.randrange(1, len(ids) - 1)
        answer[row:, 0] = True
        checks.raises(ValueError, function, logits, ids, answer, naming=("answer", row))


@task("answers", 0.75, needs="test_two_tokens_worked_by_hand", promise=(
    "each token counts the same, whichever answer it belongs to.",
    "what a function returns is float32 for float32 and float64 for float64.",
    "No argument is modified.",
))
def test_mean_over_all_tokens(student, reference):
    """The loss is the mean over all answer tokens of the batch, and its gradients are those of the formula."""
    given = some_answers(torch.float32)
    loss = well_behaved(student.sft_loss, "sft_loss", torch.float32)(*given)
    checks.close(loss, reference.sft_loss(*given), "the loss", atol=1e-5)
    same_with_gradients(
        well_behaved(student.sft_loss, "sft_loss", torch.float64),
        reference.sft_loss,
        *some_answers(),
        what="the loss",
        gradient="the gradient of sft_loss",
    )


@task("answers", 0.5, promise="Without any answer token the loss is 0, and so are all gradients (not NaN).")
def test_batch_without_an_answer(student, reference):
    """A batch without any answer token costs 0, and its gradients are 0."""
    logits, ids, answer = some_answers()
    none = torch.zeros_like(answer)
    same_with_gradients(
        partial(with_answer, student.sft_loss, ids, none),
        partial(with_answer, reference.sft_loss, ids, none),
        logits,
        what="the loss",
        gradient="the gradient of sft_loss without any answer token",
    )


# Part 2: which answer is better?


@task("comparisons", 0.5, promise=(
    "The mean of -log σ(chosen - rejected).",
    "what a function returns is float32 for float32 and float64 for float64.",
    "No argument is modified.",
))
def test_comparisons_of_any_scores(student, reference):
    """The loss and its gradients are those of the formula, for any scores."""
    for dtype in DTYPES:
        same_with_gradients(
            well_behaved(student.bradley_terry_loss, "bradley_terry_loss", dtype),
            reference.bradley_terry_loss,
            some(7, scale=3, dtype=dtype),
            some(7, scale=3, dtype=dtype),
            what="the loss",
            gradient="the gradient",
            atol=1e-5,
            gradient_atol=1e-5,
        )


@task("comparisons", 0.75,
      promise="It is finite, and its gradients are right, also where the scores are 10,000 apart")
def test_scores_far_apart(student, reference):
    """The loss is finite and its gradients are right where the scores are 10,000 apart, in either direction."""
    for dtype in DTYPES:
        middle, far = random.uniform(-3, 3), random.uniform(9_000, 10_000)
        same_with_gradients(
            student.bradley_terry_loss,
            reference.bradley_terry_loss,
            torch.tensor([middle - far, middle + far, middle], dtype=dtype),
            torch.tensor([middle, middle, middle + 1], dtype=dtype),
            what="the loss",
            gradient="the gradient",
            atol=1e-4,
            gradient_atol=1e-5,
        )


# Part 3: direct preference optimisation


def some_pairs(count=6, scale=4.0, dtype=torch.float64):
    """Log-probabilities of chosen and rejected answers, from the policy and from the reference."""
    return [-some(count, scale=scale, dtype=dtype).abs() - 1 for _ in range(4)]


@task("dpo", 0.75, promise=(
    "margins = beta · ((policy_chosen - reference_chosen) - (policy_rejected - reference_rejected))",
    "The names of functions **and arguments** are part of the contract",
    "what a function returns is float32 for float32 and float64 for float64.",
))
def test_margins_of_any_pairs(student, reference):
    """The margins and the loss are those of the formula, for any beta, also with all arguments by name."""
    names = ("policy_chosen", "policy_rejected", "reference_chosen", "reference_rejected")
    for dtype, settings in ((torch.float64, {}), (torch.float32, {"beta": random.uniform(0.2, 2)})):
        pairs = some_pairs(dtype=dtype)
        answer = student.dpo_loss(**dict(zip(names, pairs)), **settings)
        loss, margins = checks.unpack(answer, ("the loss", "the margins"), "the answer of dpo_loss")
        expected, wanted = reference.dpo_loss(*pairs, **settings)
        checks.close(margins, wanted, "the margins", axes=("pair",), atol=1e-5)
        checks.close(loss, expected, "the loss", atol=1e-5)
        checks.dtype(loss, dtype, "the loss")


@task("dpo", 0.75, needs="test_margin_worked_by_hand",
      promise="Gradients flow back to the policy; none reaches the reference, even if its log-probabilities ask for one.")
def test_gradients_reach_the_policy_alone(student, reference):
    """Gradients flow back to the policy as the formula says, and none reaches the reference."""
    beta = random.uniform(0.2, 1)
    checks.gradients_close(
        lambda *pairs: student.dpo_loss(*pairs, beta=beta)[0],
        lambda *pairs: reference.dpo_loss(*pairs, beta=beta)[0],
        *some_pairs(),
        what="the gradient of the loss",
    )


@task("dpo", 0.5, promise="finite and with right gradients for margins of ±10,000 as well.")
def test_large_margins(student, reference):
    """Margins of 10,000 and of -10,000 have a finite loss and right gradients."""
    pairs, far = some_pairs(3), random.uniform(9_000, 10_000)
    pairs[0] = pairs[0] + torch.tensor([far, -far, 0.0], dtype=torch.float64)
    same_with_gradients(
        lambda *given: student.dpo_loss(*given, beta=1.0)[0],
        lambda *given: reference.dpo_loss(*given, beta=1.0)[0],
        *pairs,
        what="the loss",
        gradient="the gradient of the loss",
    )


@task("dpo", 0.25, promise=(
    "Raises ValueError that names beta and its value if it is not above 0.",
    "No argument is modified.",
))
def test_pairs_stay_and_beta_is_checked(student):
    """The log-probabilities keep their values, and a beta that is not above 0 raises a ValueError."""
    checks.input_untouched(student.dpo_loss, *some_pairs(), what="dpo_loss")
    for beta in (0, -random.randint(1, 9)):
        checks.raises(ValueError, student.dpo_loss, *some_pairs(), beta, naming=("beta", beta))


# Part 4: compared with the group


@task("advantages", 0.75, promise="In each row: less the row's mean, divided by its standard deviation")
def test_groups_of_any_rewards(student, reference):
    """Each group has its own mean and its own standard deviation, divided by K."""
    for G, K in ((4, 3), (1, 5), (5, 5)):
        rewards = some(G, K, scale=3) + some(G, 1, scale=10)
        advantages = student.group_advantages(rewards, eps=1e-4)
        checks.close(advantages, reference.group_advantages(rewards), "the advantages", axes=("prompt", "answer"))


@task("advantages", 0.25,
      promise="divided by its standard deviation (the root of the mean square, divided by K) plus eps.")
def test_eps_is_added_to_the_deviation(student, reference):
    """eps is added to the standard deviation, also where it is large or the rewards lie close together."""
    close = some(3, 4, scale=1e-4)
    checks.close(student.group_advantages(close), reference.group_advantages(close), "the advantages of close rewards")
    rewards, eps = some(3, 4), random.uniform(0.3, 2)
    what = f"the advantages with eps = {eps:.3f}"
    checks.close(student.group_advantages(rewards, eps=eps), reference.group_advantages(rewards, eps=eps), what)


@task("advantages", 0.25, promise=(
    "Equal rewards give zeros, up to rounding, and so does K = 1.",
    "The result has the dtype of rewards (float32, float64), which keep their values.",
))
def test_equals_next_to_others(student, reference):
    """A group of equals gets zeros next to other groups, in float32 as in float64; the rewards keep their values."""
    for dtype in DTYPES:
        rewards = some(3, 4, dtype=dtype)
        rewards[random.randrange(3)] = float(random.randint(-9, 9))
        advantages = checks.input_untouched(partial(student.group_advantages, eps=1e-4), rewards, what="group_advantages")
        checks.dtype(advantages, dtype, "the advantages")
        expected = reference.group_advantages(rewards)
        checks.close(advantages, expected, "the advantages", axes=("prompt", "answer"), atol=1e-4)


# Part 5: the clipped objective


def some_steps(count=12, dtype=torch.float64):
    """Log-probabilities before and after a step, and advantages; about half of the ratios are outside of 0.8 … 1.2."""
    old = -some(count, scale=4, dtype=dtype).abs() - 1
    return old + some(count, scale=0.4, dtype=dtype), old, some(count, dtype=dtype)


@task("clipping", 0.5, promise="Minus the mean of min(ratio · A, clip(ratio, 1 - epsilon, 1 + epsilon) · A)")
def test_objective_of_any_steps(student, reference):
    """The loss is that of the formula, for any ratios and advantages and for any epsilon."""
    for settings in ({"epsilon": random.uniform(0.3, 0.5)}, {"epsilon": 0.05}):
        steps = some_steps()
        expected = reference.clipped_loss(*steps, **settings)
        checks.close(student.clipped_loss(*steps, **settings), expected, f"the loss with {settings}")


@task("clipping", 0.5, needs="test_four_cases",
      promise="Gradients flow back to log_probs alone; none reaches old_log_probs or advantages")
def test_gradients_reach_the_log_probs_alone(student, reference):
    """Gradients flow back to log_probs alone; they are 0 where the objective is cut."""
    checks.gradients_close(student.clipped_loss, reference.clipped_loss, *some_steps(), what="the gradient of the loss")


@task("clipping", 0.25, promise=(
    "its gradient is that of $-A \\log p$: plain policy gradient.",
    "what a function returns is float32 for float32 and float64 for float64.",
    "No argument is modified.",
))
def test_first_step_is_the_policy_gradient(student):
    """Where nothing has moved, the gradient is minus the advantage, divided by N; the arguments keep their values."""
    for dtype in DTYPES:
        _, old, advantages = some_steps(dtype=dtype)
        clipped = well_behaved(student.clipped_loss, "clipped_loss", dtype)
        checks.gradients_close(
            lambda now, old=old, advantages=advantages, clipped=clipped: clipped(now, old, advantages),
            lambda now, advantages=advantages: -(advantages * now).mean(),
            old.clone(),
            what="the gradient in the first step",
            atol=1e-5,
        )


# Part 6: token by token


def some_token_steps(dtype=torch.float64, width=9):
    """Answers of different lengths; about half of their tokens have ratios outside of 0.8 … 1.2."""
    old = -some(7, width, scale=4, dtype=dtype).abs() - 1
    answer = torch.rand(7, width) < torch.linspace(0.2, 0.9, 7)[:, None]
    answer[:, 3] = True
    advantages = some(7, dtype=dtype)
    return old + some(7, width, scale=0.4, dtype=dtype), old, advantages, answer


@task("tokens", 0.75, promise=(
    "For each token, min(ratio · A, clip(ratio, 1 - epsilon, 1 + epsilon) · A); the mean over the tokens of each answer",
    "then over the answers that have any; and a minus.",
))
def test_tokens_of_any_answers(student, reference):
    """For answers of any lengths, the loss is that of the formula."""
    for width in (4, 13):
        steps = some_token_steps(width=width)
        checks.close(student.token_clipped_loss(*steps), reference.token_clipped_loss(*steps), "the loss")


@task("tokens", 0.5, promise="Gradients flow back to log_probs alone; none reaches old_log_probs or advantages")
def test_gradients_of_tokens(student, reference):
    """Gradients flow back to log_probs alone; they are 0 for tokens that are cut, and outside of the answers."""
    *steps, answer = some_token_steps()
    checks.gradients_close(
        lambda *given: student.token_clipped_loss(*given, answer),
        lambda *given: reference.token_clipped_loss(*given, answer),
        *steps,
        what="the gradient of the loss",
    )


@task("tokens", 0.25, promise=(
    "A row without an answer is no answer, and counts in neither.",
    "If no row has an answer: 0, with gradients of 0.",
))
def test_rows_without_an_answer(student, reference):
    """Rows without an answer do not count; without any answer at all, the loss and its gradients are 0."""
    *steps, answer = some_token_steps()
    for empty in (random.randint(1, 5), 7):
        fewer = answer.clone()
        fewer[:empty] = False
        same_with_gradients(
            lambda now, old, A, fewer=fewer: student.token_clipped_loss(now, old, A, fewer),
            lambda now, old, A, fewer=fewer: reference.token_clipped_loss(now, old, A, fewer),
            *steps,
            what=f"the loss with {empty} rows without an answer",
            gradient="the gradient of the loss",
        )


@task("tokens", 0.25,
      promise="Whatever stands outside of it, even inf or NaN, matters neither to the loss nor to a gradient.")
def test_inf_and_nan_outside_of_the_answers(student, reference):
    """Infinities and NaN outside of the answers, before and after the step, change neither the loss nor a gradient."""
    now, old, advantages, answer = some_token_steps()
    strange = itertools.product((-math.inf, math.inf, math.nan), ((now,), (old,), (now, old)))
    for (row, t), (number, tables) in zip((~answer).nonzero().tolist(), itertools.cycle(strange)):
        for table in tables:
            table[row, t] = number
    same_with_gradients(
        lambda now: student.token_clipped_loss(now, old, advantages, answer),
        lambda now: reference.token_clipped_loss(now, old, advantages, answer),
        now,
        what="the loss",
        gradient="the gradient of the loss",
    )


@task("tokens", 0.25, promise=(
    "For each token, min(ratio · A, clip(ratio, 1 - epsilon, 1 + epsilon) · A)",
    "what a function returns is float32 for float32 and float64 for float64.",
    "No argument is modified.",
))
def test_epsilon_and_types_of_tokens(student, reference):
    """Any epsilon works, the loss has the number type of the arguments, and these keep their values."""
    for dtype, epsilon in zip(DTYPES, (0.05, random.uniform(0.3, 0.5))):
        steps = some_token_steps(dtype)
        clipped = partial(student.token_clipped_loss, epsilon=epsilon)
        loss = well_behaved(clipped, "token_clipped_loss", dtype)(*steps)
        expected = reference.token_clipped_loss(*steps, epsilon=epsilon)
        checks.close(loss, expected, f"the loss with epsilon={epsilon:.2g}", atol=1e-5)


# Part 7: the leash


@task("kl", 0.5, promise=(
    "The mean of exp(d) - d - 1 with d = reference_log_probs - log_probs",
    "what a function returns is float32 for float32 and float64 for float64.",
    "No argument is modified.",
))
def test_penalty_of_any_answers(student, reference):
    """The penalty is that of the formula, and never negative."""
    for dtype in DTYPES:
        ours, theirs = some(9, dtype=dtype) - 3, some(9, dtype=dtype) - 3
        penalty = checks.input_untouched(student.kl_penalty, ours, theirs, what="kl_penalty")
        checks.dtype(penalty, dtype, "the penalty")
        checks.close(penalty, reference.kl_penalty(ours, theirs), "the penalty", atol=1e-5)
    one, other = some(1, scale=0.5), some(1, scale=0.5)
    penalty = student.kl_penalty(one, other)
    checks.between(penalty, 0.0, 100.0, "the penalty of one answer")
    checks.close(penalty, reference.kl_penalty(one, other), "the penalty of one answer")


@task("kl", 0.5, needs="test_divergence_worked_by_hand",
      promise="Gradients flow back to log_probs; none reaches the reference, even if it asks for one.")
def test_gradients_of_the_penalty(student, reference):
    """Gradients flow back to the policy as the formula says, and none reaches the reference."""
    ours, theirs = some(9) - 3, some(9) - 3
    checks.gradients_close(student.kl_penalty, reference.kl_penalty, ours, theirs, what="the gradient of the penalty")
