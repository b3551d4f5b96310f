"""Mini GPT: the tests that only graders see.

Where chance is counted, the margin is seven standard deviations: a right answer falls outside less than once in
a thousand million runs.
"""

import math
import random

import torch
from torch import nn

from autograder import checks, task
from autograder.fakes import Coin, Die, LanguageModel

TABLE = ("batch", "position")
LOGITS = ("batch", "position", "word")
ROWS, WORDS = 2_000, 2
TOSSES = ROWS * WORDS
CLOSE = 1e-4  # of numbers in float32
EXACT = {"atol": 1e-9, "rtol": 1e-9}  # of numbers in float64: another eps in a layer norm shows
LONG = 150  # longer than any context window in the stub


class Adder(LanguageModel):
    """After some words it says their sum: what it says depends on its whole context."""

    def logits(self, ids):
        return 50.0 * nn.functional.one_hot(ids.cumsum(dim=1) % self.vocab_size, self.vocab_size)


class Moody(LanguageModel):
    """In eval mode it says n + 1 after n, in training mode n + 2."""

    def logits(self, ids):
        step = 2 if self.training else 1
        return 50.0 * nn.functional.one_hot((ids + step) % self.vocab_size, self.vocab_size)


class Fickle(LanguageModel):
    """After word 0 it is a die, after word 1 another one, and so on."""

    def __init__(self, *dice):
        super().__init__(len(dice[0]), block_size=8)
        self.table = torch.tensor(dice).log()  # (how many dice, V)

    def logits(self, ids):
        return self.table[ids]


def seeded(seed):
    """A generator of its own, at a known place."""
    return torch.Generator().manual_seed(seed)


def counted(student, fake, rows=ROWS, **wishes):
    """How often each word of the fake was drawn in two words, for so many rows at once."""
    written = student.generate(fake, torch.zeros(rows, 1, dtype=torch.long), WORDS, **wishes)
    checks.shape(written, (rows, 1 + WORDS), "the text")
    return torch.bincount(written[:, 1:].flatten(), minlength=fake.vocab_size).tolist()


def loaded_die(*shares):
    """A die with these shares on random words of a larger vocabulary, and the words, in the order of the shares."""
    V = random.randint(len(shares) + 2, 12)
    words = random.sample(range(V), len(shares))
    shares_of_words = dict(zip(words, shares))
    return Die([shares_of_words.get(word, 0.0) for word in range(V)]), words


def some_coin():
    """The coin of 80/20 with random words for heads and tails."""
    V = random.randint(5, 12)
    heads, tails = random.sample(range(V), 2)
    return Coin(V, heads, tails)


def fair(count, share, what, total=TOSSES):
    """A count is within seven standard deviations of its share."""
    margin = 7 * math.sqrt(total * share * (1 - share))
    checks.between(count / total, share - margin / total, share + margin / total, what)


def twins(student, reference, dtype=torch.float32, num_layers=2):
    """The student's model and the solution's in eval mode, with the same random weights."""
    sizes = (11, 24, 7, 4, num_layers)
    expected = checks.randomize(reference.TransformerLanguageModel(*sizes).to(dtype)).eval()
    model = student.TransformerLanguageModel(*sizes).to(dtype)
    model.eval()
    checks.copy_parameters(expected, model, "the model")
    return model, expected


def twin_blocks(student, reference, dtype=torch.float32, C=24, num_heads=4):
    """A block of the student's and one of the solution's in eval mode, with the same random weights."""
    expected = checks.randomize(reference.Block(C, num_heads).to(dtype)).eval()
    block = student.Block(C, num_heads).to(dtype)
    block.eval()
    checks.copy_parameters(expected, block, "the block")
    return block, expected


# Part 1: batches


@task("batches", 0.5, needs="test_targets_come_one_step_later",
      promise="all L - T windows are equally likely.")
