"""Masked language model: the tests that only graders see.

Where chance is counted, the samples are so large that a limit lies seven standard deviations or more from what a
right answer gives on average (eight, where the extremes of many lines or words are looked at), and six or more from
what any mistake gives that is known to change a share.
"""

import math
import random
from contextlib import contextmanager

import torch
from torch import nn

from autograder import checks, task

TABLE = ("row", "position")
LOGITS = ("row", "position", "word")
MARGIN = 0.015
SIZES = {"d_model": 20, "n_heads": 4, "n_layers": 2, "d_ff": 10, "max_len": 7}


def ordinary_words(V, special):
    """All ids but the special ones, in order."""
    return torch.tensor([i for i in range(V) if i not in special])


def a_text(B, T, V, special, specials=0.0):
    """Random words (B, T), a given share of them special; drawn apart, so that no answer draws the same numbers again."""
    ordinary, markers = ordinary_words(V, special), torch.tensor(special)
    generator = torch.Generator().manual_seed(torch.initial_seed() + 1)
    words = ordinary[torch.randint(len(ordinary), (B, T), generator=generator)]
    drawn = markers[torch.randint(len(markers), (B, T), generator=generator)]
    return torch.where(torch.rand(B, T, generator=generator) < specials, drawn, words)


def corrupted(student, ids, V, mask_id, special, seed, **p):
    """The two tables that come back for a copy of the text, in which word 0 is special.

    Labels of 0 in place of -100 are read as meant: that they are wrong is said by the visible tests.
    """
    generator = torch.Generator().manual_seed(seed)
    tables = student.mask_tokens(ids.clone(), V, mask_id, list(special), generator, **p)
    inputs, labels = checks.unpack(tables, ("inputs", "labels"), "mask_tokens(...)")
    checks.shape(inputs, tuple(ids.shape), "inputs", axes=("B", "T"))
    checks.shape(labels, tuple(ids.shape), "labels", axes=("B", "T"))
    return inputs, labels if (labels == -100).any() else labels.masked_fill(labels == 0, -100)


def share(hits, among):
    """Which part of the positions in `among` are hits."""
    return (hits & among).sum().item() / max(among.sum().item(), 1)


def within(value, expected, margin, what, fate="", also=""):
    """A share is at most so far from the expected one; what became of the words is counted in words."""
    counted = f"About {2 * round(50 * value)} of 100 {fate}; {100 * expected:.0f} were promised.{also}"
    checks.between(value, expected - margin, expected + margin, what, telling=counted if fate else "")


@contextmanager
def told(words):
    """If a check inside fails, these words say which mistake it was, whatever the code looks like."""
    try:
        yield
    except checks.CheckFailed as failure:
        failure.telling = failure.telling or words
        raise


def each_line(hits, expected, what):
    """In every row and every column, the share of hits is within eight standard deviations of the expected one."""
    for dim, line in ((1, "row"), (0, "column")):
        shares = hits.double().mean(dim=dim)
        margin = 8 * math.sqrt(expected * (1 - expected) / hits.shape[dim])
        for found in (shares.min(), shares.max()):
            within(found.item(), expected, margin, f"the share of {what} in one {line}")


def twins(student, reference, V=13, **sizes):
    """The student's model and the solution's, with the same random weights, in float64."""
    expected = checks.randomize(reference.MaskedLanguageModel(V, **{**SIZES, **sizes}).double()).eval()
    model = student.MaskedLanguageModel(V, **{**SIZES, **sizes}).double()
    model.eval()
    checks.copy_parameters(expected, model, "the model")
    return model, expected


# Part 1: making the gaps


@task("corruption", 0.25, needs="test_two_tables_come_back",
      promise="ids and special_ids keep their values and their order.")
def test_text_stays_as_it_was(student, seed):
    """The text and the list of special words stay as they were; tomorrow they are needed for other gaps."""
    V, mask_id, special = 29, 5, [28, 0, 11]
    generator = torch.Generator().manual_seed(seed)

    def corrupt(ids, special_ids):
        student.mask_tokens(ids, V, mask_id, special_ids, generator, 0.9)

    ids = a_text(5, 13, V, [mask_id, *special], 0.2)
    with told("the text was changed"):
        checks.input_untouched(lambda ids: corrupt(ids, list(special)), ids, what="mask_tokens(...)")
    checks.input_untouched(lambda special: corrupt(ids.clone(), special), special, what="mask_tokens(...)")


