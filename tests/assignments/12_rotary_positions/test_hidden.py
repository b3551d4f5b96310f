"""Rotary positions: the tests that only graders see.

Only the tests of the formula compare with the solution; the others compare the function with itself, so that a wrong
speed or direction is paid for once.
"""

import random

import torch
from torch.nn import functional as F

from autograder import checks, task

AXES = ("batch", "position", "number")


def rope_of(student, x, *arguments, **options):
    """The result for x, with one more axis in front where x has too few: how many there may be has tests of its own."""
    try:
        return student.rope(x, *arguments, **options)
    except (ValueError, IndexError):
        return checks.tensor(student.rope(x[None], *arguments, **options), "the result")[0]


def turned(student, x, *arguments, **options):
    """The checked result for x."""
    return different_everywhere(x, rope_of(student, x.clone(), *arguments, **options))


def different_everywhere(x, result):
    """The result for x as a plain tensor, once it is clear that something was turned, and not everything alike."""
    result = checks.tensor(result, "the result")
    checks.shape(result, tuple(x.shape), "the result", axes=("B", "T", "D"))
    later = result[..., 1:, :]
    checks.true(not torch.equal(later, x[..., 1:, :]), "Nothing was turned: the result is the input.")
    checks.true(not torch.equal(later, result[..., :-1, :]), "The result is the same at every position.")
    return result


def same_result(student, reference, x, what="the result", **options):
    """Both turn x, whose positions are 0, 1, …, in the same way."""
    options["positions"] = torch.arange(x.shape[-2])
    expected = reference.rope(x.clone(), **options)
    checks.close(rope_of(student, x.clone(), **options), expected, what, axes=AXES, atol=1e-4)


def distance_alone_counts(student, T, D, **options):
    """Each diagonal of the score table of one query and one key holds one number, and not all hold the same."""
    query, key = torch.randn(2, D, dtype=torch.float64)
    together = torch.stack([query, key])[:, None].repeat(1, T, 1)  # (2, T, D)
    q, k = turned(student, together, **options)
    table = q @ k.T  # (T, T)
    what = "the table of scores one position further back"
    checks.close(table[1:, 1:], table[:-1, :-1], what, axes=("m", "n"), atol=1e-4)
    spread = table.max() - table.min()
    checks.true(
        spread > 1e-3 * query.norm() * key.norm(),
        "The score is the same at every distance: near and far cannot be told apart.",
    )


# Part 1: turning pairs


@task("rotation", 0.5, promise="Pair i at position p is rotated counter-clockwise by p * base^(-2i / D).")
def test_any_vectors_are_turned_as_the_formula_says(student, reference):
    """Random vectors are turned as the formula says, for many sizes."""
    for shape in ((1, 7, 10), (3, 11, 6), (5, 13, 2)):
        same_result(student, reference, torch.randn(*shape, dtype=torch.float64))


@task("rotation", 0.25, promise="Pair i at position p is rotated counter-clockwise by p * base^(-2i / D).")
def test_base_sets_the_speeds(student, reference):
    """Another base gives the hands other speeds."""
    for base in (random.uniform(100, 900), 500_000.0):
        x = torch.randn(3, 7, 8, dtype=torch.float64)
        same_result(student, reference, x, f"the result with base={base:g}", base=base)


@task("rotation", 0.25, promise="At position 0 nothing happens at all.")
def test_first_position_stays_as_it_is(student):
    """At position 0 nothing is turned, in either pairing."""
    for interleaved in (True, False):
        x = torch.randn(3, 5, 6, dtype=torch.float64)
        first = turned(student, x, interleaved=interleaved)[:, 0]
        checks.close(first, x[:, 0], "the first word", axes=("batch", "number"))


