"""Train it well: the tests that come with the assignment."""

import math

import torch

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


def numbers(*values):
    """A tensor of float64."""
    return torch.tensor(values, dtype=torch.float64)


def knobs_of(student, values, gradients):
    """Parameters with these values and gradients."""
    knobs = student.Knobs(*values)
    knobs.set_gradients(*gradients)
    return knobs


def same_tensors(actual, expected, what):
    """The knobs' values or gradients, one after the other; None stands for no gradient."""
    for i, (got, wanted) in enumerate(zip(checks.unpack(actual, len(expected), f"the {what}s"), expected)):
        if wanted is None:
            checks.equal(got, None, f"the {what} of parameter {i}")
        else:
            checks.close(got, wanted, f"the {what} of parameter {i}")


def after_each_step(knobs, optimiser, gradients):
    """Take the steps, and yield the values after each; gradients come in the number type that the knob has by then."""
    set_gradients, step, values_now = knobs.set_gradients, optimiser.step, knobs.values
    dtype = torch.float64
    for now in gradients:
        set_gradients(now.to(dtype))
        step()
        values = values_now()
        dtype = values[0].dtype
        yield values


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


@task("init", 0.25)
def test_first_loss_is_near_ln_v(student):
    """After init_weights, the first loss of a model is near ln V."""
    V, T = 53, 16
    model = student.LanguageModel(V, 64, 4, 1, T)
    student.init_weights(model)
    _, loss = model(torch.randint(V, (8, T)), torch.randint(V, (8, T)))
    checks.between(loss, math.log(V) - 0.15, math.log(V) + 0.15, f"the first loss with V = {V}")


@task("init", 0.25)
def test_weights_spread_as_they_are_told(student):
    """With std=0.5, the weights of linear layers and of embeddings have about this standard deviation, and the mean 0."""
    model = student.LanguageModel(53, 64, 4, 1, 16)
    student.init_weights(model, std=0.5)
    for name, parameter in model.named_parameters():
        if name.endswith("weight") and parameter.dim() == 2 and parameter.numel() >= 1000:
            numbers_of_it = parameter.detach()
            checks.between(numbers_of_it.std().item(), 0.4, 0.6, f"the standard deviation of {name}")
            checks.between(numbers_of_it.mean().item(), -0.1, 0.1, f"the mean of {name}")


@task("init", 0.5)
def test_biases_and_layer_norms_begin_plain(student):
    """Biases become 0, and layer norms begin with weight 1 and bias 0, whatever stood there before."""
    model = checks.randomize(student.LanguageModel(11, 8, 2, 2, 5))
    student.init_weights(model)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            checks.equal(parameter.detach(), torch.zeros(parameter.shape), name)
        elif "norm" in name:
            checks.equal(parameter.detach(), torch.ones(parameter.shape), name)


# Part 2: the schedule


@task("schedule", 0.5)
def test_eight_steps_worked_by_hand(student):
    """With warmup=4, total=8 and peak=0.008, the rates go up to 0.008 in four equal steps, and down on a cosine."""
    expected = [0.002, 0.004, 0.006, 0.008, 0.004 + 0.004 * math.sqrt(0.5), 0.004]
    rates = [student.learning_rate(step, 4, 8, 0.008) for step in range(len(expected))]
    larger = [student.learning_rate(step, 4, 8, 8.0) for step in range(len(expected))]
    for step, (rate, wanted) in enumerate(zip(rates, expected)):
        checks.close(rate, wanted, f"the rate of step {step}", atol=1e-9)
    for step, (rate, wanted) in enumerate(zip(larger, expected)):
        checks.close(rate, 1000 * wanted, f"the rate of step {step} with peak=8.0", atol=1e-6)


@task("schedule", 0.5)
def test_schedule_ends_at_the_floor(student):
    """The last step has the floor, and so has every step after it."""
    steps = (9, 10, 11, 15, 19, 1000)
    rates = [student.learning_rate(step, 3, 10, 0.5, 0.125) for step in steps]
    for step, rate in zip(steps, rates):
        checks.close(rate, 0.125, f"the rate of step {step} with total = 10", atol=1e-9)