@task("corruption", 0.5, needs="test_two_tables_come_back",
      promise="Every ordinary word is chosen with a probability of 15 %, independently of all others")
def test_fifteen_in_a_hundred(student, seed):
    """In a long text 15 % of the ordinary words are chosen, within one and a half points."""
    V, special = 1009, [0, 1, 2, 3, 4]
    ids = a_text(200, 200, V, special, specials=0.2)  # 32,000 ordinary words: the margin is 7.5 deviations
    _, labels = corrupted(student, ids, V, 3, special, seed)
    ordinary = torch.isin(ids, ordinary_words(V, special))
    within(share(labels != -100, ordinary), 0.15, MARGIN, "the share of ordinary words that are chosen",
           "ordinary words are chosen")


@task("corruption", 1, needs="test_two_tables_come_back", promise=(
    "Of the chosen ones 80 % become mask_id, 10 % a random ordinary word",
    "and 10 % stay.",
))
def test_eighty_ten_ten(student, seed):
    """Of the chosen words 80 % become the mask, 10 % a random word and 10 % stay, each within one and a half points."""
    V, special = 1009, [0, 1, 2, 3, 4]
    ids = a_text(200, 200, V, special)
    inputs, labels = corrupted(student, ids, V, 3, special, seed, p=0.9)
    two_words, few = a_text(200, 200, 5, [0, 1, 2]), [0, 1, 2]  # a mask among the random words would show
    hidden, asked = corrupted(student, two_words, 5, 1, few, seed, p=0.9)
    chosen = labels != -100  # about 36,000: the margin is 7.1 deviations of 80 %, 9.5 of 10 %
    masked, same = inputs == 3, inputs == ids
    labelled = 10 * round(10 * share(chosen, torch.isin(ids, ordinary_words(V, special))))
    also = "" if labelled == 90 else f" With p = 0.9, about {labelled} of 100 words have a label."
    within(share(masked, chosen), 0.8, MARGIN, "the share of chosen words that became the mask",
           "chosen words became the mask", also)
    within(share(~masked & ~same, chosen), 0.1, MARGIN, "the share of chosen words that became another word",
           "chosen words became another word", also)
    within(share(same, chosen), 0.1, MARGIN, "the share of chosen words that stayed",
           "chosen words stayed as they were", also)
    masks = share(hidden == 1, asked != -100)
    within(masks, 0.8, MARGIN, "the share of masks in a vocabulary with two ordinary words",
           "chosen words became the mask, where only two words are ordinary")
    kept = share(hidden == two_words, asked != -100)  # half of the random words are the same ones again
    within(kept, 0.15, MARGIN, "the share of words that are as before in a vocabulary with two ordinary words",
           "chosen words are as before, where only two words are ordinary")


@task("corruption", 0.75, needs="test_two_tables_come_back", promise=(
    "wherever in the vocabulary they stand; mask_id counts as one of them in any case.",
    "Special words are never chosen and never drawn as a random word.",
))
def test_random_words_are_never_special(student, seed):
    """A random word is an ordinary one, wherever the special ones stand, and the mask is special in any case."""
    for V, mask_id, special in ((13, 7, [12, 7, 0, 4]), (11, 3, [0, 1, 2])):
        markers = {*special, mask_id}
        ids = a_text(100, 200, V, sorted(markers), specials=0.2)
        inputs, labels = corrupted(student, ids, V, mask_id, special, seed, p=0.5)
        ordinary = torch.isin(ids, ordinary_words(V, markers))
        asked = markers.intersection(ids[labels != -100].tolist())
        which = "all" if asked == markers else "the mask" if asked == {mask_id} else len(asked)
        everybody = "all" if (labels[ordinary] != -100).all() else "some"
        told = f"special words with a label: {which}; ordinary ones: {everybody}"
        checks.true(not asked, "Special words have labels, too.", telling=told)
        drawn = set(inputs[ordinary & (inputs != mask_id)].tolist())
        odd = sorted(drawn & markers) or sorted(i for i in drawn if not 0 <= i < V)
        sentence = f"A chosen word became {odd[:1]}, which is a special word or none at all."
        checks.true(not odd, sentence, telling="a special word was drawn" if drawn & markers else "no word")


