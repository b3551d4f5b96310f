"""Masked heads: the tests that only graders see."""

import random

import pytest
import torch
from torch.nn import functional as F

from autograder import checks

by_hand = pytest.mark.forbids(
    "torch.nn.functional.scaled_dot_product_attention",
    "torch.nn.functional.multi_head_attention_forward",
    "torch.nn.MultiheadAttention",
    "torch._scaled_dot_product_attention_math",
    "torch._scaled_dot_product_flash_attention_for_cpu",
    "torch._native_multi_head_attention",
)


def notes(*leading, T=5, S=7, D=4, E=3, dtype=torch.float32):
    """Fresh questions, keys and values: (..., T, D), (..., S, D), (..., S, E)."""
    sizes = ((T, D), (S, D), (S, E))
    return tuple(torch.randn(*leading, *size, dtype=dtype) for size in sizes)


def somebody_to_hear(*shape):
    """A random boolean mask in which every listener (row) may hear somebody, and some may not hear all."""
    mask = torch.rand(*shape) < 0.6
    speaker = torch.randint(shape[-1], shape[:-1])
    return mask.scatter(-1, speaker[..., None], True)


def same_answer(student, reference, q, k, v, mask=None, atol=1e-5):
    """Both give the same weights and the same output."""
    outer = {2: (), 3: ("batch",), 4: ("batch", "head")}[q.ndim]
    expected_output, expected_weights = reference.attention(q, k, v, mask)
    output, weights = student.attention(q, k, v, mask)
    checks.close(weights, expected_weights, "the weights", axes=(*outer, "listener", "speaker"), atol=atol)
    checks.close(output, expected_output, "the output", axes=(*outer, "listener", "number"), atol=atol)


def same_gradients(student, reference, mask):
    """Both send the same gradients from the output to questions, keys and values."""

    def output_of(module):
        return lambda q, k, v: module.attention(q, k, v, mask)[0]

    qkv = notes(3)
    checks.gradients_close(output_of(student), output_of(reference), *qkv, what="the gradient", atol=1e-5)


def shares_follow_the_mask(student, q, k, v, mask):
    """Who may be heard has a share and nobody else; each listener's shares make one whole, or nothing."""
    allowed = mask.expand(*q.shape[:-1], k.shape[-2])
    axes = ("batch", "head", "listener", "speaker")
    output, weights = student.attention(q, k, v.clone(), mask.clone())  # whose answer may not change the question
    checks.shape(weights, tuple(allowed.shape), "the weights")
    checks.finite(weights, "the weights", axes=axes)
    checks.equal(weights > 0, allowed, "the table of who has a share", axes=axes)
    whole = allowed.any(dim=-1).to(weights.dtype)
    checks.close(weights.sum(dim=-1), whole, "the sum of the shares", axes=axes[:-1])
    checks.close(output, weights.to(v.dtype) @ v, "the output", axes=(*axes[:-1], "number"), atol=1e-5)


def twins(student, reference, C, D, block_size):
    """The student's head and the solution's, with the same random weights."""
    expected = checks.randomize(reference.Head(C, D, block_size)).eval()
    head = student.Head(C, D, block_size)
    head.eval()
    checks.copy_parameters(expected, head)
    return head, expected


def some_head(student, C, D, block_size):
    """The student's head with random weights, the same ones in whatever order its matrices were made."""
    head = checks.randomize(student.Head(C, D, block_size))
    head.eval()
    return head


# Part 1: the causal mask


@pytest.mark.part("mask")
@pytest.mark.points(1)
@pytest.mark.needs("test_mask_is_a_table_of_booleans")
def test_mask_of_any_length(student, reference):
    """The mask is right for one word, for a few and for many."""
    for T in (1, random.randint(4, 9), random.randint(30, 60)):
        checks.equal(student.causal_mask(T), reference.causal_mask(T), f"causal_mask({T})")


@pytest.mark.part("mask")
@pytest.mark.points(1)
@pytest.mark.needs("test_mask_is_a_table_of_booleans")
def test_mask_makes_pytorch_causal(student):
    """In PyTorch's own attention, the mask lets nobody hear the future and all hear their whole past."""
    T = 7
    q, k, v = notes(2, T=T, S=T)
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    actual = F.scaled_dot_product_attention(q, k, v, attn_mask=student.causal_mask(T))
    checks.close(actual, expected, "PyTorch's output under your mask")


# Part 2: scaled dot-product attention


