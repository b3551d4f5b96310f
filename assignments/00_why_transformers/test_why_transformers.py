"""Why Transformers: the tests that come with the assignment."""

import torch

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


def numbers(*rows):
    return torch.tensor(rows)


def weights(C, H):
    """Random W_xh (C, H), W_hh (H, H) and b (H,)."""
    return torch.randn(C, H), torch.randn(H, H) / H, torch.randn(H)


# Part 1: one step


@task("step", 0.25, forbids=READY_MADE)
def test_each_sentence_gets_a_new_state(student):
    """A step turns the words (B, C) and the states (B, H) into new states (B, H)."""
    B, C, H = 3, 5, 7
    state = student.rnn_step(torch.randn(B, C), torch.randn(B, H), *weights(C, H))
    checks.shape(state, (B, H), "the new state", axes=("batch", "number"))


@task("step", 0.5, needs="test_each_sentence_gets_a_new_state", forbids=READY_MADE)
def test_one_step_worked_by_hand(student):
    """The word brings (0.2, 0), the old state (0.1, 0.4), the bias (0, 0.1): the new state is (tanh 0.3, tanh 0.5)."""
    x, h = numbers([1.0]), numbers([1.0, 0.0])
    W_xh, W_hh, b = numbers([0.2, 0.0]), numbers([0.1, 0.4], [0.2, 0.0]), torch.tensor([0.0, 0.1])
    state = student.rnn_step(x, h, W_xh, W_hh, b)
    checks.close(state, numbers([0.291313, 0.462117]), "the new state", axes=("batch", "number"), atol=1e-5)


# Part 2: a whole sentence


def outputs_and_last(result):
    """Both results of the network, in whichever order: the order has a test of its own."""
    first, second = checks.unpack(result, ("outputs", "last"), "the result")
    swapped = isinstance(first, torch.Tensor) and first.dim() == 2
    return (second, first) if swapped else (first, second)


@task("network", 0.125, forbids=READY_MADE)
def test_states_after_each_word_and_the_last_one(student):
    """Two results: the states after each word, (B, T, H), and the states after the last word, (B, H)."""
    B, T, C, H = 3, 4, 5, 7
    result = student.rnn(torch.randn(B, T, C), torch.randn(B, H), *weights(C, H))
    outputs, last = checks.unpack(result, ("outputs", "last"), "the result")
    checks.shape(outputs, (B, T, H), "outputs", axes=("batch", "word", "number"))
    checks.shape(last, (B, H), "last", axes=("batch", "number"))


@task("network", 0.125, forbids=READY_MADE)
def test_trace_of_the_first_word_worked_by_hand(student):
    """When only the first of three words says something, its trace fades: 0.7616, 0.3634, 0.1797."""
    xs = torch.tensor([1.0, 0.0, 0.0]).reshape(1, 3, 1)
    result = student.rnn(xs, numbers([0.0]), numbers([1.0]), numbers([0.5]), torch.tensor([0.0]))
    outputs, last = outputs_and_last(result)
    expected = torch.tensor([0.761594, 0.363397, 0.179726]).reshape(1, 3, 1)
    checks.close(outputs, expected, "outputs", axes=("batch", "word", "number"), atol=1e-5)
    checks.close(last, expected[:, 2], "last", axes=("batch", "number"), atol=1e-5)


@task("network", 0.5, forbids=READY_MADE)
def test_sentence_without_words(student):
    """With no words at all, outputs is empty and the last state is the one before the first word."""
    B, C, H = 3, 5, 7
    h0 = torch.randn(B, H)
    outputs, last = outputs_and_last(student.rnn(torch.randn(B, 0, C), h0.clone(), *weights(C, H)))
    checks.shape(outputs, (B, 0, H), "outputs for no words", axes=("batch", "word", "number"))
    checks.close(last, h0, "last for no words", axes=("batch", "number"))


