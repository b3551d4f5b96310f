"""Fine-tuning: the tests that come with the assignment."""

from contextlib import contextmanager

import torch

from autograder import checks, task

READY_MADE = ("sklearn", "torchmetrics", "torch.utils.data.random_split")

VECTORS = ("sentence", "number")
LOGITS = ("sentence", "class")
CELLS = ("truth", "guess")


def a_classifier(student, K=3, C=12, V=13, pooling="first", dropout=0.1):
    """A classifier of the student's on the given encoder, with random weights, in float64 and eval mode."""
    encoder = student.Encoder(V, C, n_heads=3, n_layers=1, d_ff=10, max_len=7)
    model = checks.randomize(student.Classifier(encoder, C, K, pooling=pooling, dropout=dropout).double())
    model.eval()
    return model


def some_sentences(B, T, V=13):
    """Random ids (B, T), and a mask that marks the last place of every second row as padding."""
    padding = torch.zeros(B, T, dtype=torch.bool)
    padding[::2, -1] = True
    return torch.randint(V, (B, T)), padding


# Part 1: pooling


@task("pooling", 0.5)
def test_mean_of_two_vectors_by_hand(student):
    """The vectors (2, 4) and (4, 8) and one padded position have the mean (3, 6)."""
    hidden = torch.tensor([[[2.0, 4.0], [4.0, 8.0], [90.0, 90.0]]])  # (1, 3, 2)
    pooled = student.pool(hidden, torch.tensor([[False, False, True]]), "mean")
    checks.close(pooled, torch.tensor([[3.0, 6.0]]), "the mean", axes=VECTORS)


@task("pooling", 0.35)
def test_first_is_the_vector_at_position_0(student):
    """The kind "first" takes the vector at position 0 of every sentence."""
    hidden, padding = torch.randn(3, 5, 7), torch.arange(5).expand(3, 5) >= 4
    checks.close(student.pool(hidden, padding, "first"), hidden[:, 0], "the first vectors", axes=VECTORS)


@task("pooling", 0.25)
def test_other_kinds_are_refused(student):
    """Any kind but "first" and "mean" raises a ValueError that names kind and its value."""
    hidden, padding = torch.randn(3, 5, 7), torch.zeros(3, 5, dtype=torch.bool)
    for kind in ("max", "Mean"):
        checks.raises(ValueError, student.pool, hidden, padding, kind, naming=("kind", kind))


# Part 2: the classifier


@task("classifier", 0.25)
def test_logits_come_from_the_head(student):
    """With pooling="first", the logits (B, K) are what the head makes of the vectors at position 0."""
    B, C, K = 4, 12, 5
    model = a_classifier(student, K, C, pooling="first")
    ids, padding = some_sentences(B, 5)
    pooled = model.encoder(ids, padding).detach()[:, 0]  # (B, C)
    expected = pooled @ model.head.weight.detach().T + model.head.bias.detach()  # (B, K)
    checks.close(model(ids, padding), expected, "the logits for 5 positions", axes=LOGITS)


@task("classifier", 0.25)
def test_mean_comes_to_the_head(student):
    """With pooling="mean", the logits (B, K) are what the head makes of the means over what is no padding."""
    B, C, K = 4, 12, 5
    model = a_classifier(student, K, C, pooling="mean")
    ids, padding = some_sentences(B, 5)
    vectors = model.encoder(ids, padding).detach()  # (B, T, C)
    pooled = torch.stack([row[~gone].mean(dim=0) for row, gone in zip(vectors, padding)])  # (B, C)
    expected = pooled @ model.head.weight.detach().T + model.head.bias.detach()  # (B, K)
    checks.close(model(ids, padding), expected, "the logits for 5 positions", axes=LOGITS)


@task("classifier", 0.125)
def test_classifier_owns_its_encoder_and_a_head(student):
    """The head has weights (K, C) and K biases; besides it, only the encoder has parameters."""
    encoder = student.Encoder(13, 12, n_heads=3, n_layers=1, d_ff=10, max_len=7)
    expected = {f"encoder.{name}": tuple(p.shape) for name, p in encoder.named_parameters()}
    expected |= {"head.weight": (5, 12), "head.bias": (5,)}
    checks.parameters(student.Classifier(encoder, 12, 5), expected, "the classifier")


@task("classifier", 0.125)
def test_encoder_and_head_learn(student):
    """From the logits, gradients flow back to the head and into the encoder."""
    model = a_classifier(student, 5, 12, pooling="first")
    logits = model(*some_sentences(4, 7))
    told = f"{checks.tensor(logits, 'the logits').dtype} without a gradient"
    cut = "The classifier's answers pass no gradient on: nothing can learn from them."
    checks.true(logits.requires_grad, cut, telling=told)
    checks.shape(logits, (4, 5), "the logits", axes=LOGITS)
    parameters = dict(model.named_parameters())
    (logits * torch.arange(5)).sum().backward()
    for place in ("head", "encoder"):
        arrived = [p.grad for name, p in parameters.items() if name.startswith(place) and p.grad is not None]
        checks.true(any(bool(gradient.any()) for gradient in arrived), f"No gradient reaches the {place}.")


# Part 3: LoRA


def an_encoder_around(student, inputs, outputs):
    """A given encoder with random weights, whose `layers[0].linear2` is an nn.Linear of these sizes."""
    return checks.randomize(student.Encoder(13, outputs, n_heads=1, n_layers=1, d_ff=inputs, max_len=7))


@contextmanager
def told(words):
    """If a check inside fails, these words say which mistake it was, whatever the code looks like; "" says nothing."""
    try:
        yield
    except checks.CheckFailed as failure:
        failure.telling = failure.telling or words
        raise


