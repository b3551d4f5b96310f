"""Spot the cheat: the tests that come with the assignment."""

import math

import torch
from torch.nn import functional as F

from autograder import checks, task
from autograder.fakes import Die, LanguageModel, Successor

MAP = ("output", "changed word")


class Peeker(LanguageModel):
    """Predicts the next word if it can see it, and is sure. Where it cannot, all words are equally likely."""

    def logits(self, ids):
        seen = 50.0 * F.one_hot(ids[:, 1:], self.vocab_size)  # (B, T - 1, V)
        return F.pad(seen, (0, 0, 0, 1))  # (B, T, V)


class Hearsay(LanguageModel):
    """Its logits at a position are a weighted sum of random vectors, one for each word and position.

    heard(T): the (T, T) table of weights, a row for each output. repeats: what is added to the logit of the word
    just read; far below zero it is never repeated.
    """

    def __init__(self, vocab_size, block_size, heard, repeats=-50.0):
        super().__init__(vocab_size, block_size)
        self._heard, self._repeats = heard, repeats
        self._voices = torch.randn(block_size, vocab_size, vocab_size)

    def logits(self, ids):
        T = ids.shape[1]
        said = self._voices[torch.arange(T), ids]  # (B, T, V)
        heard = torch.einsum("ts,bsv->btv", self._heard(T).float(), said)  # (B, T, V)
        return heard + self._repeats * F.one_hot(ids, self.vocab_size)


def past(T):
    """No word sees the future."""
    return torch.ones(T, T).tril()


def past_and_next(T):
    """Every word also sees the next one."""
    return torch.ones(T, T).tril(1)


def in_leaps(T, H=2):
    """The outputs of H heads, stored head by head and cut into T rows: each knows the words up to its own."""
    last = torch.arange(T * H).remainder(T).reshape(T, H).amax(dim=1)  # (T,)
    return (torch.arange(T) <= last[:, None]) | torch.eye(T, dtype=torch.bool)


def asked_in_eval_mode_and_put_back(model, training):
    """Every call found the model in eval mode, and it is back in the mode in which it came."""
    checks.true(bool(model.modes), "The model was never called.")
    checks.true(not any(model.modes), "The model was called in training mode.")
    mode = "training" if training else "eval"
    checks.true(model.training == training, f"The model came in {mode} mode; afterwards it is in the other one.")


# Part 1: the honest loss


@task("honest", 0.25)
def test_two_guesses_worked_by_hand(student):
    """Probabilities of 1/2 and 1/8 for the right words give (ln 2 + ln 8) / 2 = 1.3863; a model that is right gives 0."""
    die = Die([0.5, 0.125, 0.375], block_size=5)
    loss = student.honest_loss(die, torch.tensor([2, 0, 2, 1]), [1, 3])
    checks.true(isinstance(loss, float), "honest_loss(...) returned something other than a plain float.")
    checks.close(loss, 2 * math.log(2), "the honest loss", atol=1e-5)
    counter = Successor(vocab_size=11, block_size=5)
    checks.close(
        student.honest_loss(counter, torch.arange(4), [1, 2, 3]), 0.0, "the counter's loss", atol=1e-5
    )


@task("honest", 0.5)
def test_looking_ahead_does_not_help(student):
    """A model that only repeats what it sees ahead knows nothing when the future is taken away: its loss is ln V."""
    V = 13
    loss = student.honest_loss(Peeker(V, block_size=9), torch.randint(V, (9,)), [1, 4, 5, 8])
    checks.close(loss, math.log(V), "the peeker's honest loss", atol=1e-5)


@task("honest", 0.25)
def test_impossible_positions_are_refused(student):
    """Position 0, one beyond the text and no position at all are ValueErrors that name positions and the value."""
    data = torch.tensor([0, 1, 1, 0, 1])
    for positions in ([2, 0], [1, 5], [-1], []):
        checks.raises(
            ValueError,
            student.honest_loss,
            Die([0.5, 0.5]),
            data,
            positions,
            naming=("positions", *positions[-1:]),
        )