def test_all_windows_are_equally_likely(student, seed):
    """Each window of the text, also the first and the last, begins a row equally often."""
    T, windows, rows = 3, 5, 2_000
    x, _ = student.get_batch(torch.arange(T + windows), T, rows, seeded(seed))
    checks.shape(x, (rows, T), "x")
    begun = torch.bincount(x[:, 0], minlength=T + windows).tolist()
    for start in range(windows):
        fair(begun[start], 1 / windows, f"the share of rows that begin at {start}", rows)


@task("batches", 0.75, needs="test_batches_have_rows_of_one_length", promise=(
    "Cut windows out of a text, and the same windows one step later.",
    "data keeps its values.",
))
def test_windows_are_pieces_of_the_text(student, seed):
    """Whatever the text says, x and y are pieces of it, and a text of block_size + 1 words has just one."""
    data, T, B = torch.randint(97, (6,)), 5, 3
    x, y = student.get_batch(data, T, B, seeded(seed))
    checks.equal(x, data[:-1].expand(B, T), "x of the shortest text", axes=TABLE)
    checks.equal(y, data[1:].expand(B, T), "y of the shortest text", axes=TABLE)
    text = torch.arange(29)
    checks.input_untouched(lambda text: student.get_batch(text, T, B, seeded(seed)), text, what="get_batch")


@task("batches", 0.5, needs="test_targets_come_one_step_later", promise=(
    "with the same seed it gives the same batches",
    "Without a generator, PyTorch's default one is used, and every call draws anew.",
))
def test_batches_come_from_the_generator(student, seed):
    """The same seed gives the same batches again; one generator, or none, gives a new batch each time."""
    data, T, B = torch.arange(10_007), 3, 11
    generator, same_seed = seeded(seed), seeded(seed)
    first, second = (student.get_batch(data, T, B, generator)[0] for _ in range(2))
    for number, batch in (("first", first), ("second", second)):
        again = student.get_batch(data, T, B, same_seed)[0]
        checks.equal(again, batch, f"x of the {number} batch with the same seed again", axes=TABLE)
    checks.true(not torch.equal(first, second), "Two batches drawn one after the other are the same.")
    first, second = (student.get_batch(data, T, B)[0] for _ in range(2))
    checks.true(not torch.equal(first, second), "Two batches drawn without a generator are the same.")


# Part 2: the loss


@task("loss", 1, promise=(
    "Returns one number, a tensor of shape () in the logits' number type: the mean over all B times T positions.",
))
def test_loss_is_the_cross_entropy(student):
    """The loss is the mean of -ln p(right word) over all positions of all pieces of text, in the logits' number type."""
    B, T, V = 3, 5, 11
    logits, targets = 3 * torch.randn(B, T, V, dtype=torch.float64), torch.randint(V, (B, T))
    surprise = -logits.log_softmax(-1).gather(-1, targets[..., None])  # (B, T, 1)
    loss = student.language_model_loss(logits, targets)
    checks.close(loss, surprise.mean(), "the loss")
    checks.dtype(loss, torch.float64, "the loss of logits in float64")
    checks.input_untouched(student.language_model_loss, logits, targets)


