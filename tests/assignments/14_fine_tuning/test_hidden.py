"""Fine-tuning: the tests that only graders see."""

import random
from contextlib import contextmanager

import torch

from autograder import checks, task

READY_MADE = ("sklearn", "torchmetrics", "torch.utils.data.random_split")

VECTORS = ("sentence", "number")
POSITIONS = ("sentence", "position", "number")
LOGITS = ("sentence", "class")
CELLS = ("truth", "guess")
V = 13
PLAN = {"n_heads": 3, "n_layers": 1, "d_ff": 10, "max_len": 7}


# Part 1: pooling


def masks():
    """Padding on the right, on the left, in the middle, nowhere, and everywhere but in one place: (5, 6)."""
    rows = ["000111", "110000", "010110", "000000", "111101"]
    return torch.tensor([[place == "1" for place in row] for row in rows])


@task("pooling", 0.15, needs="test_mean_of_two_vectors_by_hand", promise=(
    '"mean" is the mean over all positions that are not padding, [CLS] among them.',
    "True marks padding, wherever in the row it stands.",
))
def test_mean_of_what_is_no_padding(student, reference):
    """The mean is taken over the positions that are no padding, wherever in a row the padding stands."""
    padding = masks()
    for width in (7, 1):
        hidden = torch.randn(*padding.shape, width, dtype=torch.float64)
        expected = reference.pool(hidden, padding, "mean")
        checks.close(student.pool(hidden, padding, "mean"), expected, "the mean", axes=VECTORS)


@task("pooling", 0.25, needs="test_mean_of_two_vectors_by_hand",
      promise='With "mean", a sentence that is nothing but padding becomes zeros')
def test_nothing_but_padding_pools_to_zeros(student):
    """A sentence that is nothing but padding pools to zeros, not to NaN, and its neighbours keep their mean."""
    hidden, padding = torch.randn(3, 4, 5), torch.zeros(3, 4, dtype=torch.bool)
    padding[1] = True
    expected = hidden.mean(dim=1)
    expected[1] = 0
    checks.close(student.pool(hidden, padding, "mean"), expected, "the mean", axes=VECTORS)


@task("pooling", 0.25, needs="test_mean_of_two_vectors_by_hand", promise=(
    "whatever stands at padded positions (NaN and infinity included) changes neither the result nor the gradients",
))
def test_nan_in_the_padding_stays_there(student, reference):
    """What stands at padded positions, NaN and infinity included, does not reach the mean."""
    padding = masks()
    padding[1] = True
    hidden = torch.randn(*padding.shape, 3)
    expected = reference.pool(hidden, padding, "mean")
    for odd in (-1e30, float("inf"), float("nan")):
        spoilt = hidden.masked_fill(padding[..., None], odd)
        checks.close(student.pool(spoilt, padding, "mean"), expected, "the mean", axes=VECTORS)


@task("pooling", 0.25,
      promise="changes neither the result nor the gradients: exactly 0 flows back to padding.")
def test_what_flows_back_through_the_mean(student):
    """To each of n real positions flows 1/n of what reaches their mean; to padding flows exactly 0, never NaN."""
    padding = masks()
    padding[3] = True
    for odd in (0.5, float("nan")):
        hidden = torch.randn(*padding.shape, 3, dtype=torch.float64).masked_fill(padding[..., None], odd)
        hidden.requires_grad_()
        pull = torch.randn(len(padding), 3, dtype=torch.float64)
        pooled = student.pool(hidden, padding, "mean")
        checks.shape(pooled, (len(padding), 3), "the mean")
        checks.true(pooled.requires_grad, "The mean is cut off from hidden: no gradient can flow back.")
        (found,) = torch.autograd.grad(pooled, hidden, pull)
        share = (~padding).double() / (~padding).sum(dim=1, keepdim=True).clamp(min=1)  # (B, T)
        expected = share[..., None] * pull[:, None]
        checks.close(found, expected, "the gradient of hidden", axes=POSITIONS)


@task("pooling", 0.25,
      needs=("test_mean_of_two_vectors_by_hand", "test_first_is_the_vector_at_position_0"),
      promise="The result has the dtype of hidden (float32, float64). hidden and padding_mask keep their values.")
