"""Mini GPT: the tests that come with the assignment."""

import math
import random
from contextlib import contextmanager

import torch

from autograder import checks, task
from autograder.fakes import Coin, Successor

TWO_SIZES = ("batch", "position")


# Part 1: batches


@task("batches", 0.25)
def test_batches_have_rows_of_one_length(student):
    """A batch is two tables of ids, x and y, with batch_size rows of block_size words."""
    B, T = 3, 7
    data = torch.randint(11, (29,))
    x, y = checks.unpack(student.get_batch(data, T, B, torch.Generator()), ("x", "y"), "get_batch(...)")
    for name, table in (("x", x), ("y", y)):
        checks.shape(table, (B, T), name, axes=("B", "T"))
        checks.dtype(table, torch.int64, name)


@task("batches", 0.75, needs="test_batches_have_rows_of_one_length")
def test_targets_come_one_step_later(student, seed):
    """On the text 0 1 2 3 …, every row of x counts up, and y is always one more than x."""
    B, T = 31, 5
    x, y = student.get_batch(torch.arange(23), T, B, torch.Generator().manual_seed(seed))
    checks.equal(
        x - x[:, :1], torch.arange(T).expand(B, T), "each row of x minus its first word", axes=TWO_SIZES
    )
    checks.equal(y, x + 1, "y", axes=TWO_SIZES)


@task("batches", 0.25)
def test_too_short_a_text_is_refused(student):
    """A text that is no longer than block_size is a ValueError that names block_size and both lengths."""
    for L in (5, 3):
        data, generator = torch.arange(L), torch.Generator()
        checks.raises(ValueError, student.get_batch, data, 5, 2, generator, naming=("block_size", 5, L))


# Part 2: the loss


@task("loss", 0.5)
def test_knowing_nothing_costs_ln_v(student):
    """Logits of zeros have the loss ln V, whatever the right words are."""
    for B, T, V in ((3, 5, 11), (2, 7, 31)):
        loss = student.language_model_loss(torch.zeros(B, T, V), torch.randint(V, (B, T)))
        checks.close(loss, torch.tensor(math.log(V)), f"the loss of zeros with V = {V}", atol=1e-5)


@task("loss", 0.5)
def test_two_positions_worked_by_hand(student):
    """Probabilities of 1/2 and 1/8 for the right words have the loss (ln 2 + ln 8) / 2 = 1.3863."""
    probabilities = torch.tensor([[[0.25, 0.5, 0.25], [0.125, 0.375, 0.5]]])  # (1, 2, 3)
    loss = student.language_model_loss(probabilities.log() + 2, torch.tensor([[1, 0]]))  # + 2 changes nothing
    checks.close(loss, torch.tensor(2 * math.log(2)), "the loss", atol=1e-5)
    checks.dtype(loss, torch.float32, "the loss of logits in float32")


# Part 3: the model


@contextmanager
def told(words):
    """If a check inside fails, these words say which mistake it was, whatever the code looks like; "" says nothing."""
    try:
        yield
    except checks.CheckFailed as failure:
        failure.telling = failure.telling or words
        raise


def a_model(student, *sizes, **more):
    """A model of yours with random weights: the same ones, in whatever order you make its parts."""
    return checks.randomize(student.TransformerLanguageModel(*sizes, **more))


@task("model", 0.25)
def test_model_gives_logits_for_every_word(student):
    """The model gives V logits after every word, in long and in short pieces of text, and no loss without targets."""
    B, V, C, block_size = 3, 11, 12, 7
    model = a_model(student, V, C, block_size, num_heads=2, num_layers=2)
    for T in (block_size, 2):
        logits, loss = checks.unpack(model(torch.randint(V, (B, T))), ("logits", "loss"), "model(ids)")
        checks.shape(logits, (B, T, V), f"the logits for {T} words", axes=("B", "T", "V"))
        checks.equal(loss, None, "the loss without targets")


@task("model", 0.25, needs="test_model_gives_logits_for_every_word")
def test_model_that_knows_nothing_loses_ln_v(student):
    """With zeros in its last layer, the model knows nothing, and its loss is ln V."""
    B, T, V, C = 2, 5, 13, 8
    model = a_model(student, V, C, 7, num_heads=2)
    with torch.no_grad():
        model.fc.weight.zero_()
        model.fc.bias.zero_()
    logits, loss = checks.unpack(
        model(torch.randint(V, (B, T)), torch.randint(V, (B, T))), ("logits", "loss"), "model(ids, targets)"
    )
    numbers = {f"{number:.3f}" for number in checks.tensor(logits, "the logits").flatten().tolist()}
    with told(f"logits of {numbers.pop()}" if len(numbers) == 1 else ""):
        checks.close(logits, torch.zeros(B, T, V), "the logits", axes=("batch", "position", "word"))
    checks.close(loss, torch.tensor(math.log(V)), "the loss", atol=1e-5)


@task("model", 0.5, needs="test_model_gives_logits_for_every_word")
def test_the_future_changes_nothing(student):
    """Cutting off the end of a piece of text changes nothing for the words before the cut."""
    V, T = 11, 6
    model = a_model(student, V, 12, T, num_heads=3, num_layers=2)
    model.eval()
    checks.prefix_invariant(lambda ids: model(ids)[0], torch.randint(V, (2, T)), atol=1e-5, what="the logits")


