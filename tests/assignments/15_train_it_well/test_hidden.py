"""Train it well: the tests that only graders see.

Where chance is counted, the margin is seven standard deviations: a right answer falls outside less than once in
a thousand million runs.
"""

import math
import random

import torch
import torch.nn.functional as F
from torch import nn

from autograder import checks, task

READY_MADE_CLIPPING = (
    "torch.nn.utils.clip_grad_norm_",
    "torch.nn.utils.clip_grad_norm",
    "torch.nn.utils.clip_grads_with_norm_",
    "torch.nn.utils.get_total_norm",
)
MAKE_STEPS = (  # the base class Optimizer, which has no step, is allowed
    "ASGD Adadelta Adafactor Adagrad Adam AdamW Adamax LBFGS Muon NAdam RAdam RMSprop Rprop SGD "
    "SparseAdam adam adamw"
)
READY_MADE_STEPS = (
    *(f"torch.optim.{name}" for name in MAKE_STEPS.split()),
    "torch._fused_adamw_",
    "torch._fused_adam_",
)
READY_MADE_NORMS = (
    "torch.nn.RMSNorm",
    "torch.nn.functional.rms_norm",
    "torch.rms_norm",
    "torch._fused_rms_norm",
)

SHAPES = ((), (3,), (5, 2), (2, 1, 7))
TWO_SHAPES = ((3,), (2, 2))  # where shapes are not the question
ONE_DEVIATION = math.erf(math.sqrt(0.5))  # of normal numbers, so many are within one standard deviation: 68.3 %


def numbers(*values):
    """A tensor of float64."""
    return torch.tensor(values, dtype=torch.float64)


def some(shapes=SHAPES, scale=1.0):
    """Random tensors of these shapes, in float64, none of whose numbers is near 0: there, eps would show by chance."""
    drawn = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    return [scale * (numbers + 0.5 * numbers.sign()) for numbers in drawn]


def knobs_of(module, values, gradients):
    """Parameters with these values and gradients."""
    knobs = module.Knobs(*values)
    knobs.set_gradients(*gradients)
    return knobs


def same_tensors(actual, expected, what):
    """The knobs' values or gradients, one after the other; None stands for no gradient."""
    for i, (got, wanted) in enumerate(zip(checks.unpack(actual, len(expected), f"the {what}s"), expected)):
        if wanted is None:
            checks.equal(got, None, f"the {what} of parameter {i}")
        else:
            got = checks.tensor(got, f"the {what} of parameter {i}")
            fewer_digits = got.dtype != wanted.dtype  # the number type has a test of its own
            checks.close(got, wanted, f"the {what} of parameter {i}", atol=1e-6 if fewer_digits else 1e-8)


def same_nucleus(student, logits, p, stays, what):
    """The tokens in `stays`, and no others, keep their logits."""
    kept = student.top_p(logits.clone(), p)
    checks.shape(kept, tuple(logits.shape), what, axes=("V",))
    left = [token for token, logit in enumerate(kept.tolist()) if logit != -math.inf]
    checks.equal(left, sorted(stays), f"the list of tokens that stay in {what}")
    expected = torch.full_like(logits, -math.inf)
    expected[left] = logits[left]
    checks.close(kept, expected, what, axes=("token",))


# Part 1: initialisation


def weights(model):
    """The names and the numbers of all weights that init_weights draws; the tied one comes once."""
    return {
        name: parameter.detach()
        for name, parameter in model.named_parameters()
        if name.endswith("weight") and "norm" not in name
    }


@task("init", 0.75, promise=(
    "weight drawn from normal(0, std), bias (where there is one) 0",
    "std: float = 0.02",
))
def test_weights_are_normal(student):
    """The weights of linear layers and embeddings come from normal(0, std), with 0.02 as the default."""
    other = random.uniform(0.2, 0.45)
    for std, settings in ((0.02, {}), (other, {"std": other})):
        model = student.LanguageModel(199, 48, 4, 1, 7)
        student.init_weights(model, **settings)
        for name, weight in weights(model).items():
            n, spread = weight.numel(), weight.double() / std
            middle, width = 7 / math.sqrt(n), 7 / math.sqrt(2 * n)
            deviation = spread.square().mean().sqrt().item()
            checks.between(deviation, 1 - width, 1 + width, f"the standard deviation of {name}, measured in std,")
            checks.between(spread.mean().item(), -middle, middle, f"the mean of {name}, measured in std,")
            margin = 7 * math.sqrt(ONE_DEVIATION * (1 - ONE_DEVIATION) / n)
            within = (spread.abs() < 1).double().mean().item()
            share = f"the share of {name} within one std"
            checks.between(within, ONE_DEVIATION - margin, ONE_DEVIATION + margin, share)


