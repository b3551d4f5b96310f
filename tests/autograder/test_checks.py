"""The exact sentences of all checks, and that correct answers pass."""

from __future__ import annotations

import math
import re
from types import ModuleType, SimpleNamespace

import numpy
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor, nn

from autograder import checks
from autograder.bridge.inside.server import Server
from autograder.bridge.outside.loopback import LoopbackConnection
from autograder.bridge.outside.remote import RemoteStudent
from autograder.bridge.outside.subject import Use
from autograder.bridge.shared.errors import RemoteException, StudentTimeoutError, student_raised
from autograder.bridge.shared.wire import Opaque
from autograder.checks.sentences import show
from autograder.failures.failed_check import without_inputs, without_literals
from autograder.records import InfrastructureError
from autograder.suite.plugin import refuse_forbidden
from tests.autograder.golden_sentences import (
    GOLDEN,
    ROUGH,
    Scale,
    Table,
    X,
    add_in_place,
    blend,
    changed,
    half,
    heads_local,
    ignore_padding,
    refuse_well,
    remember,
    silent,
    throw,
)


def failure(name: str, table: dict) -> tuple[checks.CheckFailed, str, str]:
    call, *sentences = table[name]
    torch.manual_seed(7)
    with pytest.raises(checks.CheckFailed) as caught:
        call()
    full = re.sub("[«»]", "", sentences[0])
    return caught.value, full, re.sub("«.*?»", "", sentences[-1])


@pytest.mark.parametrize("name", GOLDEN)
def test_failure_has_the_golden_sentences(name: str) -> None:
    error, full, public = failure(name, GOLDEN)
    assert str(error) == full
    assert error.public == public


@pytest.mark.parametrize("name", ROUGH)
def test_failure_with_random_numbers_has_the_golden_sentences(name: str) -> None:
    error, full, public = failure(name, ROUGH)
    assert without_literals(str(error)) == full
    assert without_literals(error.public) == public


R = torch.tensor(
    [[1.0, -2.0, 3.0, 5.0], [0.0, 7.0, -4.0, 2.5], [6.0, 8.0, 1.5, -3.0], [9.0, -1.0, 0.5, 4.0]]
)
ODD_COLUMNS = torch.tensor([0.0, 1.0, 0.0, 1.0])


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (-0.5 * R, "Every number is -0.5 times what was expected."),
        (R - 0.25, "Every number is too small by 0.25."),
        (0 * R, "Every number is 0."),
        (R.mT, "Row and column are swapped."),
        (R[[0, 2, 1, 3]], "Row 1 and row 2 are swapped."),
        (R.flip(1), "The order along the axis column is reversed."),
        (R.roll(1, 0), "Along the axis row, every number stands one place too late."),
        (R + R * ODD_COLUMNS, "8 of 16 numbers differ, by at most 8, only where column is odd."),
        (R + torch.outer(torch.tensor([0.0, 0.0, 1.0, 3.0]), R[3]), ", only from row 2 on."),
        (R + torch.outer(ODD_COLUMNS, R[3]), ", only where row is odd."),
        (R + R.exp() * torch.tensor([0.0, 0.0, 1.0, 0.0]), ", only at column 2."),
        (R.exp(), "16 of 16 numbers differ, by at most 8.1e+03."),
        (R > 0, None),
    ],
)
def test_what_wrong_numbers_have_in_common_is_computed(wrong: Tensor, told: str | None) -> None:
    """It is told of a hidden test, too: it holds neither inputs nor expected values."""
    right = R <= 0 if told is None else R
    with pytest.raises(checks.CheckFailed) as caught:
        checks.close(wrong, right, "the table")
    told = told or "Every True should be False, and every False True."
    assert str(caught.value).endswith(told)
    assert caught.value.public.endswith(told)