def test_pooling_keeps_type_and_inputs(student, reference):
    """The pooled vectors have the dtype of hidden, with all its digits; hidden and the mask stay as they were."""
    for B, width in ((5, 3), (1, 1)):
        padding = torch.arange(6).expand(B, 6) >= torch.tensor([4, 6, 1, 3, 2])[:B, None]
        for dtype in (torch.float64, torch.float32):
            hidden = 1000 + torch.randn(B, 6, width, dtype=dtype)
            near = {"atol": 1e-12, "rtol": 1e-12} if dtype is torch.float64 else {}
            for kind in ("first", "mean"):
                pooled = checks.input_untouched(student.pool, hidden, padding, kind, what="pool(...)")
                checks.dtype(pooled, dtype, f'pool(..., "{kind}")')
                expected = reference.pool(hidden.double(), padding, kind).to(dtype)
                checks.close(pooled, expected, f'pool(..., "{kind}")', axes=VECTORS, **near)


@task("pooling", 0.25, needs="test_first_is_the_vector_at_position_0",
      promise='"first" is the vector at position 0, where [CLS] stands, padding or not')
def test_first_is_position_0_wherever_padding_stands(student):
    """The kind "first" takes the vector at position 0, whether or not padding stands there."""
    padding = masks()
    hidden = torch.randn(*padding.shape, 3)
    checks.close(student.pool(hidden, padding, "first"), hidden[:, 0], "the first vectors", axes=VECTORS)


# Part 2: the classifier


def sentences(B, T, rows=None):
    """Random ids (B, T), and a mask that leaves a random number of places, at least one, in every row."""
    lengths = torch.randint(1, T + 1, (B,)) if rows is None else torch.tensor(rows)
    return torch.randint(V, (B, T)), torch.arange(T).expand(B, T) >= lengths[:, None]


def twins(student, reference, pooling, C=12, K=4, dropout=0.0):
    """The student's classifier and the solution's, with the same random weights, in float64 and eval mode."""
    pair = []
    for module in (student, reference):
        encoder = module.Encoder(V, C, **PLAN, dropout=0.0)
        pair.append(module.Classifier(encoder, C, K, pooling, dropout).double())
        pair[-1].eval()
    model, expected = pair
    checks.copy_parameters(checks.randomize(expected), model, "the classifier")
    return model, expected


@task("classifier", 0.1, needs="test_logits_come_from_the_head", promise=(
    "A class for each sentence: ids (B, T), padding_mask (B, T) -> logits (B, K).",
    "training and eval give the same logits.",
))
def test_classifier_with_the_same_weights(student, reference):
    """With pooling="first" and the solution's weights, the logits are the same, in eval and in training."""
    compare_logits(*twins(student, reference, "first"))


@task("classifier", 0.1, needs="test_mean_comes_to_the_head", promise=(
    "pooling is the kind for your `pool`.",
    "training and eval give the same logits.",
))
def test_classifier_with_mean_pooling(student, reference):
    """With pooling="mean" and the solution's weights, the logits are the same, in eval and in training."""
    compare_logits(*twins(student, reference, "mean"))


def compare_logits(model, expected):
    """Both give the same logits, in either mode, for two sizes, one of which comes again."""
    for training, mode, sizes in (
        (False, "eval", ((3, 7),)),
        (True, "training with dropout=0", ((1, 1), (3, 7))),
    ):
        model.train(training)
        expected.train(training)
        for B, T in sizes:
            ids, padding = sentences(B, T)
            what = f"the logits for {T} positions in {mode}"
            checks.close(model(ids, padding), expected(ids, padding), what, axes=LOGITS)


@task("classifier", 0.1, promise=(
    "The padding must not take part, or a short sentence in a batch of long ones would be watered down.",
    "it is called as encoder(ids, padding_mask)",
))
def test_padding_has_no_say_in_the_logits(student):
    """A sentence gets the logits that it gets alone, however much padding stands beside it, whatever it holds."""
    model = checks.randomize(student.Classifier(student.Encoder(V, 12, **PLAN), 12, 4).double())
    model.eval()
    lengths = [7, 3, 1]
    ids, padding = sentences(3, 7, lengths)
    together = checks.tensor(model(ids, padding), "the logits")
    checks.shape(together, (3, 4), "the logits", axes=LOGITS)
    other = torch.where(padding, (ids + torch.randint(1, V, ids.shape)) % V, ids)
    what = "the logits with other words in the padding"
    checks.close(model(other, padding), together, what, axes=LOGITS)
    for row in (1, 2):  # those with padding
        length = lengths[row]
        alone = model(ids[row : row + 1, :length], padding[row : row + 1, :length])
        what = "the logits of a sentence without its padding"
        checks.close(alone, together[row : row + 1], what, axes=LOGITS)