@task("rotation", 0.5, promise=(
    "Returns (..., T, D) with the number type of x",
    "x and positions keep their values",
))
def test_input_and_number_type_are_kept(student):
    """The input and the positions keep their values, and the result has the number type of the input."""
    for dtype in (torch.float32, torch.float64):
        for interleaved in (True, False):
            positions = torch.tensor([7, 3, 4, 11, 5])
            inputs = torch.randn(2, 5, 6, dtype=dtype), positions, 10000.0, interleaved
            result = checks.input_untouched(lambda *given: rope_of(student, *given), *inputs, what="rope")
            checks.dtype(different_everywhere(inputs[0], result), dtype, "the result")


@task("rotation", 0.25, promise="with the number type of x: float64, float32, float16 or bfloat16")
def test_small_number_types_come_back(student):
    """Queries in float16 or bfloat16 are turned, too, and keep their number type."""
    for dtype in (torch.float16, torch.bfloat16):
        for interleaved in (True, False):
            x = torch.randn(2, 5, 6).to(dtype)
            checks.dtype(turned(student, x, interleaved=interleaved), dtype, "the result")


@task("rotation", 0.5,
      promise="compute the angles in float32 or float64, whatever the number type of the queries.")
def test_angles_keep_their_digits(student):
    """A long sentence in bfloat16 is turned as in float64 up to its last word, within its few digits."""
    x = torch.randn(1, 303, 6).to(torch.bfloat16)  # (1, T, D)
    expected = turned(student, x.double())
    few = turned(student, x).double()
    checks.close(few, expected, "the result for a long sentence in bfloat16", axes=AXES, atol=0.15)


@task("rotation", 0.5, promise="gradients flow through.")
def test_gradients_flow_through(student):
    """The gradient of the input is the one of the function itself: a small step changes the result accordingly."""
    x, weight, step = torch.randn(3, 2, 7, 6, dtype=torch.float64)
    x.requires_grad_()
    result = rope_of(student, x)
    checks.shape(result, (2, 7, 6), "the result")
    checks.true(result.requires_grad, "The result is cut off from the input: no gradient can flow back.")
    (gradient,) = torch.autograd.grad((result * weight).sum(), x)
    change = turned(student, (x + step).detach()) - different_everywhere(x, result).detach()
    expected = (change * weight).sum()
    checks.close((gradient * step).sum(), expected, "the change that the gradient predicts", atol=1e-4)


# Part 2: only the distance counts


@task("distance", 0.5,
      promise="each **diagonal** holds one number. And the diagonals *differ* from each other")
def test_score_depends_on_the_distance_alone(student):
    """The score of a query and a key depends on how far apart they stand, and on nothing else about their positions."""
    for D in (2, 10):
        distance_alone_counts(student, 11, D)


@task("distance", 0.75, promise="They need not begin at 0, nor differ from each other, nor be in order")
def test_given_positions_are_honoured(student):
    """Each row is turned as its own position says: from a later position on, with gaps, or in any order."""
    word = torch.randn(3, 1, 6, dtype=torch.float64)
    every = turned(student, word.repeat(1, 40, 1), torch.arange(40))  # one word at positions 0 to 39
    start = random.randint(3, 30)
    for positions in (torch.tensor([7, 2, 11, 0, 3]), torch.arange(5) + start):
        what = f"the result at positions {positions.tolist()}"
        result = rope_of(student, word.repeat(1, 5, 1), positions)
        checks.close(result, every[:, positions], what, axes=AXES, atol=1e-4)


@task("distance", 0.25, promise="They need not begin at 0, nor differ from each other")
def test_words_may_share_a_position(student):
    """Positions that are given hold even when all words stand at the same one, be it the very first."""
    x = torch.randn(3, 5, 6, dtype=torch.float64)
    for position in (0, random.randint(2, 9)):
        positions = torch.full((5,), position)
        alone = rope_of(student, x.reshape(15, 1, 6), positions[:1])  # each word is a sentence
        checks.shape(alone, (15, 1, 6), "the result", axes=("B", "T", "D"))
        expected = checks.tensor(alone, "the result").reshape(3, 5, 6)
        checks.true(not torch.equal(expected[:, 1:], expected[:, :-1]), "Different words are turned into the same.")
        what = f"the result at positions {positions.tolist()}, compared with each word on its own,"
        checks.close(rope_of(student, x.clone(), positions), expected, what, axes=AXES, atol=1e-4)


