"""Rotary positions: the tests that only graders see."""

import random

import pytest
import torch
from torch.nn import functional as F

from autograder import checks

AXES = ("batch", "position", "number")


def same_result(student, reference, x, what="the result", atol=1e-4, **options):
    """Both turn x in the same way."""
    expected = reference.rope(x.clone(), **options)
    checks.close(student.rope(x.clone(), **options), expected, what, axes=AXES[-x.ndim :], atol=atol)


def scores(student, query, key, T, **options):
    """The score of one query and one key at every pair of T neighbouring seats: (T, T)."""
    together = torch.stack([query, key])[:, None].repeat(1, T, 1)  # (2, T, D)
    q, k = checks.tensor(student.rope(together, **options), "the result")
    return q @ k.T  # (T, T)


def distance_alone_counts(student, T, D, what="the table of scores", **options):
    """Each diagonal of the score table holds one number, and not all diagonals hold the same."""
    query, key = torch.randn(2, D, dtype=torch.float64)
    table = scores(student, query, key, T, **options)
    checks.close(table[1:, 1:], table[:-1, :-1], f"{what} one seat further back", axes=("m", "n"), atol=1e-4)
    spread = table.max() - table.min()
    checks.true(
        spread > 1e-3 * query.norm() * key.norm(),
        "The score is the same at every distance: near and far cannot be told apart.",
    )


# Part 1: turning pairs


@pytest.mark.part("rotation")
@pytest.mark.points(0.75)
@pytest.mark.needs("test_result_has_the_shape_of_the_input")
def test_any_vectors_are_turned_as_the_formula_says(student, reference):
    """Random vectors are turned as the formula says, for many sizes, alone and in a batch."""
    for shape in ((7, 10), (2, 5, 6), (3, 11, 4), (13, 2)):
        same_result(student, reference, torch.randn(*shape, dtype=torch.float64))


@pytest.mark.part("rotation")
@pytest.mark.points(0.5)
@pytest.mark.needs("test_result_has_the_shape_of_the_input")
def test_base_sets_the_speeds(student, reference):
    """Another base gives the hands other speeds."""
    for base in (100.0, random.uniform(500, 900), 500_000.0):
        x = torch.randn(7, 8, dtype=torch.float64)
        same_result(student, reference, x, f"the result with base={base:g}", base=base)


@pytest.mark.part("rotation")
@pytest.mark.points(0.5)
@pytest.mark.needs("test_result_has_the_shape_of_the_input")
def test_first_position_stays_as_it_is(student):
    """At position 0 nothing is turned."""
    for interleaved in (True, False):
        x = torch.randn(3, 5, 6, dtype=torch.float64)
        first = checks.tensor(student.rope(x.clone(), interleaved=interleaved), "the result")[..., 0, :]
        checks.close(first, x[..., 0, :], "the first word", axes=("batch", "number"))


@pytest.mark.part("rotation")
@pytest.mark.points(0.25)
@pytest.mark.needs("test_result_has_the_shape_of_the_input")
def test_input_and_number_type_are_kept(student):
    """The input keeps its values, and the result has its number type."""
    for dtype in (torch.float32, torch.float64):
        for interleaved in (True, False):
            inputs = torch.randn(2, 5, 6, dtype=dtype), torch.arange(3, 8), 10000.0, interleaved
            checks.input_untouched(student.rope, *inputs)
            checks.dtype(student.rope(*inputs), dtype, "the result")


@pytest.mark.part("rotation")
@pytest.mark.points(0.25)
@pytest.mark.needs("test_result_has_the_shape_of_the_input")
def test_small_number_types_come_back(student):
    """Queries in float16 or bfloat16 are turned, too, and keep their number type."""
    for dtype in (torch.float16, torch.bfloat16):
        for interleaved in (True, False):
            x = torch.randn(2, 5, 6).to(dtype)
            checks.dtype(student.rope(x, interleaved=interleaved), dtype, "the result")


@pytest.mark.part("rotation")
@pytest.mark.points(0.25)
@pytest.mark.needs("test_any_vectors_are_turned_as_the_formula_says")
def test_angles_keep_their_digits(student, reference):
    """A long sentence in bfloat16 is turned by the right angles up to its last word, within its few digits."""
    x = torch.randn(303, 6).to(torch.bfloat16)  # (T, D)
    expected = reference.rope(x.double())
    turned = checks.tensor(student.rope(x.clone()), "the result").double()
    checks.close(turned, expected, "the result for a long sentence", axes=("position", "number"), atol=0.15)


@pytest.mark.part("rotation")
@pytest.mark.points(0.5)
@pytest.mark.needs("test_any_vectors_are_turned_as_the_formula_says")
def test_gradients_are_turned_back(student, reference):
    """A model can learn through the turning: gradients reach every number of the input."""
    x = torch.randn(2, 7, 6, dtype=torch.float64)
    checks.gradients_close(student.rope, reference.rope, x, atol=1e-4)


# Part 2: only the distance counts


