"""Why Transformers: the tests that only graders see."""

import random

import torch
from torch import nn
from torch.nn import functional as F

from autograder import checks, task

READY_MADE = (
    "torch.nn.RNN",
    "torch.nn.RNNCell",
    "torch.nn.RNNBase",
    "torch.nn.RNNCellBase",
    "torch.nn.LSTM",
    "torch.nn.LSTMCell",
    "torch.nn.GRU",
    "torch.nn.GRUCell",
    "torch.rnn_tanh",
    "torch.rnn_tanh_cell",
)
OUTPUTS, STATES, REACH = ("batch", "word", "number"), ("batch", "number"), ("position",)


def weights(C, H, dtype=torch.float64):
    """Random W_xh (C, H), W_hh (H, H) and b (H,), such that states neither vanish nor saturate."""
    sizes = ((C, H), (H, H), (H,))
    return tuple(torch.randn(*size, dtype=torch.float64).to(dtype) / size[0] ** 0.5 for size in sizes)


def one_step(B, C, H, dtype=torch.float64):
    """Everything that a step takes: words, states and weights."""
    words, states = torch.randn(B, C, dtype=torch.float64), torch.randn(B, H, dtype=torch.float64)
    return words.to(dtype), states.to(dtype), *weights(C, H, dtype)


def sentences(B, T, C, H, dtype=torch.float64):
    """Everything that a network takes: sentences, first states and weights."""
    words, states = torch.randn(B, T, C, dtype=torch.float64), torch.randn(B, H, dtype=torch.float64)
    return words.to(dtype), states.to(dtype), *weights(C, H, dtype)


def lasting_sentences(B, T, C, H):
    """Sentences and weights whose gradients neither vanish nor explode, however long the sentences are."""
    words, states, W_xh, W_hh, b = sentences(B, T, C, H)
    turn, _ = torch.linalg.qr(W_hh)  # (H, H), which keeps every length
    return words / 100, states / 100, W_xh, turn, b / 100


def pytorchs(layer, W_xh, W_hh, b):
    """PyTorch's own layer with these weights."""
    own = dict(layer.double().named_parameters())
    with torch.no_grad():
        for name, parameter in own.items():
            kind = name.removesuffix("_l0")
            parameter.copy_({"weight_ih": W_xh.T, "weight_hh": W_hh.T, "bias_ih": b, "bias_hh": 0 * b}[kind])
    return layer


def outputs_and_last(result):
    """Both results of the network, in whichever order: the order has a test of its own."""
    first, second = checks.unpack(result, ("outputs", "last"), "the result")
    swapped = isinstance(first, torch.Tensor) and first.dim() == 2
    return (second, first) if swapped else (first, second)


def same_states(result, expected, what=""):
    outputs, last = outputs_and_last(result)
    checks.close(outputs, expected[0], f"outputs{what}", axes=OUTPUTS, atol=1e-6)
    checks.close(last, expected[1], f"last{what}", axes=STATES, atol=1e-6)


# Part 1: one step


@task("step", 0.5, needs="test_each_sentence_gets_a_new_state", forbids=READY_MADE,
      promise="One step of a recurrent network, tanh(x W_xh + h W_hh + b), for B sentences at once")
def test_any_step_as_the_formula_says(student, reference):
    """Any step gives the state that the formula gives, which is what PyTorch's cell gives, too."""
    for B, C, H in ((3, 5, 7), (1, 4, 2)):
        inputs = one_step(B, C, H)
        expected = reference.rnn_step(*inputs)
        cell = pytorchs(nn.RNNCell(C, H), *inputs[2:])
        assert torch.allclose(cell(*inputs[:2]), expected)
        checks.close(student.rnn_step(*inputs), expected, "the new state", axes=STATES, atol=1e-6)


@task("step", 0.25, needs="test_one_step_worked_by_hand", forbids=READY_MADE,
      promise="However large the numbers are, the result lies between -1 and 1 and is never NaN.")
def test_large_numbers_saturate(student, reference):
    """However large the numbers are, the new state lies between -1 and 1 and is never NaN."""
    for dtype in (torch.float32, torch.float64):
        x, h, *rest = one_step(3, 5, 7, dtype)
        inputs = 3000 * x, h, *rest
        expected = reference.rnn_step(*inputs)
        state = student.rnn_step(*inputs)
        checks.close(state, expected, "the new state for large numbers", axes=STATES, atol=1e-4)


@task("step", 0.25, needs="test_one_step_worked_by_hand", forbids=READY_MADE,
      promise="in the number type of the inputs (float32 or float64). The inputs keep their values")
def test_step_keeps_inputs_and_number_type(student):
    """A step changes none of its inputs, and its result has their number type."""
    for dtype in (torch.float32, torch.float64):
        inputs = one_step(3, 5, 7, dtype)
        checks.dtype(checks.input_untouched(student.rnn_step, *inputs, what="a step"), dtype, "the new state")