@task("honest", 0.125)
def test_text_is_longer_than_the_model_takes(student):
    """A model that takes five words at a time, predicts n + 1 after n and is sure loses nothing in a text of eleven."""
    loss = student.honest_loss(Successor(vocab_size=11, block_size=5), torch.arange(11), [1, 5, 8, 10])
    checks.close(loss, 0.0, "the honest loss of a counter that takes five words at a time", atol=1e-5)


@task("honest", 0.125)
def test_model_is_asked_in_eval_mode(student):
    """For its honest loss a model is in eval mode; afterwards it is in the mode that it was in before."""
    for training in (True, False):
        model = Successor(vocab_size=11, block_size=5)
        model.train(training)
        student.honest_loss(model, torch.arange(4), [1, 3])
        asked_in_eval_mode_and_put_back(model, training)


# Part 2: the leak map


@task("leaks", 0.125)
def test_honest_model_has_an_empty_map(student):
    """The map is a table of T times T booleans; for a model that cannot see the future it is False everywhere."""
    T, V = 6, 7
    found = student.leaks(Hearsay(V, 9, past), T, V)
    checks.shape(found, (T, T), "the leak map", axes=("T", "T"))
    checks.dtype(found, torch.bool, "the leak map")
    checks.equal(found, torch.zeros(T, T, dtype=torch.bool), "the leak map", axes=MAP)


@task("leaks", 0.25)
def test_late_mask_lights_up_one_diagonal(student):
    """For a mask that is one step late, the map is True above the diagonal at (0, 1), (1, 2) and so on, nowhere else."""
    T, V = 5, 11
    found = student.leaks(Hearsay(V, 8, past_and_next), T, V)
    expected = torch.tensor([[s == t + 1 for s in range(T)] for t in range(T)])
    checks.shape(found, (T, T), "the leak map", axes=("T", "T"))
    checks.equal(checks.tensor(found).triu(1), expected, "the leak map above the diagonal", axes=MAP)


@task("leaks", 0.25)
def test_one_leak_is_one_field(student):
    """If output 1 hears word 4 too early, and there is no other leak, the map is True at (1, 4) and nowhere else."""
    T, V = 6, 5
    heard = past(T)
    heard[1, 4] = 1.0
    found = student.leaks(Hearsay(V, 8, lambda T: heard), T, V)
    checks.shape(found, (T, T), "the leak map", axes=("T", "T"))
    expected = torch.zeros(T, T, dtype=torch.bool)
    expected[1, 4] = True
    checks.equal(checks.tensor(found).triu(1), expected, "the leak map above the diagonal", axes=MAP)


@task("leaks", 0.125)
def test_map_is_made_in_eval_mode(student):
    """For its leak map a model is in eval mode; afterwards it is in the mode that it was in before."""
    for training in (True, False):
        model = Hearsay(5, 8, past)
        model.train(training)
        student.leaks(model, 4, 5)
        asked_in_eval_mode_and_put_back(model, training)


# Part 3: the verdict


@task("verdict", 0.25)
def test_models_that_do_not_leak_are_told_apart(student):
    """Of two models that do not leak, the one that repeats its last word was trained on targets that are not shifted."""
    models = {"fox": Hearsay(11, 8, past), "owl": Hearsay(13, 9, past, repeats=50.0)}
    found = student.verdict(models)
    checks.equal(found, {"fox": "honest", "owl": "targets not shifted"}, "the verdict")


@task("verdict", 0.25)
def test_leaks_are_told_apart(student):
    """An even leak of one diagonal is a late mask, a leak in leaps is a wrong merge of the heads."""
    models = {"eel": Hearsay(7, 9, in_leaps), "bat": Hearsay(11, 8, past_and_next)}
    found = student.verdict(models)
    checks.equal(found, {"eel": "heads merged with view", "bat": "mask late by one"}, "the verdict")


@task("verdict", 0.125)
def test_two_blocks_with_a_late_mask(student):
    """A model with two blocks and a late mask leaks two full diagonals, and its mask is late by one."""
    two_blocks = Hearsay(7, 9, lambda T: torch.ones(T, T).tril(2))
    checks.equal(student.verdict({"ape": two_blocks}), {"ape": "mask late by one"}, "the verdict")


@task("verdict", 0.125)
def test_leak_decides_first(student):
    """A model that leaks and repeats its last word as well is named after the leak."""
    both = Hearsay(7, 8, past_and_next, repeats=50.0)
    checks.equal(student.verdict({"cow": both}), {"cow": "mask late by one"}, "the verdict")


