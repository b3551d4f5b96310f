"""The tests that students do not see: fresh sizes and numbers, far positions, wrong arguments, gradients."""

import torch

from autograder import checks, task


def between(low, high):
    """A fresh whole number, low <= n <= high."""
    return int(torch.randint(low, high + 1, ()))


def even_between(low, high):
    """A fresh even number between two even numbers."""
    return 2 * between(low // 2, high // 2)


def embeddings(student, reference, vocab_size, block_size, embed_size):
    """Both learned modules with the same random weights."""
    ours = checks.randomize(reference.TokenAndPositionEmbedding(vocab_size, block_size, embed_size))
    theirs = student.TokenAndPositionEmbedding(vocab_size, block_size, embed_size)
    checks.copy_parameters(ours, theirs)
    return theirs, ours


# Part 1: the table


@task("table", 0.75, promise=(
    "PE[p, 2i]     = sin(p / 10000^(2i / d_model))",
    "PE[p, 2i + 1] = cos(p / 10000^(2i / d_model))",
))
def test_table_follows_the_formula(student, reference):
    """Every entry of the table is the sine or cosine that the formula names; a square table shows which axis is which."""
    width = even_between(20, 40)
    for max_len, d_model in [(width, width), (between(41, 67), width), (between(2, 9), even_between(514, 700))]:
        checks.close(
            student.positional_encoding(max_len, d_model),
            reference.positional_encoding(max_len, d_model),
            f"positional_encoding({max_len}, {d_model})",
            axes=("position", "column"),
            atol=1e-4,
        )


@task("table", 1, needs="test_table_has_a_row_for_each_position",
      promise="for even $d$ every row has the squared length $d/2$")
def test_every_row_has_the_same_length(student):
    """Each hand of the clock has length 1, so every row has the squared length d_model / 2."""
    max_len, d_model = between(23, 37), even_between(12, 20)
    lengths = student.positional_encoding(max_len, d_model).square().sum(dim=-1)
    expected = torch.full((max_len,), d_model / 2)
    checks.close(lengths, expected, "the squared length of each row", axes=("position",), atol=1e-3)


@task("table", 0.5, needs="test_table_has_a_row_for_each_position", promise=(
    "it depends on the *distance* $k$ and not on the position $p$.",
    "all rows are different.",
))
def test_rows_compare_by_distance_alone(student):
    """The product of two rows depends on how far apart they are, not on where; and no two rows are equal."""
    table = student.positional_encoding(between(24, 32), even_between(12, 20)).double()
    products = table @ table.T
    for distance in (1, 11):
        diagonal = products.diagonal(distance)
        what = f"PE[p] · PE[p + {distance}], for every p,"
        checks.close(diagonal, diagonal[:1].expand_as(diagonal), what, axes=("position",), atol=1e-3)
    gaps = torch.cdist(table, table) + torch.eye(len(table), dtype=torch.float64)
    checks.true(bool(gaps.min() > 1e-3), "Two positions have the same row, so no model can tell them apart.")


@task("table", 0.5, promise="An odd `d_model` ends with a sine.")
def test_odd_width_ends_with_a_sine(student, reference):
    """When d_model is odd, the last sine has no cosine beside it, and everything else stays as it was."""
    length, width = between(11, 99), 2 * between(3, 40) + 1
    student.positional_encoding(length, width + 1)  # an even table before it leaves no trace in the odd one
    for max_len, d_model in [(length, width), (3, 1)]:
        checks.close(
            student.positional_encoding(max_len, d_model),
            reference.positional_encoding(max_len, d_model),
            f"positional_encoding({max_len}, {d_model})",
            axes=("position", "column"),
            atol=1e-4,
        )


@task("table", 0.5,
      promise="Raises ValueError that names the argument and its value if `max_len` or `d_model` is below 1.")
def test_sizes_below_one_are_refused(student):
    """A table without rows or columns is refused with a ValueError that names the argument and its value."""
    bad = -between(1, 999)
    for size in (bad, 0):
        checks.raises(ValueError, student.positional_encoding, size, 6, naming=("max_len", size))
        checks.raises(ValueError, student.positional_encoding, 5, size, naming=("d_model", size))


@task("table", 0.25, promise=(
    "Your table must still be right to 0.002 there.",
    "The table is made of ordinary float32 numbers.",
))
def test_far_positions_are_accurate(student, reference):
    """Beyond position 5000, too, the table of ordinary float32 numbers is right to 0.002."""
    max_len, d_model = between(5003, 5500), even_between(6, 8)  # narrow: a loop over numbers ends in time
    what = f"positional_encoding({max_len}, {d_model})"
    table = student.positional_encoding(max_len, d_model)
    checks.dtype(table, torch.float32, what)
    truth = reference.positional_encoding(max_len, d_model)
    checks.close(table, truth, what, axes=("position", "column"), atol=2e-3)


@task("table", 0.75, needs="test_every_row_has_the_same_length",
      promise="A row depends on its position and on $d$ alone, not on how many rows the table has.")
def test_a_longer_table_begins_like_a_shorter_one(student):
    """The row of a position does not depend on how many rows the table has."""
    short, d_model = between(13, 23), even_between(10, 18)
    longer = student.positional_encoding(short + between(10, 30), d_model)
    checks.close(
        longer[:short],
        student.positional_encoding(short, d_model),
        f"the first {short} rows of a longer table",
        axes=("position", "column"),
        atol=1e-4,
    )


# Part 2: the module. Its truth is the student's own table: what is wrong there has been counted already.


@task("module", 0.5, needs="test_module_keeps_the_shape",
      promise="A sentence of $T$ words needs the first $T$ rows and no more.")
def test_module_adds_the_first_rows(student):
    """Word t leaves as x[t] + PE[t]."""
    d_model, max_len, T = even_between(8, 20), between(29, 41), between(5, 23)
    module = student.SinusoidalPositionalEncoding(d_model, max_len).eval()
    x = torch.randn(3, T, d_model)
    rows = student.positional_encoding(max_len, d_model)[:T]
    checks.close(module(x.clone()), x + rows, "the output", atol=1e-5)


@task("module", 0.5, needs="test_module_keeps_the_shape",
      promise="The same row $t$ is added in every sentence $b$ of the batch, in training and in evaluation alike")
def test_sentences_come_as_they_like(student):
    """One module serves short and long sentences, alone or many at a time, in training and in evaluation."""
    for d_model, training, sizes in [(6, True, [(3, 2), (2, 11), (4, 1)]), (1, False, [(1, 7), (4, 1)])]:
        module = student.SinusoidalPositionalEncoding(d_model, 11).train(training)
        table = student.positional_encoding(11, d_model)
        for B, T in sizes:
            x = torch.randn(B, T, d_model)
            what = f"the output for x of shape {tuple(x.shape)}"
            checks.close(module(x.clone()), x + table[:T], what, atol=1e-5)


@task("module", 0.75, promise=(
    "After `module.double()` the table and the answers are float64.",
    "The table is the buffer `pe`",
))
def test_module_follows_to_float64(student):
    """The table that is added follows the module to float64, and a float32 sentence stays float32."""
    module = student.SinusoidalPositionalEncoding(6, 5).eval()
    x = torch.randn(2, 5, 6)
    checks.dtype(module(x.clone()), torch.float32, "the output for a float32 sentence")
    rows = student.positional_encoding(5, 6)[:5].double()
    checks.buffers_follow(module)  # it calls module.double()
    x = x.double()
    output = module(x.clone())
    checks.dtype(output, torch.float64, "the output after module.double()")
    checks.close(output, x + rows, "the output after module.double()", atol=1e-5)
    with torch.no_grad():
        module.pe.mul_(3)
    added = module(x.clone()) - x
    from_buffer = torch.allclose(added, 3 * rows, atol=1e-4)
    checks.true(from_buffer, "The module adds another table than the one in its buffer `pe`.")


@task("module", 0.25,
      promise="Raises ValueError that names max_len, its value and x's length if x has more than `max_len` positions.")
def test_sentence_longer_than_the_table_is_refused(student):
    """A sentence of exactly max_len words is welcome; one more word is a ValueError that names both numbers."""
    max_len = between(5, 9)
    module = student.SinusoidalPositionalEncoding(6, max_len).eval()
    longest = module(torch.randn(2, max_len, 6))
    checks.shape(longest, (2, max_len, 6), f"the output for T = max_len = {max_len}")
    too_long = torch.randn(2, max_len + 1, 6)
    checks.raises(ValueError, module, too_long, naming=("max_len", max_len, max_len + 1))
    single = student.SinusoidalPositionalEncoding(6, 1).train()
    checks.raises(ValueError, single, torch.randn(3, 2, 6), naming=("max_len", 1, 2))


@task("module", 0.25, promise="x itself keeps its values, and gradients flow back to it.")
def test_the_sentence_itself_is_not_changed(student):
    """The caller's x has the same numbers before and after the call, and what flows back to it is not cut off."""
    module = student.SinusoidalPositionalEncoding(6, 11)

    def add_positions(x):
        return checks.input_untouched(module, x)

    def add_constants(x):  # their gradients are those of a module without dropout
        return x + 1

    for shape, training in [((3, 7, 6), True), ((2, 11, 6), False), ((1, 5, 6), True)]:
        module.train(training)
        checks.gradients_close(add_positions, add_constants, torch.randn(shape))


@task("module", 0.25,
      promise="in training and in evaluation alike; only the dropout differs between the two.")
def test_dropout_rests_in_eval(student):
    """Dropout never acts in evaluation, and with dropout=0 not in training either."""
    noisy = student.SinusoidalPositionalEncoding(6, 11, 0.5).eval()
    quiet = student.SinusoidalPositionalEncoding(6, 11).train()
    x = torch.randn(3, 7, 6)
    expected = checks.tensor(quiet(x.clone()), "the output in training with dropout=0")
    checks.close(noisy(x.clone()), expected, "the output in evaluation with dropout=0.5")


@task("module", 0.5, promise="Adds row t of the table to the word at position t, then applies dropout.")
def test_dropout_acts_on_the_sum_in_training(student):
    """In training, dropout acts on word plus position: every number is either zero or scaled up."""
    module = student.SinusoidalPositionalEncoding(2, 17, 0.5)
    x = torch.randn(40, 13, 2)
    total = checks.tensor(module.eval()(x.clone()), "the output in evaluation")
    noisy = checks.tensor(module.train()(x.clone()), "the output in training")
    checks.shape(noisy, tuple(total.shape), "the output in training")
    dropped = noisy == 0
    checks.true(
        bool((dropped | torch.isclose(noisy, 2 * total, atol=1e-5)).all()),
        "With dropout=0.5, in training, some numbers are neither zero nor twice what they are without dropout.",
        public="In training, some numbers are neither zero nor scaled up from what they are without dropout.",
    )
    checks.between(float(dropped.float().mean()), 0.4, 0.6, "the share of zeros in training with dropout=0.5")
    module = student.SinusoidalPositionalEncoding(2, 17, 0.2).train()
    noisy = checks.tensor(module(x.clone()), "the output in training with dropout=0.2")
    checks.true(
        bool(((noisy == 0) | torch.isclose(noisy, total / 0.8, atol=1e-5)).all()),
        "With dropout=0.2, in training, what is left should be 1 / 0.8 times what it is without dropout.",
        public="In training, what dropout leaves is scaled by another factor than its rate asks for.",
    )


# Part 3: learned positions


@task("learned", 0.3, needs="test_learned_tables_have_the_right_names_and_shapes", promise=(
    "Vector of the token plus vector of its position, both learned.",
    "after `module.double()` the answer is float64.",
))
def test_token_plus_position(student, reference):
    """Each output is the vector of the token plus the vector of its position, in float32 and float64."""
    vocab_size, block_size = between(5, 9), between(13, 19)
    theirs, ours = embeddings(student, reference, vocab_size, block_size, 6)
    ids = torch.randint(vocab_size, (3, between(4, 11)))
    checks.close(theirs(ids), ours(ids), "the output", atol=1e-5)
    exact = theirs.double()(ids)
    checks.dtype(exact, torch.float64, "the output after module.double()")
    checks.close(exact, ours.double()(ids), "the output after module.double()")


@task("learned", 0.2, needs="test_token_plus_position", promise=(
    "It gives the same answer in training and in evaluation",
    "each is looked up in its own list",
))
def test_short_and_long_sentences_find_their_positions(student, reference):
    """One layer serves short and long sentences, in any order, in training and in evaluation."""
    theirs, ours = embeddings(student, reference, 7, 11, 6)
    for T, training in [(between(2, 4), True), (11, False), (1, True), (between(5, 9), False)]:
        ids = torch.randint(7, (3, T))
        theirs.train(training)
        checks.close(theirs(ids), ours(ids), f"the output for T = {T}", atol=1e-5)


@task("learned", 1.35, needs="test_learned_tables_have_the_right_names_and_shapes", promise=(
    "Vector of the token plus vector of its position, both learned.",
    "it is trained like every other parameter",
))
def test_learning_reaches_the_tokens_and_positions_in_use(student, reference):
    """Every token and every position that was used gets its gradient; all others get none."""
    theirs, ours = embeddings(student, reference, 13, 11, 6)
    for name, table in theirs.named_parameters():
        checks.true(table.requires_grad, f"{name} is frozen, so its rows can never be learned.")
    ids = torch.tensor([[0, 1, 0, 2, 0], [0, 7, 12, 12, 1], [3, 0, 2, 1, 7]])
    checks.parameter_gradients_close(theirs.double(), ours.double(), ids)


@task("learned", 0.5, promise=(
    "Raises ValueError that names block_size, its value and ids' length if ids has more than `block_size` positions.",
))
def test_no_position_for_one_more_token(student):
    """A sentence of exactly block_size tokens is welcome; one more is a ValueError that names both numbers."""
    block_size = between(5, 9)
    module = student.TokenAndPositionEmbedding(11, block_size, 3)
    ids = torch.randint(11, (2, block_size))
    checks.shape(module(ids), (2, block_size, 3), f"the output for T = block_size = {block_size}")
    too_long = torch.randint(11, (2, block_size + 1))
    for training in (True, False):
        module.train(training)
        checks.raises(ValueError, module, too_long, naming=("block_size", block_size, block_size + 1))


@task("learned", 0.25, promise="the same token twice, and yet two different vectors.")
def test_the_same_token_at_another_position(student):
    """The same token at two positions gives two vectors, as far apart as the vectors of these positions."""
    module = checks.randomize(student.TokenAndPositionEmbedding(11, 7, 6))
    word = between(0, 10)
    output = module(torch.full((2, 5), word))
    positions = module.position_embedding.weight.detach()
    steps = (positions[1:5] - positions[:4]).expand(2, 4, 6)
    checks.close(output[:, 1:] - output[:, :-1], steps, "the step from each position to the next", atol=1e-5)


@task("learned", 0.5, needs="test_learned_tables_have_the_right_names_and_shapes", promise=(
    "Vector of the token plus vector of its position, both learned.",
    "each is looked up in its own list",
))
def test_a_sentence_gets_the_same_vectors_alone(student):
    """The vectors of a sentence depend on its own tokens, and not on the other sentences of its batch."""
    module = checks.randomize(student.TokenAndPositionEmbedding(31, 7, 6))
    first = torch.randint(30, (5,))
    answers = []

    def embed(ids):
        answers.append(module(ids))
        return answers[-1]

    checks.batch_invariant(embed, torch.stack([first, first + 1]))
    together = answers[0]
    same = "Two sentences with different tokens get the same vectors."
    checks.true(not torch.equal(together[0], together[1]), same, public=same)