@task("init", 0.5, promise="Every other tensor stays as it is.")
def test_every_other_tensor_stays(student):
    """A parameter that belongs to no linear layer, embedding or layer norm stays as it is."""
    values = some()
    knobs = student.Knobs(*values)
    student.init_weights(knobs)
    same_tensors(knobs.values(), values, "value")


@task("init", 0.5, promise=(
    "The numbers are overwritten, the tensors are not replaced: a tied weight stays tied, a frozen one frozen",
    "a float64 model stays a float64 model",
    "Everything of these kinds counts, at any depth, the model itself included",
))
def test_numbers_are_overwritten_in_place(student):
    """A tied weight stays tied, a frozen one frozen, float64 stays float64; a model that is one layer counts as well."""
    model = checks.randomize(student.LanguageModel(11, 8, 2, 1, 5).double())
    all_frozen = ("blocks.0.attention.qkv.weight", "position_embed.weight")
    for name in all_frozen:
        model.get_parameter(name).requires_grad_(False)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    student.init_weights(model)
    tied = model.head.weight is model.token_embed.weight
    checks.true(tied, "The tied weight of head and token_embed has become two.")
    for name, parameter in model.named_parameters():
        checks.dtype(parameter.detach(), torch.float64, name)
        if name in weights(model):
            checks.true(not torch.equal(parameter.detach(), before[name]), f"{name} holds its old numbers.")
    for name in all_frozen:
        checks.equal(model.get_parameter(name).requires_grad, False, f"requires_grad of {name}, which was frozen,")
    others = {name: p.detach().clone() for name, p in model.named_parameters() if "ff.0" not in name}
    layer = model.blocks[0].ff[0]
    old = layer.weight.detach().clone()
    student.init_weights(layer, 3.0)
    kept = "A model that is one nn.Linear keeps its old numbers."
    checks.true(not torch.equal(layer.weight, old), kept, public=kept)
    narrow = "After init_weights(layer, 3.0), all weights of the layer lie between -1 and 1: its std is not 3."
    checks.true(layer.weight.abs().max() > 1, narrow, public=narrow)
    for name, parameter in model.named_parameters():
        if name in others:
            checks.equal(parameter.detach(), others[name], name)
    alone = checks.randomize(student.LanguageModel(11, 8, 2, 1, 5))
    student.init_weights(alone.position_embed, 3.0)
    student.init_weights(alone.norm)
    wide = "A model that is one nn.Embedding does not get its numbers from normal(0, std)."
    checks.true(alone.position_embed.weight.abs().max() > 1.5, wide, public=wide)
    checks.equal(alone.norm.weight.detach(), torch.ones(8), "the weight of a model that is one nn.LayerNorm")
    checks.equal(alone.norm.bias.detach(), torch.zeros(8), "the bias of a model that is one nn.LayerNorm")


@task("init", 0.25, promise="each tensor gets its own, and so does each call.")
def test_every_call_draws_anew(student):
    """Two layers of one shape get different numbers, and so do two calls."""
    model = student.LanguageModel(random.randint(11, 40), 2 * random.randint(4, 12), 2, 2, random.randint(5, 20))
    student.init_weights(model)
    first = {name: weight.clone() for name, weight in weights(model).items()}
    same = torch.equal(first["blocks.0.attention.qkv.weight"], first["blocks.1.attention.qkv.weight"])
    checks.true(not same, "Two layers of one shape have the same numbers.")
    student.init_weights(model)
    for name, weight in first.items():
        again = torch.equal(model.get_parameter(name).detach(), weight)
        checks.true(not again, f"A second call gave {name} the same numbers.")


# Part 2: the schedule


