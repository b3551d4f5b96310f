"""Masked language model: the tests that come with the assignment."""

import math

import torch

from autograder import checks, task

TABLE = ("row", "position")
LOGITS = ("row", "position", "word")
VOCABULARY, MASK, SPECIAL = 23, 11, [17, 2, 11, 20]  # words 0 and 22 are ordinary ones


def a_text(B, T, V=VOCABULARY, special=SPECIAL):
    """Random words (B, T), with one special word at the beginning of each row and two at the end."""
    ordinary = torch.tensor([i for i in range(V) if i not in special])
    ids = ordinary[torch.randint(len(ordinary), (B, T))]
    ids[:, 0], ids[:, -2], ids[:, -1] = special[0], special[1], special[-1]
    return ids


def corrupted(student, ids, p, seed=0):
    """The two tables that come back for a copy of the text."""
    generator = torch.Generator().manual_seed(seed)
    tables = student.mask_tokens(ids.clone(), VOCABULARY, MASK, list(SPECIAL), generator, p)
    return checks.unpack(tables, ("inputs", "labels"), "mask_tokens(...)")


def a_model(student, V=13, d_model=20, **sizes):
    """A model of the student's in eval mode and float64, with random weights everywhere."""
    sizes = {"n_heads": 4, "n_layers": 2, "d_ff": 10, "max_len": 7, **sizes}
    model = student.MaskedLanguageModel(V, d_model, **sizes).double()
    model.eval()
    return checks.randomize(model)


# Part 1: making the gaps


@task("corruption", 0.25)
def test_two_tables_come_back(student, seed):
    """Two tables of ids come back, inputs and labels, both as large as the text."""
    B, T = 3, 7
    inputs, labels = corrupted(student, a_text(B, T), 0.15, seed)
    for name, table in (("inputs", inputs), ("labels", labels)):
        checks.shape(table, (B, T), name, axes=("B", "T"))
        checks.dtype(table, torch.int64, name)


@task("corruption", 0.75, needs="test_two_tables_come_back")
def test_labels_remember_the_words(student, seed):
    """A chosen word has itself as its label; any other word, special ones included, has -100 and stays as it was."""
    B, T = 7, 41
    ids = a_text(B, T)
    inputs, labels = corrupted(student, ids, 0.5, seed)
    chosen = labels != -100
    checks.true(chosen.any(), "Not one of 266 words was chosen, though p was one half.")
    special = chosen[torch.isin(ids, torch.tensor(SPECIAL))]
    checks.true(not special.any(), "Special words have labels, too.")
    checks.equal(labels, torch.where(chosen, ids, -100), "labels", axes=TABLE)
    checks.equal(inputs.masked_fill(chosen, 0), ids.masked_fill(chosen, 0), "what was not chosen", axes=TABLE)


@task("corruption", 0.75, needs="test_two_tables_come_back")
def test_all_or_nothing(student, seed):
    """With p = 1 all ordinary words are chosen and no special one; with p = 0 nothing happens at all."""
    ids = a_text(5, 13)
    special = torch.isin(ids, torch.tensor(SPECIAL))
    inputs, labels = corrupted(student, ids, 1.0, seed)
    checks.equal(labels, ids.masked_fill(special, -100), "labels with p = 1", axes=TABLE)
    checks.equal(inputs[special], ids[special], "the special words in inputs with p = 1")
    inputs, labels = corrupted(student, ids, 0.0, seed)
    checks.equal(inputs, ids, "inputs with p = 0", axes=TABLE)
    checks.equal(labels, torch.full_like(ids, -100), "labels with p = 0", axes=TABLE)


@task("corruption", 0.25)
def test_impossible_p_is_refused(student):
    """A p below 0 or above 1 is a ValueError that names p and its value."""
    for p, naming in ((-0.25, "p"), (-0.25, -0.25), (1.5, "p"), (1.5, 1.5)):
        generator = torch.Generator()
        checks.raises(
            ValueError,
            student.mask_tokens,
            *(a_text(2, 5), VOCABULARY, MASK, list(SPECIAL), generator, p),
            naming=naming,
            what=f"mask_tokens(...) with p = {p}",
        )


# Part 2: the loss


@task("loss", 0.25)
def test_knowing_nothing_costs_ln_v(student):
    """Logits of zeros cost ln V, whether one position counts or all of them."""
    B, T, V = 3, 5, 11
    for asked in (1, 4, B * T):
        labels = torch.full((B * T,), -100)
        labels[torch.randperm(B * T)[:asked]] = torch.randint(V, (asked,))
        loss = student.masked_language_model_loss(torch.zeros(B, T, V), labels.view(B, T))
        checks.close(
            loss, torch.tensor(math.log(V)), f"the loss of zeros at {asked} chosen positions", atol=1e-5
        )


@task("loss", 1)
def test_batch_without_gaps_costs_nothing(student):
    """A batch without a single gap costs 0, not NaN; with one gap it costs something."""
    labels, logits = torch.full((2, 3), -100), torch.randn(2, 3, 7)
    loss = student.masked_language_model_loss(logits, labels)
    checks.close(loss, torch.tensor(0.0), "the loss")
    labels[1, 2] = 4
    loss = student.masked_language_model_loss(logits, labels)
    checks.close(loss, -logits[1, 2].log_softmax(-1)[4], "the loss with one gap", atol=1e-5)


# Part 3: the model


@task("model", 0.5)
def test_model_gives_logits_at_every_position(student):
    """The model gives V logits at every position, in long and in short sentences, with padding and without."""
    B, V = 3, 13
    model = a_model(student, V)
    for T in (7, 2):
        ids = torch.randint(V, (B, T))
        padding = torch.arange(T).expand(B, T) >= T - 1
        for logits in (model(ids), model(ids, padding)):
            checks.shape(logits, (B, T, V), f"the logits for {T} words", axes=("B", "T", "V"))


@task("model", 0.25, needs="test_model_gives_logits_at_every_position")
def test_both_sides_matter(student):
    """When one word changes, the logits change at every position of the sentence, to the left and to the right."""
    T, V = 6, 13
    model, ids = a_model(student, V), torch.randint(V - 1, (1, T))
    before = model(ids).detach()
    for s in range(T):
        other = ids.clone()
        other[0, s] += 1
        moved = (model(other).detach() - before).abs().amax(dim=-1)[0]  # (T,)
        for t in range(T):
            checks.true(moved[t] > 1e-12, f"Word {s} changes, but the logits at position {t} stay the same.")


@task("model", 1, needs="test_model_gives_logits_at_every_position")
def test_the_table_at_the_entrance_is_the_table_at_the_exit(student):
    """When `norm` gives the same vector everywhere, the logits are its products with all word vectors, plus bias."""
    T, V, C = 5, 13, 20
    model, same = a_model(student, V, C), torch.randn(C, dtype=torch.float64)
    table = torch.randn(V, C, dtype=torch.float64)
    with torch.no_grad():
        model.norm.weight.zero_()
        model.norm.bias.copy_(same)
        model.encoder.token_embedding.weight.copy_(table)
    expected = table @ same + model.bias.detach()  # (V,)
    logits = model(torch.randint(V, (2, T)))
    checks.close(logits, expected.expand(2, T, V), "the logits", axes=LOGITS)