# Part 4: silence


@task("heads", 0.375)
def test_a_head_that_is_not_read_is_not_missed(student):
    """A head whose columns of out_proj are zero is redundant even with tolerance 0, and the others are not."""
    C, H, D = 12, 4, 3
    for bias in (0.0, 0.5):
        mha = checks.randomize(student.attention_layer(C, H))
        with torch.no_grad():
            mha.out_proj.weight[:, 2 * D : 3 * D] = 0.0
            mha.out_proj.bias.fill_(bias)
        checks.equal(student.redundant_heads(mha, torch.randn(2, 5, C), 0.0), [2], "the redundant heads")


@task("heads", 0.125)
def test_negative_tolerance_is_refused(student):
    """A tolerance below 0 is a ValueError that names it and its value."""
    mha, x = student.attention_layer(8, 2), torch.randn(1, 3, 8)
    checks.raises(ValueError, student.redundant_heads, mha, x, -0.1, naming=("tolerance", -0.1))


@task("heads", 0.25)
def test_a_quieter_layer_has_the_same_redundant_heads(student):
    """If all numbers of out_proj become a thousandth, the same heads are redundant, for every tolerance."""
    mha = checks.randomize(student.attention_layer(12, 4).double())
    x = torch.randn(2, 5, 12).double()
    tolerances = (0.2, 0.4, 0.6, 0.8, 1.0)
    loud = [student.redundant_heads(mha, x, tolerance) for tolerance in tolerances]
    with torch.no_grad():
        for parameter in mha.out_proj.parameters():
            parameter.mul_(0.001)
    for tolerance, heads in zip(tolerances, loud):
        found = student.redundant_heads(mha, x, tolerance)
        checks.equal(found, heads, f"the redundant heads of the quieter layer with tolerance {tolerance:.1f}")


@task("heads", 0.25)
def test_a_copied_head_is_the_same_head(student):
    """Where head 1 is a copy of head 0, their similarity is 1; every head is like itself, and the others are not."""
    C, H, D = 12, 3, 4
    mha = checks.randomize(student.attention_layer(C, H))
    with torch.no_grad():
        for first in (0, C, 2 * C):  # query, key and value
            mha.in_proj_weight[first + D : first + 2 * D] = mha.in_proj_weight[first : first + D]
            mha.in_proj_bias[first + D : first + 2 * D] = mha.in_proj_bias[first : first + D]
    table = student.head_similarity(mha, torch.randn(2, 5, C))
    checks.shape(table, (H, H), "the table of similarities")
    checks.close(table.diagonal(), torch.ones(H), "the similarity of each head with itself", atol=1e-5)
    checks.close(table[0, 1], torch.tensor(1.0), "the similarity of head 0 and its copy", atol=1e-5)
    checks.true(bool(table[0, 2] < 0.999), "Heads 0 and 2 are different, and their similarity is 1.")


# Part 5: a fair test


@task("evaluation", 0.25)
def test_overlap_by_hand(student):
    """Of the five pairs in 2 3 4 3 2 3, three stand in 1 2 3 4."""
    found = student.overlap([1, 2, 3, 4], [2, 3, 4, 3, 2, 3], 2)
    checks.between(found, 0.6 - 1e-9, 0.6 + 1e-9, "overlap([1, 2, 3, 4], [2, 3, 4, 3, 2, 3], 2)")


@task("evaluation", 0.25)
def test_difference_by_hand(student):
    """Three right answers against two of four differ by 0.25, and three draws put it between 0.0125 and 0.9625."""
    right_a, right_b = torch.tensor([True, True, True, False]), torch.tensor([True, False, False, True])
    rows = torch.tensor([[0, 1, 2, 3], [0, 0, 0, 0], [1, 1, 2, 2]])
    found = checks.unpack(student.difference(right_a, right_b, rows), ("a - b", "low", "high"), "difference(...)")
    for value, expected, what in zip(found, (0.25, 0.0125, 0.9625), ("a - b", "the 2.5 % point", "the 97.5 % point")):
        checks.between(value, expected - 1e-6, expected + 1e-6, what)