@by_hand
@pytest.mark.part("attention")
@pytest.mark.points(0.5)
@pytest.mark.needs("test_attention_shapes")
def test_attention_without_a_mask(student, reference):
    """Without a mask all hear all: weights and output are those of the formula."""
    q, k, v = notes(3)
    same_answer(student, reference, q, k, v)


@by_hand
@pytest.mark.part("attention")
@pytest.mark.points(1)
@pytest.mark.needs("test_attention_shapes")
def test_attention_with_a_mask(student, reference):
    """Under a mask, forbidden speakers have no share and the others share the whole."""
    q, k, v = notes(3, D=11, E=2)
    same_answer(student, reference, q, k, v, somebody_to_hear(5, 7))


@by_hand
@pytest.mark.part("attention")
@pytest.mark.points(0.5)
@pytest.mark.needs("test_attention_without_a_mask", "test_attention_with_a_mask")
def test_attention_equals_pytorch(student, reference):
    """The output is the same as that of PyTorch's finished attention, with a mask and without."""
    for mask in (None, somebody_to_hear(2, 3, 7, 5)):
        q, k, v = notes(2, 3, T=7, S=5, D=11, E=13)
        expected = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        assert torch.allclose(reference.attention(q, k, v, mask)[0], expected, atol=1e-5)
        output, _ = student.attention(q, k, v, mask)
        checks.close(output, expected, "the output", atol=1e-5)


@by_hand
@pytest.mark.part("attention")
@pytest.mark.points(0.5)
@pytest.mark.needs("test_attention_shapes")
def test_one_mask_serves_many(student):
    """A smaller mask (one for all sentences, all heads or all listeners) is spread over the rest."""
    for shape in ((5, 7), (1, 7), (3, 1, 5, 7), (3, 1, 1, 7), (2, 5, 7)):
        q, k, v = notes(3, 2)
        shares_follow_the_mask(student, q, k, v, somebody_to_hear(*shape))


@by_hand
@pytest.mark.part("attention")
@pytest.mark.points(0.5)
@pytest.mark.needs("test_attention_shapes")
def test_huge_scores_stay_finite(student, reference):
    """Scores of plus and minus ten thousand give shares, not NaN, and a forbidden speaker stays unheard."""
    all_may_speak = None
    only_low_scores = torch.tensor([False, True, False, True, False])
    only_the_lowest = torch.tensor([False, True, False, False, False])
    for mask in (all_may_speak, only_low_scores, only_the_lowest):
        q, k, v = notes(T=3, S=5, D=4)
        q[:, 0], q[2] = torch.tensor([200.0, -200.0, 0.0]), 0.0  # the last listener does not mind
        k[:, 0] = torch.tensor([100.0, -100.0, 50.0, -30.0, 0.0])  # scores from -10,000 to 10,000
        same_answer(student, reference, q, k, v, mask, atol=1e-5)


@by_hand
@pytest.mark.part("attention")
@pytest.mark.points(0.25)
@pytest.mark.needs("test_nobody_to_hear_is_silence")
def test_silence_does_not_spread(student):
    """Listeners who may hear nobody get zeros, and everybody else still shares out the whole."""
    q, k, v = notes(2, 3)
    mask = somebody_to_hear(2, 1, 5, 7)
    mask[0, 0, random.randrange(5)] = False
    mask[1] = False
    shares_follow_the_mask(student, q, k, v, mask)


@by_hand
@pytest.mark.part("attention")
@pytest.mark.points(0.25)
@pytest.mark.needs("test_attention_shapes")
def test_attention_leaves_its_inputs_alone(student):
    """Attention reads its inputs and changes none of them."""
    checks.input_untouched(student.attention, *notes(2), somebody_to_hear(5, 7))


@by_hand
@pytest.mark.part("attention")
@pytest.mark.points(0.25)
@pytest.mark.needs("test_attention_shapes")
def test_attention_answers_in_the_number_type_of_its_inputs(student):
    """Output and weights have the number type of questions, keys and values, in float32 and in float64."""
    mask = somebody_to_hear(5, 7)
    for dtype in (torch.float32, torch.float64):
        output, weights = student.attention(*notes(2, dtype=dtype), mask)
        checks.dtype(output, dtype, "the output")
        checks.dtype(weights, dtype, "the weights")


@by_hand
@pytest.mark.part("attention")
@pytest.mark.points(0.5)
@pytest.mark.needs("test_attention_with_a_mask")
def test_attention_can_be_learnt_from(student, reference):
    """Questions, keys and values all receive the gradients that the formula gives them."""
    same_gradients(student, reference, somebody_to_hear(5, 7))