@task("step", 0.25, needs="test_any_step_as_the_formula_says", forbids=READY_MADE,
      promise="gradients flow to all five of them.")
def test_step_can_be_learned_from(student, reference):
    """Word, state, both matrices and the bias receive the gradients that the formula gives them."""
    checks.gradients_close(student.rnn_step, reference.rnn_step, *one_step(3, 5, 7))


# Part 2: a whole sentence


@task("network", 0.25, forbids=READY_MADE, promise=(
    "Returns (outputs, last): the states after each word, (B, T, H), and the states after the last word, (B, H).",
))
def test_any_sentence_as_the_formula_says(student, reference):
    """Short and long sentences, alone and in a batch, go through the states of the formula, as in PyTorch's network."""
    for B, T, C, H in ((1, 6, 5, 7), (4, 1, 2, 3), (2, random.randint(140, 170), 3, 2)):
        inputs = sentences(B, T, C, H)
        expected = reference.rnn(*inputs)
        network = pytorchs(nn.RNN(C, H, batch_first=True), *inputs[2:])
        assert torch.allclose(network(inputs[0], inputs[1][None])[0], expected[0])
        same_states(student.rnn(*inputs), expected, f" for {T} {'word' if T == 1 else 'words'}")


@task("network", 0.25, forbids=READY_MADE,
      promise="Reads B sentences from left to right, one word after another.")
def test_each_state_depends_on_the_words_before_it(student):
    """The state after a word depends on this word and on every earlier one, and on none that follows."""
    xs, *rest = sentences(3, 5, 5, 6)
    checks.causal_by_gradient(lambda xs: outputs_and_last(student.rnn(xs, *rest))[0], xs, what="the state")


@task("network", 0.25, needs="test_any_sentence_as_the_formula_says", forbids=READY_MADE,
      promise="Nothing is remembered from one call to the next.")
def test_nothing_is_remembered_between_calls(student, reference):
    """A second call starts from its own first state: nothing of the first call is left."""
    for T in (5, 3, 5):
        inputs = sentences(2, T, 5, 7)
        same_states(student.rnn(*inputs), reference.rnn(*inputs), " of a later call")


@task("network", 0.5, needs="test_sentence_without_words", forbids=READY_MADE, promise=(
    "Both have the number type of the inputs, which keep their values.",
    "When T is 0, outputs is an empty tensor",
))
def test_network_keeps_inputs_and_number_type(student):
    """The network changes none of its inputs, and both results have their number type, also for no words at all."""
    for dtype in (torch.float32, torch.float64):
        for T in (0, 4):
            inputs = sentences(3, T, 5, 7, dtype)
            outputs, last = outputs_and_last(checks.input_untouched(student.rnn, *inputs, what="the network"))
            checks.dtype(outputs, dtype, f"outputs for {T} words")
            checks.dtype(last, dtype, f"last for {T} words")


@task("network", 0.75, needs="test_any_sentence_as_the_formula_says", forbids=READY_MADE,
      promise="From both, gradients flow to all five inputs, through every step back to the first word.")
def test_gradients_go_back_to_the_first_word(student, reference):
    """From all states, and from the last one alone, gradients flow to all inputs, back to the very first word."""

    def result(module, item):
        return lambda *inputs: outputs_and_last(module.rnn(*inputs))[item]

    for item, (name, T) in enumerate((("outputs", random.randint(70, 90)), ("last", random.randint(20, 30)))):
        inputs = lasting_sentences(2, T, 3, 5)
        what = f"the gradient from {name}"
        checks.gradients_close(result(student, item), result(reference, item), *inputs, what=what, atol=1e-7)


# Part 3: gradient reach


def same_reach(student, reference, last_of, xs, atol=1e-6):
    reach = student.gradient_reach(last_of, xs.clone())
    checks.close(reach, reference.gradient_reach(last_of, xs), "the reach", axes=REACH, atol=atol)


@task("reach", 0.5, needs="test_reach_is_one_number_for_each_position",
      promise="the Euclidean norm of the gradient of last_of(xs).sum() with respect to xs[:, t]")
def test_reach_of_recurrent_networks(student, reference):
    """In recurrent networks that fade, keep and explode, the reach is the norm of the gradient, however faint it is."""
    for scale in (0.3, 1.0, 3.0):
        _, h0, W_xh, W_hh, b = sentences(3, 1, 5, 4)
        xs = torch.randn(3, random.randint(12, 20), 5, dtype=torch.float64)

        def last_of(xs, h0=h0, W_xh=W_xh, W_hh=scale * W_hh, b=b):
            return reference.rnn(xs, h0, W_xh, W_hh, b)[1]

        same_reach(student, reference, last_of, xs, atol=1e-14)