@task("schedule", 1, promise=(
    "peak / warmup at step 0, then in equal steps up to peak at step warmup - 1.",
    "Then half a cosine, from peak down to floor, which it reaches at step total - 1. Every later step has floor.",
))
def test_schedules_of_many_sizes(student, reference):
    """Every step of every run has the rate that the formula gives, in whatever order the steps are asked for."""
    for warmup, total, floor in ((5, 9, 0.0), (2, 3, 0.0), (random.randint(2, 9), 13, 0.25)):
        peak = random.uniform(0.5, 2.0)
        steps = [*range(total + 3), 10 * total]
        random.shuffle(steps)
        rates = [student.learning_rate(step, warmup, total, peak, floor) for step in steps]
        for step, rate in zip(steps, rates):
            expected = reference.learning_rate(step, warmup, total, peak, floor)
            what = f"the rate of step {step} with warmup = {warmup} and total = {total}"
            checks.close(rate, expected, what, atol=1e-9)


@task("schedule", 0.5, promise="warmup=0 is no warm-up: step 0 has peak, as with warmup=1.")
def test_schedule_without_warm_up(student):
    """With warmup=0, as with warmup=1, step 0 has the peak and the cosine begins at once."""
    total, floor = random.randint(4, 7), random.uniform(0.1, 0.9)
    peak = floor + random.uniform(0.5, 3)
    for warmup in (0, 1):
        rates = [student.learning_rate(step, warmup, total, peak, floor) for step in range(total)]
        for step, rate in enumerate(rates):
            expected = floor + (peak - floor) * (1 + math.cos(math.pi * step / (total - 1))) / 2
            checks.close(rate, expected, f"the rate of step {step} with warmup = {warmup}", atol=1e-9)


@task("schedule", 0.5, promise=(
    "The names of functions, classes, attributes *and arguments* are part of the contract",
    "The learning rate of one step of a run, a plain number",
))
def test_arguments_by_name(student):
    """The schedule knows its arguments by name, the floor is 0 when it is left out, and a rate is a plain number."""
    peak, half, more = random.uniform(0.2, 2), random.randint(1, 5), random.randint(2, 6)
    settings = {"warmup": 2 * half, "total": 2 * half + 2 * more, "peak": peak}
    top, last = settings["warmup"] - 1, settings["total"] - 1
    for step, expected in ((half - 1, peak / 2), (top, peak), (top + more, peak / 2), (last, 0.0), (last + 1, 0.0)):
        rate = student.learning_rate(step=step, **settings)
        checks.true(type(rate) in (int, float), "The rate is something other than a plain number.")
        checks.close(rate, expected, f"the rate of step {step}", atol=1e-9)


# Part 3: clipping


@task("clipping", 0.5, forbids=READY_MADE_CLIPPING, promise=(
    "Scale all gradients down together when their common norm is larger than max_norm.",
    "Returns the common norm before clipping",
    "The parameters' own values are not touched",
))
def test_clipping_equals_pytorch(student):
    """Gradients of many shapes come out as from PyTorch's clipping, and the norm before it is returned."""
    for max_norm in (0.5, 100.0):
        values, gradients = some(), some(scale=3.0)
        theirs = [nn.Parameter(value.clone()) for value in values]
        for parameter, gradient in zip(theirs, gradients):
            parameter.grad = gradient.clone()
        expected = nn.utils.clip_grad_norm_(theirs, max_norm).item()
        knobs = knobs_of(student, values, gradients)
        what = f"the norm with max_norm = {max_norm}"
        checks.close(student.clip_gradients(knobs.knobs, max_norm), expected, what, atol=1e-5)
        for i, (got, wanted) in enumerate(zip(knobs.gradients(), theirs)):
            checks.close(got, wanted.grad, f"the gradient of parameter {i}", atol=1e-5)
        same_tensors(knobs.values(), values, "value")