def test_differences_of_roundings_are_not_one_shift() -> None:
    """They have a mean, and all tables that are nearly equal would be "too large" by it."""
    right = R.double()
    with pytest.raises(checks.CheckFailed) as caught:
        checks.close(right + 4e-7 * ODD_COLUMNS, right, "the table", rtol=0.0, atol=1e-9)
    assert "Every number" not in str(caught.value)
    assert str(caught.value).endswith("only where column is odd.")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        pytest.param(1.0002 * R, R, id="a factor that reads as 1"),
        pytest.param(1 - ODD_COLUMNS, ODD_COLUMNS,
                     id="reversed, one place too late, and one too early"),
        pytest.param(torch.stack([1 - ODD_COLUMNS, 1 - ODD_COLUMNS]),
                     torch.stack([ODD_COLUMNS, ODD_COLUMNS]), id="the same in every row"),
        pytest.param(R[[0, 0]] + 5e-5 * torch.tensor([[1, 2, 3, 0], [0, 3, 1, 2]]), R[[0, 0]],
                     id="two equal rows"),
        pytest.param(R.roll(1, 0) + 1e-4, R, id="late, and not quite"),
        pytest.param(2 * R + 1e-4, R, id="twice, and not quite"),
    ],
)  # fmt: skip
def test_what_wrong_numbers_have_in_common_is_not_told_if_it_does_not_help(
    wrong: Tensor, right: Tensor
) -> None:
    counted = r"\d+ of \d+ numbers differ, by at most [\d.]+\.$"
    with pytest.raises(checks.CheckFailed, match=counted):
        checks.close(wrong, right, "the table", rtol=1e-6)