@task("corruption", 0.75, needs="test_two_tables_come_back",
      promise="a random ordinary word (all equally likely, the original one included)")
def test_all_ordinary_words_are_equally_likely(student, seed):
    """In a text of two words, all other ordinary words turn up equally often as random words."""
    V, mask_id, special = 15, 2, [0, 1, 2, 3]
    one, two, *others = ordinary_words(V, special).tolist()  # 9 others
    ids = torch.tensor([one, two]).repeat(250, 140)
    inputs, _ = corrupted(student, ids, V, mask_id, special, seed, p=1.0)
    seen = torch.bincount(inputs.clamp(0, V).flatten(), minlength=V + 1)[others].double()
    mean = seen.mean().item()  # 636; how many random words there are is another test's question
    checks.true(mean > 0, "In a text of two words, no other word was drawn.")
    margin = 8 * math.sqrt(mean)  # half as often, as by rounding at an end, is 12 deviations less
    for count in (seen.min().item(), seen.max().item()):
        checks.between(count / mean, 1 - margin / mean, 1 + margin / mean, "how often one word was drawn")


@task("corruption", 0.25, needs="test_two_tables_come_back", promise=(
    "All random numbers come from `generator`: the same seed gives the same tables.",
    "tomorrow it gets other gaps.",
))
def test_gaps_can_be_repeated(student, seed):
    """The same seed makes the same gaps again, and one generator makes new ones each time."""
    V, special = 997, [0, 1, 2, 3]
    ids, generator = a_text(31, 67, V, special), torch.Generator().manual_seed(seed)
    again = torch.Generator().manual_seed(seed)
    three = (generator, again, generator)
    calls = [student.mask_tokens(ids.clone(), V, 3, list(special), g, 0.5) for g in three]
    first, same, later = (checks.unpack(call, ("inputs", "labels"), "mask_tokens(...)") for call in calls)
    masks = [table[0] == 3 for table in (first, same)]
    told = "other masks" if not torch.equal(*masks) else "other random words"
    alike = [torch.equal(one, two) for one, two in zip(same, first)]
    sentence = f"The same seed gave other {'inputs' if alike[1] else 'labels'}."
    checks.true(all(alike), sentence, public=sentence, telling=told if alike[1] else "other words were chosen")
    alike = "Two calls, one after the other, chose exactly the same words."
    checks.true(not torch.equal(later[1], first[1]), alike, telling=alike)


@task("corruption", 0.25, needs="test_two_tables_come_back",
      promise="how many are chosen is random, too, and in a short sentence it may be none.")
def test_sentences_of_six_words(student, seed):
    """Each word is chosen independently: of a sentence of six words sometimes none is chosen, sometimes several are."""
    V, special, generator = 211, [0, 1, 2, 3], torch.Generator().manual_seed(seed)
    counts = []
    for sentence in a_text(120, 6, V, special):  # none: 38 of 100 sentences, one: 40, more: 22
        tables = student.mask_tokens(sentence[None].clone(), V, 3, list(special), generator)
        _, labels = checks.unpack(tables, ("inputs", "labels"), "mask_tokens(...)")
        counts.append((labels != -100).sum().item())
        if min(counts) == 0 and max(counts) > 1:
            break
    always = "In each of 120 sentences of six words, at least one word was chosen; in some it should be none."
    checks.true(min(counts) == 0, always, public=always, telling=always)
    one_at_most = "In none of 120 sentences of six words was more than one word chosen; in some it should be several."
    checks.true(max(counts) > 1, one_at_most, public=one_at_most)


@task("corruption", 0.25, needs="test_two_tables_come_back", promise=(
    "independently of all others, as if a die were rolled for it.",
    "A second die decides:",
))
def test_dice_are_rolled_for_each_word(student, seed):
    """The dice are rolled for each word, not for a whole row or for a whole column."""
    V, special = 211, [0, 1, 2, 3]
    ids = a_text(200, 200, V, special)
    _, labels = corrupted(student, ids, V, 3, special, seed, p=0.5)
    each_line(labels != -100, 0.5, "chosen words")
    inputs, _ = corrupted(student, ids, V, 3, special, seed, p=1.0)
    each_line(inputs == 3, 0.8, "masks")