@task("clipping", 0.5, needs="test_three_and_four_have_norm_five", forbids=READY_MADE_CLIPPING, promise=(
    "a generator such as `model.parameters()`, which can be walked through only once.",
    "Parameters without a gradient are passed over and stay without one.",
    "gradients keep their dtype.",
))
def test_parameters_may_be_a_generator(student):
    """A generator, such as model.parameters(), can be walked through only once, and that is enough."""
    unit = random.uniform(0.5, 9)
    for dtype in (torch.float64, torch.float32):
        values = [number.to(dtype) for number in some([(1,)] * 3)]
        knobs = knobs_of(student, values, [numbers(6 * unit).to(dtype), None, numbers(8 * unit).to(dtype)])
        checks.close(knobs.clip(5 * unit), 10 * unit, "the norm")
        halves = [numbers(3 * unit).to(dtype), None, numbers(4 * unit).to(dtype)]
        same_tensors(knobs.gradients(), halves, "gradient")


@task("clipping", 0.5, forbids=READY_MADE_CLIPPING, promise=(
    "as a plain float; 0.0 where there is no gradient at all.",
    "Gradients of zeros stay zeros.",
))
def test_norm_is_a_plain_float(student):
    """The norm is a plain float, also where nothing is clipped, where all gradients are 0, and where there are none."""
    values = some()
    zeros = [torch.zeros_like(value) for value in values]
    for gradients, max_norm in ((some(), 0.5), (some(), 100.0), (zeros, 1.0), ([None] * 4, 1.0)):
        knobs = knobs_of(student, values, gradients)
        squares = sum(gradient.square().sum().item() for gradient in gradients if gradient is not None)
        norm = student.clip_gradients(knobs.knobs, max_norm)
        checks.equal(type(norm).__name__, "float", "the type of the norm")
        checks.close(norm, math.sqrt(squares), "the norm", atol=1e-5)
        if squares == 0:
            same_tensors(knobs.gradients(), gradients, "gradient")


@task("clipping", 0.5, forbids=READY_MADE_CLIPPING, promise=(
    "With `max_norm=math.inf` the function only measures.",
    "A gradient that holds inf makes the norm inf, and one that holds NaN makes it NaN",
))
def test_infinite_norms(student):
    """With an infinite max_norm the gradients are only measured; an infinite gradient or NaN is seen in the norm."""
    gradients = some(scale=1e3)
    squares = sum(gradient.square().sum().item() for gradient in gradients)
    knobs = knobs_of(student, some(), gradients)
    checks.close(student.clip_gradients(knobs.knobs, math.inf), math.sqrt(squares), "the norm", atol=1e-5)
    same_tensors(knobs.gradients(), gradients, "gradient")
    for odd in (math.inf, math.nan):
        burst = knobs_of(student, [numbers(1), numbers(2, 3)], [numbers(1), numbers(odd, 1)])
        norm = student.clip_gradients(burst.knobs, 1.0)
        checks.true(type(norm) is float and not math.isfinite(norm), f"A gradient of {odd} gave a finite norm.")
        checks.equal(math.isnan(norm), math.isnan(odd), f"whether the norm is NaN when a gradient is {odd}")


# Part 4: AdamW


def after_each_step(knobs, optimiser, values, gradients, rates=None, gap=1):
    """Take the steps, and yield the values after the first and each `gap`-th step that follows it.

    gradients: for each step one, or None, for each parameter. They come in the number type that the knobs have by
    then: that they keep it has a test of its own.
    """
    set_gradients, step, values_now = knobs.set_gradients, optimiser.step, knobs.values
    for i, now in enumerate(gradients):
        if rates is not None:
            optimiser.lr = rates[i]
        set_gradients(*(g if g is None else g.to(value.dtype) for g, value in zip(now, values)))
        step()
        if i % gap == 0:
            values = values_now()
            yield values


def values_after_each_step(module, settings, values, gradients, rates=None, gap=1):
    """The values after the first and each `gap`-th step that follows it, of a new optimiser."""
    knobs = module.Knobs(*values)
    optimiser = module.AdamW(knobs.knobs, **settings)
    return [*after_each_step(knobs, optimiser, values, gradients, rates, gap)]


def same_values_after_each_step(student, reference, settings, values, gradients, rates=None, gap=1):
    """The student's optimiser gives the same values as the solution's after the first and each `gap`-th step."""
    expected = values_after_each_step(reference, settings, values, gradients, rates, gap)
    actual = values_after_each_step(student, settings, values, gradients, rates, gap)
    for i, (mine, theirs) in enumerate(zip(actual, expected)):
        same_tensors(mine, theirs, f"value after step {gap * i + 1}")