@task("classifier", 0.7, needs="test_classifier_with_the_same_weights",
      promise="training the classifier trains the very encoder that it was given.")
def test_everything_in_the_classifier_learns(student, reference):
    """In training, every parameter of encoder and head receives the gradient that the solution's receives."""
    model, expected = twins(student, reference, "first")
    model.train()
    expected.train()
    checks.parameter_gradients_close(model, expected, *sentences(3, 5))


@task("classifier", 0.1, needs="test_mean_comes_to_the_head", promise=(
    "dropout is the probability with which each number of the pooled vector becomes 0 in training",
    "the others are scaled by 1 / (1 - dropout), as in `nn.Dropout`.",
))
def test_dropout_acts_on_the_pooled_vector(student):
    """In training, each number of the pooled vector becomes 0 or grows by 1 / (1 - dropout); in eval it stays."""
    width, p = 24, 0.25
    encoder = student.Encoder(V, width, **PLAN, dropout=0.0)
    model = checks.randomize(student.Classifier(encoder, width, width, pooling="mean", dropout=p).double())
    with torch.no_grad():  # a head that shows what it is given
        model.head.weight.copy_(torch.eye(width))
        model.head.bias.fill_(3.0)
    ids, padding = sentences(20, 3, 10 * [3, 2])
    model.eval()
    whole = checks.tensor(model(ids, padding), "the logits") - 3.0  # (20, 24)
    checks.shape(whole, (20, width), "the logits", axes=LOGITS)
    model.train()
    thinned = checks.tensor(model(ids, padding), "the logits") - 3.0
    checks.shape(thinned, (20, width), "the logits in training", axes=LOGITS)
    gone = thinned.abs() < 1e-9
    checks.true(gone.any(), "In training, not one of 480 numbers of the pooled vectors became 0.")
    checks.true(not gone.all(), "In training, all 480 numbers of the pooled vectors became 0.")
    expected = torch.where(gone, 0.0, whole / (1 - p))
    checks.close(thinned, expected, "the pooled vectors in training", axes=VECTORS)


@task("classifier", 0.15, promise=(
    "the module that was passed in (itself, not a copy)",
    "Making a classifier changes nothing in it.",
    "every part keeps its mode (training or eval), and no call depends on an earlier one.",
))
def test_encoder_is_used_and_not_copied(student):
    """The encoder passed in is the one that is trained; making and calling the classifier leaves it, its mode and the
    inputs as they were."""
    encoder = checks.randomize(student.Encoder(V, 12, **PLAN).double())
    encoder.eval()
    for parameter in encoder.layers[0].parameters():  # one layer is frozen, all else is not
        parameter.requires_grad_(False)
    flags = {name: p.requires_grad for name, p in encoder.named_parameters()}
    ids, padding = sentences(3, 5)
    vectors = encoder(ids, padding).detach()
    model = student.Classifier(encoder, 12, 4).double()
    checks.close(encoder(ids, padding), vectors, "what the encoder returns", axes=POSITIONS)
    for name, parameter in model.encoder.named_parameters():
        same = parameter.requires_grad == flags[name]
        checks.true(same, f"Making the classifier changed requires_grad of encoder.{name}.")
    checks.true(not model.encoder.training, "Making the classifier put its encoder into training mode.")
    on_the_left = torch.tensor(
        [[True, False, False, True, True], [False] * 5, [True, True, True, False, False]]
    )
    for training in (True, False):
        model.train(training)
        checks.input_untouched(model, ids, on_the_left, what="the classifier")
        for name, part in model.named_modules():
            sentence = f"{name or 'The classifier'} changed its mode (training or eval) in a call."
            checks.true(part.training == training, sentence, public=sentence)
    with torch.no_grad():
        model.encoder.layers[-1].norm2.bias.add_(1.0)
    model(ids, padding)
    checks.close(
        encoder(ids, padding),
        vectors + 1,
        "what the encoder returns after a step of training",
        axes=POSITIONS,
    )


# Part 3: LoRA


def an_encoder(student, **sizes):
    """The given encoder, with random weights."""
    return checks.randomize(student.Encoder(V, **{"d_model": 12, **PLAN, **sizes}))


