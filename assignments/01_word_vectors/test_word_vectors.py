"""Word vectors: the tests that come with the assignment."""

import math

import torch

from autograder import checks, task

READY_MADE = (
    "torch.nn.functional.one_hot",
    "torch.nn.functional.embedding",
    "torch.nn.functional.embedding_bag",
    "torch.nn.Embedding",
    "torch.nn.EmbeddingBag",
)


# Part 1: text becomes numbers


@task("tokens", 0.5)
def test_banana_has_three_characters(student):
    """In banana there are three characters, numbered in sorted order: a, b, n."""
    tokenizer = student.CharTokenizer("banana")
    checks.equal(tokenizer.vocab_size, 3, "vocab_size")
    checks.equal(tokenizer.encode("banana"), [1, 0, 2, 0, 2, 0], 'encode("banana")')


@task("tokens", 0.25)
def test_decoding_undoes_encoding(student):
    """Encoded and decoded, a text comes back as it was."""
    tokenizer = student.CharTokenizer("the cat sat on the mat")
    text = "mat the hat"
    checks.equal(tokenizer.decode(tokenizer.encode(text)), text, f"{text!r}, encoded and decoded,")


@task("tokens", 0.25)
def test_unknown_character_is_refused(student):
    """A character that has no id is a ValueError that names it."""
    tokenizer = student.CharTokenizer("banana")
    checks.raises(ValueError, tokenizer.encode, "bandana", naming="d")


# Part 2: numbers become vectors


@task("lookup", 0.35, forbids=READY_MADE)
def test_one_lamp_in_each_row(student):
    """A one-hot row is 0 everywhere and 1 at the place of its id."""
    rows = student.one_hot(torch.tensor([2, 0]), 5)
    expected = torch.tensor([[0.0, 0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0]])
    checks.close(rows, expected, "one_hot of the ids 2 and 0", axes=("row", "place"))


@task("lookup", 0.15, forbids=READY_MADE)
def test_id_fetches_its_row(student):
    """The ids 2 and 0 fetch row 2 and row 0 of the table."""
    table = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])  # (V, C)
    vectors = student.embed(torch.tensor([2, 0, 2]), table)
    expected = torch.tensor([[5.0, 6.0], [1.0, 2.0], [5.0, 6.0]])
    checks.close(vectors, expected, "the vectors of the ids 2, 0, 2", axes=("word", "number"))


@task("lookup", 0.1, forbids=READY_MADE)
def test_two_sentences_fetch_rows_that_learn(student):
    """Two sentences of three ids fetch two times three rows, and gradients flow back into these rows alone."""
    table = torch.randn(5, 2, requires_grad=True)  # (V, C)
    vectors = student.embed(torch.tensor([[2, 0, 4], [0, 0, 2]]), table)
    checks.shape(vectors, (2, 3, 2), "the vectors of two sentences", axes=("sentence", "word", "number"))
    checks.true(vectors.requires_grad, "No gradient flows back from the rows that were fetched.")
    (gradient,) = torch.autograd.grad(vectors.sum(), table, materialize_grads=True)
    learns = [row for row in range(5) if bool(gradient[row].any())]
    checks.equal(learns, [0, 2, 4], "the list of rows that get a gradient")


# Part 3: the guessing game


@task("examples", 0.25)
def test_pairs_of_four_words(student):
    """The text 0 1 2 3 with a window of 1 has six pairs of a centre and its context."""
    expected = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)]
    checks.equal(student.skip_gram_pairs([0, 1, 2, 3], 1), expected, "skip_gram_pairs([0, 1, 2, 3], 1)")


@task("examples", 0.25)
def test_examples_of_four_words(student):
    """The text 0 1 2 3 with a window of 1 has four examples of contexts and their centre."""
    expected = [([1], 0), ([0, 2], 1), ([1, 3], 2), ([2], 3)]
    checks.equal(student.cbow_examples([0, 1, 2, 3], 1), expected, "cbow_examples([0, 1, 2, 3], 1)")