@task("adamw", 0.75, forbids=READY_MADE_STEPS,
      promise="Your class must give the numbers of `torch.optim.AdamW`, step by step, without it.")
def test_adamw_equals_pytorch(student, reference):
    """With any settings, and with the defaults, parameters of all shapes become what PyTorch's AdamW makes of them."""
    strong = {"lr": 0.05, "betas": (0.6, 0.75), "eps": 0.5, "weight_decay": 0.25}
    for settings in ({}, strong):
        same_values_after_each_step(student, reference, settings, some(), [some() for _ in range(3)])
    forgetful = {"betas": (0.0, 0.5), "weight_decay": 0.0}
    gradients = [some(TWO_SHAPES) for _ in range(2)]
    same_values_after_each_step(student, reference, forgetful, some(TWO_SHAPES), gradients)
    small = [some(TWO_SHAPES, scale) for scale in (1e-8, 3e-8, 1e-9)]  # as small as eps
    decaying = {"lr": 0.5, "weight_decay": 0.02}
    same_values_after_each_step(student, reference, decaying, some(TWO_SHAPES), small)
    large_eps = {"lr": 0.1, "eps": 1e-3, "weight_decay": 0.02}
    long = [some([(3,)]) for _ in range(19)]
    same_values_after_each_step(student, reference, large_eps, some([(3,)]), long, gap=6)


@task("adamw", 0.25, needs="test_first_step_worked_by_hand", forbids=READY_MADE_STEPS, promise=(
    "the parameter stays as it is, weight decay included, and does not count the step.",
    "A gradient of zeros *is* a gradient.",
))
def test_each_parameter_counts_its_own_steps(student, reference):
    """A parameter without a gradient stays as it is and does not count the step; a gradient of zeros is a gradient."""
    a, b, c = some(((3,), (2, 2), (5,)))
    gradients = [[a, None, c], [None, None, 0 * c], [a, b, None], [0 * a, -b, c]]
    settings = {"lr": 0.1, "weight_decay": 0.5}
    same_values_after_each_step(student, reference, settings, some(((3,), (2, 2), (5,))), gradients)


@task("adamw", 0.5, needs="test_first_step_worked_by_hand", forbids=READY_MADE_STEPS,
      promise="lr: an attribute, which may be set between steps; the next step uses what it is then.")
def test_rate_may_change_between_steps(student, reference):
    """The attribute lr holds the rate that was passed; a new value counts from the next step on."""
    knobs = student.Knobs(numbers(1))
    checks.close(student.AdamW(knobs.knobs).lr, 1e-3, "lr of an AdamW with the defaults", atol=1e-12)
    checks.close(student.AdamW(knobs.knobs, 0.25).lr, 0.25, "lr of AdamW(parameters, 0.25)", atol=1e-12)
    rates = [0.1, 0.0, 0.4]
    settings, gradients = {"lr": 0.3, "weight_decay": 0.25}, [some(TWO_SHAPES) for _ in rates]
    same_values_after_each_step(student, reference, settings, some(TWO_SHAPES), gradients, rates)


@task("adamw", 0.25, needs="test_first_step_worked_by_hand", forbids=READY_MADE_STEPS,
      promise="It acts on the weight itself (*decoupled*).")
def test_decay_acts_on_the_weight_itself(student):
    """Weight decay takes lr times weight_decay of every weight, however large its gradient is."""
    decay, lr = random.uniform(0.3, 0.9), random.uniform(0.05, 0.3)
    values = [random.uniform(1, 2) * numbers(2.0, 2.0, -4.0, 1000.0)]
    gradients = [[random.uniform(1, 9) * numbers(1e-3, 1e3, 1e6, 0.0)]]
    (after,) = values_after_each_step(student, {"lr": lr, "weight_decay": decay, "eps": 1e-12}, values, gradients)
    expected = values[0] * (1 - lr * decay) - lr * numbers(1, 1, 1, 0)
    same_tensors(after, [expected], "value")