@pytest.mark.parametrize("answer", [torch.float32, torch.float64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_right_gradients_predict_the_output(dtype: torch.dtype, answer: torch.dtype) -> None:
    """Also through kinks, and of an output with fewer digits; the sources are as before."""
    for seed in range(20):
        torch.manual_seed(seed)
        layers = torch.nn.Sequential(
            torch.nn.Linear(6, 40), torch.nn.ReLU(), torch.nn.Linear(40, 6)
        ).to(dtype)
        x = torch.randn(3, 7, 6, dtype=dtype, requires_grad=True)
        before = x.detach().clone()
        checks.gradients_predict(
            lambda layers=layers, x=x: layers(x).to(answer), x, *layers.parameters()
        )
        assert torch.equal(x, before)


def test_gradients_under_a_given_cotangent_are_tested_and_returned() -> None:
    x = torch.randn(3, 7, dtype=torch.float64, requires_grad=True)
    cotangent = torch.randn(3, 7, dtype=torch.float64)
    (told,) = checks.gradients_predict(lambda: x**2, x, cotangent=cotangent)
    assert torch.equal(told, 2 * x.detach() * cotangent)
    with pytest.raises(checks.CheckFailed, match="differs from what the gradient says"):
        checks.gradients_predict(lambda: x.detach() ** 2 + x, x, cotangent=cotangent)
    with pytest.raises(checks.CheckFailed, match="has shape"):
        checks.gradients_predict(lambda: x[:, :1] ** 2, x, cotangent=cotangent)


# Correct answers pass


def test_checks_of_values_accept_correct_values() -> None:
    checks.close(X.float(), X)
    checks.close(X + 1e-7, X)
    checks.close(torch.tensor(3), 3.0)
    checks.close(3, torch.tensor(3.0))
    checks.close([X, 1.0], (X, 1.0))
    checks.close(torch.tensor([math.inf, math.nan]), torch.tensor([math.inf, math.nan]))
    checks.close(torch.empty(0, 3), torch.empty(0, 3))
    checks.equal([(1, "a"), {"k": None}, 2.0], [(1, "a"), {"k": None}, 2.0])
    checks.equal(torch.tensor([1, 2], dtype=torch.int32), torch.tensor([1, 2]))
    checks.shape(X, X.shape)
    checks.dtype(X, torch.float64)
    checks.finite(X)
    checks.finite(3.0)
    checks.between(torch.tensor(0.5), 0, 1)
    checks.rows_sum_to_one(torch.randn(2, 3, 5).softmax(-1))
    checks.true(numpy.bool_(True), "…")
    checks.true(torch.tensor(True), "…")
    assert checks.unpack([1, 2], 2) == (1, 2)


def test_checks_of_behaviour_accept_correct_functions() -> None:
    x = torch.randn(2, 5, 3, dtype=torch.float64)
    checks.input_untouched(lambda x, n: x + n, x, 3)
    checks.input_untouched(
        lambda ids, cache: sorted(ids), [3, 1, float("nan")], [(x, None), {"a": x}]
    )
    checks.deterministic_in_eval(nn.Dropout(), x)
    checks.batch_invariant(remember, x)
    checks.prefix_invariant(remember, x)
    checks.permutation_equivariant(lambda x: x + blend(x), x)
    checks.causal_by_gradient(remember, x)
    checks.causal_by_gradient(blend, x, allowed=torch.ones(5, 5).bool())
    checks.padding_invariant(ignore_padding, x, [5, 3])
    checks.gradients_close(lambda x, n: x * n, lambda x, n: n * x, x, 3)
    checks.parameter_gradients_close(Scale(), Scale(), x)
    checks.convex_hull(lambda v: v.mean(-2, keepdim=True), x)
    checks.silent_sublayers(nn.Identity(), x, [], lambda x: x)
    heads_local([0, 0, 1, 1])
    silent(0.0)


def test_checks_of_modules_accept_correct_modules() -> None:
    checks.parameters(Table(True), {"weight": (2, 3)})
    checks.parameter_count(Table(True), 6)
    checks.no_parameters(nn.ReLU())
    checks.buffers_follow(Table(True), ("pe",), holding=torch.arange(4.0))


def test_copy_parameters_and_randomize_assign_weights() -> None:
    torch.manual_seed(1)
    source, target = checks.randomize(nn.LayerNorm(5)), nn.LayerNorm(5).double()
    assert checks.copy_parameters(source, target) is target
    assert target.weight.tolist() == source.weight.tolist() != [1.0] * 5
    assert source.bias.abs().max() > 0
    assert torch.equal(checks.randomize(nn.Linear(50, 50), scale=0.0).weight, torch.zeros(50, 50))


def test_public_sentence_hides_exception_classes_of_the_student() -> None:
    def leak(number: int) -> None:
        raise type(f"It_is_{number}", (KeyError,), {})("no")

    with pytest.raises(checks.CheckFailed) as caught:
        checks.raises(ValueError, leak, 77, what="push(77)")
    assert "It_is_77" in str(caught.value)
    assert caught.value.public.startswith("push(…) raised a KeyError")
    with pytest.raises(checks.CheckFailed) as caught:
        checks.raises(KeyError, leak, 77, naming="number", what="push(77)")
    assert caught.value.public.startswith(
        "push(…) raised a KeyError, as it should, but its message"
    )


def test_randomize_does_not_depend_on_the_order_of_construction() -> None:
    made = {"a": nn.Linear(2, 3), "b": nn.LayerNorm(4)}
    first, second = (nn.ModuleDict({name: made[name] for name in order}) for order in ("ab", "ba"))
    weights = []
    for module in (first, second):
        torch.manual_seed(3)
        weights.append({name: p.clone() for name, p in checks.randomize(module).named_parameters()})
    assert list(weights[0]) != list(weights[1])
    assert all(torch.equal(weight, weights[1][name]) for name, weight in weights[0].items())


def test_silent_sublayers_restores_parameters_after_an_exception() -> None:
    layer = nn.Linear(3, 3)
    before = layer.weight.detach().clone()
    with pytest.raises(ZeroDivisionError):
        checks.silent_sublayers(lambda x: 1 / 0, X, [layer.weight], lambda x: x)
    assert torch.equal(layer.weight, before)


def test_deterministic_in_eval_restores_the_mode() -> None:
    module = nn.Dropout()
    checks.deterministic_in_eval(module, X)
    assert module.training
    checks.deterministic_in_eval(module.eval(), X)
    assert not module.training


def test_in_place_changes_fail_only_input_untouched() -> None:
    x = X.clone()
    checks.batch_invariant(add_in_place, x)
    checks.prefix_invariant(add_in_place, x)
    checks.permutation_equivariant(add_in_place, x)
    checks.gradients_close(add_in_place, lambda x: x + 1, x)
    checks.silent_sublayers(add_in_place, x, [], lambda x: x + 1)
    assert torch.equal(x, X)


# Refusals


@pytest.mark.parametrize(
    ("naming", "args"),
    [(None, (9, 7)), ("T", (9, 7)), (9, (9, 7)), (("T", "block_size", 9), (9, 7))],
)
def test_raises_accepts_the_expected_exception(naming: object, args: tuple[int, int]) -> None:
    checks.raises(ValueError, refuse_well, *args, naming=naming)


@pytest.mark.parametrize("naming", ["t", "lock", 1, "longe", "-9", ("T", 19, 7), ("nothing", "T")])
def test_raises_finds_only_whole_words(naming: object) -> None:
    with pytest.raises(checks.CheckFailed):
        checks.raises(ValueError, refuse_well, 19, 7, naming=naming)


def test_raises_accepts_an_exception_of_a_worker_as_its_builtin_type() -> None:
    error = student_raised(RemoteException("TooLong", ("ValueError",), "T = 9"))
    checks.raises(ValueError, throw, error, naming="T")


@pytest.mark.parametrize(
    "error", [NotImplementedError("x"), StudentTimeoutError("x"), InfrastructureError("x")]
)
def test_raises_does_not_catch_timeouts_crashes_and_missing_code(error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        checks.raises(ValueError, throw, error)
    assert caught.value is error


@pytest.mark.parametrize(
    "check",
    [
        lambda f: checks.input_untouched(f, X),
        lambda f: checks.batch_invariant(f, X),
        lambda f: checks.prefix_invariant(f, X),
        lambda f: checks.permutation_equivariant(f, X),
        lambda f: checks.causal_by_gradient(f, X),
        lambda f: checks.padding_invariant(f, X, [3, 2]),
        lambda f: checks.gradients_close(f, remember, X),
        lambda f: checks.convex_hull(f, X),
        lambda f: checks.heads_local(f, X, 2, lambda head: None),
    ],
)
def test_checks_do_not_catch_exceptions_of_the_student(check: object) -> None:
    def crash(*inputs: Tensor) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        check(crash)


# Unexpected values


class Hostile:
    """A class whose every method raises."""

    def __repr__(self) -> str:
        raise RuntimeError("touched")

    __str__ = __eq__ = __bool__ = __len__ = __iter__ = __getattr__ = __float__ = __repr__
    __hash__ = object.__hash__


def knot() -> list:
    loop: list = []
    loop.append(loop)
    return loop


ODD = {
    "hostile": Hostile(),
    "none": None,
    "huge": 10**6000,
    "minus huge": -(10**6000),
    "text": "a\x1b[31m\n::error::" * 100_000,
    "bytes": b"\x00" * 100_000,
    "knot": knot(),
    "deep": [[[[[[[[]]]]]]]] * 1000,
    "wide": list(range(1_000_000)),
    "dict": {i: "x" * 1000 for i in range(10_000)},
    "class": Hostile,
    "opaque": Opaque("generator"),
    "complex": 1j,
    "nan": math.nan,
    "module": nn.ReLU(),
    "array": numpy.zeros(3),
    "sparse": torch.eye(3).to_sparse(),
    "meta": torch.empty(3, device="meta"),
    "complex tensor": torch.zeros(2, 2, dtype=torch.complex64),
    "bool tensor": torch.zeros(2, 2, dtype=torch.bool),
    "big tensor": torch.zeros(1000, 1000),
}
LOOKS = {
    "close": lambda value: checks.close(value, torch.ones(2, 2)),
    "close number": lambda value: checks.close(value, 1.5),
    "close items": lambda value: checks.close(value, (1.5, 2.5, 3.5)),
    "equal": lambda value: checks.equal(value, 7),
    "equal text": lambda value: checks.equal(value, "seven"),
    "equal none": lambda value: checks.equal(0 if value is None else value, None),
    "equal list": lambda value: checks.equal(value, [7, [7]]),
    "equal dict": lambda value: checks.equal(value, {"seven": 7}),
    "equal tensor": lambda value: checks.equal(value, torch.ones(2, 2, dtype=torch.int64)),
    "shape": lambda value: checks.shape(value, (7, 7)),
    "dtype": lambda value: checks.dtype(value, torch.int8),
    "between": lambda value: checks.between(value, 0.25, 0.75),
    "unpack": lambda value: checks.unpack(value, 3),
    "true": lambda value: checks.true(value, "It should be true."),
    "parameters": lambda value: checks.parameters(value, {"weight": (7,)}),
}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("odd", ODD)
def test_unusual_values_give_a_short_sentence(odd: str, look: str) -> None:
    with pytest.raises(checks.CheckFailed) as caught:
        LOOKS[look](ODD[odd])
    for text in (str(caught.value), caught.value.public):
        assert 10 < len(text) < 600 and text.isprintable() and text.endswith(".")


# The public sentence


@given(st.integers(1000, 9999), st.integers(1000, 9999), st.integers(1000, 9999))
def test_public_sentences_contain_no_inputs_or_expected_values(
    mine: int, secret: int, argument: int
) -> None:
    assume(secret not in (mine, argument // 2))
    for call in (
        lambda: checks.equal(mine, secret, f"count({argument})"),
        lambda: checks.equal([mine], [secret], f"the ids for n = {argument}"),
        lambda: checks.equal({"n": mine}, {"n": secret}, f"pairs([{argument}], 'x {argument}')"),
        lambda: checks.equal(torch.tensor([mine]), torch.tensor([secret]), f"f(g({argument}))"),
        lambda: checks.true(mine == secret, f"{secret} was expected for {argument}."),
        lambda: checks.raises(ValueError, half, argument, naming=("block_size", argument)),
    ):
        with pytest.raises(checks.CheckFailed) as caught:
            call()
        assert str(secret) in str(caught.value) or str(argument) in str(caught.value)
        without_own = caught.value.public.replace(str(mine), "")
        assert str(secret) not in without_own and str(argument) not in without_own


@pytest.mark.parametrize(
    ("what", "public"),
    [
        ("causal_mask(5)", "causal_mask(…)"),
        ("the output of Head(20, 5, 7) for T = 6", "the output of Head(…) for T = …"),
        ("the buffer `pe` for d_model=6", "the buffer `pe` for d_model=…"),
        ("x of shape (3, 7, 20)", "x of shape (3, 7, 20)"),
        ("merge_heads(split_heads(x, 4))", "merge_heads(…)"),
        ("decode('abc') and attention(q, k, v)", "decode(…) and attention(q, k, v)"),
        ("the word [1, 2] in row 3 of table[4]", "the word … in row 3 of table[4]"),
        ("count_bert(config)['total']", "count_bert(config)['total']"),
        ("norm2 of GPT-2 (", "norm2 of GPT-2 ("),
    ],
)
def test_without_inputs_removes_the_inputs_of_a_description(what: str, public: str) -> None:
    assert without_inputs(what) == public


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (-0.0, "0"),
        (1 / 3, "0.3333"),
        ((1,), "(1,)"),
        ([1, [2, [3, [4]]]], "[1, [2, [3, a list of 1]]]"),
        ({"a": torch.ones(2, 2)}, "{'a': a tensor of shape (2, 2)}"),
        (torch.tensor([1, 2]), "tensor([1, 2])"),
        (list(range(100)), "[0, 1, 2, 3, 4, 5, 6, 7, … (100 in all)]"),
        ((i for i in "ab"), "a generator"),
        (nn.ReLU(), "a module (ReLU)"),
        (int, "the class int"),
    ],
)
def test_show_shortens_values(value: object, shown: str) -> None:
    assert show(value) == shown


# Properties of close


SHAPES = st.lists(st.integers(1, 4), max_size=4).map(tuple)
NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    size = draw(SHAPES)
    total = math.prod(size)
    numbers = draw(st.lists(NUMBERS, min_size=total, max_size=total))
    return torch.tensor(numbers, dtype=torch.float64).reshape(size)


def test_a_set_that_differs_is_shown() -> None:
    checks.equal({3, 1}, {1, 3})
    with pytest.raises(checks.CheckFailed) as caught:
        checks.equal({3, 1}, {1, 4}, "the set of ids")
    assert str(caught.value) == "The set of ids is {1, 3}; {1, 4} was expected."
    assert caught.value.public == "The set of ids is not as expected."


@given(tensors(), st.data())
def test_close_names_the_position_of_one_changed_number(t: Tensor, data: st.DataObject) -> None:
    at = tuple(data.draw(st.integers(0, size - 1)) for size in t.shape)
    sign = data.draw(st.sampled_from([-1, 1]))
    other = changed(t, at, t[at].item() + sign * 1e-4 * (1 + abs(t[at].item())))
    axes = ("a", "b", "c", "d")[: t.ndim]
    for check in (checks.close, checks.equal):
        with pytest.raises(checks.CheckFailed) as caught:
            check(other, t, axes=axes)
        where = ", ".join(f"{name} {i}" for name, i in zip(axes, at, strict=True))
        for text in (str(caught.value), caught.value.public):
            if axes and t.numel() == 1:
                assert f"differs at {where}" in text
            elif axes:
                assert f"first at {where}" in text and f"1 of {t.numel()} numbers differs" in text


# The same checks through the proxy

SUBMISSION = """
import torch
from torch import nn

class Layer(nn.Module):
    def __init__(self, width, leaky=False):
        super().__init__()
        self.a, self.b = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.leaky = leaky
        self.register_buffer("share", torch.full((1,), 0.5))

    def forward(self, x):
        if x.shape[1] > 5:
            raise ValueError(f"T = {x.shape[1]} is more than 5.")
        mean = x.mean(1, keepdim=True) if self.leaky else 0.0
        return x + self.share * self.b(torch.tanh(self.a(x).cumsum(1))) + mean

def scale(x, padding=None):
    return x * 3.0

def grow(x):
    x += 1
    return x
"""


@pytest.fixture
def remote() -> RemoteStudent:
    connection = LoopbackConnection(Server(ModuleType("submission_of_checks")))
    connection.request("load", text=SUBMISSION, filename="layer.py")
    connection.start_test(3)
    return RemoteStudent(connection)


def test_correct_results_of_a_worker_pass(remote: RemoteStudent) -> None:
    x = torch.randn(2, 5, 4).double()
    mine, theirs = checks.randomize(remote.Layer(4).double()), remote.Layer(4).double()
    checks.copy_parameters(mine, theirs)
    checks.close(theirs(x), mine(x))
    checks.parameters(theirs, {"a.weight": (4, 4), "a.bias": (4,), "b.weight": (4, 4)})
    checks.parameter_count(theirs, 36)
    checks.buffers_follow(theirs, ("share",))
    checks.deterministic_in_eval(theirs, x)
    checks.input_untouched(theirs, x)
    checks.batch_invariant(theirs, x)
    checks.prefix_invariant(theirs, x)
    checks.causal_by_gradient(theirs, x)
    checks.gradients_close(theirs, mine, x)
    checks.parameter_gradients_close(theirs, mine, x)
    checks.silent_sublayers(theirs, x, [theirs.b.weight], lambda x: x)
    checks.permutation_equivariant(remote.scale, x)
    checks.padding_invariant(remote.scale, x, [5, 2])
    checks.raises(ValueError, theirs, torch.randn(2, 6, 4).double(), naming=("T", 6))


def test_wrong_results_of_a_worker_fail(remote: RemoteStudent) -> None:
    x = torch.randn(2, 5, 4).double()
    leaky = checks.randomize(remote.Layer(4, leaky=True).double())
    for check, arguments, sentence in (
        (checks.causal_by_gradient, (leaky, x), "Position 0 depends on position 1 "),
        (checks.prefix_invariant, (leaky, x), "The output at the first position must not depend"),
        (checks.input_untouched, (remote.grow, x.clone()), "The call changed its input at batch 0"),
        (checks.raises, (ValueError, remote.scale, 3), "scale(3) returned 9, but a ValueError was"),
        (
            checks.raises,
            (ValueError, leaky, x),
            "layer(a tensor of shape (2, 5, 4)) returned a tensor",
        ),
    ):
        with pytest.raises(checks.CheckFailed) as caught:
            check(*arguments)
        assert str(caught.value).startswith(sentence)


# -- what stands for the answers of a mistake --------------------------------------------------------


def test_a_refusal_that_names_too_little_tells_the_same_whatever_its_words_are() -> None:
    told = set()
    for words in ("it cannot be", "never heard of that"):

        def refuse(kind: str, words: str = words) -> None:
            raise ValueError(words)

        with pytest.raises(checks.CheckFailed) as caught:
            checks.raises(ValueError, refuse, "lstm", naming=("kind", "lstm"))
        told.add(caught.value.telling)
    (sentence,) = told
    assert "does not name kind" in sentence


@pytest.mark.parametrize(
    ("name", "telling"),
    [
        ("torch.Tensor[600]", "a tensor of more than 600 numbers"),
        ("torch.nn.functional.softmax", ""),
    ],
)
def test_a_tensor_that_is_too_large_tells_its_limit(name: str, telling: str) -> None:
    subject = SimpleNamespace(use_of=lambda names: Use(name, 7))
    with pytest.raises(checks.CheckFailed) as caught:
        refuse_forbidden([name], subject)  # type: ignore[arg-type]
    assert caught.value.telling == telling
