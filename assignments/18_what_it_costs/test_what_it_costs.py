"""What it costs: the tests that come with the assignment."""

import torch
from torch import tensor

from autograder import checks, task

TOY = {"vocab_size": 5, "n_positions": 7, "n_embd": 3, "n_layer": 2, "n_head": 3}
TOLD = "GPT2Config(vocab_size=5, n_positions=7, n_embd=3, n_layer=2, n_head=3)"
CARD = {"bw": 2e12, "peak": 312e12}
GUESS = tensor([[0.2, 0.5, 0.3]], dtype=torch.float64)
TARGET = tensor([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]], dtype=torch.float64)


def uniforms(*numbers):
    return tensor(numbers, dtype=torch.float64)


def whole(number):
    """A count that came back as a float is the count, too, in tests that do not ask for its type."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def ids(words):
    """Words in a tensor or a tuple are words, too, in tests that do not ask for their type."""
    if isinstance(words, torch.Tensor):
        words = words.tolist()
    return [int(word) for word in words] if isinstance(words, (list, tuple)) else words


# Part 1: operations


@task("flops", 0.5)
def test_a_toy_by_hand(student):
    """A toy of two layers takes 2,232 operations for four tokens."""
    found = student.forward_flops(student.GPT2Config(**TOY), 4)
    checks.equal(whole(found), 2232, f"forward_flops({TOLD}, 4)")


@task("flops", 0.5)
def test_shares_of_a_toy(student):
    """In a layer of the toy, 480 of 1,056 operations are attention's, and 576 feed-forward's."""
    found = checks.unpack(student.shares(student.GPT2Config(**TOY), 4), ("attention", "feed_forward"))
    for name, share, operations in zip(("attention", "feed_forward"), found, (480, 576)):
        checks.close(share, operations / 1056, f"the share of {name}")


@task("flops", 0.25)
def test_training_by_hand(student):
    """1,000 parameters and 7 tokens take 42,000 operations, there and back."""
    checks.equal(whole(student.training_flops(1000, 7)), 42_000, "training_flops(1000, 7)")


# Part 2: bytes or operations


@task("decode", 0.5)
def test_one_word_and_many(student):
    """One word of the text's model takes 7 milliseconds; a step for 624 users without caches takes 28."""
    for users, seconds in ((624, 0.028), (1, 0.007)):
        found = student.decode_seconds(14 * 10**9, 0, users * 14 * 10**9, **CARD)
        checks.close(found, seconds, f"decode_seconds(14 * 10**9, 0, {users} * 14 * 10**9, bw=2e12, peak=312e12)")


@task("decode", 0.5)
def test_where_the_example_turns(student):
    """With 64 million bytes of cache for each user, computing has caught up at 544 users."""
    found = student.batch_where_it_turns(14 * 10**9, 64 * 10**6, 14 * 10**9, **CARD)
    checks.equal(whole(found), 544, "batch_where_it_turns(14 * 10**9, 64 * 10**6, 14 * 10**9, bw=2e12, peak=312e12)")


# Part 3: numbers in a few bits


@task("quantise", 0.5)
def test_four_numbers_in_two_groups(student):
    """0.6, -1.4 and 0.1, 7 in 4 bits are 3, -7 and 0, 7 with the scales 0.2 and 1."""
    x = tensor([[0.6, -1.4, 0.1, 7.0]])
    q, scale = checks.unpack(student.quantise(x, 4, 2), ("q", "scale"))
    checks.equal(checks.tensor(q, "q").long(), tensor([[3, -7, 0, 7]]), "q", axes=("row", "column"))
    checks.close(scale, tensor([[0.2, 1.0]]), "scale", axes=("row", "group"))


@task("quantise", 0.25)
def test_what_four_whole_numbers_stand_for(student):
    """3, -7 and 0, 7 with the scales 0.2 and 1 stand for 0.6, -1.4 and 0, 7."""
    q, scale = tensor([[3, -7, 0, 7]], dtype=torch.int8), tensor([[0.2, 1.0]])
    expected = tensor([[0.6, -1.4, 0.0, 7.0]])
    checks.close(student.dequantise(q, scale), expected, "the numbers", axes=("row", "column"))


@task("quantise", 0.5)
def test_a_product_by_hand(student):
    """1, 2, 3, 4 times the row of the text is 25.8; two rows at once give two products each."""
    q, scale = tensor([[3, -7, 0, 7], [1, 2, -3, 4]], dtype=torch.int8), tensor([[0.2, 1.0], [2.0, 0.5]])
    x = tensor([[1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 0.0, 2.0]])
    expected = tensor([[25.8, 13.5], [12.6, 8.0]])
    checks.close(student.quantised_matmul(x, q, scale), expected, "the products", axes=("row of x", "row of q"))


# Part 4: guessing ahead


@task("speculate", 0.75)
def test_one_guess_by_hand(student):
    """The guesses 0 and 1 are accepted with 0.7 and 0.55; with 0.65, 0 is written in place of 1, whatever is drawn."""
    for guess, first in ((0, 0.7), (1, 0.55)):
        found = student.speculative_step(TARGET, GUESS, tensor([guess]), uniforms(first, 0.5))
        checks.equal(ids(found), [guess, 1], f"the words for the guess {guess} with the uniforms {first} and 0.5")
    for last in (0.05, 0.82, 0.95):
        found = student.speculative_step(TARGET, GUESS, tensor([1]), uniforms(0.65, last))
        checks.equal(ids(found), [0], f"the words for the guess 1 with the uniforms 0.65 and {last}")


@task("speculate", 0.25)
def test_two_guesses(student):
    """Of two guesses, the second is not looked at if the first is refused; if both are accepted, three words come."""
    p, q = TARGET[[0, 1, 1]], torch.cat([GUESS, uniforms(0.5, 0.4, 0.1)[None]])
    for guess, first, expected in ((0, 0.7, [0, 2, 2]), (1, 0.65, [0]), (1, 0.55, [1, 2, 2])):
        found = student.speculative_step(p, q, tensor([guess, 2]), uniforms(first, 0.82, 0.82))
        checks.equal(ids(found), expected, f"the words for the guesses {guess} and 2 with the first uniform {first}")


@task("speculate", 0.25)
def test_words_of_a_step(student):
    """With 0.8 and four guesses, a step writes 3.3616 words; with 1 it writes 5."""
    for a, expected in ((0.8, 3.3616), (1.0, 5.0)):
        checks.close(student.expected_tokens(a, 4), expected, f"expected_tokens({a}, 4)")