@task("adamw", 0.25, needs=("test_first_step_worked_by_hand", "test_zero_grad_forgets_all_gradients"),
      forbids=READY_MADE_STEPS,
      promise=(
          "parameters: a list, or any other iterable of parameters; also a generator such as `model.parameters()`.",
          "zero_grad(): forgets all gradients: every `grad` is None afterwards.",
      ))
def test_optimiser_in_a_training_loop(student, reference):
    """With the generator model.parameters(), and zero_grad after each step, every step is as it should be."""
    values, gradients = some(TWO_SHAPES), [some(TWO_SHAPES) for _ in range(2)]
    expected = values_after_each_step(reference, {"lr": 0.1}, values, gradients)
    knobs = student.Knobs(*values)
    optimiser = knobs.adamw(lr=0.1)
    zero_grad, gradients_now, seen = optimiser.zero_grad, knobs.gradients, []
    for now in after_each_step(knobs, optimiser, values, gradients):
        seen.append(now)
        zero_grad()
        same_tensors(gradients_now(), [None] * len(values), "gradient")
    for step, (mine, theirs) in enumerate(zip(seen, expected)):
        same_tensors(mine, theirs, f"value after step {step + 1}")


@task("adamw", 0.25, needs="test_first_step_worked_by_hand", forbids=READY_MADE_STEPS,
      promise="What an optimiser remembers belongs to it alone: two of them do not disturb each other.")
def test_two_optimisers_are_independent(student, reference):
    """What one optimiser remembers is not disturbed by another, made later and stepped in between."""
    settings, values = {"lr": 0.1, "weight_decay": 0.02}, some(TWO_SHAPES)
    gradients = [some(TWO_SHAPES) for _ in range(2)]
    expected = values_after_each_step(reference, settings, values, gradients)
    knobs, other = student.Knobs(*values), knobs_of(student, some(TWO_SHAPES), some(TWO_SHAPES))
    optimiser, other_optimiser = student.AdamW(knobs.knobs, **settings), student.AdamW(other.knobs, lr=0.7)
    for now, wanted in zip(after_each_step(knobs, optimiser, values, gradients), expected):
        same_tensors(now, wanted, "value")
        other_optimiser.step()
        other_optimiser.lr = 0.9


@task("adamw", 0.5, needs="test_first_step_worked_by_hand", forbids=READY_MADE_STEPS,
      promise="Parameters change in place and keep their dtype; gradients stay as they are.")
def test_gradients_and_dtypes_stay(student, reference):
    """A step leaves the gradients as they are, float32 stays float32, and its values are right, too."""
    for dtype in (torch.float64, torch.float32):
        values = [value.to(dtype) for value in some(TWO_SHAPES)]
        gradients = [[gradient.to(dtype) for gradient in some(TWO_SHAPES)] for _ in range(2)]
        knobs = student.Knobs(*values)
        step = student.AdamW(knobs.knobs, lr=0.1, weight_decay=0.02).step
        set_gradients, gradients_now = knobs.set_gradients, knobs.gradients
        for now in gradients:
            set_gradients(*now)
            step()
            same_tensors(gradients_now(), now, "gradient")
        expected = values_after_each_step(reference, {"lr": 0.1, "weight_decay": 0.02}, values, gradients)
        for i, (value, wanted) in enumerate(zip(knobs.values(), expected[-1])):
            checks.dtype(value, dtype, f"the value of parameter {i}")
            what = f"the value of parameter {i} in {str(dtype).removeprefix('torch.')} after two steps"
            checks.close(value, wanted, what, atol=1e-5)


# Part 5: perplexity and top-p


@task("writing", 0.5, promise="The perplexity of a mean cross-entropy in natural logarithms, a plain float.")
def test_perplexity_of_any_loss(student):
    """The perplexity of any loss is e to its power, a plain float."""
    for largest in (1.0, 6.0, 20.0, 60.0):
        loss = random.uniform(0.5 * largest, largest)
        found = student.perplexity(loss)
        checks.close(found, math.exp(loss), f"the perplexity of a loss of {loss:.3f}")
        checks.equal(type(found).__name__, "float", "the type of the perplexity")