@by_hand
@pytest.mark.part("attention")
@pytest.mark.points(0.25)
@pytest.mark.needs("test_silence_does_not_spread", "test_attention_can_be_learnt_from")
def test_silence_sends_no_nan_back(student, reference):
    """Where somebody may hear nobody, the gradients are those of the formula, too, and none of them is NaN."""
    mask = somebody_to_hear(3, 5, 7)
    mask[0, random.randrange(5)] = False
    mask[1] = False
    same_gradients(student, reference, mask)


# Part 3: one masked head


@by_hand
@pytest.mark.part("head")
@pytest.mark.points(0.5)
def test_head_learns_three_matrices(student):
    """A head learns three matrices, key, query and value, and nothing else."""
    C, D = random.choice((11, 13)), random.choice((3, 5))
    head = student.Head(C, D, 7)
    checks.parameters(head, {"key.weight": (D, C), "query.weight": (D, C), "value.weight": (D, C)})


@by_hand
@pytest.mark.part("head")
@pytest.mark.points(0.5)
def test_head_keeps_its_mask_as_a_buffer(student):
    """The mask that the head reads moves with the head, and the optimiser never sees it."""
    checks.buffers_follow(student.Head(11, 3, 7))
    head = some_head(student, 11, 3, 7)
    x = torch.randn(2, 7, 11)
    before = checks.tensor(head(x), "the output")
    with torch.no_grad():
        for buffer in head.buffers():
            if buffer.ndim:
                buffer.copy_(buffer.flip(-1))
    after = checks.tensor(head(x), "the output")
    checks.true(
        not torch.allclose(after, before),
        "The head owns a buffer, but forward does not read it: with another buffer the output is the same.",
    )


@by_hand
@pytest.mark.part("head")
@pytest.mark.points(0.75)
@pytest.mark.needs("test_head_shapes")
def test_head_with_the_same_weights(student, reference):
    """With the solution's weights, the head gives the solution's output, in long and short sentences."""
    B, C, D, block_size = 3, 20, 5, 7
    head, expected = twins(student, reference, C, D, block_size)
    for T in (block_size, 4, 1):
        x = torch.randn(B, T, C)
        checks.close(head(x), expected(x), f"the output for {T} words", atol=1e-5)


@by_hand
@pytest.mark.part("head")
@pytest.mark.points(0.25)
@pytest.mark.needs("test_head_shapes")
def test_a_sentence_alone_is_a_batch_of_one(student):
    """A sentence gets the same answer alone, as a batch of one, and among others."""
    head = some_head(student, 11, 3, 7)
    checks.batch_invariant(head, torch.randn(3, 5, 11), atol=1e-5)


@by_hand
@pytest.mark.part("head")
@pytest.mark.points(0.5)
@pytest.mark.needs("test_head_shapes")
def test_future_words_change_nothing(student):
    """Cutting off the end of a sentence changes nothing for the words before the cut."""
    head = some_head(student, 11, 3, 7)
    checks.prefix_invariant(head, torch.randn(2, 7, 11), atol=1e-5)


@by_hand
@pytest.mark.part("head")
@pytest.mark.points(0.5)
@pytest.mark.needs("test_head_shapes")
def test_every_word_reacts_to_its_whole_past(student):
    """Each word's output reacts to itself and to every earlier word, and to no later one."""
    head = some_head(student, 13, 5, 7)
    checks.causal_by_gradient(head, torch.randn(2, 7, 13))


@by_hand
@pytest.mark.part("head")
@pytest.mark.points(0.25)
@pytest.mark.needs("test_head_shapes")
def test_head_is_steady(student):
    """Asked twice, the head answers the same, in training as well, and leaves the word vectors as they were."""
    head = some_head(student, 13, 3, 5)
    x = torch.randn(2, 5, 13)
    checks.deterministic_in_eval(head, x)
    checks.input_untouched(head, x)
    answer = checks.tensor(head(x), "the output")
    head.train()
    checks.close(head(x), answer, "the output in training", atol=1e-5)


@by_hand
@pytest.mark.part("head")
@pytest.mark.points(0.25)
@pytest.mark.needs("test_head_with_the_same_weights")
def test_all_three_matrices_learn(student, reference):
    """Key, query and value all receive the gradients that the solution's receive."""
    head, expected = twins(student, reference, 13, 3, 5)
    checks.parameter_gradients_close(head, expected, torch.randn(2, 5, 13), atol=1e-5)
