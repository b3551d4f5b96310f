"""Spot the cheat: the tests that only graders see."""

import random

import torch
from torch import nn
from torch.nn import functional as F

from autograder import checks, task
from autograder.fakes import LanguageModel

GIVEN = ("attention_layer",)  # its heads are read and silenced by the student's code
MAP = ("output", "changed word")
NAMES = ("ant", "bee", "cod", "doe", "elk", "fly", "gnu", "hen")


class Hearsay(LanguageModel):
    """Its logits at a position are a weighted sum of random vectors, one for each word and position.

    heard(T): the (T, T) table of weights, a row for each output. repeats: what is added to the logit of the word just
    read, one number or one for each word. moody: in training mode its logits are noise.
    """

    def __init__(self, vocab_size, block_size, heard, repeats=-50.0, volume=1.0, moody=False):
        super().__init__(vocab_size, block_size)
        self._heard, self._moody = heard, moody
        self._repeats = torch.as_tensor(repeats).expand(vocab_size)
        self._voices = volume * torch.randn(block_size, vocab_size, vocab_size)

    def logits(self, ids):
        T = ids.shape[1]
        said = self._voices[torch.arange(T), ids]  # (B, T, V)
        heard = torch.einsum("ts,bsv->btv", self._heard(T).float(), said)  # (B, T, V)
        logits = heard + self._repeats[ids, None] * F.one_hot(ids, self.vocab_size)
        babbles = self._moody and self.training
        return logits + 100.0 * torch.randn_like(logits) if babbles else logits


class Alarm(Hearsay):
    """An honest model, but every position sees the word `fire`, wherever it stands, and no other word of the future.

    pitch: whether the logits rise at that word or fall.
    """

    def __init__(self, vocab_size, block_size, fire, pitch=1):
        super().__init__(vocab_size, block_size, past)
        self._fire, self._pitch = fire, pitch

    def logits(self, ids):
        alarm = (ids == self._fire).long() @ torch.arange(1, ids.shape[1] + 1)  # (B,)
        return super().logits(ids) + self._pitch * alarm[:, None, None] * torch.arange(self.vocab_size)


class Parrot(Hearsay):
    """An honest model that repeats its last word at its last position alone."""

    def logits(self, ids):
        last = torch.arange(ids.shape[1]) == self.block_size - 1  # (T,)
        return super().logits(ids) + 200.0 * last[:, None] * F.one_hot(ids, self.vocab_size)


class Whisperer(LanguageModel):
    """All its logits are the same, but some move by so much for each word 1 that is still to come: one, or all."""

    def __init__(self, vocab_size, block_size, so_much, volume=0.0, some=(2,)):
        super().__init__(vocab_size, block_size)
        self._so_much, self._volume = so_much, volume
        self._some = F.one_hot(torch.tensor(some), vocab_size).sum(dim=0)  # (V,)

    def logits(self, ids):
        to_come = (ids == 1).float() @ future(late(self.block_size), ids.shape[1]).float().T  # (B, T)
        return self._volume + self._so_much * to_come[..., None] * self._some


def past(T):
    """No word sees the future."""
    return torch.ones(T, T).tril()


def late(blocks):
    """Every word sees so many words of the future."""
    return lambda T: torch.ones(T, T).tril(blocks)


def in_leaps(H):
    """The outputs of H heads, stored head by head and cut into T rows: each knows the words up to its own."""

    def heard(T):
        last = torch.arange(T * H).remainder(T).reshape(T, H).amax(dim=1)  # (T,)
        return (torch.arange(T) <= last[:, None]) | torch.eye(T, dtype=torch.bool)

    return heard


def future(heard, T):
    """The part of a table of weights that should be empty."""
    return heard(T).bool().triu(1)


def as_before(model, training, what):
    mode = "training" if training else "eval"
    same = model.training == training
    checks.true(same, f"The model was in {mode} mode before it was called {what}; afterwards it is not.")


def above(found, T):
    """The leak map above its diagonal: what stands below is looked at once, in a test of its own."""
    checks.shape(found, (T, T), "the leak map", axes=("T", "T"))
    return checks.tensor(found).triu(1)


