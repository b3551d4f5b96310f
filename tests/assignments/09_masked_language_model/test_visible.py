"""Masked language model: the tests that come with the assignment."""

import math
from contextlib import contextmanager

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


@contextmanager
def told(words):
    """If a check inside fails, these words say which mistake it was, whatever the code looks like."""
    try:
        yield
    except checks.CheckFailed as failure:
        failure.telling = failure.telling or words
        raise


def special_words_with_labels(ids, chosen):
    """Which special words have a label, in words; and whether every other word has one."""
    asked = set(SPECIAL).intersection(ids[chosen].tolist())
    which = "all" if asked == set(SPECIAL) else sorted(asked)
    everybody = (chosen | torch.isin(ids, torch.tensor(SPECIAL))).all()
    return f"special words with a label: {which}; ordinary ones: {'all' if everybody else 'some'}"


@task("corruption", 0.5, needs="test_two_tables_come_back")
def test_labels_remember_the_words(student, seed):
    """A chosen word has itself as its label; any other word, special ones included, has -100 and stays as it was."""
    B, T = 7, 41
    ids = a_text(B, T)
    inputs, labels = corrupted(student, ids, 0.5, seed)
    chosen = labels != -100
    checks.true(chosen.any(), "Not one of 266 words was chosen, though p was one half.")
    asked = special_words_with_labels(ids, chosen)
    checks.true("label: []" in asked, "Special words have labels, too.", telling=asked)
    checks.equal(labels, torch.where(chosen, ids, -100), "labels", axes=TABLE)
    changed = ~chosen & (inputs != ids)
    if changed.any():
        alone = "Only words that became the mask have a label, and a" if (inputs[chosen] == MASK).all() else "A"
        became = f"{ids[changed][0].item()} became {inputs[changed][0].item()}"
        checks.true(False, f"{alone} word without a label was changed: {became}.", telling=alone)


@task("corruption", 0.75, needs="test_two_tables_come_back")
def test_what_becomes_of_a_hundred_words(student, seed):
    """Of 20,000 chosen words 80 in 100 become the mask, 10 another word and 10 stay, each within two points."""
    V, special, mask = 1009, [0, 1, 2, 3, 4], 3
    ids = torch.randint(5, V, (100, 200))
    generator = torch.Generator().manual_seed(seed)
    tables = student.mask_tokens(ids.clone(), V, mask, list(special), generator, 1.0)
    inputs, labels = checks.unpack(tables, ("inputs", "labels"), "mask_tokens(...)")
    for name, table in (("inputs", inputs), ("labels", labels)):
        checks.shape(table, (100, 200), name, axes=("B", "T"))
    chosen = labels != -100
    if chosen.sum() < 10_000:
        return  # how many are chosen is another test's question
    labelled = 10 * round(10 * chosen.double().mean().item())
    also = "" if labelled == 100 else f" With p = 1, about {labelled} of 100 words have a label."
    masked, same = (inputs == mask)[chosen], (inputs == ids)[chosen]
    for hits, promised, fate in (
        (masked, 80, "became the mask"),
        (~masked & ~same, 10, "became another word"),
        (same, 10, "stayed as they were"),
    ):
        found = hits.double().mean().item()
        counted = f"About {2 * round(50 * found)} of 100 chosen words {fate}; {promised} were promised.{also}"
        checks.between(100 * found, promised - 2, promised + 2, telling=counted)


@task("corruption", 0.75, needs="test_two_tables_come_back")
def test_all_or_nothing(student, seed):
    """With p = 1 all ordinary words are chosen and no special one; with p = 0 nothing happens at all."""
    ids = a_text(5, 13)
    special = torch.isin(ids, torch.tensor(SPECIAL))
    inputs, labels = corrupted(student, ids, 1.0, seed)
    left_out = ~special & (labels == -100)
    if left_out.any() and (inputs[left_out] != MASK).all():
        sentence = "With p = 1, ordinary words have no label, all of them words that did not become the mask."
        checks.true(False, sentence, telling=sentence)
    with told(special_words_with_labels(ids, labels != -100) if (labels == ids).any() else ""):
        checks.equal(labels, ids.masked_fill(special, -100), "labels with p = 1", axes=TABLE)
    checks.equal(inputs[special], ids[special], "the special words in inputs with p = 1")
    inputs, labels = corrupted(student, ids, 0.0, seed)
    checks.equal(inputs, ids, "inputs with p = 0", axes=TABLE)
    checks.equal(labels, torch.full_like(ids, -100), "labels with p = 0", axes=TABLE)


@task("corruption", 0.25)
def test_impossible_p_is_refused(student):
    """A p below 0 or above 1 is a ValueError that names p and its value."""
    for p in (-0.25, 1.5):
        generator = torch.Generator()
        checks.raises(
            ValueError,
            student.mask_tokens,
            *(a_text(2, 5), VOCABULARY, MASK, list(SPECIAL), generator, p),
            naming=("p", p),
            what=f"mask_tokens(...) with p = {p}",
        )


def not_repeated(first, again, mask_id):
    """What the same seed did not repeat, in words: the choice, the masks, or only the random words."""
    if not torch.equal(first[1], again[1]):
        return "other words were chosen"
    return "other masks" if ((first[0] == mask_id) != (again[0] == mask_id)).any() else "other random words"