@task("distance", 0.25, promise="there is no last position.")
def test_there_is_no_last_position(student):
    """Words that stand thousands of positions back have the same scores as at the beginning, and none share a hand."""
    word, far = 1 + torch.rand(1, 1, 6, dtype=torch.float64), random.randint(9_000, 10_000)
    positions = torch.cat([torch.arange(5), torch.arange(5) + far])
    hands = turned(student, word.repeat(1, 10, 1), positions).reshape(2, 5, 6)  # near and far
    tables = hands @ hands.mT  # (2, 5, 5)
    checks.close(tables[1], tables[0], "the table of scores at far positions", axes=("m", "n"), atol=0.05)


@task("distance", 0.5, promise=(
    "turning both by the same angle changes nothing between them.",
    "**Sentences need not begin at 0.**",
))
def test_moving_a_sentence_leaves_attention_alone(student):
    """When a whole sentence moves to later positions, the output of attention stays as it was."""
    q, k, v = torch.randn(3, 2, 7, 10, dtype=torch.float64)  # (B, T, D)
    outputs = []
    for positions in (torch.arange(7), torch.arange(7) + random.randint(11, 19)):
        queries, keys = turned(student, torch.cat([q, k]), positions).to(v.dtype).chunk(2)
        outputs.append(F.scaled_dot_product_attention(queries, keys, v))  # values are not turned
    checks.close(outputs[1], outputs[0], "attention's output after the move", axes=AXES, atol=1e-4)


# Part 3: the other pairing


@task("halves", 0.25, promise=("False pairs i with i + D/2", "every number stays in its own place."))
def test_halves_are_turned_as_the_formula_says(student, reference):
    """With interleaved=False number i turns with number i + D/2, as the formula says, with any base."""
    for shape, base in (((1, 7, 10), 10000.0), ((3, 5, 4), 10000.0), ((3, 5, 4), 300.0)):
        x = torch.randn(*shape, dtype=torch.float64)
        same_result(student, reference, x, base=base, interleaved=False)


@task("halves", 0.25, promise="ValueError that names D and its value if D is odd, in either pairing.")
def test_odd_halves_are_refused(student):
    """With interleaved=False, too, an odd number of features is a ValueError that names D and its value."""
    x, what = torch.randn(2, 3, 7), "the call with an odd number of features, in halves,"
    checks.raises(ValueError, student.rope, x, interleaved=False, naming=("D", 7), what=what)


@task("halves", 0.75, promise=("A rotation keeps lengths", "all properties of Part 2 hold for either"))
def test_halves_keep_lengths_and_distances(student):
    """With interleaved=False, too, lengths are kept and only the distance counts."""
    x = torch.randn(3, 7, 10, dtype=torch.float64)
    lengths = turned(student, x, interleaved=False).norm(dim=-1)
    checks.close(lengths, x.norm(dim=-1), "the length", axes=AXES[:2], atol=1e-4)
    distance_alone_counts(student, 7, 6, interleaved=False)


@task("halves", 0.5, promise=("In both, pair $i$ turns with speed", "every number stays in its own place."))
def test_pairings_differ_by_a_reordering(student):
    """Reordered from neighbours to halves, turned and put back, a vector is as if turned by neighbours."""
    D = 10
    order = torch.cat([torch.arange(0, D, 2), torch.arange(1, D, 2)])  # (D,)
    x, positions = torch.randn(2, 7, D, dtype=torch.float64), torch.arange(7) + random.randint(2, 9)
    neighbours = turned(student, x, positions, interleaved=True)
    both_orders = torch.cat([x[..., order], x])  # (2 B, T, D)
    halves, unordered = turned(student, both_orders, positions, interleaved=False).chunk(2)
    checks.close(halves, neighbours[..., order], "the halves", axes=AXES, atol=1e-4)
    apart = (unordered - neighbours).abs().max()
    checks.true(apart > 1e-3, "Both pairings give the same result; they should not.")