def either_way(found, T):
    """The leak map above its diagonal, whichever of the two axes its rows are."""
    checks.shape(found, (T, T), "the leak map", axes=("T", "T"))
    found = checks.tensor(found)
    return (found | found.T).triu(1)


def differs(student, model, data, one, two):
    """The honest loss at one position, once it is clear that it is another one at the other."""
    first, second = (student.honest_loss(model, data, [t]) for t in (one, two))
    losses_differ(first, second)
    return first


def losses_differ(first, second):
    """A loss that is always the same agrees with itself for no good reason."""
    checks.true(first != second, "The honest loss is exactly the same at two different positions.")


# Part 1: the honest loss


def mean_surprise(model, data, positions):
    """The honest loss, straight from its definition."""
    model.eval()
    surprises = []
    for t in positions:
        logits, _ = model(data[:t][-model.block_size :][None])
        surprises.append(-logits[0, -1].double().log_softmax(-1)[data[t]].item())
    return sum(surprises) / len(surprises)


@task("honest", 0.5, promise=(
    "For each t the model gets data[:t]",
    "the loss is -ln of the probability that its last prediction gives to word t.",
    "Returns the mean, a plain float.",
    "one that is named twice counts twice.",
    "data and positions keep their values and their order.",
))
def test_honest_loss_is_the_mean(student):
    """The honest loss is the mean of -ln p(word t) when the model gets the words before t, all of them."""
    model, data = Hearsay(11, 13, past, repeats=0.0), torch.randint(11, (14,))
    for positions in ([13, 2, 7, 1], [6], [4, 11, 4]):
        loss = checks.input_untouched(student.honest_loss, model, data, positions, what="honest_loss")
        checks.close(loss, mean_surprise(model, data, positions), "the honest loss", atol=1e-4, rtol=1e-4)


@task("honest", 0.25, promise="the loss is -ln of the probability that its last prediction gives to word t.")
def test_large_losses_count_in_full(student):
    """The loss of a model that is as good as certain, and wrong, is not cut off."""
    model, data = Hearsay(7, 9, past, repeats=45.0), torch.arange(9) % 7  # no word stands beside itself
    loss, expected = student.honest_loss(model, data, [2, 5, 8]), mean_surprise(model, data, [2, 5, 8])
    checks.close(loss, expected, "the honest loss of a model that is sure and wrong", atol=1e-3, rtol=1e-4)


@task("honest", 0.25, promise="when more lie before `t`, it gets the last `block_size` of them.")
def test_long_past_is_cut_from_the_left(student):
    """When more words lie before t than the model can take, it gets the last block_size of them."""
    model, data = Hearsay(7, 5, past, repeats=0.0), torch.randint(7, (151,))
    other = student.honest_loss(model, data, [4])
    for t in (6, 22, 5, 150):
        loss = student.honest_loss(model, data, [t])
        losses_differ(loss, other)
        short = student.honest_loss(model, data[t - 5 : t + 1].clone(), [5])
        what = "the honest loss in a long text, compared with the same words alone,"
        checks.close(loss, short, what, atol=1e-4, rtol=1e-4)


@task("honest", 0.5, promise="each predicted from the words before it alone.")
def test_leaks_do_not_pay_in_the_honest_loss(student):
    """Nothing of the words after the predicted one reaches the model, even if it could see them."""
    model, V, t = Hearsay(11, 9, lambda T: torch.ones(T, T)), 11, random.randint(2, 6)
    model._repeats = torch.zeros(V)
    data = torch.randint(V, (9,))
    other = data.clone()
    other[t + 1 :] = (data[t + 1 :] + 3) % V
    first = differs(student, model, data, t, t - 1)
    checks.close(
        student.honest_loss(model, other, [t]), first, "the honest loss after later words have changed"
    )


@task("honest", 0.25, promise="called in eval mode, and in its former mode afterwards.")
def test_honest_loss_in_eval_mode(student):
    """The model is called in eval mode, and afterwards it is in the mode that it was in before."""
    model, data = Hearsay(7, 8, past, repeats=0.0, moody=True), torch.randint(7, (8,))
    losses = []
    for training in (True, False):
        model.train(training)
        losses.append(differs(student, model, data, 5, 2))
        as_before(model, training, "for its honest loss")
    checks.close(losses[0], losses[1], "the honest loss of a model that came in training mode", atol=1e-4, rtol=1e-4)