@task("reach", 0.5, needs="test_reach_is_one_number_for_each_position",
      promise="any differentiable function of a tensor like xs; its result may have any shape.")
def test_reach_of_any_function(student, reference):
    """Any differentiable function can be measured, whatever the shape of its result, in batches of any size."""
    other = torch.randn(4, 1, 7, dtype=torch.float64)
    functions = {
        (2, 5, 3): lambda xs: F.scaled_dot_product_attention(xs, xs, xs),  # (B, T, C)
        (1, 6, 2): lambda xs: F.scaled_dot_product_attention(xs[:, -1:], xs, xs)[:, 0],  # (B, C)
        (4, 1, 7): lambda xs: (xs * other).sum(dim=(1, 2)).exp(),  # (B,)
        (3, 4, 2): lambda xs: xs.pow(3).mean(),  # ()
    }
    for sizes, last_of in functions.items():
        same_reach(student, reference, last_of, torch.randn(sizes, dtype=torch.float64))


@task("reach", 0.25, needs="test_reach_is_one_number_for_each_position",
      promise="A position that last_of does not look at has reach 0.")
def test_words_that_do_not_count_have_no_reach(student):
    """A position that the function does not look at has reach 0, and no other has."""
    T = 6
    looked_at = torch.tensor(sorted(random.sample(range(T), 3)))
    reach = student.gradient_reach(lambda xs: xs[:, looked_at].tanh(), torch.randn(2, T, 3))
    expected = torch.zeros(T, dtype=torch.bool).index_fill(0, looked_at, True)
    found = checks.tensor(reach, "the reach") != 0
    checks.equal(found, expected, "the table of positions with a reach", axes=REACH)


@task("reach", 0.25, needs="test_reach_is_one_number_for_each_position",
      promise="needs no gradient (xs.requires_grad is False), and holds none (xs.grad is None).")
def test_words_are_only_read(student):
    """Afterwards the words have the values that they had, need no gradient and hold none."""
    xs = torch.randn(2, 5, 3)
    checks.input_untouched(student.gradient_reach, lambda xs: xs.pow(2), xs, what="the measurement")
    checks.true(not xs.requires_grad, "After the measurement, xs needs a gradient, which it did not before.")
    checks.true(xs.grad is None, "After the measurement, xs holds a gradient, which it did not before.")


@task("reach", 0.5, needs="test_reach_is_one_number_for_each_position",
      promise="Returns a tensor of shape (T,) in the number type of xs (float32 or float64)")
def test_reach_has_the_number_type_of_the_words(student):
    """The reach has the number type of xs."""
    for dtype in (torch.float32, torch.float64):
        reach = student.gradient_reach(lambda xs: xs.sin(), torch.randn(2, 5, 3).to(dtype))
        checks.dtype(reach, dtype, "the reach")


# Part 4: steps that must wait


def same_counts(student, reference, kind):
    """One word and one layer, more words than layers, more layers than words, and many words."""
    sizes = [(1, 1), (1, 7), (9, 1), (4, random.randint(11, 30)), (random.randint(200, 900), 12)]
    counts = [student.sequential_steps(T=T, num_layers=layers, kind=kind) for T, layers in sizes]
    expected = [reference.sequential_steps(T, layers, kind) for T, layers in sizes]
    checks.equal(counts, expected, "the list of counts")


@task("steps", 0.5, promise=(
    "How many steps must wait for one another until the top layer has read the last of T words.",
    '"rnn" for recurrent layers, which work as an assembly line',
))
def test_recurrent_layers_of_any_size(student, reference):
    """The count for recurrent layers is right for any number of words and layers."""
    same_counts(student, reference, "rnn")


@task("steps", 0.25, promise='"attention" for layers of attention (a step is one layer, all words).')
def test_layers_of_attention_of_any_size(student, reference):
    """The count for layers of attention is right for any number of words and layers."""
    same_counts(student, reference, "attention")


@task("steps", 0.25,
      promise='Raises ValueError that names kind and its value if kind is anything else, such as "lstm" or "RNN".')
def test_all_other_kinds_are_refused(student):
    """Whatever is neither "rnn" nor "attention", letter by letter, is a ValueError that names it."""
    words, layers = random.randint(3, 99), random.randint(2, 9)
    made_up = "".join(random.sample("bdfghjklmpqsuvwxyz", 6))
    for kind in ("RNN", "transformer", "attention2", made_up):
        what = f"the call with kind={kind!r}"
        checks.raises(ValueError, student.sequential_steps, words, layers, kind, naming=("kind", kind), what=what)
    for kind in ("rnn", "attention"):
        student.sequential_steps(words, layers, kind)  # these two are not refused