# Part 3: clipping


@task("clipping", 0.5, forbids=READY_MADE_CLIPPING)
def test_three_and_four_have_norm_five(student):
    """Gradients of 3 and 4 have the common norm 5; with max_norm=1 they become 0.6 and 0.8."""
    knobs = knobs_of(student, [numbers(1), numbers(2)], [numbers(3), numbers(4)])
    checks.close(student.clip_gradients(knobs.knobs, 1.0), 5.0, "the norm")
    same_tensors(knobs.gradients(), [numbers(0.6), numbers(0.8)], "gradient")


@task("clipping", 0.5, forbids=READY_MADE_CLIPPING)
def test_small_gradients_stay(student):
    """A norm below max_norm changes nothing, and a parameter without a gradient is passed over."""
    gradients = [numbers(3), None, numbers(4)]
    knobs = knobs_of(student, [numbers(1), numbers(9, 9), numbers(2)], gradients)
    checks.close(student.clip_gradients(knobs.knobs, 10.0), 5.0, "the norm")
    same_tensors(knobs.gradients(), gradients, "gradient")


# Part 4: AdamW


@task("adamw", 0.5, forbids=READY_MADE_STEPS)
def test_first_step_worked_by_hand(student):
    """With lr=0.1 and weight decay 0.01, the first step takes 1.0 to 0.899, for gradients of 0.5 and 500."""
    knobs = knobs_of(student, [numbers(1.0, 1.0)], [numbers(0.5, 500.0)])
    decaying = knobs_of(student, [numbers(1.0, 1.0)], [numbers(0.5, 500.0)])
    student.AdamW(knobs.knobs, lr=0.1, weight_decay=0.01).step()
    student.AdamW(decaying.knobs, lr=0.1, weight_decay=0.5).step()
    values, decayed = knobs.values(), decaying.values()
    same_tensors(values, [numbers(0.899, 0.899)], "value")
    same_tensors(decayed, [numbers(0.85, 0.85)], "value after a step with weight_decay=0.5,")


@task("adamw", 0.5, needs="test_first_step_worked_by_hand", forbids=READY_MADE_STEPS)
def test_three_steps_of_pytorch(student):
    """Three steps from 1.0 and -2.0, with changing gradients and a strong weight decay, lead where PyTorch's lead."""
    knobs = student.Knobs(numbers(1.0, -2.0))
    optimiser = student.AdamW(knobs.knobs, lr=0.1, weight_decay=0.5)
    steps = [
        (numbers(1.0, 4.0), numbers(0.8500000010, -2.0)),
        (numbers(-2.0, 4.0), numbers(0.8441103534, -2.0)),
        (numbers(0.5, -4.0), numbers(0.8155739020, -1.9261992615)),
    ]
    gradients, expected = zip(*steps)
    for values, wanted in zip(after_each_step(knobs, optimiser, gradients), expected):
        same_tensors(values, [wanted], "value")
    knobs = student.Knobs(numbers(1.0, -2.0))
    optimiser = student.AdamW(knobs.knobs, lr=0.1, betas=(0.5, 0.75), weight_decay=0.0)
    steps = [
        (numbers(4.0, -1.0), numbers(0.9000000002, -1.9000000010)),
        (numbers(1.0, 0.5), numbers(0.8266200619, -1.9000000010)),
        (numbers(0.5, 2.0), numbers(0.7716618220, -1.9797417964)),
    ]
    gradients, expected = zip(*steps)
    for values, wanted in zip(after_each_step(knobs, optimiser, gradients), expected):
        same_tensors(values, [wanted], "value with betas=(0.5, 0.75)")


@task("adamw", 0.25, forbids=READY_MADE_STEPS)
def test_zero_grad_forgets_all_gradients(student):
    """After zero_grad, no parameter has a gradient, and no value has changed."""
    knobs = knobs_of(student, [numbers(1), numbers(2, 3)], [numbers(5), numbers(6, 7)])
    student.AdamW(knobs.knobs).zero_grad()
    same_tensors(knobs.gradients(), [None, None], "gradient")
    same_tensors(knobs.values(), [numbers(1), numbers(2, 3)], "value")