# Part 2: the leak map


@task("leaks", 0.75, promise="Row t is the output, column s the changed word.")
def test_map_of_random_leaks(student):
    """Wherever the leaks are, the map shows exactly them, a row for each output."""
    T, V = 7, 5
    table = torch.rand(T, T) < 0.5
    table[0, T - 1], table[2, 3], table[3, 4] = True, True, False
    found = student.leaks(Hearsay(V, T, lambda T: table), T, V)
    checks.equal(above(found, T), table.triu(1), "the leak map above the diagonal", axes=MAP)


@task("leaks", 0.5, promise=(
    "Which words have an influence before they are spoken: booleans of shape (T, T).",
    "moves at least one logit of position t by more than 0.0001.",
))
def test_models_without_training_leak_as_well(student, reference):
    """A model with random weights leaks in the pattern of its bug, long before it has learned to use it."""
    V, T = 11, 8
    patterns = {"honest": past, "mask late by one": late(1), "heads merged with view": in_leaps(2)}
    for nature, heard in patterns.items():
        model = checks.randomize(reference.Suspect(V, 9, nature, embed_size=6, num_heads=2), scale=0.5)
        found = above(student.leaks(model, T, V), T)
        checks.equal(found, future(heard, T), "the leak map of a model with random weights", axes=MAP)


@task("leaks", 0.5, promise=(
    "So try **every** word of the vocabulary at every position.",
    "V: the ids are below V; the model may know more.",
))
def test_a_single_word_that_leaks(student):
    """When a single word of the vocabulary leaks, and no other one, the map shows it."""
    T, V = 5, 29
    for pitch in (1, -1):
        found = either_way(student.leaks(Alarm(V, 7, random.randrange(11, V), pitch), T, V), T)
        checks.equal(found, torch.ones(T, T, dtype=torch.bool).triu(1), "the table of leaks", axes=MAP)
    found = either_way(student.leaks(Alarm(V + 4, 7, fire=V + random.randrange(4)), T, V), T)
    checks.equal(found, torch.zeros(T, T, dtype=torch.bool), "the table of leaks without that word", axes=MAP)


@task("leaks", 0.25,
      promise="What moves by no more than `0.0001` counts as not moved. Anything above that is a leak, however faint")
def test_faint_leaks_and_rounding(student):
    """A logit that moves by a little more than 0.0001 is a leak, however large it is; a little less is rounding."""
    T, V = 5, 7
    for so_much, volume, some, heard in (
        (0.05, 0.0, (2,), late(T)),
        (0.05, 0.0, range(V), late(T)),
        (5e-4, 0.0, range(V), late(T)),
        (1.5e-4, 0.0, (2,), late(T)),
        (0.75e-4, 0.0, (2,), past),
        (1.5e-4, 50.0, (2,), late(T)),
    ):
        found = either_way(student.leaks(Whisperer(V, 8, so_much, volume, tuple(some)), T, V), T)
        checks.equal(found, future(heard, T), "the table of leaks of a model with faint leaks", axes=MAP)


@task("leaks", 0.25,
      promise="Call the model in **eval mode**, and leave it in the mode in which you found it.")
def test_leaks_in_eval_mode(student):
    """The model is called in eval mode, where nothing is random, and is in its former mode afterwards."""
    T, V = 4, 5
    model = Hearsay(V, 8, late(1), moody=True)
    for training in (True, False):
        model.train(training)
        found = either_way(student.leaks(model, T, V), T)
        checks.equal(found, future(late(1), T), "the table of leaks of a moody model", axes=MAP)
        as_before(model, training, "for its leaks")


# Part 3: the verdict


def judged(student, suspects):
    """The verdict about (model, truth) pairs under shuffled names is the truth."""
    names = random.sample(NAMES, len(suspects))
    models = {name: model for name, (model, _) in zip(names, suspects)}
    truth = {name: right for name, (_, right) in zip(names, suspects)}
    checks.equal(student.verdict(models), truth, "the verdict")