@task("corruption", 0.25, needs="test_two_tables_come_back")
def test_the_generator_decides(student, seed):
    """The same seed gives the same tables again and another seed gives others; text and special_ids stay as they were."""
    ids, special = a_text(17, 41), [20, 2, 17]  # the mask is special in any case
    tables = []
    for number in (seed, seed, seed + 1):
        generator = torch.Generator().manual_seed(number)
        tables.append(student.mask_tokens(ids.clone(), VOCABULARY, MASK, list(special), generator, 0.5))
    first, again, other = (checks.unpack(pair, ("inputs", "labels"), "mask_tokens(...)") for pair in tables)
    with told(not_repeated(first, again, MASK)):
        checks.equal(again[0], first[0], "inputs with the same seed again", axes=TABLE)
        checks.equal(again[1], first[1], "labels with the same seed again", axes=TABLE)
    alike = "With another seed, exactly the same words of 697 were chosen."
    checks.true(not torch.equal(other[1], first[1]), alike, telling=alike)
    with told("the text was changed"):
        checks.input_untouched(
            lambda ids: student.mask_tokens(ids, VOCABULARY, MASK, list(special), torch.Generator(), 0.9),
            ids,
            what="mask_tokens(...)",
        )
    checks.input_untouched(
        lambda special: student.mask_tokens(ids.clone(), VOCABULARY, MASK, special, torch.Generator(), 0.9),
        special,
        what="mask_tokens(...)",
    )


@task("corruption", 0.25, needs="test_two_tables_come_back")
def test_a_die_for_each_word(student, seed):
    """Of 200 sentences of six words some have no gap, some one, some several; their total is random, too."""
    V, special, generator = 211, [0, 1, 2, 3], torch.Generator().manual_seed(seed)
    ids = torch.randint(4, V, (200, 6))
    totals = set()
    for _ in range(8):
        tables = student.mask_tokens(ids.clone(), V, 3, list(special), generator)
        _, labels = checks.unpack(tables, ("inputs", "labels"), "mask_tokens(...)")
        chosen = labels != -100
        counts = chosen.sum(dim=1).tolist()
        for count, words in ((0, "no gap"), (1, "one gap"), (2, "two gaps")):
            none = f"Not one of 200 sentences of six words has {words}."
            checks.true(count in counts, none, telling=none)
        checks.true(chosen.any(dim=0).all(), "At one place of the sentences, no word was chosen in 200 of them.")
        totals.add(sum(counts))
    checks.true(len(totals) > 1, f"In 8 calls, always the same number of words was chosen: {min(totals)}.")


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
    for dtype in (torch.float32, torch.float64):
        loss = student.masked_language_model_loss(torch.zeros(B, T, V, dtype=dtype), labels.view(B, T))
        checks.dtype(loss, dtype, f"the loss of {str(dtype).removeprefix('torch.')} logits")


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


@task("model", 0.25)
def test_model_has_three_parts_of_its_own(student, seed):
    """Beside the given encoder, the model owns `dense`, `norm` and a `bias` of zeros, and nothing else has parameters."""
    V, C = 13, 20
    model = student.MaskedLanguageModel(V, C, n_heads=4, n_layers=1, d_ff=10, max_len=7)
    shapes = {
        f"encoder.{name}": tuple(parameter.shape) for name, parameter in model.encoder.named_parameters()
    }
    shapes |= {"dense.weight": (C, C), "dense.bias": (C,), "norm.weight": (C,), "norm.bias": (C,), "bias": (V,)}
    checks.parameters(model, shapes, "the model")
    checks.close(model.bias.detach(), torch.zeros(V), "the bias of a fresh model")


@task("model", 0.25)
def test_model_gives_logits_at_every_position(student):
    """The model gives V logits at every position, in long and in short sentences, with padding and without."""
    B, V = 3, 13
    model = a_model(student, V, dropout=0.0)
    for T in (7, 2):
        ids = torch.randint(V, (B, T))
        padding = torch.arange(T).repeat(B, 1) >= T - 1
        for logits in (model(ids), model(ids, padding)):
            checks.shape(logits, (B, T, V), f"the logits for {T} words", axes=("B", "T", "V"))


@task("model", 0.25, needs="test_model_gives_logits_at_every_position")
def test_model_has_one_number_type_and_no_side_effects(student):
    """Logits have the model's number type, inputs stay as they are, and training without dropout changes nothing."""
    B, T, V = 3, 7, 13
    model = a_model(student, V, dropout=0.0)
    ids = torch.randint(V, (B, T))
    padding = torch.arange(T).repeat(B, 1) >= T - 1
    logits = model(ids)
    checks.dtype(logits, torch.float64, "the logits of a model in float64")
    checks.dtype(model(ids, padding), torch.float64, "the logits of a model in float64")
    checks.input_untouched(model, ids, padding, what="the model")
    checks.close(model.train()(ids), logits, "the logits in training with dropout=0.0", axes=LOGITS)


@task("model", 0.25, needs="test_model_gives_logits_at_every_position")
def test_both_sides_matter(student):
    """When one word changes, the logits change at every position of the sentence, to the left and to the right."""
    T, V = 6, 13
    model, ids = a_model(student, V), torch.randint(V - 1, (1, T))
    before = model(ids).detach()
    others = ids + torch.eye(T, dtype=torch.long)  # (T, T), in row s another word s
    moved = (model(others).detach() - before).abs().amax(dim=-1)  # (T, T)
    for s, t in (~(moved > 1e-12)).nonzero()[:1].tolist():
        checks.true(False, f"Word {s} changes, but the logits at position {t} stay the same.")


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