def an_encoder_around(student, inputs, outputs):
    """A given encoder with random weights, whose `layers[0].linear2` is an nn.Linear of these sizes."""
    return an_encoder(student, d_model=outputs, n_heads=1, d_ff=inputs)


def trained(student, linear, rank, alpha):
    """A LoRALinear with random numbers everywhere, as after training, in float64."""
    return checks.randomize(student.LoRALinear(linear, rank, alpha).double())


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


def merged_with(one, layer):
    """How much of B A was added to the weight by merging, in words; "" if it was something else."""
    added, product = one.weight - layer.linear.weight, layer.B @ layer.A
    scale = (added * product).sum() / (product * product).sum()
    return f"{scale.item():.3f} of B A was added" if torch.allclose(added, scale * product, atol=1e-6) else ""


def answer_of(layer, x, scale):
    """What a LoRALinear should say, by its own numbers."""
    return x @ layer.linear.weight.T + layer.linear.bias + scale * (x @ layer.A.T @ layer.B.T)


@task("lora", 0.5, needs="test_lora_by_hand", promise=(
    "forward: linear(x) + alpha / rank · x Aᵀ Bᵀ, the same in training and in eval; x keeps its values.",
))
def test_output_for_any_rank(student):
    """For any rank and alpha, and inputs of any leading shape, what is added is alpha / rank times x A B."""
    encoder = an_encoder_around(student, 11, 7)
    for rank, alpha, in_training, in_eval in (
        (2, 7.0, (4, 11), (2, 5, 11)),
        (7, 16.0, (2, 5, 11), (11,)),
        (1, 0.5, (0, 11), (3, 11)),
    ):
        layer = trained(student, encoder.layers[0].linear2, rank, alpha)
        for training, shape in ((True, in_training), (False, in_eval)):
            layer.train(training)
            x = torch.randn(shape, dtype=torch.float64)
            output, expected = checks.input_untouched(layer, x), answer_of(layer, x, alpha / rank)
            checks.close(output, expected, f"the output at rank {rank} and alpha {alpha}")


@task("lora", 0.75, needs="test_lora_by_hand", promise=(
    "At the start, B is zero and A is not, so the output is that of the layer alone.",
    "`linear`: the layer that was passed in; none of its parameters is trained any more.",
    "with the number type and on the device of the layer's",
))
def test_who_learns_beside_a_layer(student):
    """At the start B is zero and nothing changes; gradients reach A and B, never the layer; the number type is kept."""
    encoder = an_encoder_around(student, 11, 7)
    for dtype in (torch.float32, torch.float64):
        linear = encoder.to(dtype).layers[0].linear2
        layer = student.LoRALinear(linear, 3, 4.0)
        for name, part in (("A", layer.A), ("B", layer.B)):
            checks.dtype(part, dtype, name)
        x = torch.randn(5, 11, dtype=dtype)
        with told(beginning(layer)):
            checks.close(layer.B, torch.zeros(7, 3, dtype=dtype), "B at the start")
            checks.true(bool(layer.A.any()), "A is zero at the start.")
        output = layer(x)
        checks.close(output, x @ linear.weight.T + linear.bias, "the output at the start", atol=1e-5)
        (output * torch.randn(5, 7, dtype=dtype)).sum().backward()
        checks.true(layer.B.grad is not None and bool(layer.B.grad.any()), "At the start, no gradient reaches B.")
    check_trained(layer, ["A", "B"])
    checks.randomize(layer)  # as after training
    pull = torch.randn(5, 7, dtype=torch.float64)
    checks.gradients_predict(lambda: layer(x), layer.A, layer.B, cotangent=pull, what="the output")


@task("lora", 0.5, needs="test_lora_by_hand", promise=(
    "A new, ordinary linear layer with the same answers, in the same number type. This one stays as it was.",
    "Both are independent from then on: whatever happens to one of them does not change the other.",
))
def test_merged_into_one_layer(student):
    """The merged layer is an ordinary one with the same answers, and both are independent."""
    encoder = an_encoder_around(student, 11, 7)
    for rank, alpha in ((1, 0.5), (3, 7.0)):
        layer = trained(student, encoder.layers[0].linear2, rank, alpha)
        x = torch.randn(4, 11, dtype=torch.float64)
        expected = layer(x).detach()
        merge = layer.merged
        one = merge()
        checks.parameters(one, {"weight": (7, 11), "bias": (7,)}, "the merged layer")
        checks.dtype(one.weight, torch.float64, "the merged weight")
        with told(merged_with(one, layer)):
            checks.close(one(x), expected, "the output of the merged layer")
    checks.close(layer(x), expected, "the output of the LoRALinear after merging")
    apart = not torch.allclose(one.weight, layer.linear.weight)
    checks.true(apart, "A and B are random, and the merged weight is that of the layer alone.")
    other = merge()
    checks.close(other(x), expected, "the output of a second merged layer")
    checks.randomize(one)
    checks.close(layer(x), expected, "the output of the LoRALinear after the merged layer has changed")
    checks.randomize(layer)
    checks.close(other(x), expected, "the output of a merged layer after the LoRALinear has changed")