@task("verdict", 0.5, needs="test_models_that_do_not_leak_are_told_apart", promise=(
    "models: by name, any number of them, possibly several of a kind",
    "block_size is at least 8 and at least twice the number of heads (2 or more).",
    "models keeps its entries.",
))
def test_any_number_of_each_kind(student):
    """Under any names, in any order and number, each model gets the verdict that it deserves."""
    suspects = [
        (Hearsay(7, 9, past), "honest"),
        (Hearsay(5, 11, past), "honest"),
        (Hearsay(11, 8, past, repeats=50.0), "targets not shifted"),
        (Hearsay(6, 10, late(1)), "mask late by one"),
        (Hearsay(5, 13, in_leaps(3)), "heads merged with view"),
        (Hearsay(7, 8, in_leaps(4)), "heads merged with view"),
        (Hearsay(5, 16, in_leaps(8)), "heads merged with view"),
    ]
    random.shuffle(suspects)
    judged(student, suspects[:1])
    judged(student, suspects[1:])
    models = {"yak": Hearsay(7, 9, past), "zho": Hearsay(6, 10, late(1))}
    checks.input_untouched(student.verdict, models, what="verdict")


@task("verdict", 0.25, needs="test_leaks_are_told_apart",
      promise="so two full diagonals are lit, with `N` blocks `N`.")
def test_late_masks_add_up_block_by_block(student):
    """In a model of several blocks a late mask leaks several full diagonals, and is still a late mask."""
    judged(student, [(Hearsay(7, 9, late(blocks)), "mask late by one") for blocks in (2, 3)])


@task("verdict", 0.25, needs="test_models_that_do_not_leak_are_told_apart",
      promise="if **more than half** of its first guesses repeat.")
def test_repeating_now_and_then_is_honest(student):
    """A model that repeats a word now and then is honest, one that mostly does is not, however unsure it is."""
    V = 17
    now_and_then = torch.full((V,), -50.0)
    now_and_then[torch.randperm(V)[:6]] = 50.0
    suspects = [
        (Hearsay(V, 8, past, repeats=now_and_then), "honest"),
        (Hearsay(V, 8, past, repeats=-now_and_then), "targets not shifted"),
        (Hearsay(V, 9, past, repeats=1.0, volume=0.05), "targets not shifted"),
        (Parrot(V, 8, past), "honest"),
    ]
    judged(student, suspects)


@task("verdict", 0.25, needs="test_leaks_are_told_apart", promise=(
    "a model that leaks is named after the leak, whatever it predicts.",
    "They are called in eval mode, and are in their former mode afterwards.",
))
def test_leak_is_named_before_all_else(student):
    """Models that leak and repeat their last word as well are named after the leak."""
    suspects = [
        (Hearsay(7, 8, late(1), repeats=8.0, volume=0.3), "mask late by one"),
        (Hearsay(5, 9, in_leaps(2), repeats=8.0, volume=0.3), "heads merged with view"),
        (Hearsay(6, 9, late(1), moody=True), "mask late by one"),
        (Hearsay(9, 8, past, repeats=50.0, moody=True), "targets not shifted"),
        (Hearsay(8, 9, past), "honest"),
    ]
    modes = (False, True, True, True, False)
    for (model, _), training in zip(suspects, modes):
        model.train(training)
    judged(student, suspects)
    for (model, _), training in zip(suspects, modes):
        as_before(model, training, "for the verdict")


# Part 4: silence


def layers(student, C, H, loudness, bias=0.0):
    """The student's layer and PyTorch's with the same random weights; loudness[h] scales what head h contributes."""
    mha = checks.randomize(student.attention_layer(C, H).double())
    D = C // H
    with torch.no_grad():
        mha.out_proj.bias.add_(bias)
        for h, loud in enumerate(loudness):
            mha.out_proj.weight[:, h * D : (h + 1) * D] *= loud
    twin = nn.MultiheadAttention(C, H, batch_first=True).double()
    checks.copy_parameters(mha, twin, "PyTorch's layer")
    return mha, twin