def between_two_sums(logits):
    """Each size of a nucleus, with a p in the middle between the sums that it takes and that it does not."""
    sums = logits.double().softmax(-1).sort(descending=True).values.cumsum(-1).tolist()
    return [(size + 1, (low + high) / 2) for size, (low, high) in enumerate(zip([0.0, *sums], sums))]


@task("writing", 0.5, promise=(
    "the smallest set of most likely tokens whose probabilities together reach p.",
    "those of the nucleus as they are, -inf everywhere else",
))
def test_nucleus_of_any_logits(student):
    """For any logits, in any order, exactly the most likely tokens that are needed to reach p keep their logits."""
    for V in (7, 23):
        logits = 2 * torch.randn(V) - 5
        order = logits.argsort(descending=True)
        for size, p in between_two_sums(logits)[:4]:
            same_nucleus(student, logits, p, order[:size].tolist(), f"top_p(logits, {p:.3f})")


@task("writing", 0.5, promise=("At least one token stays, whatever p is.", "p = 1 keeps every token."))
def test_ends_of_p(student):
    """With p=0 the likeliest token alone stays, and with p=1 every token, however unlikely it is."""
    far_below = torch.tensor([0.0, -20.0, -30.0])  # in float32, the first probability is 1
    same_nucleus(student, far_below, 1.0, range(3), "top_p of [0, -20, -30] in float32 with p = 1")
    logits = torch.tensor([0.0, 3.0, 1.0, 2.0, -60.0])
    same_nucleus(student, logits, 0.0, [1], "top_p(logits, 0)")
    same_nucleus(student, logits, 1.0, range(5), "top_p(logits, 1)")
    for p in (0.0, 1.0):
        same_nucleus(student, torch.tensor([-2.0]), p, [0], f"top_p of a single logit with p = {p}")
    for scale in (1, 30):
        logits = scale * torch.randn(501)
        what = f"top_p of 501 logits with a standard deviation of {scale} with p = 0"
        (likeliest,) = logits.topk(1).indices.tolist()
        same_nucleus(student, logits, 0.0, [likeliest], what)


@task("writing", 0.25, promise="Of equal logits the lower ids come first.")
def test_lower_ids_come_first(student):
    """Where logits are equal at the edge of the nucleus, the lower ids stay."""
    level, likeliest = random.uniform(-3, 3), random.randrange(1, 4)
    same_nucleus(student, torch.full((64,), level), 15.5 / 64, range(16), "top_p of 64 equal logits")
    mixed = torch.full((4,), level)
    mixed[likeliest] += 1  # probability 0.475, and 0.175 for each of the others
    same_nucleus(student, mixed, 0.6, [0, likeliest], "top_p of logits with a tie")


@task("writing", 0.25,
      promise="any numbers, also as large as 10,000, and -inf for tokens that are out already")
def test_very_sure_logits(student):
    """Logits of 10,000, and of -inf for tokens that are out already, are handled."""
    order = torch.randperm(7)
    sure = torch.full((7,), -math.inf)
    sure[order[:4]] = torch.tensor([10_000.0, 9_999.0, -9_999.0, -10_000.0])  # probabilities 0.731, 0.269, 0, 0
    first, second = order[:2].tolist()
    small, large = random.randint(30, 70) / 100, random.randint(76, 95) / 100
    for p, stays in ((small, [first]), (large, [first, second])):
        same_nucleus(student, sure, p, stays, f"top_p of large logits with p = {p}")


@task("writing", 0.25, promise=("Returns new logits (V,)", "the logits that came in stay"))
def test_logits_that_came_in_stay(student):
    """top_p returns new logits in the same dtype and leaves those that came in as they are."""
    for dtype in (torch.float32, torch.float64):
        logits = torch.randn(9, dtype=dtype)
        for p in (0.3, 1.0):
            checks.dtype(checks.input_untouched(student.top_p, logits, p, what="top_p"), dtype, "the logits")


# Part 6: the modern block


def in_both_modes(module, x):
    """The outputs in training and in eval."""
    return {mode: module.train(mode == "training")(x) for mode in ("training", "eval")}


def twins(student, reference, name, *sizes):
    """The student's module and the solution's in float64, with the same random weights."""
    expected = checks.randomize(getattr(reference, name)(*sizes).double())
    module = getattr(student, name)(*sizes).double()
    checks.copy_parameters(expected, module, name)
    return module, expected