# Part 4: how good is a guess?


@task("loss", 0.2)
def test_skip_gram_loss_worked_by_hand(student):
    """Probabilities of 1/4 for one context and 1/3 for another make a mean loss of (ln 4 + ln 3) / 2."""
    centre_table = torch.tensor([[math.log(2), 0.0], [0.0, 0.0], [0.0, 0.5]])  # (V, C)
    context_table = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])  # (V, C)
    pairs = torch.tensor([[0, 1], [1, 0]])  # (P, 2)
    loss = student.skip_gram_loss(centre_table, context_table, pairs)
    checks.close(loss, torch.tensor((math.log(4) + math.log(3)) / 2), "the loss", atol=1e-5)
    what = "the loss of the pair (1, 2), whose context has the probability 1/4,"
    loss = student.skip_gram_loss(centre_table.roll(1, dims=0), context_table, torch.tensor([[1, 2]]))
    checks.close(loss, torch.tensor(math.log(4)), what, atol=1e-5)


@task("loss", 0.1)
def test_cbow_loss_worked_by_hand(student):
    """Two contexts whose average gives the true centre a probability of 3/5 make a loss of ln 5/3."""
    context_table = torch.tensor([[math.log(3), 1.0], [7.0, 0.0], [math.log(3), -1.0]])  # (V, C)
    centre_table = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 5.0]])  # (V, C)
    loss = student.cbow_loss(context_table, centre_table, [([0, 2], 1)])
    checks.close(loss, torch.tensor(math.log(5 / 3)), "the loss", atol=1e-5)


@task("loss", 0.1)
def test_gradients_reach_both_tables(student):
    """Gradients of both losses flow into both tables."""
    tables = {name: torch.randn(4, 3, requires_grad=True) for name in ("centre_table", "context_table")}
    centre_table, context_table = tables.values()
    losses = {
        "skip-gram": student.skip_gram_loss(centre_table, context_table, torch.tensor([[0, 1], [2, 3]])),
        "CBOW": student.cbow_loss(context_table, centre_table, [([0, 2], 1), ([3], 0)]),
    }
    for game, loss in losses.items():
        checks.shape(loss, (), f"the loss of {game}")
        checks.true(loss.requires_grad, f"No gradient flows back from the loss of {game}.")
        gradients = torch.autograd.grad(loss, list(tables.values()), materialize_grads=True)
        for name, gradient in zip(tables, gradients):
            checks.true(bool(gradient.any()), f"No gradient of the loss of {game} reaches {name}.")


# Part 5: calculating with words


def plain(ids):
    """Ids in a tensor as plain numbers: their type has a test of its own."""
    return ids.tolist() if isinstance(ids, torch.Tensor) else ids


@task("neighbours", 0.25)
def test_nearest_points_the_same_way(student):
    """The nearest rows are those that point most nearly the same way, however long they are."""
    table = torch.tensor([[1.0, 0.0], [2.0, 0.2], [30.0, 40.0], [-1.0, 0.0], [1.0, 1.0]])  # (V, C)
    checks.equal(plain(student.nearest(0, table, 3)), [1, 4, 2], "nearest(0, table, 3)")


@task("neighbours", 0.25)
def test_king_minus_man_plus_woman(student):
    """With the four vectors of the worked example among others, king - man + woman is queen."""
    man, king, woman, queen = 0, 1, 2, 3
    people = [[1.0, 0.0], [1.0, 3.0], [3.0, 0.0], [4.0, 5.0]]
    others = [[3.0, -4.0], [-2.0, 5.0], [6.0, 3.0], [40.0, 10.0], [1.5, 2.2], [1.0, 4.0], [-3.0, -2.0]]
    table = torch.tensor(people + others)  # (V, C)
    checks.equal(plain(student.analogy(man, king, woman, table)), queen, "analogy(man, king, woman, table)")
    twice = plain(student.analogy(man, king, man, table))
    checks.equal(twice, 9, "analogy(man, king, man, table), which may be none of these words,")
