"""Word vectors: the tests that only graders see."""

import random

import torch

from autograder import checks, task

READY_MADE = (
    "torch.nn.functional.one_hot",
    "torch.nn.functional.embedding",
    "torch.nn.functional.embedding_bag",
    "torch.nn.Embedding",
    "torch.nn.EmbeddingBag",
)

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ .,!?\n\u00e4\u00e9\u4f60"


def some_text(length):
    return "".join(random.choice(LETTERS) for _ in range(length))


def some_ids(length, vocab_size=23):
    return [random.randrange(vocab_size) for _ in range(length)]


def two_tables(V=11, C=5, dtype=torch.float64):
    """Two random tables of the same shape: (V, C)."""
    return torch.randn(2, V, C, dtype=dtype).unbind()


def rows_of_many_lengths(V, C):
    """A random table whose rows are of quite different lengths: (V, C)."""
    return torch.randn(V, C, dtype=torch.float64) * (1 + 5 * torch.rand(V, 1, dtype=torch.float64))


def some_examples(P, V=11):
    """Contexts and their centre, with one to five contexts each and at least two different numbers of them."""
    lengths = [1, 4] + [random.randint(1, 5) for _ in range(P - 2)]
    return [(some_ids(length, V), random.randrange(V)) for length in lengths]


def plain(ids):
    """Ids in a tensor as plain numbers: their type has a test of its own."""
    return ids.tolist() if isinstance(ids, torch.Tensor) else ids


def with_tuples(pairs, expected):
    """The expected pairs if these are the same ones as lists: what a pair is has a test of its own."""
    return expected if pairs == [list(pair) for pair in expected] else pairs


def same_pairs(student, reference, ids, window):
    expected = reference.skip_gram_pairs(ids, window)
    pairs = with_tuples(student.skip_gram_pairs(list(ids), window), expected)
    checks.equal(pairs, expected, f"skip_gram_pairs({ids}, {window})")


def same_examples(student, reference, ids, window):
    expected = reference.cbow_examples(ids, window)
    checks.equal(student.cbow_examples(list(ids), window), expected, f"cbow_examples({ids}, {window})")


def a_question_whose_nearest_word_is(name):
    """Rows a, b, c, the answer and another word. Of all rows, the named one points most nearly to b - a + c.

    With "all the others face away", that is b or c, and the answer's cosine is negative.
    """
    e = torch.linalg.qr(torch.randn(5, 5, dtype=torch.float64)).Q  # five directions at right angles
    a, b, c = {
        "a": (e[0], e[0] + e[1], e[0] - e[1]),
        "b": (e[1], e[0], e[1] + 0.1 * e[2]),
        "c": (e[1], e[1] + 0.1 * e[2], e[0]),
        "all the others face away": (e[0], e[0] + e[1], e[1]),
    }[name]
    goal = b - a + c
    if name == "all the others face away":
        return torch.stack([a, b, c, e[3] - 0.1 * goal, e[4] - 2 * goal])  # (5, C)
    return torch.stack([a, b, c, goal + 0.3 * e[3], e[4] - 0.2 * goal])  # (5, C)


# Part 1: text becomes numbers


@task("tokens", 0.5, promise=(
    "The ids follow the sorted distinct characters of a text.",
    "vocab_size is the number of distinct characters.",
    "the way back must work",
))
def test_any_text_is_numbered_in_sorted_order(student, reference):
    """Capitals, spaces, line ends and foreign letters get the ids of their sorted order, in each tokenizer its own."""
    text = some_text(60) + " \n\u00e9A"
    tokenizer, expected = student.CharTokenizer(text), reference.CharTokenizer(text)
    student.CharTokenizer("\t" + text)  # a later one has its own ids
    checks.equal(tokenizer.vocab_size, expected.vocab_size, "vocab_size")
    encode, decode = tokenizer.encode, tokenizer.decode
    for piece in (text, text[7:20], ""):
        ids = expected.encode(piece)
        checks.equal(encode(piece), ids, f"encode({piece!r})")
        text_again = decode(ids)  # a list of letters has a test of its own
        checks.equal("".join(text_again) if text_again == [*piece] else text_again, piece, f"decode({ids})")