@task("lora", 0.125,
      promise="Raises ValueError that names rank and its value if it is below 1 or above the smaller of in and out.")
def test_ranks_that_do_not_fit(student):
    """A rank below 1, or above the smaller of the two sizes, is refused; the largest that fits is not."""
    encoder = an_encoder_around(student, 11, 7)  # kept here: its layers go with it
    layer = encoder.layers[0]
    for linear, inputs, below in ((layer.linear2, 11, 0), (layer.linear1, 7, -random.randrange(1, 9))):
        for rank in (below, 8):
            checks.raises(ValueError, student.LoRALinear, linear, rank, 2.0, naming=("rank", rank))
        checks.shape(student.LoRALinear(linear, 7, 2.0).A, (7, inputs), what="A")


@task("lora", 0.25, needs="test_lora_by_hand", promise=(
    "Put a LoRALinear in the place of each linear layer that is named, and freeze everything else, in place.",
    "Returns how many numbers the A and B of all these layers hold: the sum of rank · (in + out), as a plain int.",
))
def test_lora_beside_the_named_layers(student):
    """Only the named layers get A and B, all else is frozen, and outputs stay as they were until something is trained."""
    chosen = ["layers.0.linear2", "layers.1.linear1", "layers.1.linear2"]
    encoder = an_encoder(student, d_ff=11, n_layers=2).double()
    ids, padding_mask = sentences(3, 5)
    encoder.eval()
    before = encoder(ids, padding_mask).detach()
    rank = random.randint(2, 5)
    checks.equal(student.add_lora(encoder, chosen, rank, 7.0), len(chosen) * rank * 23, "add_lora(...)")
    check_trained(encoder, [f"{name}.{matrix}" for name in chosen for matrix in "AB"])
    real = ~padding_mask[..., None]
    with told(beginning(encoder.layers[0].linear2)):
        checks.close(encoder(ids, padding_mask) * real, before * real, "what the encoder returns before training")
    checks.randomize(encoder)
    for name, layer in zip(chosen, (encoder.layers[0].linear2, encoder.layers[1].linear1)):
        x = torch.randn(3, layer.A.shape[1], dtype=torch.float64)
        checks.close(layer(x), answer_of(layer, x, 7.0 / rank), f"the output of {name}")


@task("lora", 0.125, needs="test_lora_by_hand", promise=(
    "Raises ValueError that names the name if there is no such module, if it is no plain `nn.Linear` but another class",
    "if it lies inside an `nn.MultiheadAttention`, which uses the weights of its layers without calling them.",
))
def test_names_that_lora_refuses(student):
    """Names of nothing, of other classes, and of layers inside an attention are refused, in any place of the list."""
    rank, none = random.randint(1, 9), f"layers.{random.randint(1, 99)}.linear1"
    encoder, attention = student.Encoder(V, 12, **PLAN), "layers.0.self_attn.out_proj"
    lists = [[name] for name in (none, "linear1", "norm", "layers.0", attention)]
    lists.append(["layers.0.linear1", none])
    lists.append(["layers.0.linear2", attention])  # whatever has become of linear1
    for names in lists:
        checks.raises(ValueError, student.add_lora, encoder, names, rank, 4.0, naming=names[-1])
    encoder = student.Encoder(V, 12, **PLAN)
    student.add_lora(encoder, ["layers.0.linear1"], rank, 4.0)
    checks.raises(ValueError, student.add_lora, encoder, ["layers.0.linear1"], rank, 4.0, naming="layers.0.linear1")


# Part 4: an honest split


def parted(student, items, share, seed):
    """The two lists, once it is clear that they are lists."""
    return two_lists(student.split(items, share, seed))


