"""Rotary positions: the tests that come with the assignment."""

import torch

from autograder import checks, task

AXES = ("batch", "position", "number")


def rope_of(student, x, *arguments, **options):
    """The result for x, with one more axis in front where x has too few: how many there may be has tests of its own."""
    try:
        return student.rope(x, *arguments, **options)
    except (ValueError, IndexError):
        return checks.tensor(student.rope(x[None], *arguments, **options), "the result")[0]


def turned(student, x, *arguments, **options):
    """The checked result for x, whose number of axes is not what is tested."""
    return different_everywhere(x, rope_of(student, x.clone(), *arguments, **options))


def different_everywhere(x, result):
    """The result for x as a plain tensor, once it is clear that something was turned, and not everything alike."""
    result = checks.tensor(result, "the result")
    checks.shape(result, tuple(x.shape), f"the result for an input of shape {tuple(x.shape)}")
    later = result[..., 1:, :]
    checks.true(not torch.equal(later, x[..., 1:, :]), "Nothing was turned: the result is the input.")
    checks.true(not torch.equal(later, result[..., :-1, :]), "The result is the same at every position.")
    return result


# Part 1: turning pairs


@task("rotation", 0.25)
def test_one_sentence_or_a_batch(student):
    """The result has the shape of the input, and a sentence of shape (T, D) is turned as in a batch (B, T, D)."""
    x = torch.randn(3, 5, 6)  # (B, T, D)
    batch = different_everywhere(x, student.rope(x.clone()))
    alone = different_everywhere(x[1], student.rope(x[1].clone()))  # (T, D)
    checks.close(alone, batch[1], "sentence 1 alone", axes=AXES[1:], atol=1e-5)


@task("rotation", 0.5)
def test_heads_of_a_batch_are_turned_as_if_alone(student):
    """A batch with heads keeps its shape, and each head is turned as if it were alone."""
    x = torch.randn(2, 5, 7, 6).transpose(1, 2)  # (B, H, T, D), laid out as in (B, T, H, D)
    head = different_everywhere(x, student.rope(x.clone()))[1, 3:4]  # (1, T, D)
    alone = turned(student, x[1, 3:4].clone())  # (1, T, D)
    checks.close(alone, head, "head 3 of row 1 alone", axes=AXES, atol=1e-5)


@task("rotation", 0.5)
def test_two_vectors_worked_by_hand(student):
    """At position 1 the first pair turns by 1 radian and the second one by 0.01, both counter-clockwise."""
    x = torch.tensor([[[1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 1.0, 0.0]]])  # (1, T, D)
    expected = torch.tensor([[[1.0, 0.0, 1.0, 0.0], [0.540302, 0.841471, 0.999950, 0.010000]]])
    checks.close(rope_of(student, x), expected, "the result for (1, 0, 1, 0)", axes=AXES, atol=1e-5)
    x = torch.tensor([[[0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0]]])  # (1, T, D)
    expected = torch.tensor([[[0.0, 1.0, 0.0, 1.0], [-0.841471, 0.540302, -0.010000, 0.999950]]])
    checks.close(rope_of(student, x), expected, "the result for (0, 1, 0, 1)", axes=AXES, atol=1e-5)


@task("rotation", 0.75)
def test_turning_keeps_the_length(student):
    """Every vector is as long after turning as before."""
    x = torch.randn(3, 7, 10)  # (B, T, D)
    lengths = turned(student, x).norm(dim=-1)
    checks.close(lengths, x.norm(dim=-1), "the length", axes=AXES[:2], atol=1e-4)


@task("rotation", 0.25)
def test_a_number_without_a_partner_is_refused(student):
    """An odd number of features is a ValueError that names D and its value."""
    checks.raises(ValueError, student.rope, torch.randn(2, 3, 7), naming=("D", 7))


# Part 2: only the distance counts


@task("distance", 0.25)
def test_score_of_two_clock_hands(student):
    """One and the same clock hand at positions m and n gives the score cos(m - n)."""
    T = 5
    hands = turned(student, torch.tensor([[[1.0, 0.0]]]).repeat(1, T, 1))[0]  # (T, 2)
    positions = torch.arange(T)
    expected = torch.cos((positions[:, None] - positions).float())  # (T, T)
    checks.close(hands @ hands.T, expected, "the table of scores", axes=("m", "n"), atol=1e-5)


@task("distance", 0.5)
def test_sentence_may_begin_at_another_position(student):
    """A word at position 5 is turned as the word at position 5 of a longer sentence."""
    word = torch.randn(1, 1, 4)  # (1, 1, D)
    long = turned(student, word.repeat(1, 7, 1))  # (1, 7, D): the same word at positions 0 to 6
    alone = rope_of(student, word, torch.tensor([5]))  # (1, 1, D)
    checks.close(alone, long[:, 5:6], "the word at position 5", axes=AXES, atol=1e-5)


# Part 3: the other pairing


@task("halves", 0.25)
def test_halves_worked_by_hand(student):
    """With interleaved=False, number 0 turns with number 2 and number 1 with number 3 when there are four."""
    x = torch.tensor([[[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]]])  # (1, T, D)
    expected = torch.tensor([[[1.0, 2.0, 3.0, 4.0], [-1.984111, 1.959901, 2.462378, 4.019800]]])
    result = rope_of(student, x, interleaved=False)
    checks.close(result, expected, "the result for (1, 2, 3, 4)", axes=AXES, atol=1e-5)