@task("tokens", 0.25, promise="ValueError that names an id which is not in the vocabulary (-1, for example).")
def test_id_that_nobody_has_is_refused(student):
    """An id that is too large or negative is a ValueError that names it."""
    size = random.randint(5, 20)
    letters = random.sample("abcdefghijklmnopqrstuvwxyz", size)
    decode = student.CharTokenizer("".join([*letters, *letters[:3]])).decode
    for wrong in (size + random.randint(9, 99), size, -1, -random.randint(2, size)):
        around = some_ids(2, size)
        checks.raises(ValueError, decode, [around[0], wrong, around[1]], naming=wrong)


@task("tokens", 0.25, promise="ValueError that names a character which is not in the vocabulary.")
def test_any_unknown_character_is_refused(student):
    """A capital letter or a question mark that was not in the text is unknown, wherever it stands."""
    known = "".join(random.sample("abcdefghijklmnopqrstuvwxyz", 9))
    encode = student.CharTokenizer(known + known[2:5]).encode
    capital = known[0].upper()
    for text, unknown in (
        (capital + known[1:], capital),
        (known + "?", "?"),
        (f"{known[:4]}\u00e9{known[4:]}", "\u00e9"),
        (f"{known[:3]} {known[3:]}", " "),
    ):
        checks.raises(ValueError, encode, text, naming=unknown)


# Part 2: numbers become vectors


@task("lookup", 0.2, forbids=READY_MADE,
      promise="One row for each id, 0 everywhere and 1 at the id's place.   ids (T,) -> (T, V), float32")
def test_one_hot_of_many_ids(student, reference):
    """Any number of ids gives as many rows of ordinary (float32) numbers, repeated ids included."""
    for T, V in ((1, 29), (7, 5)):
        ids = torch.tensor(some_ids(T, V))
        rows = student.one_hot(ids, V)
        checks.close(rows, reference.one_hot(ids, V), f"one_hot({ids.tolist()}, {V})", axes=("row", "place"))
        checks.dtype(rows, torch.float32, "one_hot")


@task("lookup", 0.3, forbids=READY_MADE, promise=(
    "ids: whole numbers of any shape (...)",
    "V may be in the thousands.",
))
def test_embed_takes_ids_of_any_shape(student, reference):
    """A single id, a sentence, a batch of sentences: every id is replaced by its row."""
    table = torch.randn(11, 5, dtype=torch.float64)
    for shape in ((), (3, 7), (2, 3, 4)):
        ids = torch.randint(11, shape)
        checks.close(
            student.embed(ids, table), reference.embed(ids, table), f"embed with ids of shape {shape}"
        )
    table = torch.randn(2_003, 2)  # the one-hot table of a larger vocabulary would not fit into memory
    ids = torch.tensor([2_002, 3, 1_500])
    checks.close(student.embed(ids, table), reference.embed(ids, table), "embed with 2,003 words")


@task("lookup", 0.15, forbids=READY_MADE, promise=(
    "The table's rows with these ids: one_hot(ids) @ table without the multiplication.",
    "with the number type of the table.",
))
def test_embed_equals_the_product(student):
    """Looking up is the same as multiplying one-hot rows with the table, and keeps the table's number type."""
    ids = torch.tensor(some_ids(7, 13))
    rows = checks.tensor(student.one_hot(ids, 13), "one_hot(ids, 13)")                  # (T, V)
    checks.shape(rows, (7, 13), "one_hot(ids, 13)", axes=("row", "place"))
    for dtype in (torch.float32, torch.float64):
        table = torch.randn(13, 4, dtype=dtype)
        product = rows.to(dtype) @ table                                                # (T, C)
        vectors = student.embed(ids, table)
        checks.close(vectors, product, "embed", axes=("word", "number"))
        checks.dtype(vectors, dtype, "embed")


@task("lookup", 0.75, forbids=READY_MADE, promise=(
    "For ids of any shape, gradients flow back into the rows that were fetched.",
    "None of your functions changes its arguments: tables, ids and examples keep their values.",
))
def test_fetched_rows_can_be_learned(student, reference):
    """Gradients flow back into the rows that were fetched, and the table and the ids keep their values."""
    table = torch.randn(7, 3, dtype=torch.float64)
    for shape in ((5,), (), (2, 3), (2, 2, 3)):
        ids = torch.randint(7, shape)

        def theirs(table, ids=ids):
            return checks.input_untouched(student.embed, ids, table)

        def ours(table, ids=ids):
            return reference.embed(ids, table)

        checks.gradients_close(theirs, ours, table, what=f"the gradient, for ids of shape {shape},")