def two_lists(answer):
    """The two lists of an answer, once it is clear that they are lists."""
    lists = checks.unpack(answer, ("first", "second"), "split(...)")
    for name, found in zip(("first", "second"), lists):
        checks.true(isinstance(found, list), f"The {name} of the two results is no list.")
    return lists


@task("split", 0.25, needs="test_ten_items_make_eight_and_two", forbids=READY_MADE, promise=(
    "The first list gets share · len(items) items, rounded to the nearest whole number",
    "items may be empty",
))
def test_lists_of_the_right_length(student, seed):
    """The first list gets the nearest whole number to share · len(items), from nothing to everything."""
    for length, share, expected in (
        (100, 0.29, 29),
        (7, 0.75, 5),
        (11, 0.0, 0),
        (11, 1.0, 11),
        (0, 0.5, 0),
        (1, 0.9, 1),
        (3, 0.1, 0),
    ):
        items = list(range(length))
        first, second = parted(student, list(items), share, seed)
        what = f"with share={share} and {length} items"
        checks.equal(len(first), expected, f"the length of the first list {what}")
        same_items = sorted([*first, *second]) == items
        checks.true(same_items, f"Together, the two lists do not hold every item exactly once, {what}.")


@task("split", 0.25, needs="test_ten_items_make_eight_and_two", forbids=READY_MADE,
      promise="Both are in random order.")
def test_both_lists_are_shuffled(student, seed):
    """Items from everywhere go into both lists, and neither list keeps the old order, forwards or backwards."""
    items = list(range(300))
    for share in (0.3, 0.7):
        lists = parted(student, list(items), share, seed)
        for name, found in zip(("first", "second"), lists):
            for part, low in (("first", 0), ("middle", 100), ("last", 200)):
                inside = any(low <= item < low + 100 for item in found)
                checks.true(inside, f"The {name} list holds nothing from the {part} third of the items.")
            neighbours = sum(abs(a - b) == 1 for a, b in zip(found, found[1:]))
            apart = neighbours < len(found) / 4  # about two, by chance
            in_order = f"In the {name} list, {neighbours} of {len(found)} items still stand beside the next one."
            checks.true(apart, in_order, public=f"In the {name} list, many items still stand beside the next one.")
            rises = sum(a < b for a, b in zip(found, found[1:])) / (len(found) - 1)
            checks.between(rises, 0.2, 0.8, f"how often an item in the {name} list is above the one before")


@task("split", 0.25, needs="test_ten_items_make_eight_and_two", forbids=READY_MADE, promise=(
    "it keeps its order.",
    "the global random states of Python, NumPy and PyTorch are the same after the call as before.",
    "may hold equal things more than once",
))
def test_list_and_other_randomness_stay_as_they_were(student, seed):
    """The list keeps its order, equal items all stay, and all global random states are the same after the call."""
    cards = [
        ["the soup was hot", 0],
        ["was the soup hot", 2],
        ["the soup was hot", 0],
        ["the beer was hot", 1],
    ]
    cards = [list(card) for card in 5 * cards]  # lists cannot stand in a set, and many are equal
    first, second = two_lists(checks.input_untouched(student.split, cards, 0.5, seed, what="split(...)"))
    checks.equal(len(first), 10, "the length of the first list")
    lost = "Together, the two lists do not hold every card as often as it was there, although some are equal."
    checks.true(sorted([*first, *second]) == sorted(cards), lost, public=lost)
    try:
        checks.global_randomness_untouched(student.split, list(range(9)), 0.5, seed + 1, what="split(...)")
    except checks.CheckFailed as failure:
        failure.telling = str(failure)
        raise


@task("split", 0.25, forbids=READY_MADE,
      promise="Raises ValueError that names share and its value if share is below 0 or above 1.")
def test_impossible_shares_are_refused(student):
    """A share below 0 or above 1 raises a ValueError that names share and its value."""
    items = [random.randrange(99) for _ in range(5)]
    for share in (-random.randint(1, 999) / 1000, random.randint(1001, 1999) / 1000):
        checks.raises(ValueError, student.split, items, share, 0, naming=("share", share))


# Part 5: the confusion matrix and macro F1