@task("model", 0.25, needs="test_model_gives_logits_for_every_word")
def test_model_works_in_float64(student):
    """A model that is turned into float64 has logits and a loss in float64."""
    model = a_model(student, 11, 12, 7, num_heads=3, num_layers=2).double()
    logits, loss = model(torch.randint(11, (2, 5)), torch.randint(11, (2, 5)))
    checks.dtype(logits, torch.float64, "the logits")
    checks.dtype(loss, torch.float64, "the loss")


@task("model", 0.25)
def test_too_long_a_piece_is_refused(student):
    """A piece of text longer than block_size is a ValueError that names block_size and both lengths."""
    model = a_model(student, 11, 8, 5, num_heads=2)
    ids = torch.randint(11, (2, 6))
    checks.raises(ValueError, model, ids, naming=("block_size", 5, 6), what="model(ids) with T = 6")


# Part 4: training


def plain(losses):
    """Losses in tensors as plain numbers: their type has a test of its own."""
    return [loss.item() if isinstance(loss, torch.Tensor) and loss.numel() == 1 else loss for loss in losses]


@task("training", 0.125)
def test_training_reports_every_loss(student):
    """Training returns the loss of every step in a list."""
    model = a_model(student, 11, 8, 5, num_heads=2)
    losses = student.train(model, torch.randint(11, (29,)), 3, 2, 1e-3, torch.Generator())
    checks.true(isinstance(losses, list), "train(...) returned something other than a list of losses.")
    checks.equal(len(losses), 3, "the number of losses of three steps")
    for step, loss in enumerate(plain(losses)):
        checks.between(loss, 0.2, 20.0, f"the loss of step {step}")


@task("training", 0.125, needs="test_training_reports_every_loss")
def test_losses_are_plain_numbers(student):
    """A loss is a plain number, no tensor that keeps a whole graph alive."""
    model = a_model(student, 11, 8, 5, num_heads=2)
    for step, loss in enumerate(student.train(model, torch.randint(11, (29,)), 3, 2, 1e-3, torch.Generator())):
        no_float = f"The loss of step {step} is a {type(loss).__name__}; a float was expected."
        checks.true(type(loss) is float, no_float, telling=f"a {type(loss).__name__} for a float")


@task("training", 0.5, needs=("test_training_reports_every_loss", "test_model_works_in_float64"))
def test_one_window_is_learned_by_heart(student):
    """A text that is one single window is learned by heart: its loss falls from about ln V to nearly nothing."""
    V, T = 13, 7
    # training enlarges rounding errors, which differ from one processor to another; in float64 they stay small
    model = student.TransformerLanguageModel(V, 16, T, num_heads=2).double()
    losses = plain(student.train(model, torch.randperm(V)[: T + 1], 18, 2, 3e-2, torch.Generator()))
    checks.between(losses[0], 0.5, 30.0, "the first loss")
    checks.between(losses[-1], 0.0, 0.3, "the loss after 18 steps")


# Part 5: writing


@task("generation", 0.25)
def test_writing_goes_on_where_the_text_ends(student):
    """What comes back is the text that was given and the new words after it, and the given text is untouched."""
    B, T, new = 3, 5, 4
    ids = torch.randint(7, (B, T))
    given = ids.clone()
    written = student.generate(Coin(vocab_size=7), ids, new)
    checks.shape(written, (B, T + new), "the text", axes=("B", "T + max_new_tokens"))
    checks.equal(written[:, :T], given, f"the first {T} words of the text", axes=TWO_SIZES)
    checks.equal(ids, given, "the ids that were handed in", axes=TWO_SIZES)


@task("generation", 1, needs="test_writing_goes_on_where_the_text_ends")
def test_a_model_that_counts_counts_on(student):
    """With a model that always says n + 1 after n, the text counts on, also far beyond the longest context."""
    fake = Successor(vocab_size=23, block_size=4)
    start = random.randrange(11)
    written = student.generate(fake, torch.tensor([[start, start + 1], [3, 17]]), 9)
    expected = torch.tensor([range(start, start + 11), [3, *range(17, 23), 0, 1, 2, 3]])
    checks.equal(written, expected, "the text", axes=TWO_SIZES)
    lengths = [2, 3, 4, 4, 4, 4, 4, 4, 4]
    checks.equal(fake.context_lengths, lengths, "the list of how many words the model got")


@task("generation", 0.25)
def test_bad_arguments_are_refused(student):
    """A temperature of 0 or below and a top_k below 1 are ValueErrors that name the argument and its value."""
    ids = torch.tensor([[1, 0]])
    for temperature in (0, -0.5):
        naming = ("temperature", temperature)
        checks.raises(ValueError, student.generate, Coin(), ids, 2, temperature=temperature, naming=naming)
    for top_k in (0, -3):
        checks.raises(ValueError, student.generate, Coin(), ids, 2, top_k=top_k, naming=("top_k", top_k))