# Part 3: the guessing game


@task("examples", 0.5,
      promise="All pairs (centre, context): centres from left to right, and for each its contexts from left to right.")
def test_pairs_of_any_text(student, reference):
    """For short and long texts and for any window, all pairs are there, in order."""
    for length, window in ((11, 3), (3, 7), (1, 2)):
        ids = random.sample(range(50), length)
        same_pairs(student, reference, ids, window)


@task("examples", 0.25, promise="what is left out is the centre's own *place*, not its word.")
def test_same_word_at_another_place_is_a_context(student, reference):
    """A word that occurs twice can be its own context and a context twice; only the centre's place is left out."""
    often, twice, once = random.sample(range(99), 3)
    ids = [often, twice, often, often, once, twice, often]
    for window in (1, 3):
        same_pairs(student, reference, ids, window)
        same_examples(student, reference, ids, window)


@task("examples", 0.5,
      promise="For each place from left to right: (the ids of its contexts from left to right, its own id).")
def test_examples_of_any_text(student, reference):
    """For short and long texts and for any window, every place has its contexts, in order."""
    for length, window in ((11, 3), (3, 7), (2, 1)):
        ids = random.sample(range(50), length)
        same_examples(student, reference, ids, window)


@task("examples", 0.25, promise=(
    "Contexts are the same as in skip_gram_pairs.",
    "None of your functions changes its arguments",
))
def test_both_forms_have_the_same_neighbours(student):
    """Taken apart, the CBOW examples are the skip-gram pairs, and the text keeps its words."""
    ids = some_ids(17)
    text = list(ids)
    pairs = student.skip_gram_pairs(ids, 3)
    examples = student.cbow_examples(ids, 3)
    for example in checks.unpack(examples, len(text), "cbow_examples(ids, 3)"):
        checks.unpack(example, ("contexts", "centre"), "an example")
    apart = [(centre, context) for contexts, centre in examples for context in contexts]
    checks.equal(with_tuples(pairs, apart), apart, "the list of pairs")
    checks.equal(ids, text, "the text afterwards")


# Part 4: how good is a guess?


@task("loss", 0.4, promise=(
    "The mean loss of guessing each context from its centre, as a tensor of shape ().",
    "the loss has their number type.",
))
def test_skip_gram_loss_follows_the_formula(student, reference):
    """For random tables and pairs the skip-gram loss is what the formula says."""
    for V, C, P, dtype in ((11, 5, 7, torch.float64), (7, 3, 13, torch.float32)):
        centre_table, context_table = two_tables(V, C, dtype)
        pairs = torch.randint(V, (P, 2))
        pairs[-1] = pairs[0]  # a pair that occurs twice counts twice
        expected = reference.skip_gram_loss(centre_table, context_table, pairs)
        loss = student.skip_gram_loss(centre_table, context_table, pairs)
        checks.close(loss, expected, "the loss")
        checks.dtype(loss, dtype, f"the loss of tables in {str(dtype).removeprefix('torch.')}")


@task("loss", 0.3, promise=(
    "The mean loss of guessing each centre from the average of its contexts, as a tensor of shape ().",
    "every example has at least one context, and not all have equally many.",
    "the loss has their number type.",
))
def test_cbow_loss_follows_the_formula(student, reference):
    """For random tables and examples with different numbers of contexts the CBOW loss is what the formula says."""
    for V, C, P, dtype in ((11, 5, 6, torch.float64), (7, 3, 9, torch.float32)):
        context_table, centre_table = two_tables(V, C, dtype)
        examples = some_examples(P, V)
        expected = reference.cbow_loss(context_table, centre_table, examples)
        loss = student.cbow_loss(context_table, centre_table, examples)
        checks.close(loss, expected, "the loss")
        checks.dtype(loss, dtype, f"the loss of tables in {str(dtype).removeprefix('torch.')}")