def beginning(layer):
    """Which of A and B is zero at the start, in words; "" if it is B alone, as it should be."""
    zero = [name for name, matrix in (("A", layer.A), ("B", layer.B)) if not matrix.any()]
    return "" if zero == ["B"] else f"zero at the start: {zero}"


def check_trained(module, expected):
    """The names of what is trained in a module."""
    names = sorted(name for name, parameter in module.named_parameters() if parameter.requires_grad)
    with told(f"trained: {names}"):
        checks.equal(names, sorted(expected), "the list of parameters that are trained")


@task("lora", 0.5)
def test_lora_by_hand(student):
    """For A = (1 2), B = (3), rank 1 and alpha 2, the input (10, 100) adds 1,260 to the output of the layer."""
    encoder = an_encoder_around(student, 2, 1)
    linear = encoder.layers[0].linear2
    layer = student.LoRALinear(linear, 1, 2.0)
    shapes = {"A": (1, 2), "B": (1, 1), "linear.weight": (1, 2), "linear.bias": (1,)}
    checks.parameters(layer, shapes, "LoRALinear")
    with torch.no_grad():
        layer.A.copy_(torch.tensor([[1.0, 2.0]]))
        layer.B.fill_(3.0)
    x = torch.tensor([10.0, 100.0])
    expected = x @ layer.linear.weight.T + layer.linear.bias + 1260
    checks.close(layer(x), expected, "the output", atol=1e-3)


@task("lora", 0.5)
def test_lora_begins_as_the_layer_was(student):
    """At first the output is that of the layer alone; A and B are trained, A is not zero, and the layer is frozen."""
    encoder, x = an_encoder_around(student, 6, 5), torch.randn(2, 3, 6)
    linear = encoder.layers[0].linear2
    before = linear(x).detach()
    layer = student.LoRALinear(linear, 3, 8.0)
    with told(beginning(layer)):
        checks.close(layer(x), before, "the output before training", atol=1e-5)
        checks.true(bool(layer.A.any()), "A is zero at the start.")
    check_trained(layer, ["A", "B"])


@task("lora", 0.25, needs="test_lora_by_hand")
def test_lora_in_the_encoder(student):
    """In the encoder, two layers of 64 and 128 numbers train 2 · 4 · (64 + 128) = 1,536 numbers at rank 4."""
    encoder = student.Encoder(13)
    checks.equal(student.add_lora(encoder, ["layers.0.linear1", "layers.1.linear2"], 4, 8.0), 1536, "add_lora(...)")
    check_trained(
        encoder, [f"layers.{name}" for name in ("0.linear1.A", "0.linear1.B", "1.linear2.A", "1.linear2.B")]
    )


# Part 4: an honest split


@task("split", 0.25, forbids=READY_MADE)
def test_ten_items_make_eight_and_two(student):
    """With share=0.8, ten cards make lists of 8 and 2, and every card is in exactly one of them."""
    cards = [(f"card {i}", i % 3) for i in range(10)]
    first, second = two_lists(student, cards, 0.8, 0)
    checks.equal(len(first), 8, "the length of the first list")
    checks.equal(len(second), 2, "the length of the second list")
    same_items = sorted([*first, *second]) == cards
    checks.true(same_items, "Together, the two lists do not hold every card exactly once.")


@task("split", 0.25, needs="test_ten_items_make_eight_and_two", forbids=READY_MADE)
def test_same_seed_same_split(student):
    """The same seed gives the same two lists, another seed gives others."""
    items = list(range(100))
    splits = {}
    for seed in (1, 2):
        splits[seed], again = two_lists(student, items, 0.5, seed), two_lists(student, items, 0.5, seed)
        checks.equal(again, splits[seed], f"the split with seed={seed} for the second time")
    differ = set(splits[1][0]) != set(splits[2][0])
    checks.true(differ, "Two different seeds put the same items into the first list.")


def two_lists(student, items, share, seed):
    """The two lists, once it is clear that they are lists."""
    lists = checks.unpack(student.split(list(items), share, seed), ("first", "second"), "split(...)")
    for name, found in zip(("first", "second"), lists):
        checks.true(isinstance(found, list), f"The {name} of the two results is no list.")
    return lists


# Part 5: the confusion matrix and macro F1


@task("scores", 0.5, forbids=READY_MADE)
def test_confusion_of_eight_cards_by_hand(student):
    """Of the eight cards in the text, the two complaints stand in the row of complaints, the column of praise."""
    labels, predictions = torch.tensor([2, 0, 1, 2, 2, 1, 0, 2]), torch.tensor([2, 0, 0, 2, 2, 0, 0, 2])
    table = student.confusion(labels, predictions, 3)
    expected = torch.tensor([[2, 0, 0], [2, 0, 0], [0, 0, 4]])
    checks.equal(table, expected, "the confusion matrix", axes=CELLS)
    checks.dtype(table, torch.int64, "the confusion matrix")


@task("scores", 0.25, forbids=READY_MADE)
def test_macro_f1_of_eight_cards_by_hand(student):
    """The F1 of the three classes in the text are 2/3, 0 and 1, so macro F1 is 5/9."""
    tables = [[2, 0, 0], [2, 0, 0], [0, 0, 4]], [[3, 1, 1], [2, 4, 0], [1, 1, 0]]
    scores = [student.macro_f1(torch.tensor(table)) for table in tables]
    for score, expected, table in zip(scores, (5 / 9, (6 / 11 + 8 / 12 + 0) / 3), tables):
        checks.close(score, expected, f"macro F1 of {table}")


@task("scores", 0.25, forbids=READY_MADE)
def test_macro_f1_is_a_plain_float(student):
    """Macro F1 is a plain float, no tensor."""
    score = student.macro_f1(torch.eye(3, dtype=torch.long))
    checks.true(isinstance(score, float), "macro_f1(...) returned something other than a plain float.")