@task("loss", 0.5, promise="what was predicted minus what should have been predicted.")
def test_gradient_is_predicted_minus_right(student):
    """The gradient of the logits is the probabilities minus the one-hot targets, divided by the number of positions."""
    B, T, V = 2, 7, 5
    logits = torch.randn(B, T, V, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(V, (B, T))
    loss = student.language_model_loss(logits, targets)
    checks.shape(loss, (), "the loss")
    checks.true(
        loss.requires_grad, "The loss is cut off from the logits: no gradient can flow back through it."
    )
    (gradient,) = torch.autograd.grad(loss, logits)
    predicted, right = logits.detach().softmax(-1), nn.functional.one_hot(targets, V)
    checks.close(gradient, (predicted - right) / (B * T), "the gradient of the logits", axes=LOGITS)


@task("loss", 0.5, promise="any numbers, also as large as 10,000")
def test_loss_of_huge_logits(student):
    """Logits of 10,000 cost nothing where they are right and 20,000 where they are wrong, never NaN or infinity."""
    V = random.randint(5, 11)
    targets = torch.randint(V, (random.randint(1, 3), random.randint(3, 6)))  # (B, T)
    sure = 20_000.0 * nn.functional.one_hot(targets, V) - 10_000.0  # (B, T, V)
    checks.close(student.language_model_loss(sure, targets), torch.tensor(0.0), "the loss of the right words")
    wrong = student.language_model_loss(sure.roll(1, -1), targets)
    checks.close(wrong, torch.tensor(20_000.0), "the loss of wrong words")


# Part 3: the model


@task("model", 0.5, promise=(
    "`nn.Embedding`s with a row for each word and a row for each position",
    "their names there are their numbers",
    "TransformerLanguageModel(31) owns 54,623 parameters.",
))
def test_model_owns_its_parts(student, reference):
    """The model owns exactly the tables and layers of its description, and no two blocks share parameters."""
    V = random.randint(32, 47)
    C = 2 * random.randint(6, 11)
    block_size = random.choice((5, 7, 9, 11))
    num_layers = random.randint(2, 4)
    plan = reference.TransformerLanguageModel(V, C, block_size, 2, num_layers)
    model = student.TransformerLanguageModel(V, C, block_size, num_heads=2, num_layers=num_layers)
    checks.parameters(model, {name: tuple(p.shape) for name, p in plan.named_parameters()}, "the model")
    checks.parameter_count(student.TransformerLanguageModel(31), 54_623, "TransformerLanguageModel(31)")


@task("model", 0.5, promise=(
    "each sublayer reads a normed copy of the residual stream, and its output is added to the stream itself",
    "for any length T, in float32 and in float64, in training and in eval.",
))
def test_block_with_the_same_weights(student, reference):
    """With the solution's weights, a block gives the solution's output, for one word and for many, in both modes."""
    block, expected = twin_blocks(student, reference, torch.float64)
    for T, training in ((7, False), (5, True), (1, False)):
        block.train(training)
        x = 1 + 2 * torch.randn(3, T, 24, dtype=torch.float64)
        what = f"the block's output for {T} words" + (" in training" if training else "")
        output = block(x)
        checks.close(output, expected(x), what)
        checks.dtype(output, torch.float64, what)
    checks.input_untouched(block, x, what="the block")


@task("model", 0.5, promise="its output is added to the stream itself, which is never normed on the way.")
def test_silent_sublayers_leave_the_stream_alone(student, reference):
    """When attention and feed-forward add nothing, what goes into a block comes out of it unchanged."""
    block, _ = twin_blocks(student, reference)
    silence = [
        block.attention.out_proj.weight,
        block.attention.out_proj.bias,
        block.ff[2].weight,
        block.ff[2].bias,
    ]
    x = 3 * torch.randn(2, 5, 24)
    checks.silent_sublayers(block, x, silence, lambda stream: stream)


@task("model", 0.5, promise=("Each word attends to itself and to the words before it.", "for any length T"))
def test_the_block_sees_the_whole_past_and_no_future(student, reference):
    """In a block, each word's output depends on itself and on every earlier word, and on no later one, at any length."""
    block, _ = twin_blocks(student, reference)
    checks.causal_by_gradient(block, torch.randn(2, 6, 24), what="the block's output")
    x = torch.randn(1, LONG, 24)
    output = block(x)
    checks.shape(output, (1, LONG, 24), f"the block's output for {LONG} words")
    for T in (1, 9, LONG - 9):
        what = f"the block's output for the first {T} of {LONG} words, compared with the output for all,"
        checks.close(block(x[:, :T]), output[:, :T], what, atol=CLOSE)
    x[:, 0] = torch.randn(24)
    moved = (block(x) - output).abs().amax(dim=(0, 2))  # (T,)
    checks.true((moved > 0).all(), "The first word has no influence on some later word.")


@task("model", 1.25, needs="test_model_gives_logits_for_every_word", promise=(
    "a vector for the word plus a vector for its position, then the blocks, then one last layer norm, then a linear",
))
def test_model_with_the_same_weights(student, reference):
    """With the solution's weights, the model gives the solution's logits and loss, for short and long texts."""
    model, expected = twins(student, reference)
    for T, training in ((7, False), (5, True), (1, False)):
        model.train(training)
        ids, targets = torch.randint(11, (3, T)), torch.randint(11, (3, T))
        logits, loss = model(ids, targets)
        expected_logits, expected_loss = expected(ids, targets)
        checks.close(logits, expected_logits, f"the logits for {T} words", axes=LOGITS, atol=CLOSE)
        checks.close(loss, expected_loss, f"the loss for {T} words", atol=CLOSE)


@task("model", 0.25, needs="test_model_with_the_same_weights", promise="with PyTorch's default eps")
def test_model_to_the_last_digit(student, reference):
    """In float64, the model gives the solution's logits and loss to nine digits."""
    model, expected = twins(student, reference, torch.float64)
    ids, targets = torch.randint(11, (3, 7)), torch.randint(11, (3, 7))
    logits, loss = model(ids, targets)
    expected_logits, expected_loss = expected(ids, targets)
    checks.close(logits, expected_logits, "the logits in float64", axes=LOGITS, **EXACT)
    checks.close(loss, expected_loss, "the loss in float64", **EXACT)


@task("model", 0.5, needs="test_model_gives_logits_for_every_word", promise="**no word may see the future**")
def test_reported_loss_is_honest(student):
    """The reported loss is the one of predicting each word from the words before it alone."""
    V, T = 13, 6
    model = checks.randomize(student.TransformerLanguageModel(V, 8, T, num_heads=2, num_layers=2))
    model.eval()
    text = torch.randint(V, (T + 1,))
    _, reported = model(text[None, :-1], text[None, 1:])
    surprises = []
    for t in range(1, T + 1):
        logits, _ = model(text[None, :t])  # (1, t, V)
        surprises.append(-logits[0, -1].log_softmax(-1)[text[t]])
    checks.close(reported, torch.stack(surprises).mean(), "the reported loss", atol=CLOSE)


@task("model", 0.5, needs="test_model_with_the_same_weights", promise=(
    "in a container through which `parameters()` finds them",
    "Compute for every parameter in which direction it should move",
))
def test_everything_in_the_model_learns(student, reference):
    """Every table and layer receives the gradient of the loss that the solution's receives."""
    model, expected = twins(student, reference, num_layers=1)
    ids, targets = torch.randint(11, (2, 5)), torch.randint(11, (2, 5))
    losses = model(ids, targets)[1], expected(ids, targets)[1]
    names = [name for name, _ in expected.named_parameters()]
    theirs = torch.autograd.grad(losses[1], list(expected.parameters()))
    own = dict(model.named_parameters())
    mine = torch.autograd.grad(losses[0], [own[name] for name in names], allow_unused=True)
    for name, gradient, wanted in zip(names, mine, theirs):
        checks.true(gradient is not None, f"{name} receives no gradient.")
        checks.close(gradient, wanted, f"the gradient of {name}", atol=1e-5, rtol=1e-3)


# Part 4: training


def plain(losses):
    """Losses in tensors as plain numbers: their type has a test of its own."""
    return [loss.item() if isinstance(loss, torch.Tensor) and loss.numel() == 1 else loss for loss in losses]


@task("training", 0.75,
      needs=("test_training_reports_every_loss", "test_model_with_the_same_weights", "test_model_works_in_float64"),
      promise=(
          "with one fresh batch from `get_batch` and one step of AdamW each time.",
          "The optimiser is `torch.optim.AdamW` with the learning rate `lr`, everything else as PyTorch sets it.",
      ))
def test_training_takes_the_right_steps(student, reference):
    """On a text of one single window, losses and weights after a few steps of AdamW are those of the solution."""
    model, expected = twins(student, reference, torch.float64, num_layers=1)
    text, steps, rate = torch.randint(11, (8,)), 3, random.choice((3e-3, 1e-2))
    theirs = reference.train(expected, text, steps, 2, rate, seeded(0))
    mine = plain(student.train(model, text, steps, 2, rate, seeded(0)))
    checks.close(mine, theirs, "the losses", atol=1e-5)
    trained = dict(expected.named_parameters())
    for name, parameter in model.named_parameters():
        checks.close(parameter, trained[name], f"{name} after {steps} steps", atol=1e-5)


@task("training", 1,
      needs=("test_training_reports_every_loss", "test_model_gives_logits_for_every_word"),
      promise=(
          "The batches have batch_size rows of model.block_size words",
          "with one fresh batch from `get_batch`",
      ))
def test_batches_are_as_large_as_asked(student, seed):
    """A batch of one row is one window of the text, a batch of many rows a mixture, and each step has a new one."""
    T, V, steps = 5, 7, 7
    model = checks.randomize(student.TransformerLanguageModel(V, 8, T, num_heads=2))
    gains = torch.arange(V) ** 1.1  # whatever its context, a word with a larger gain costs so much less
    with torch.no_grad():
        model.fc.weight.zero_()
        model.fc.bias.copy_(gains)
    text = torch.arange(V)  # two windows
    first, second = (model(text[None, i : i + T], text[None, i + 1 : i + 1 + T])[1].item() for i in (0, 1))

    def windows_from_the_first(loss):
        return (loss - first) / (second - first)

    generator = seeded(seed)
    (mixture,) = plain(student.train(model, text, 1, 131, 0.0, generator))
    rows = windows_from_the_first(mixture) * 131
    sentence = f"The loss {mixture:.6f} of a batch of 131 is not the mean over so many windows of the text."
    checks.true(abs(rows - round(rows)) < 1e-2 and 0 <= round(rows) <= 131, sentence)
    checks.true(0 < round(rows) < 131, "A batch of 131 rows is the same window 131 times.")

    longer = torch.cat([text, torch.randint(V, (95,))])
    gain = gains[longer[1:]].unfold(0, T, 1).sum(dim=-1)  # of each of the 97 windows
    windows = (gain - gain[0]) / (gain[1] - gain[0])
    losses = plain(student.train(model, longer, steps, 1, 0.0, generator))
    places = [windows_from_the_first(loss) for loss in losses]
    for loss, place in zip(losses, places):
        sentence = f"The loss {loss:.6f} of a batch of 1 is not the mean over so many windows of the text."
        checks.true((windows - place).abs().min() < 2e-4, sentence)
    sentence = f"In {steps} steps with batches of one row, the model met one and the same window."
    checks.true(max(places) - min(places) > 1e-3, sentence)


@task("training", 0.5, needs="test_training_reports_every_loss", promise=(
    "are drawn with `generator` (None: PyTorch's default one).",
    "The model is put into training mode first and stays in it.",
    "Returns the loss of every batch, before its step",
))
def test_training_can_be_repeated(student, seed):
    """Training draws its batches with the generator: the same seed, the same losses. It ends in training mode."""
    V, T = 11, 5
    model = checks.randomize(student.TransformerLanguageModel(V, 8, T, num_heads=2))
    model.eval()
    text, before = torch.randint(V, (997,)), {n: p.detach().clone() for n, p in model.named_parameters()}
    x, y = checks.unpack(student.get_batch(text, T, 2, seeded(seed)), ("x", "y"), "get_batch(...)")
    first_loss = model(x, y)[1].item()
    losses = plain(student.train(model, text, 2, 2, 1e-2, seeded(seed)))
    checks.close(
        losses[0], first_loss, "the first loss, compared with that of get_batch's first batch", atol=1e-5
    )
    checks.true(model.training, "After train(...) the model is in eval mode.")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(before[name])
    checks.close(
        plain(student.train(model, text, 2, 2, 1e-2, seeded(seed))),
        losses,
        "the losses with the same seed",
        atol=1e-5,
    )
    first, second = (plain(student.train(model, text, 1, 5, 0.0)) for _ in range(2))
    checks.true(first != second, "Trained twice without a generator, the model met the same batches.")


# Part 5: writing


@task("generation", 0.75, needs="test_writing_goes_on_where_the_text_ends",
      promise="The model gets the last block_size words, in eval mode, without gradients")
def test_context_is_the_end_of_the_text(student):
    """Each time, the model gets the whole text, or its last block_size words when it is longer."""
    fake, ids = Adder(vocab_size=31, block_size=5), torch.randint(1, 31, (2, 3))
    expected = ids
    for _ in range(6):
        said = expected[:, -5:].sum(dim=1, keepdim=True) % 31  # (2, 1)
        expected = torch.cat([expected, said], dim=1)
    written = student.generate(fake, ids, 6)
    checks.equal(fake.context_lengths, [3, 4, 5, 5, 5, 5], "the list of how many words the model got")
    checks.equal(written, expected, "the text of a model that says the sum of its context", axes=TABLE)


@task("generation", 0.25, needs="test_writing_goes_on_where_the_text_ends",
      promise="each drawn from the model's probabilities.")
def test_a_coin_of_eighty_twenty(student):
    """Tossed 4,000 times, a coin that says 80/20 shows heads about 3,200 times."""
    coin = some_coin()
    counts = counted(student, coin)
    fair(counts[coin.heads], 0.8, "the share of heads")
    fair(counts[coin.tails], 0.2, "the share of tails")


@task("generation", 0.75, needs="test_writing_goes_on_where_the_text_ends", promise=(
    "The logits are divided by it before the softmax.",
    "At temperature 2 the square root is taken",
    "The temperature acts among those that remain.",
))
def test_temperature_calms_and_excites(student):
    """The 80/20 coin shows heads in 99.6 % at temperature 1/4, and in 66.7 % at temperature 2. top_k may join in."""
    for temperature, share in ((0.25, 0.8**4 / (0.8**4 + 0.2**4)), (2.0, 2 / 3)):
        coin = some_coin()
        heads = counted(student, coin, temperature=temperature)[coin.heads]
        fair(heads, share, f"the share of heads at temperature {temperature}")
    die, words = loaded_die(0.36, 0.17, 0.16, 0.156, 0.154)
    likeliest = counted(student, die, temperature=0.5, top_k=3)[words[0]]
    fair(likeliest, 1296 / 1841, "the share of the likeliest word with top_k = 3 at temperature 0.5")


@task("generation", 0.75, needs="test_writing_goes_on_where_the_text_ends",
      promise="only the k most likely words of each row can be drawn; None, or a k beyond the vocabulary, means all.")
def test_only_the_likeliest_words_are_drawn(student):
    """With top_k = k exactly the k most likely words are drawn, at any temperature: with 1 only the most likely."""
    die, words = loaded_die(0.6, 0.15, 0.14, 0.11)
    likeliest = words[0]
    fair(counted(student, die)[likeliest], 0.6, "the share of the likeliest word without top_k")
    for top_k in (3, 4):
        counts = counted(student, die, rows=150, top_k=top_k)
        drawn = [word for word, count in enumerate(counts) if count]
        sentence = f"With top_k = {top_k}, the words that can be drawn are not the {top_k} most likely ones."
        checks.true(drawn == sorted(words[:top_k]), sentence, public=sentence)
    two = counted(student, die, top_k=2)
    others = sum(count for word, count in enumerate(two) if word not in words[:2])
    checks.equal(others, 0, "the count of words that are not among the two likeliest")
    fair(two[likeliest], 0.8, "the share of the likeliest word with top_k = 2")
    hot = counted(student, die, temperature=2.0, top_k=2)[likeliest]
    fair(hot, 2 / 3, "the share of the likeliest word with top_k = 2 at temperature 2")
    checks.equal(
        counted(student, die, rows=150, top_k=1)[likeliest], 300, "the count of the likeliest word with top_k = 1"
    )
    die, words = loaded_die(0.4, 0.3, 0.15, 0.1, 0.05)
    for more, which in ((0, "as large as the vocabulary"), (4, "beyond the vocabulary")):
        everything = counted(student, die, top_k=die.vocab_size + more)
        fair(everything[words[-1]], 0.05, f"the share of the rarest word of five with top_k {which}")


@task("generation", 0.25, needs="test_writing_goes_on_where_the_text_ends",
      promise="only the k most likely words of each row can be drawn")
def test_each_row_keeps_its_own_words(student):
    """With top_k, each row of a batch keeps its own likeliest words, however sure the other rows are."""
    dice = ([0.45, 0.25, 0.15, 0.1, 0.05], [0.7, 0.2, 0.06, 0.03, 0.01])
    words = [random.sample(range(5), 5) for _ in dice]  # of each die, the likeliest first
    fake = Fickle(*([shares[order.index(word)] for word in range(5)] for shares, order in zip(dice, words)))
    ids = torch.tensor([[0], [1]]).repeat(500, 1)  # (1000, 1)
    written = student.generate(fake, ids, 1, top_k=3)
    checks.shape(written, (1000, 2), "the text")
    for word, order in enumerate(words):
        drawn = written[ids[:, 0] == word, 1].unique().tolist()
        checks.equal(drawn, sorted(order[:3]), f"the list of words that were drawn after word {word} with top_k = 3")


@task("generation", 0.25, promise=(
    "it happens in eval mode and keeps no gradients, and afterwards the model is in the mode that it was in before.",
))
def test_writing_happens_in_eval_mode(student):
    """The model writes in eval mode, and is afterwards in the mode that it was in before."""
    for training in (True, False):
        fake = Moody(vocab_size=11, block_size=8).train(training)
        student.generate(fake, torch.randint(11, (2, 4)), 3)
        checks.true(bool(fake.calls), "The model was never asked for a word.")
        checks.true(not any(fake.modes), "The model was asked while it was in training mode.")
        checks.equal(fake.training, training, "the mode of the model afterwards")


@task("generation", 0.25, promise="it happens in eval mode and keeps no gradients")
def test_writing_keeps_no_gradients(student):
    """While the model writes, no gradients are kept."""
    fake = some_coin()
    student.generate(fake, torch.randint(fake.vocab_size, (2, 4)), 3)
    checks.true(bool(fake.calls), "The model was never asked for a word.")
    checks.true(not any(fake.grads), "The model was asked while gradients were kept.")


@task("generation", 0.25,
      promise="Every row is drawn independently, with `generator` (None: PyTorch's default one).")
def test_what_is_written_can_be_repeated(student, seed):
    """The same seed writes the same text again, no seed another one, and each row is drawn independently."""
    even, start = Die([0.02] * 50), torch.zeros(3, 1, dtype=torch.long)
    generator = seeded(seed)
    text = student.generate(even, start, 7, generator=generator)
    again = student.generate(even, start, 7, generator=seeded(seed))
    checks.equal(again, text, "the text with the same seed", axes=TABLE)
    longer = student.generate(even, start, 7, generator=generator)
    checks.true(not torch.equal(longer, text), "One generator wrote the same text twice.")
    first, second = (student.generate(even, start, 7) for _ in range(2))
    checks.true(not torch.equal(first, second), "Without a generator, the same text was written twice.")
    rows = {tuple(row) for row in text.tolist()}
    checks.true(len(rows) == 3, "Rows of one batch were written alike, word by word.")