@task("modern", 0.5, forbids=READY_MADE_NORMS, promise=(
    "scale by `weight` (d_model,): learned, starting as ones.",
    "x (..., C) with any leading shape -> (..., C).",
    "x and weight have one dtype (float64, float32, or float16 after `.half()`), and the output has it, too.",
    "Training and eval give the same output.",
))
def test_rms_norm_equals_pytorch(student):
    """RMSNorm begins with weights of 1 and gives PyTorch's numbers for tokens of any shape, in training and in eval."""
    norm = student.RMSNorm(7).double()
    checks.close(norm.weight.detach(), torch.ones(7).double(), "the weight of a new RMSNorm")
    checks.randomize(norm)
    weight = norm.weight.detach()
    for shape in ((7,), (7, 7), (2, 3, 5, 7)):
        x = 3 * torch.randn(shape, dtype=torch.float64) + 2
        expected = F.rms_norm(x, (7,), weight, 1e-6)
        for mode, out in in_both_modes(norm, x).items():
            checks.close(out, expected, f"RMSNorm of x with shape {shape} in {mode}")
            checks.dtype(out, torch.float64, "RMSNorm of float64")
    checks.input_untouched(norm, x, what="RMSNorm")
    for dtype in (torch.float32, torch.float16):
        same = student.RMSNorm(7).to(dtype)
        checks.dtype(same(x.to(dtype)), dtype, f"RMSNorm of {str(dtype).removeprefix('torch.')}")


@task("modern", 0.5, forbids=READY_MADE_NORMS, promise="eps is added to the mean square, inside the root.")
def test_eps_is_added_to_the_mean_square(student):
    """eps stands inside the root: tiny tokens, tokens of zeros and a large eps come out right."""
    x = torch.randn(3, 5, 7, dtype=torch.float64)
    for eps, scale in ((None, 1e-3), (0.5, 1.0), (None, 0.0)):
        norm = (student.RMSNorm(7) if eps is None else student.RMSNorm(7, eps)).double()
        expected = F.rms_norm(scale * x, (7,), None, 1e-6 if eps is None else eps)
        of_eps = "the default eps" if eps is None else f"eps={eps}"
        checks.close(norm(scale * x), expected, f"RMSNorm of numbers near {scale} with {of_eps}")


@task("modern", 0.25, forbids=READY_MADE_NORMS, promise="Gradients flow back to x and to weight.")
def test_gradients_through_rms_norm(student, reference):
    """The gradients of x and of the weight are those of the formula."""
    norm, expected = twins(student, reference, "RMSNorm", 7)
    x = torch.randn(3, 5, 7, dtype=torch.float64)
    checks.gradients_close(norm, expected, x, what="the gradient (RMSNorm)")
    checks.parameter_gradients_close(norm, expected, x, what="the gradient (RMSNorm)")


@task("modern", 0.75, needs="test_swiglu_owns_three_layers", promise=(
    "x (..., C) -> (..., C), the same in training and in eval.",
    "Their product, number by number, goes `down` again.",
))
def test_swiglu_with_the_same_weights(student, reference):
    """With the solution's weights, SwiGLU gives the solution's output, in training and in eval."""
    layer, expected = twins(student, reference, "SwiGLU", 7, 13)
    for shape in ((7,), (2, 3, 7)):
        x = 3 * torch.randn(shape, dtype=torch.float64)
        for mode, out in in_both_modes(layer, x).items():
            checks.close(out, expected(x), f"SwiGLU of x with shape {shape} in {mode}")
    checks.input_untouched(layer, x, what="SwiGLU")


@task("modern", 0.5, needs="test_swiglu_owns_three_layers",
      promise="Gradients flow back to x and to all three layers.")
def test_gradients_through_swiglu(student, reference):
    """The gradients of x and of all three layers are those of the formula."""
    layer, expected = twins(student, reference, "SwiGLU", 7, 13)
    x = torch.randn(3, 5, 7, dtype=torch.float64)
    checks.gradients_close(layer, expected, x, what="the gradient (SwiGLU)")
    checks.parameter_gradients_close(layer, expected, x, what="the gradient (SwiGLU)")