# Part 2: the loss


def some_labels(B, T, V):
    """Labels with five gaps in the first row, one in the last, and word 0 among the right words."""
    labels = torch.full((B, T), -100)
    labels[0, torch.randperm(T)[:5]] = torch.tensor([0, *torch.randint(V, (4,)).tolist()])
    labels[-1, torch.randint(T, ())] = torch.randint(V, ())
    return labels


@task("loss", 0.75, promise=(
    "a tensor of shape () in the logits' number type: the mean over all chosen positions of the batch.",
    "Every other label is a word, 0 as well.",
))
def test_loss_is_the_mean_over_the_gaps(student):
    """The loss is the mean of -ln p(right word) over all chosen positions of the batch, and over no other."""
    B, T, V = 3, 7, 11
    logits, labels = 3 * torch.randn(B, T, V, dtype=torch.float64), some_labels(B, T, V)
    asked = labels != -100
    surprise = -logits.log_softmax(-1)[asked].gather(-1, labels[asked][:, None])  # (6, 1)
    loss = student.masked_language_model_loss(logits, labels)
    checks.close(loss, surprise.mean(), "the loss")
    checks.dtype(loss, torch.float64, "the loss of logits in float64")
    small = student.masked_language_model_loss(logits.float(), labels)
    checks.dtype(small, torch.float32, "the loss of logits in float32")
    checks.input_untouched(student.masked_language_model_loss, logits, labels)


@task("loss", 0.5,
      promise="only the chosen positions count. The loss is the cross-entropy at those positions:")
def test_only_the_gaps_have_gradients(student):
    """The gradient of the logits is (probabilities minus one-hot) / n at the n chosen positions, and 0 at all others."""
    B, T, V = 2, 7, 5
    logits = torch.randn(B, T, V, dtype=torch.float64, requires_grad=True)
    labels = some_labels(B, T, V)
    gradient = gradient_of(student, logits, labels)
    asked = (labels != -100)[..., None]
    right = nn.functional.one_hot(labels.clamp(min=0), V)
    expected = torch.where(asked, logits.detach().softmax(-1) - right, 0.0) / asked.sum()
    checks.close(gradient, expected, "the gradient of the logits", axes=LOGITS)


@task("loss", 0.25, promise="If there are none, it is 0, and `backward()` still works: all gradients are 0.")
def test_batch_without_gaps_has_zero_gradients(student):
    """In a batch without gaps all gradients are zero: no NaN, and no error either."""
    logits = torch.randn(3, 4, 5, requires_grad=True)
    gradient = gradient_of(student, logits, torch.full((3, 4), -100))
    checks.close(gradient, torch.zeros(3, 4, 5), "the gradient of the logits", axes=LOGITS)


@task("loss", 0.25, promise="any finite numbers, also as large as 10,000")
def test_loss_of_huge_logits(student):
    """Logits of 10,000 cost nothing where they are right and 20,000 where they are wrong, never NaN or infinity."""
    V, T = random.randint(5, 11), random.randint(3, 6)
    labels = torch.randint(V, (2, T))
    labels[0, random.randrange(T)] = -100
    sure = 20_000.0 * nn.functional.one_hot(labels.clamp(min=0), V) - 10_000.0  # (2, T, V)
    checks.close(student.masked_language_model_loss(sure, labels), torch.tensor(0.0), "the loss if right")
    wrong = student.masked_language_model_loss(sure.roll(1, -1), labels)
    checks.close(wrong, torch.tensor(20_000.0), "the loss if wrong")


def gradient_of(student, logits, labels):
    """The gradient of the student's loss for the logits; zeros where there is none."""
    loss = student.masked_language_model_loss(logits, labels)
    checks.shape(loss, (), "the loss")
    checks.true(
        loss.requires_grad, "The loss is cut off from the logits: no gradient can flow back through it."
    )
    (gradient,) = torch.autograd.grad(loss, logits, allow_unused=True)
    return torch.zeros_like(logits) if gradient is None else gradient


# Part 3: the model