@pytest.mark.part("distance")
@pytest.mark.points(0.5)
@pytest.mark.needs("test_result_has_the_shape_of_the_input")
def test_score_depends_on_the_distance_alone(student):
    """The score of a query and a key depends on how far apart they sit, and on nothing else about their seats."""
    for D in (2, 6, 10):
        distance_alone_counts(student, 11, D)


@pytest.mark.part("distance")
@pytest.mark.points(0.5)
@pytest.mark.needs("test_result_has_the_shape_of_the_input")
def test_given_positions_are_honoured(student, reference):
    """Each row is turned as its own position says: from a later seat on, with gaps, or in any order."""
    for seats in (torch.tensor([0, 2, 3, 7, 11]), torch.arange(5) + random.randint(3, 30), torch.randperm(5)):
        x = torch.randn(3, 5, 6, dtype=torch.float64)
        what = f"the result at positions {seats.tolist()}"
        same_result(student, reference, x, what, positions=seats)


@pytest.mark.part("distance")
@pytest.mark.points(0.25)
@pytest.mark.needs("test_given_positions_are_honoured")
def test_words_may_share_a_seat(student, reference):
    """Positions that are given hold even when all words sit at the same one, be it the very first."""
    for seat in (0, random.randint(2, 9)):
        x = torch.randn(3, 5, 6, dtype=torch.float64)
        seats = torch.full((5,), seat)
        same_result(student, reference, x, f"the result at positions {seats.tolist()}", positions=seats)


@pytest.mark.part("distance")
@pytest.mark.points(0.25)
@pytest.mark.needs("test_given_positions_are_honoured")
def test_there_is_no_last_seat(student, reference):
    """Words that sit thousands of seats back are turned by their own positions, too."""
    seats = torch.arange(5) + random.randint(9_000, 10_000)
    x = torch.randn(3, 5, 6, dtype=torch.float64)
    same_result(student, reference, x, "the result at far positions", atol=0.05, positions=seats)


@pytest.mark.part("distance")
@pytest.mark.points(0.5)
@pytest.mark.needs("test_given_positions_are_honoured")
def test_moving_a_sentence_leaves_attention_alone(student):
    """When a whole sentence moves to later seats, attention over it answers as before."""
    q, k, v = torch.randn(3, 2, 7, 10, dtype=torch.float64)  # (B, T, D)
    answers = []
    for seats in (torch.arange(7), torch.arange(7) + random.randint(11, 19)):
        turned = student.rope(q.clone(), seats), student.rope(k.clone(), seats)
        answers.append(F.scaled_dot_product_attention(*turned, v))  # values are not turned
    checks.close(answers[1], answers[0], "attention's output after the move", axes=AXES, atol=1e-4)


# Part 3: the other pairing


@pytest.mark.part("halves")
@pytest.mark.points(0.5)
@pytest.mark.needs("test_result_has_the_shape_of_the_input")
def test_halves_are_turned_as_the_formula_says(student, reference):
    """With interleaved=False number i turns with number i + D/2, as the formula says, with any base."""
    for shape in ((7, 10), (2, 5, 6), (3, 5, 4)):
        x = torch.randn(*shape, dtype=torch.float64)
        same_result(student, reference, x, interleaved=False)
        same_result(student, reference, x, base=300.0, interleaved=False)


@pytest.mark.part("halves")
@pytest.mark.points(0.25)
def test_odd_halves_are_refused(student):
    """With interleaved=False, too, an odd number of features is a ValueError that names D and its value."""
    what = "the call with an odd number of features, in halves,"
    checks.raises(ValueError, student.rope, torch.randn(3, 7), interleaved=False, naming=("D", 7), what=what)


@pytest.mark.part("halves")
@pytest.mark.points(0.25)
@pytest.mark.needs("test_result_has_the_shape_of_the_input")
def test_halves_keep_lengths_and_distances(student):
    """With interleaved=False, too, lengths are kept and only the distance counts."""
    x = torch.randn(3, 7, 10, dtype=torch.float64)
    turned = checks.tensor(student.rope(x, interleaved=False), "the result")
    checks.close(turned.norm(dim=-1), x.norm(dim=-1), "the length", axes=("batch", "position"), atol=1e-4)
    distance_alone_counts(student, 7, 6, interleaved=False)


@pytest.mark.part("halves")
@pytest.mark.points(0.5)
@pytest.mark.needs("test_result_has_the_shape_of_the_input")
def test_pairings_differ_by_a_reordering(student):
    """Reordered from neighbours to halves, turned and put back, a vector is as if turned by neighbours."""
    D = 10
    order = torch.cat([torch.arange(0, D, 2), torch.arange(1, D, 2)])  # (D,)
    x, seats = torch.randn(2, 7, D, dtype=torch.float64), torch.arange(7) + random.randint(2, 9)
    neighbours = checks.tensor(student.rope(x.clone(), seats, interleaved=True), "the result")
    halves = student.rope(x[..., order], seats, interleaved=False)
    same = neighbours[..., order]
    checks.close(halves, same, "the halves", axes=("batch", "position", "number"), atol=1e-4)
    apart = (checks.tensor(student.rope(x.clone(), seats, interleaved=False)) - neighbours).abs().max()
    checks.true(apart > 1e-3, "Both pairings give the same result; they should not.")