@task("network", 0.125, forbids=READY_MADE)
def test_sentence_read_in_two_halves(student):
    """A sentence read in two halves, the second from the last state of the first, gives the states of the whole."""
    B, T, C, H = 3, 6, 5, 7
    xs, h0, learned = torch.randn(B, T, C), torch.randn(B, H), weights(C, H)
    outputs, last = outputs_and_last(student.rnn(xs, h0, *learned))
    first, between = outputs_and_last(student.rnn(xs[:, :2], h0, *learned))
    second, end = outputs_and_last(student.rnn(xs[:, 2:], checks.tensor(between), *learned))
    halves = torch.cat([checks.tensor(first), checks.tensor(second)], dim=1)
    checks.close(halves, checks.tensor(outputs), "outputs of two halves", axes=("batch", "word", "number"), atol=1e-5)
    checks.close(end, checks.tensor(last), "last after two halves", axes=("batch", "number"), atol=1e-5)


@task("network", 0.125, forbids=READY_MADE)
def test_first_word_gets_a_gradient(student):
    """From the states after the last word, gradients flow back to the first word, through outputs and through last."""
    B, T, C, H = 2, 4, 3, 5
    xs = torch.randn(B, T, C, requires_grad=True)
    outputs, last = outputs_and_last(student.rnn(xs, torch.randn(B, H), *weights(C, H)))
    checks.shape(outputs, (B, T, H), "outputs", axes=("batch", "word", "number"))
    checks.shape(last, (B, H), "last", axes=("batch", "number"))
    ends = {"outputs": outputs[:, -1], "last": last}
    for name, end in ends.items():
        checks.true(end.requires_grad, f"No gradient flows back from {name}.")
        (gradient,) = torch.autograd.grad(end.sum(), xs, retain_graph=True, materialize_grads=True)
        checks.true(bool(gradient[:, -1].any()), f"No gradient from {name} reaches the last word.")
        checks.true(bool(gradient[:, 0].any()), f"No gradient from {name} reaches the first word.")


# Part 3: gradient reach


def fading(factor):
    """A function of words whose result halves, say, what a word brings with every word that follows it."""

    def last_of(xs):
        T = xs.shape[1]
        powers = torch.tensor([factor ** (T - 1 - t) for t in range(T)], dtype=xs.dtype)  # (T,)
        return (xs * powers[:, None]).sum(dim=1)  # (B, C)

    return last_of


@task("reach", 0.25)
def test_reach_is_one_number_for_each_position(student):
    """The reach has one number for each position."""
    reach = student.gradient_reach(fading(0.5), torch.randn(2, 5, 3))
    checks.shape(reach, (5,), "the reach", axes=("position",))


@task("reach", 0.75, needs="test_reach_is_one_number_for_each_position")
def test_reach_worked_by_hand(student):
    """A factor of 0.9 a step gives 0.729, 0.81, 0.9, 1; with numbers that count 3 and 4, five times as much."""
    expected = torch.tensor([0.729, 0.81, 0.9, 1.0])
    reach = student.gradient_reach(fading(0.9), torch.zeros(1, 4, 1))
    checks.close(reach, expected, "the reach", axes=("position",), atol=1e-5)

    def three_and_four(xs):
        return fading(0.9)(xs) * torch.tensor([3.0, 4.0])  # (B, 2)

    reach = student.gradient_reach(three_and_four, torch.zeros(1, 4, 2))
    checks.close(reach, 5 * expected, "the reach with two numbers a word", axes=("position",), atol=1e-5)
    reach = student.gradient_reach(fading(0.9), torch.zeros(2, 4, 1))
    checks.close(reach, 2**0.5 * expected, "the reach for two sentences", axes=("position",), atol=1e-5)


# Part 4: steps that must wait


@task("steps", 0.75)
def test_three_words_and_five_layers(student):
    """3 words and 5 layers take 7 steps in recurrent layers, and 5 in layers of attention."""
    checks.close(student.sequential_steps(3, 5, "rnn"), 7, 'sequential_steps(3, 5, "rnn")')
    checks.close(student.sequential_steps(3, 5, "attention"), 5, 'sequential_steps(3, 5, "attention")')


@task("steps", 0.25)
def test_another_kind_is_refused(student):
    """A kind that is neither "rnn" nor "attention" is a ValueError that names it."""
    checks.raises(ValueError, student.sequential_steps, 5, 3, "lstm", naming=("kind", "lstm"))
    for kind in ("rnn", "attention"):
        student.sequential_steps(5, 3, kind)  # these two are not refused