@task("loss", 0.7, promise="gradients flow into both tables")
def test_both_tables_learn(student, reference):
    """Both losses send the right gradients into both tables."""
    pairs, examples = torch.randint(11, (7, 2)), some_examples(3)
    for name, data in (("skip_gram_loss", pairs), ("cbow_loss", examples)):
        mine, theirs = getattr(student, name), getattr(reference, name)
        checks.gradients_close(mine, theirs, *two_tables(), data, what=f"the gradient of {name}")


@task("loss", 0.2, promise=(
    "Scores of several hundred are no problem",
    "None of your functions changes its arguments: tables, ids and examples keep their values.",
))
def test_large_scores_stay_finite(student, reference):
    """Scores of several hundred give a loss, not infinity and not NaN, and the tables keep their values."""
    first, second = (30 * table.float() for table in two_tables())
    pairs, examples = torch.randint(11, (7, 2)), some_examples(5)
    for name, data in (("skip_gram_loss", pairs), ("cbow_loss", examples)):
        expected = getattr(reference, name)(first, second, data)
        loss = checks.input_untouched(getattr(student, name), first, second, data)
        checks.close(loss, expected, f"{name} at large scores", rtol=1e-4)


# Part 5: calculating with words


@task("neighbours", 0.5, promise=(
    "The ids of the k rows most similar to row token_id, the most similar first, without token_id itself.",
    "The ids are Python ints.",
    "The table keeps its values.",
))
def test_nearest_of_random_vectors(student, reference):
    """In a random table the k nearest rows come back, the most similar first, as Python's whole numbers."""
    answers = []
    for V, C, k in ((23, 7, 5), (11, 3, 1), (7, 5, 6)):
        table = rows_of_many_lengths(V, C)
        word = random.randrange(V)
        mine = checks.input_untouched(student.nearest, word, table, k)
        theirs = reference.nearest(word, table, k)
        answers.append((mine, theirs, f"nearest({word}, table, {k})"))
    for mine, theirs, what in answers:  # only now: one short list alone may be right or wrong by luck
        checks.equal(mine, theirs, what)


@task("neighbours", 0.25, promise=(
    "without token_id itself.",
    "Another word with the very same vector is a neighbour like any other.",
))
def test_word_is_not_its_own_neighbour(student):
    """A word is left out of its own list, however far the others are; one with the very same vector is not."""
    facing_away = torch.tensor([[2.0, 0.0], [-3.4, 0.0]], dtype=torch.float64)
    checks.equal(plain(student.nearest(0, facing_away, 1)), [1], "nearest(0, table, 1)")
    table = torch.randn(7, 11, dtype=torch.float64)
    table[2], table[5] = table[4], table[4]
    for word in (4, 5):  # only one of three equal words can come first by chance
        found = plain(student.nearest(word, table, 2))
        two_words = isinstance(found, list) and len(found) == 2
        checks.true(two_words, f"nearest({word}, table, 2) should give a list of two whole numbers.")
        checks.true(word not in found, f"Among the words nearest to word {word} is the word itself.")
        twins = [other for other in (2, 4, 5) if other != word]
        checks.true(
            all(twin in found for twin in twins),
            f"The two words nearest to word {word} should be those with the very same vector.",
        )


@task("neighbours", 0.5, promise=(
    "Nearest means the largest cosine with that vector",
    "The rows are added as they are: only the comparison ignores lengths.",
    "The answer is a Python int, and the table keeps its values.",
))
def test_analogy_of_random_vectors(student, reference):
    """In a random table the answer points most nearly where b - a + c points."""
    for V, C in ((23, 7), (29, 5), (31, 3), (37, 5)):
        table = rows_of_many_lengths(V, C)
        a, b, c = random.sample(range(V), 3)
        answer = checks.input_untouched(student.analogy, a, b, c, table)
        expected = reference.analogy(a, b, c, table)
        checks.equal(answer, expected, f"analogy({a}, {b}, {c}, table)", is_id=True)


@task("neighbours", 0.25, promise="a, b and c themselves are never the answer.")
def test_question_is_not_its_own_answer(student):
    """None of the three words of the question is the answer, even when it lies nearest and all others far away."""
    for nearest_of_all in ("b", "c", "a", "all the others face away"):
        table = a_question_whose_nearest_word_is(nearest_of_all)
        checks.equal(plain(student.analogy(0, 1, 2, table)), 3, "analogy(0, 1, 2, table)", is_id=True)
