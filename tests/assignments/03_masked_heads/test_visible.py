"""Masked heads: the tests that come with the assignment."""

import math
from contextlib import contextmanager

import torch

from autograder import checks, task

READY_MADE = (
    "torch.nn.functional.scaled_dot_product_attention",
    "torch.nn.functional.multi_head_attention_forward",
    "torch.nn.MultiheadAttention",
    "torch._scaled_dot_product_attention_math",
    "torch._scaled_dot_product_flash_attention_for_cpu",
    "torch._native_multi_head_attention",
)


# Part 1: the causal mask


@task("mask", 0.25)
def test_mask_is_a_table_of_booleans(student):
    """The mask of T words is a table of booleans with T rows and T columns."""
    for T in (5, 2):
        mask = student.causal_mask(T)
        checks.shape(mask, (T, T), f"causal_mask({T})")
        checks.dtype(mask, torch.bool, f"causal_mask({T})")


@task("mask", 1)
def test_mask_of_three_words(student):
    """In a sentence of three words, the first attends to one word, the second to two, the third to all three."""
    expected = torch.tensor([[True, False, False], [True, True, False], [True, True, True]])
    mask = checks.tensor(student.causal_mask(3), "causal_mask(3)")
    checks.equal(mask != 0, expected, "causal_mask(3)")


# Part 2: scaled dot-product attention


def output_and_weights(student, q, k, v, mask=None):
    """What attention returns, in whichever order: the order has a test of its own. Alone, it is the output."""
    answer = student.attention(q, k, v, mask)
    if isinstance(answer, torch.Tensor):
        return answer, None
    first, second = checks.unpack(answer, ("output", "weights"), "attention(q, k, v)")
    swapped = isinstance(first, torch.Tensor) and first.shape[-1:] == (k.shape[-2],) != (v.shape[-1],)
    return (second, first) if swapped else (first, second)


@contextmanager
def told(words):
    """If a check inside fails, these words say which mistake it was, whatever the code looks like; "" says nothing."""
    try:
        yield
    except checks.CheckFailed as failure:
        failure.telling = failure.telling or words
        raise


def shares(weights):
    """The weights with three digits; their shape alone if it is not that of one query and two keys."""
    if isinstance(weights, torch.Tensor) and weights.shape == (1, 2):
        return " and ".join(f"{share:.3f}" for share in weights[0].tolist())
    return tuple(getattr(weights, "shape", ()))


@task("attention", 0.25, forbids=READY_MADE)
def test_attention_shapes(student):
    """Attention returns the output, one vector for each query, then the weights, one for each query and key."""
    B, T, S, D, E = 3, 5, 7, 4, 2
    q, k, v = torch.randn(B, T, D), torch.randn(B, S, D), torch.randn(B, S, E)
    output, weights = checks.unpack(student.attention(q, k, v), ("output", "weights"), "attention(q, k, v)")
    checks.shape(output, (B, T, E), "the output", axes=("B", "T", "E"))
    checks.shape(weights, (B, T, S), "the weights", axes=("B", "T", "S"))


@task("attention", 0.25, forbids=READY_MADE)
def test_weights_of_a_query_add_up_to_one(student):
    """The weights of each query are between 0 and 1 and add up to 1."""
    B, T, S, D, E = 2, 3, 7, 5, 11
    q, k, v = torch.randn(B, T, D), torch.randn(B, S, D), torch.randn(B, S, E)
    _, weights = output_and_weights(student, q, k, v)
    checks.rows_sum_to_one(weights, "the weights", axes=("batch", "query", "key"), atol=1e-5)


@task("attention", 0.75, forbids=READY_MADE)
def test_two_keys_worked_by_hand(student):
    """Scores of ln 3 and 0 give weights of 3/4 and 1/4, and the values 10 and 20 are averaged to 12.5."""
    q = torch.tensor([[2 * math.log(3), 0.0, 0.0, 0.0]])  # (1, 4)
    k = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])  # (2, 4)
    v = torch.tensor([[10.0, 8.0, 0.0], [20.0, 0.0, 4.0]])  # (2, 3)
    output, weights = output_and_weights(student, q, k, v)
    with told(f"weights of {shares(weights)}"):
        checks.close(weights, torch.tensor([[0.75, 0.25]]), "the weights", axes=("query", "key"))
    checks.close(output, torch.tensor([[12.5, 6.0, 1.0]]), "the output", axes=("query", "number"))


@task("attention", 0.5, forbids=READY_MADE)
def test_nothing_to_attend_to_gives_zeros(student):
    """A query that may attend to no key gets zeros, not NaN."""
    T, S, D, E = 2, 3, 5, 7
    q, k, v = torch.randn(T, D), torch.randn(S, D), torch.randn(S, E)
    mask = torch.tensor([[True, False, True], [False, False, False]])
    output, weights = output_and_weights(student, q, k, v, mask)
    weights = checks.tensor(weights, "the weights")
    checks.shape(weights, (T, S), "the weights")
    checks.shape(output, (T, E), "the output")
    checks.close(weights[1], torch.zeros(S), "the weights of the query that may attend to nothing")
    checks.close(output[1], torch.zeros(E), "the output of the query that may attend to nothing")
    checks.rows_sum_to_one(weights[:1], "the weights of the other query")


# Part 3: one masked head


def a_head(student, C, D, block_size):
    """A head of yours with random weights: the same ones, in whatever order you make its matrices."""
    return checks.randomize(student.Head(C, D, block_size))


@task("head", 0.25, forbids=READY_MADE)
def test_head_shapes(student):
    """A head turns every word vector into a vector of head_size numbers, in long and in short sentences."""
    B, C, D, block_size = 3, 20, 5, 7
    head = a_head(student, C, D, block_size)
    for T in (block_size, 2):
        checks.shape(head(torch.randn(B, T, C)), (B, T, D), f"the output for {T} words")


@task("head", 0.35, forbids=READY_MADE)
def test_first_word_hears_only_itself(student):
    """The first word has no word before it, so its output is its own value."""
    B, T, C, D = 2, 7, 11, 5
    head = a_head(student, C, D, T)
    head.eval()
    x = torch.randn(B, T, C)
    own_value = x[:, 0] @ head.value.weight.T  # (B, D)
    first_output = checks.tensor(head(x), "the output")[:, 0]  # (B, D)
    checks.close(first_output, own_value, "the first word's output", axes=("batch", "number"), atol=1e-5)


@task("head", 0.75, forbids=READY_MADE)
def test_too_long_a_sentence_is_refused(student):
    """A sentence longer than block_size is a ValueError that says how long it is and what fits."""
    C, D, block_size = 11, 3, 5
    head = a_head(student, C, D, block_size)
    for training in (True, False):
        checks.raises(ValueError, head.train(training), torch.randn(2, 6, C), naming=("block_size", 5, 6))