@task("scores", 0.5, needs="test_confusion_of_eight_cards_by_hand", forbids=READY_MADE, promise=(
    "Row i, column j: how many examples of class i were guessed to be class j.",
    "N may be 0, and K need not be 3. labels and predictions keep their values.",
    "dtype torch.int64",
))
def test_confusion_of_any_guesses(student, reference):
    """Every example is counted in the row of its class and the column of the guess, however many classes occur."""
    for N, K, occurring in ((50, 4, 4), (7, 5, 2), (0, 3, 3), (1, 2, 2), (40, 1, 1)):
        labels, predictions = torch.randint(occurring, (2, N))
        expected = reference.confusion(labels, predictions, K)
        found = checks.input_untouched(student.confusion, labels, predictions, K, what="confusion(...)")
        checks.equal(found, expected, f"the matrix of {N} examples and {K} classes", axes=CELLS)
        checks.dtype(found, torch.int64, "the confusion matrix")


@task("scores", 0.25, forbids=READY_MADE,
      promise="Raises ValueError that names labels or predictions, and the value, if a class is below 0 or above K - 1.")
def test_classes_that_do_not_exist_are_refused(student):
    """A class below 0 or above K - 1 raises a ValueError that names labels or predictions, and the value."""
    N, place = 9, random.randrange(9)
    good = torch.randint(3, (N,))
    for odd in (3, -1, random.randint(4, 99)):
        bad = torch.randint(3, (N,))
        bad[place] = odd
        naming = ("labels", odd)
        what = f"confusion with label {odd}"
        checks.raises(ValueError, student.confusion, bad, good, 3, naming=naming, what=what)
        naming = ("predictions", odd)
        what = f"confusion with prediction {odd}"
        checks.raises(ValueError, student.confusion, good, bad, 3, naming=naming, what=what)


@task("scores", 0.25, needs="test_macro_f1_of_eight_cards_by_hand", forbids=READY_MADE, promise=(
    "The mean of F1 over the classes",
    "rows are the truth, columns the guesses; it keeps its values.",
))
def test_macro_f1_of_any_matrix(student, reference):
    """Macro F1 is the plain mean of the F1 of all classes, for any number of classes."""
    for K in (2, 3, 5):
        table = torch.randint(1, 40, (K, K)) + torch.diag(torch.randint(5, 90, (K,)))
        score = checks.input_untouched(student.macro_f1, table, what="macro_f1(...)")
        checks.close(score, reference.macro_f1(table), f"macro F1 of {K} classes")


@task("scores", 0.25, needs="test_macro_f1_of_eight_cards_by_hand", forbids=READY_MADE, promise=(
    "A class that neither occurs nor is guessed does not count.",
    "A class that occurs and is never guessed, or is guessed and never occurs, counts as 0.",
))
def test_classes_that_do_not_count(student, reference):
    """Only a class that neither occurs nor is guessed does not count; one of both alone makes it count as 0."""
    table = torch.randint(1, 20, (5, 5))
    table[1], table[:, 1] = 0, 0
    compare_macro_f1(student, reference, table, "with a class that neither occurs nor is guessed")
    table[2], table[:, 2] = 0, 0
    table[0, 2] = 1
    compare_macro_f1(student, reference, table, "with a class that is guessed and never occurs")
    table[0, 2], table[2, 0] = 0, 1
    compare_macro_f1(student, reference, table, "with a class that occurs and is never guessed")


def compare_macro_f1(student, reference, table, what):
    """Macro F1 of this matrix is the solution's."""
    checks.close(student.macro_f1(table.clone()), reference.macro_f1(table), f"macro F1 {what}")


@task("scores", 0.25, needs="test_macro_f1_of_eight_cards_by_hand", forbids=READY_MADE, promise=(
    "It is 1 if every example of the class is found and nothing else is taken for it, and 0 if none is found.",
    "A matrix of zeros has no class that counts, and gives 0.0.",
))
def test_macro_f1_at_its_ends(student):
    """Macro F1 is 1 when everything is right, and 0 when nothing is, or when there is nothing at all."""
    K = random.randint(3, 6)
    right = torch.diag(torch.randint(1, 20, (K,)))
    alone = torch.zeros_like(right)
    alone[1, 1] = random.randint(2, 20)
    for table, expected, what in (
        (right, 1.0, "when everything is right"),
        (right.roll(1, 0), 0.0, "when nothing is right"),
        (alone, 1.0, "when one class alone occurs, and is always right"),
        (torch.zeros_like(right), 0.0, "of a matrix of zeros"),
    ):
        score = student.macro_f1(table.clone())
        checks.close(score, expected, f"macro F1 {what}")