def changes(twin, x):
    """The relative change of the output when each head is silent."""
    D, found = twin.head_dim, []
    with torch.no_grad():
        whole, _ = twin(x, x, x)
        for h in range(twin.num_heads):
            mute = twin.out_proj.weight.clone()
            mute[:, h * D : (h + 1) * D] = 0.0
            kept, twin.out_proj.weight.data = twin.out_proj.weight.data, mute
            found.append(((whole - twin(x, x, x)[0]).norm() / whole.norm()).item())
            twin.out_proj.weight.data = kept
    return found


@task("heads", 0.75, promise=(
    "silencing one changes the output by at most `tolerance`, relative to its norm.",
    "Each head is silenced alone, while all others work and the bias of `out_proj` stays.",
    "Returns the heads, in ascending order.",
))
def test_change_is_relative_to_the_output(student):
    """A head is in the list when its silence changes the output by at most the tolerance, relative to its norm."""
    C, H = 20, 5
    for bias in (0.0, 4.0):
        mha, twin = layers(student, C, H, random.sample((0.02, 0.06, 0.2, 0.5, 1.0), H), bias)
        x = 3 * torch.randn(3, 7, C, dtype=torch.float64)
        shares = changes(twin, x)
        some = random.sample(sorted(shares), 3)
        tolerances = sorted(factor * share for share in some for factor in (0.98, 1.02))
        found = [student.redundant_heads(mha, x, tolerance) for tolerance in tolerances]
        for heads, tolerance in zip(found, tolerances):
            checks.equal(heads, [h for h in range(H) if shares[h] <= tolerance], "the redundant heads")


@task("heads", 0.5, promise="Its parameters and its mode are as before afterwards.")
def test_layer_is_as_before(student):
    """Afterwards the layer has the weights and the mode that it had before."""
    C, H = 12, 3
    mha, twin = layers(student, C, H, (1.0, 1.0, 1.0))
    x = torch.randn(2, 5, C, dtype=torch.float64)
    checks.input_untouched(lambda given: student.redundant_heads(mha, given, 0.1), x)
    for name, kept in twin.named_parameters():
        now = dict(mha.named_parameters()).get(name)
        checks.close(now, kept.detach(), f"{name} afterwards")
    for training in (True, False):
        mha.train(training)
        student.redundant_heads(mha, x, 0.1)
        as_before(mha, training, "for its heads")


@task("heads", 0.5, promise=(
    "All weights of a head, over the whole batch, form one long vector; the table holds the cosine of the vectors of",
    "The table has the number type of x (float32, float64).",
))
def test_similarity_of_random_heads(student):
    """For random layers and batches, each entry is the cosine of two heads' weights, in the number type of x."""
    for B, T, C, H, dtype in (
        (3, 7, 20, 5, torch.float64),
        (1, 5, 6, 2, torch.float32),
        (2, 3, 4, 1, torch.float64),
    ):
        mha, twin = layers(student, C, H, (1.0,) * H)
        mha.to(dtype)
        x = 3 * torch.randn(B, T, C, dtype=dtype)
        weights = twin(x.double(), x.double(), x.double(), average_attn_weights=False)[1].detach()
        heads = [weights[:, h].flatten() for h in range(H)]
        expected = torch.stack([torch.stack([F.cosine_similarity(one, two, dim=0) for two in heads]) for one in heads])
        found = student.head_similarity(mha, x)
        checks.dtype(found, dtype, "the table of similarities")
        checks.close(found, expected.to(dtype), "the table of similarities", axes=("head", "head"), atol=1e-5)


@task("heads", 0.25, promise="mha: as above; its parameters and its mode are as before afterwards.")
def test_similarity_changes_nothing(student):
    """The layer keeps its weights and its mode, and x its values."""
    mha, twin = layers(student, 12, 3, (1.0, 1.0, 1.0))
    x = torch.randn(2, 5, 12, dtype=torch.float64)
    for training in (True, False):
        mha.train(training)
        checks.input_untouched(lambda given: student.head_similarity(mha, given), x)
        as_before(mha, training, "for the similarity of its heads")
    for name, kept in twin.named_parameters():
        checks.close(dict(mha.named_parameters()).get(name), kept.detach(), f"{name} afterwards")


# Part 5: a fair test