@task("model", 0.5, promise=(
    "one number for each word, which starts at 0",
    "Nothing else has parameters: the way back to the words goes through the encoder's own table.",
))
def test_model_owns_its_parts(student, reference):
    """Besides the encoder, the model owns `dense`, `norm` and a `bias` of zeros, and no second table of words."""
    V = random.randint(41, 79)
    sizes = {**SIZES, "n_layers": random.randint(1, 3), "d_ff": random.randint(8, 16)}
    plan = reference.MaskedLanguageModel(V, **sizes)
    model = student.MaskedLanguageModel(V, **sizes)
    checks.parameters(model, {name: tuple(p.shape) for name, p in plan.named_parameters()}, "the model")
    own = sum(p.numel() for p in plan.parameters())
    checks.parameter_count(model, own, "the model")
    checks.close(model.bias, torch.zeros(V), "the bias of a fresh model")


@task("model", 1, needs="test_model_gives_logits_at_every_position", promise=(
    "First the vector goes through one more small network (`dense`, GELU, `norm`).",
    "Then it is compared with **the vector of every word**",
    "in the number type of the module",
    "in training and in eval alike; no sentence is all padding, and the mask keeps its values",
))
def test_model_with_the_same_weights(student, reference):
    """With the solution's weights, the model gives the solution's logits, also with padding and in training."""
    model, expected = twins(student, reference, dropout=0.0)
    for T in (1, 3, 7):
        ids = torch.randint(13, (5, T))
        wanted = expected(ids)
        checks.close(model(ids), wanted, f"the logits for {T} words", axes=LOGITS)
    padding = torch.arange(7) >= torch.tensor([7, 3, 5, 1, 6])[:, None]
    real = expected(ids, padding)[~padding]
    checks.close(model(ids, padding)[~padding], real, "the logits at the real words of a padded batch")
    checks.input_untouched(model, ids, padding, what="the model")
    model.train()
    checks.close(model(ids), wanted, "the logits in training with dropout=0", axes=LOGITS)
    checks.dtype(model.float()(ids), torch.float32, "the logits of a model in float32")


@task("model", 0.75, needs="test_model_gives_logits_at_every_position",
      promise="True marks padding, which gets no attention, in training and in eval alike")
def test_padding_changes_nothing(student, reference):
    """The content of the padding changes nothing, and a padded sentence gets the logits that it gets alone."""
    model, _ = twins(student, reference, dropout=0.0)
    ids = torch.randint(13, (3, 7))
    checks.padding_invariant(model, ids, [7, 3, 5], what="the logits")
    model.train()
    checks.padding_invariant(model, ids[1:], [4, 1], what="the logits in training with dropout=0")


@task("model", 0.5, needs="test_model_with_the_same_weights", promise=(
    "Tied means *the same parameter*, not a copy that was equal on the first day.",
    "what the table learns at one door is at once known at the other.",
))
def test_everything_in_the_model_learns(student, reference):
    """Every table and layer gets the gradient that the solution's gets; the table gets it from entrance and exit."""
    model, expected = twins(student, reference, n_layers=1)
    checks.parameter_gradients_close(model, expected, torch.randint(13, (2, 5)))


@task("model", 0.25, needs="test_model_gives_logits_at_every_position", promise=(
    "Now all three parts work together. A training step is short: make gaps, predict, compute the loss, correct.",
))
def test_one_batch_is_learned_by_heart(student):
    """Model and loss work together: five gaps in two small sentences are learned by heart in a few steps."""
    V, mask_id = 11, 3
    sizes = {"d_model": 12, "n_heads": 3, "n_layers": 1, "d_ff": 10, "max_len": 7}
    model = student.MaskedLanguageModel(V, **sizes, dropout=0.0)
    checks.randomize(model)
    ids, labels = torch.randint(4, V, (2, 7)), torch.full((2, 7), -100)
    rows, places = [0, 0, 0, 1, 1], [1, 4, 5, 0, 3]
    labels[rows, places] = ids[rows, places]
    ids[rows, places] = mask_id
    parameters, losses = list(model.parameters()), []
    for step in range(28):
        loss = student.masked_language_model_loss(model(ids), labels)
        losses.append(loss.item())
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients):
                parameter.sub_(0.05 * (1 - step / 28) * gradient.sign())
    checks.between(losses[0], 0.5, 30.0, "the first loss")
    checks.between(losses[-1], 0.0, 1.0, "the loss after 28 steps")  # 0.06 as a rule, 0.5 at worst