# Part 5: perplexity and top-p


@task("writing", 0.5)
def test_knowing_nothing_is_perplexity_v(student):
    """A loss of ln 96 is a perplexity of 96, and a loss of 0 is a perplexity of 1."""
    for loss, expected in ((math.log(96), 96.0), (0.0, 1.0), (1.5, 4.4816890703)):
        checks.close(student.perplexity(loss), expected, f"the perplexity of a loss of {loss:.3f}")


@task("writing", 0.75)
def test_nucleus_worked_by_hand(student):
    """Of the probabilities 0.5, 0.25, 0.15 and 0.1, two reach p=0.7 and one reaches p=0.4; of equals, the first stay."""
    logits = numbers(0.5, 0.25, 0.15, 0.1).log() + 3
    for p, stays in ((0.7, [0, 1]), (0.4, [0]), (0.85, [0, 1, 2])):
        same_nucleus(student, logits, p, stays, f"top_p(logits, {p})")
    same_nucleus(student, numbers(2.0, 2.0, 2.0, 2.0), 0.5, [0, 1], "top_p of four equal logits")
    shuffled = numbers(0.1, 0.5, 0.15, 0.25).log()
    same_nucleus(student, shuffled, 0.7, [1, 3], "top_p of the same probabilities in another order")


# Part 6: the modern block


@task("modern", 0.375, forbids=READY_MADE_NORMS)
def test_one_and_seven_are_divided_by_five(student):
    """The token [1, 7] has the root mean square 5: RMSNorm makes it [0.2, 1.4], and a stretched one with its weight."""
    norm = student.RMSNorm(2, eps=0.0).double()
    checks.parameters(norm, {"weight": (2,)}, "RMSNorm(2)")
    checks.close(norm(numbers(1, 7)), numbers(0.2, 1.4), "RMSNorm of [1, 7]")
    with torch.no_grad():
        norm.weight.copy_(numbers(10, -1))
    checks.close(norm(numbers(1, 7)), numbers(2.0, -1.4), "RMSNorm of [1, 7] with the weight [10, -1]")


@task("modern", 0.125, forbids=READY_MADE_NORMS)
def test_tokens_are_divided_one_by_one(student):
    """RMSNorm makes of a token the same, whether it comes alone or among others."""
    norm = student.RMSNorm(4).double()
    x = torch.randn(2, 3, 4).double()  # (B, T, C)
    together = norm(x)
    checks.shape(together, (2, 3, 4), "RMSNorm of two sentences of three tokens")
    alone = torch.stack([checks.tensor(norm(token)) for token in x.flatten(0, 1)]).reshape(2, 3, 4)
    checks.close(together, alone, "RMSNorm of two sentences, compared with that of each token alone,")


@task("modern", 0.25)
def test_swiglu_owns_three_layers(student):
    """SwiGLU owns gate, up and down, three linear layers without bias, and keeps the shape of what it is given."""
    layer = student.SwiGLU(6, 11)
    shapes = {"gate.weight": (11, 6), "up.weight": (11, 6), "down.weight": (6, 11)}
    checks.parameters(layer, shapes, "SwiGLU(6, 11)")
    for shape in ((2, 5, 6), (6,)):
        checks.shape(layer(torch.randn(shape)), shape, f"SwiGLU of x with shape {shape}")
    checks.parameter_count(student.SwiGLU(96, 256), 73_728, "SwiGLU(96, 256)")


@task("modern", 0.25, needs="test_swiglu_owns_three_layers")
def test_closed_gate_lets_nothing_through(student):
    """SwiGLU gives 0 if up has nothing to say, if the gate is at 0, and, but for rounding, if it is far below 0."""
    x = torch.ones(2, 6).double()
    for name, weight in (("up", 0.0), ("gate", 0.0), ("gate", -10.0)):
        layer = checks.randomize(student.SwiGLU(6, 11).double())
        with torch.no_grad():
            dict(layer.named_parameters())[f"{name}.weight"].fill_(weight)
        what = f"SwiGLU of ones when all weights of {name} are {weight:g}"
        checks.close(layer(x), torch.zeros(2, 6).double(), what, axes=("token", "number"))