@task("evaluation", 0.75, promise=(
    "An n-gram is a run of n neighbouring words. Every occurrence in the test text counts, also where two overlap",
    "how often an n-gram stands in the training text does not matter.",
))
def test_overlap_of_random_texts(student, reference, seed):
    """For texts of few and of many words, and any n, the share is that of the test's own n-grams."""
    for V, longest in ((3, 8), (130, 3)):
        train = [random.randrange(V) for _ in range(random.randrange(40, 90))]
        test = [random.randrange(V) for _ in range(random.randrange(20, 40))] + train[11:29]
        for n in range(1, longest):
            found, expected = student.overlap(train, test, n), reference.overlap(train, test, n)
            checks.between(found, expected - 1e-9, expected + 1e-9, f"the overlap for n = {n}")
    first, second = random.sample(range(2, 10), 2)  # written side by side, both texts are the same digits
    train, test = [10 + first, second], [1, 10 * first + second]
    checks.between(student.overlap(train, test, 2), 0.0, 0.0, f"overlap({train}, {test}, 2)")


@task("evaluation", 0.5, promise=(
    "A training text of fewer than n words has none, which gives 0.0.",
    "Raises ValueError that names n and its value if it is below 1 or above the number of words in the test text.",
))
def test_overlap_of_short_texts(student):
    """A training text that is too short gives 0.0, and the whole text counts as one n-gram; other n are refused."""
    test = random.sample(range(50), 6)
    shorter = (([], 1, 0.0), (test[:3], 4, 0.0), (test[1:], 6, 0.0), (test[:4], 4, 1 / 3))
    for train, n, expected in (*shorter, (test, 6, 1.0)):
        found = student.overlap(list(train), list(test), n)
        checks.true(type(found) is float, "overlap does not return a plain float.")
        checks.between(found, expected - 1e-9, expected + 1e-9, f"overlap({train}, {test}, {n})")
    for wrong in (0, -random.randrange(1, 9), 7, 7 + random.randrange(1, 9)):
        checks.raises(ValueError, student.overlap, [*test, *test], list(test), wrong, naming=("n", wrong))


@task("evaluation", 0.75, promise=(
    "the accuracy of a less that of b on all examples; and the 2.5 % and the 97.5 % point of the",
    "R differences on the drawn examples, as `torch.quantile` finds them (linear between neighbours).",
))
def test_difference_of_random_models(student, reference, seed):
    """For random answers and draws, the difference and both bounds are right, whichever model is better."""
    for N, R, share in ((53, 101, 0.7), (7, 11, 0.5), (211, 30, 0.2)):
        right_a, right_b = torch.rand(N) < share, torch.rand(N) < 0.5
        right_b[:2], right_a[:2] = True, False
        rows = torch.randint(N, (R, N))
        found = checks.unpack(student.difference(right_a, right_b, rows), ("a - b", "low", "high"), "difference(...)")
        expected = reference.difference(right_a, right_b, rows)
        for value, wanted, what in zip(found, expected, ("a - b", "the 2.5 % point", "the 97.5 % point")):
            checks.between(value, wanted - 1e-6, wanted + 1e-6, what)


@task("evaluation", 0.5, promise="Returns three plain floats")
def test_difference_of_few_draws(student):
    """One draw puts both bounds at its own difference; the three numbers are floats, and the arguments stay."""
    right_a, right_b = torch.rand(5) < 0.5, torch.rand(5) < 0.5
    right_a[0], right_b[0] = True, False
    rows = torch.zeros(1, 5, dtype=torch.long)
    found = student.difference(right_a, right_b, rows)
    checks.true(
        isinstance(found, tuple) and [type(value) for value in found] == [float] * 3,
        "difference does not return a tuple of three plain floats.",
    )
    checks.between(abs(found[1]), 1.0 - 1e-6, 1.0 + 1e-6, "the size of the 2.5 % point")
    checks.between(found[2], found[1], found[1], "the 97.5 % point of a single draw")
    alike = student.difference(right_a, right_a.clone(), torch.randint(5, (9, 5)))
    for value, what in zip(alike, ("a - b", "the 2.5 % point", "the 97.5 % point")):
        checks.between(value, -1e-9, 1e-9, f"{what} of two models that agree")
    checks.input_untouched(student.difference, right_a, right_b, torch.randint(5, (9, 5)), what="difference")
