"""Rotary positions: the tests that come with the assignment."""

import pytest
import torch

from autograder import checks

# Part 1: turning pairs


@pytest.mark.part("rotation")
@pytest.mark.points(0.25)
def test_result_has_the_shape_of_the_input(student):
    """The result has the shape of the input, whether that is one sentence or a batch of them."""
    T, D = 5, 6
    for leading in ((), (3,)):
        x = torch.randn(*leading, T, D)
        checks.shape(student.rope(x), (*leading, T, D), f"the result for an input of shape {tuple(x.shape)}")


@pytest.mark.part("rotation")
@pytest.mark.points(0.25)
@pytest.mark.needs("test_result_has_the_shape_of_the_input")
def test_heads_of_a_batch_are_turned_as_if_alone(student):
    """A batch with heads keeps its shape, and each head is turned as if it were alone."""
    x = torch.randn(2, 5, 7, 6).transpose(1, 2)  # (B, H, T, D), laid out as in (B, T, H, D)
    turned = student.rope(x)
    checks.shape(turned, (2, 7, 5, 6), "the result for an input of shape (2, 7, 5, 6)")
    head = checks.tensor(turned)[1, 3]  # (T, D)
    alone = student.rope(x[1, 3].clone())  # (T, D)
    checks.close(alone, head, "head 3 of row 1 alone", axes=("position", "number"), atol=1e-5)


@pytest.mark.part("rotation")
@pytest.mark.points(1)
@pytest.mark.needs("test_result_has_the_shape_of_the_input")
def test_two_vectors_worked_by_hand(student):
    """At position 1 the first pair turns by 1 radian and the second one by 0.01, both counter-clockwise."""
    axes = ("position", "number")
    x = torch.tensor([[1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 1.0, 0.0]])  # (T, D)
    expected = torch.tensor([[1.0, 0.0, 1.0, 0.0], [0.540302, 0.841471, 0.999950, 0.010000]])
    checks.close(student.rope(x), expected, "the result for (1, 0, 1, 0)", axes=axes, atol=1e-5)
    x = torch.tensor([[0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0]])  # (T, D)
    expected = torch.tensor([[0.0, 1.0, 0.0, 1.0], [-0.841471, 0.540302, -0.010000, 0.999950]])
    checks.close(student.rope(x), expected, "the result for (0, 1, 0, 1)", axes=axes, atol=1e-5)


@pytest.mark.part("rotation")
@pytest.mark.points(0.25)
@pytest.mark.needs("test_result_has_the_shape_of_the_input")
def test_turning_keeps_the_length(student):
    """Every vector is as long after turning as before."""
    x = torch.randn(3, 7, 10)  # (B, T, D)
    turned = checks.tensor(student.rope(x), "the result")
    checks.close(turned.norm(dim=-1), x.norm(dim=-1), "the length", axes=("batch", "position"), atol=1e-4)


@pytest.mark.part("rotation")
@pytest.mark.points(0.25)
def test_a_number_without_a_partner_is_refused(student):
    """An odd number of features is a ValueError that names D and its value."""
    checks.raises(ValueError, student.rope, torch.randn(3, 7), naming=("D", 7))


# Part 2: only the distance counts


@pytest.mark.part("distance")
@pytest.mark.points(0.5)
@pytest.mark.needs("test_result_has_the_shape_of_the_input")
def test_score_of_two_clock_hands(student):
    """One and the same clock hand at seats m and n gives the score cos(m - n)."""
    T = 5
    hands = student.rope(torch.tensor([[1.0, 0.0]]).repeat(T, 1))  # (T, 2)
    hands = checks.tensor(hands, "the result")
    seats = torch.arange(T)
    expected = torch.cos((seats[:, None] - seats).float())  # (T, T)
    checks.close(hands @ hands.T, expected, "the table of scores", axes=("m", "n"), atol=1e-5)


@pytest.mark.part("distance")
@pytest.mark.points(0.5)
@pytest.mark.needs("test_result_has_the_shape_of_the_input")
def test_sentence_may_begin_at_another_seat(student):
    """A word at position 5 is turned as the word at position 5 of a longer sentence."""
    word = torch.randn(4)
    long = student.rope(word.repeat(7, 1))  # (7, D): the same word on seats 0 to 6
    alone = student.rope(word.unsqueeze(0), torch.tensor([5]))  # (1, D)
    expected = checks.tensor(long, "the result")[5:6]
    checks.close(alone, expected, "the word at position 5", axes=("word", "number"), atol=1e-5)


# Part 3: the other pairing


@pytest.mark.part("halves")
@pytest.mark.points(0.5)
@pytest.mark.needs("test_result_has_the_shape_of_the_input")
def test_halves_worked_by_hand(student):
    """With interleaved=False, number 0 turns with number 2 and number 1 with number 3 when there are four."""
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]])  # (T, D)
    expected = torch.tensor([[1.0, 2.0, 3.0, 4.0], [-1.984111, 1.959901, 2.462378, 4.019800]])
    result = student.rope(x, interleaved=False)
    checks.close(result, expected, "the result for (1, 2, 3, 4)", axes=("position", "number"), atol=1e-5)
