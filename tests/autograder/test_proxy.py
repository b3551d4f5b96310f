"""The proxy behaves as the plain module does, in this process and with a worker."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from torch import nn

from autograder.bridge.inside.server import Server
from autograder.bridge.outside.loopback import LoopbackConnection
from autograder.bridge.outside.remote import RemoteStudent
from autograder.bridge.outside.remote_call import mirror_input_mutation
from autograder.bridge.shared.errors import (
    MissingNameError,
    StudentCrashedError,
    StudentError,
    StudentRaisedError,
    told_exception,
)
from tests.autograder.both_sides import SIDES, connected
from tests.autograder.sampling import thinned

NET = Path(__file__).with_name("net.py")
spec = importlib.util.spec_from_file_location("plain_net", NET)
plain = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plain)


@pytest.fixture(params=SIDES)
def connection(request, sandbox):
    with connected(request.param, sandbox, NET.read_text(), "net.py") as connection:
        yield connection


@pytest.fixture
def student(connection):
    return RemoteStudent(connection)


def pair(student, **options):
    mine, theirs = plain.Net(**options), student.Net(**options)
    theirs.load_state_dict(mine.state_dict())
    return mine, theirs


def test_state_dict_names_modules_and_parameter_counts_match(student):
    mine, theirs = pair(student, d=4, p=0.0)
    assert list(mine.state_dict()) == list(theirs.state_dict())
    assert sum(p.numel() for p in mine.parameters()) == sum(p.numel() for p in theirs.parameters())
    assert [name for name, _ in mine.named_modules()] == [
        name for name, _ in theirs.named_modules()
    ]
    assert [name for name, _ in theirs.named_buffers()] == ["table"]


def test_objects_of_libraries_behave_like_the_students_own(student):
    version = student.version("2.10rc1")
    assert (version.major, version.release, version.is_prerelease) == (2, (2, 10), True)
    assert student.is_newer(version, "2.9") is True


def test_values_and_gradients_equal_those_of_the_plain_module(student):
    mine, theirs = pair(student, d=4, p=0.0)
    x = torch.randn(3, 4)
    xs = []
    for module in (mine, theirs):
        xs.append(x.clone().requires_grad_())
        module(xs[-1], scale=2.0).square().sum().backward()
    torch.testing.assert_close(xs[0].grad, xs[1].grad)
    for (name, p), (_, q) in zip(mine.named_parameters(), theirs.named_parameters()):
        assert (p.grad is None) == (q.grad is None), name
        if p.grad is not None:
            torch.testing.assert_close(p.grad, q.grad)


def test_gradients_flow_through_local_operations_before_and_after_a_call(student):
    mine, theirs = pair(student, d=4, p=0.0)
    weight, x = torch.randn(4, 4, requires_grad=True), torch.randn(2, 4)
    (expected,) = torch.autograd.grad(mine(mine(x @ weight)).sum(), weight)
    (found,) = torch.autograd.grad(theirs(theirs(x @ weight)).sum(), weight)
    torch.testing.assert_close(found, expected)


def test_gradcheck_passes_in_float64(student):
    _, theirs = pair(student, d=3, p=0.0)
    theirs.double()
    x = torch.randn(2, 3, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(theirs, (x,))


def test_training_mode_switches_dropout(student):
    _, theirs = pair(student, d=50, p=0.5)
    x = torch.ones(1, 50)
    assert not torch.equal(theirs(x), theirs(x))
    theirs.eval()
    assert torch.equal(theirs(x), theirs(x))
    theirs.train()
    assert not torch.equal(theirs(x), theirs(x))


def test_attributes_equal_those_of_the_plain_module(student):
    _, theirs = pair(student, d=4)
    x = torch.randn(2, 4)
    theirs(x)
    theirs(x)
    assert theirs.count == 2 and theirs.hidden.shape == (2, 4) and theirs.width == 4
    assert not hasattr(theirs, "nothing")
    assert theirs.a.in_features == 4 and theirs.a.weight.shape == (4, 4)
    theirs.dropout.p = 0.0
    assert theirs.dropout.p == 0.0 and torch.equal(theirs(x), theirs(x))


def test_module_list_behaves_like_pytorchs(student):
    mine, theirs = pair(student, d=4)
    assert len(theirs.parts) == 3 and theirs.parts.kind == "ModuleList"
    x = torch.randn(2, 4)
    torch.testing.assert_close(theirs.parts[1](x), mine.parts[1](x))
    assert [part.weight.shape for part in theirs.parts] == [(4, 4)] * 3


def test_submodules_and_methods_can_be_called(student):
    mine, theirs = pair(student, d=4, p=0.0)
    x = torch.randn(2, 4)
    torch.testing.assert_close(theirs.a(x), mine.a(x))
    expected, found = mine.two(x), theirs.two(x)
    torch.testing.assert_close(found["y"], expected["y"])
    assert found["aux"][1:] == (3, "s", None) and isinstance(found["aux"], tuple)


def test_no_grad_is_respected(student):
    _, theirs = pair(student, d=4)
    with torch.no_grad():
        assert not theirs(torch.randn(2, 4)).requires_grad
    assert theirs(torch.randn(2, 4)).requires_grad


def test_optimiser_of_the_test_trains_the_module(student):
    mine, theirs = pair(student, d=4, p=0.0)
    x = torch.randn(8, 4)
    for module in (mine, theirs):
        optimiser = torch.optim.Adam(module.parameters(), 1e-2)
        for _ in range(5):
            optimiser.zero_grad()
            module(x).square().mean().backward()
            optimiser.step()
    torch.testing.assert_close(theirs(x), mine(x))
    for module in (mine, theirs):
        with torch.no_grad():
            module.a.weight.zero_()
    torch.testing.assert_close(theirs(x), mine(x))


def test_training_in_the_worker_updates_the_module(student):
    mine, theirs = pair(student, d=4, p=0.0)
    x = torch.randn(8, 4)
    expected, found = plain.train(mine, x, 3), student.train(theirs, x, 3)
    assert found == pytest.approx(expected, rel=1e-4)
    torch.testing.assert_close(theirs.a.weight, mine.a.weight)


GROWING = """
import torch
from torch import nn

class Growing(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.old = nn.Identity()

    def forward(self, x):
        {change}
        return self.linear(x)
"""


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    ("change", "names"),
    [
        ("self.softmax = nn.Softmax(-1)", ["linear", "old", "softmax"]),
        ("self.layers = nn.ModuleList()", ["linear", "old", "layers"]),
        ("self.old = nn.Sequential(nn.Identity())", ["linear", "old", "old.0"]),
        ("vars(self)['_modules'].pop('old', None)", ["linear"]),
    ],
)
def test_a_part_without_parameters_may_come_and_go_in_forward(sandbox, side, change, names):
    with connected(side, sandbox, GROWING.format(change=change), "net.py") as connection:
        module = RemoteStudent(connection).Growing()
        x = torch.randn(3, 2)
        for _ in range(2):
            torch.testing.assert_close(module(x), module.linear(x))
        assert [name for name, _ in module.named_modules() if name] == names
        module.eval()
        assert not module(x).isnan().any()


def test_modules_can_be_arguments(student):
    mine, theirs = pair(student, d=4, p=0.0)
    x = torch.randn(2, 4)
    torch.testing.assert_close(student.loss_of(theirs, x), plain.loss_of(mine, x))
    student.loss_of(theirs, x).backward()
    plain.loss_of(mine, x).backward()
    torch.testing.assert_close(theirs.a.weight.grad, mine.a.weight.grad)


def test_functions_return_the_same_results(student):
    x, y = torch.randn(3, requires_grad=True), torch.randn(3)
    student.product(x, y).sum().backward()
    torch.testing.assert_close(x.grad, y)
    assert not student.without_gradient(torch.ones(2, requires_grad=True)).requires_grad
    assert student.CONSTANT == {"lr": 0.1, "dims": (1, 2)}
    assert student.returns_module(3)(torch.ones(2, 2)).shape == (2, 3)
    assert isinstance(student.array(3), np.ndarray) and student.array(3).dtype == np.float32
    assert student.dtype_of(torch.ones(1, dtype=torch.float64)) is torch.float64
    assert repr(student.returns_generator()) == "<the student's generator object>"


def test_in_place_changes_of_inputs_are_mirrored_on_request(student):
    x = torch.zeros(2)
    with mirror_input_mutation():
        student.in_place(x)
    assert torch.equal(x, torch.ones(2))


def test_in_place_changes_of_lists_and_dicts_are_mirrored_on_request(student):
    x, nested = torch.zeros(2), [3, 1, 2]
    ids, book, pair = [x], {"ids": nested, "x": x}, ({"a": 1}, 5)
    with mirror_input_mutation():
        student.refill(ids, book, pair)
    assert (len(ids), ids[1]) == (2, 1)
    assert book["ids"] is nested and nested == [1, 2, 3]
    assert pair == ({}, 5)


def test_submission_cannot_change_the_inputs_of_the_reference(student):
    x, ids, book = torch.zeros(2), [1], {"ids": [2, 1]}
    student.in_place(x)
    student.refill(ids, book)
    assert torch.equal(x, torch.zeros(2))
    assert (ids, book) == ([1], {"ids": [2, 1]})


def test_exceptions_keep_their_type_and_line(student):
    with pytest.raises(ValueError, match="my message") as caught:
        student.boom(torch.ones(1))
    assert isinstance(caught.value, StudentError)
    frame = caught.value.remote.frames[-1]
    assert (frame.file, frame.code) == ("net.py", 'raise ValueError("my message")')


def test_missing_name_raises_missing_name_error(student):
    with pytest.raises(MissingNameError, match="There is no `nothing` in the submission"):
        student.nothing  # noqa: B018


def test_second_derivatives_are_refused(student):
    x = torch.randn(3, requires_grad=True)
    (gradient,) = torch.autograd.grad(
        student.product(x, torch.ones(3)).square().sum(), x, create_graph=True
    )
    with pytest.raises(RuntimeError, match="once_differentiable|differentiate twice"):
        gradient.sum().backward()


def test_objects_of_the_students_own_classes_are_handles(student):
    config = student.Config(width=5)
    assert config.width == 5 and config.size(2) == 10 and config.heads == 2
    assert student.counts(config) == {"width": 5, "total": 15}
    with pytest.raises(ValueError, match="width must be at least 1, not 0"):
        student.Config(width=0)
    with pytest.raises(AttributeError):
        config.width = 3
    bag = student.Bag([1, 2, 3])
    assert len(bag) == 3 and list(bag) == [1, 2, 3] and bag[1] == 2 and student.Bag.kind == "bag"


class Successor(nn.Module):
    """A fake model that predicts n + 1 after n."""

    def __init__(self):
        super().__init__()
        self.seen_modes, self.seen_grad = [], []

    def forward(self, ids):
        self.seen_modes.append(self.training)
        self.seen_grad.append(torch.is_grad_enabled())
        return torch.nn.functional.one_hot((ids + 1) % 10, 10).float()


def test_a_fake_model_is_called_back(student):
    fake = Successor()
    found = student.generate(fake, torch.tensor([[3], [7]]), 4)
    assert found.tolist() == [[3, 4, 5, 6, 7], [7, 8, 9, 0, 1]]
    assert fake.seen_modes == [False] * 4 and fake.seen_grad == [False] * 4
    assert fake.training


def bent(x):
    return (x**3).sin()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_flow_through_a_function_of_the_test(student, dtype):
    x = torch.randn(2, 3, dtype=dtype)
    for slope in ("slope", "slope_by_transform", "slope_by_jacobian"):
        torch.testing.assert_close(getattr(student, slope)(bent, x), plain.slope(bent, x))
    once, again = student.slope_twice(bent, x)
    torch.testing.assert_close((once, again), (plain.slope(bent, x),) * 2)
    assert not x.requires_grad


def test_gradients_flow_through_a_module_of_the_test_without_changing_it(student):
    net, x = plain.Net(4, p=0.0), torch.randn(2, 4)
    torch.testing.assert_close(
        student.slope(net, x), plain.slope(plain.Net.forward.__get__(net), x)
    )
    net.zero_grad(set_to_none=True)
    student.slope(net, x)
    assert all(parameter.grad is None for parameter in net.parameters())


def test_gradients_of_a_callback_equal_local_ones(student):
    x, extra = torch.randn(2, 3), torch.randn(3)
    results = [
        lambda x: {"a": x[0] * 2, "b": torch.ones(3), "c": x.double().exp()},
        lambda x: x.relu_() * 3,  # which changes its input
        lambda x: x[:, :1],
        lambda x: x * 0 + torch.ones(3),
    ]
    for function in results:
        expected = plain.slope(lambda x, function=function: function(x * 1), x)
        torch.testing.assert_close(student.slope(function, x), expected)
    found = student.slope(lambda x, extra: x * extra, x, extra=extra)
    torch.testing.assert_close(found, extra.expand(2, 3))


def test_second_derivatives_of_a_function_of_the_test_are_refused(student):
    with pytest.raises(RuntimeError, match="once_differentiable|differentiate twice"):
        student.curvature(bent, torch.ones(3))


def test_requires_grad_set_on_inputs_is_mirrored_on_request(student):
    x, y = torch.ones(2), torch.ones(3)
    student.leave_marks(x, y)
    assert not x.requires_grad and not y.requires_grad and x.grad is None
    with mirror_input_mutation():
        student.leave_marks(x, y)
    assert x.requires_grad and y.requires_grad and y.grad is None
    torch.testing.assert_close(x.grad, torch.full((2,), 2.0))


def test_calls_and_results_are_recorded(connection, student):
    transcript = connection.start_test(1)
    x = torch.randn(3, requires_grad=True)
    student.product(x, torch.ones(3)).sum().backward()
    with pytest.raises(ValueError):
        student.boom(x)
    assert [answer.operation for answer in transcript.answers] == ["call", "backward", "call"]
    assert transcript.answers[-1].value == (
        "raised",
        "ValueError",
        "",
    )  # its words are the student's own
    assert transcript.same_as(transcript)


def test_own_methods_with_pytorchs_names_do_not_break_the_proxy(student):
    mine, theirs = nn.Linear(4, 4), student.OwnMethods(4)
    theirs.linear.load_state_dict(mine.state_dict())
    x = torch.randn(2, 4)
    torch.testing.assert_close(theirs.eval()(x), mine(x))
    assert theirs.told is False and not theirs.linear.training
    assert list(theirs.state_dict()) == ["linear.weight", "linear.bias"]
    assert [name for name, _ in theirs.named_buffers()] == ["cache"]
    assert theirs.double()(x.double()).dtype == torch.float64


def test_results_in_containers_have_gradients(student):
    for _ in range(2):
        xs = []
        for module in (plain, student):
            xs.append(torch.arange(3.0, requires_grad=True))
            (y, rest), whole = module.several(xs[-1])
            assert rest["count"] == 3 and whole.dtype == torch.int64 and not whole.requires_grad
            (
                y.square().sum() + rest["sum"] * rest["tuple"][0] + (rest["tuple"][1] ** 2).sum()
            ).backward()
        torch.testing.assert_close(xs[0].grad, xs[1].grad)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.t(),
        lambda x: x[::2],
        lambda x: x[:1].expand(5, 4),
        lambda x: x[0],
        lambda x: x.flip(0),
        lambda x: x[:0],
    ],
)
def test_views_can_be_inputs(student, view):
    x = torch.randn(6, 4, requires_grad=True)
    student.product(view(x), view(x)).sum().backward()
    (expected,) = torch.autograd.grad(plain.product(view(x), view(x)).sum(), x)
    torch.testing.assert_close(x.grad, expected)


def test_two_modules_can_take_part_in_one_call(student):
    a, first = pair(student, d=4, p=0.0)
    b, second = pair(student, d=4, p=0.0)
    x = torch.randn(2, 4)
    for net in (
        student.both(first, second, x),
        plain.both(a, b, x),
        student.both(first, first, x),
        plain.both(a, a, x),
    ):
        net.square().sum().backward()
    for (name, p), (_, q) in zip(
        [*a.named_parameters(), *b.named_parameters()],
        [*first.named_parameters(), *second.named_parameters()],
    ):
        assert (p.grad is None) == (q.grad is None), name
        if p.grad is not None:
            torch.testing.assert_close(p.grad, q.grad)


def test_parameter_replaced_during_a_call_is_transferred(student):
    theirs, x = student.Restless(3), torch.ones(3)
    weight = theirs.weight
    y = theirs.replace(x)
    assert torch.equal(y, torch.full((3,), 3.0)) and torch.equal(theirs.weight, y)
    y.sum().backward()
    assert theirs.weight is weight and torch.equal(weight.grad, x)
    with torch.no_grad():
        theirs.weight.fill_(5.0)
    assert torch.equal(theirs(x), torch.full((3,), 5.0))


def test_parameters_added_and_removed_during_a_call_are_transferred(student):
    mine, theirs = plain.Restless(3), student.Restless(3)
    theirs(torch.ones(3)).sum().backward()
    for change in ("grow", "shrink", "freeze", "tie"):
        for net in (mine, theirs):
            if change == "tie":
                net.grow()
                net.inner.append(nn.Linear(3, 3)) if net is mine and len(net.inner) < 2 else None
            getattr(net, change)()
        assert list(theirs.state_dict()) == list(mine.state_dict()), change
        assert [n for n, _ in theirs.named_parameters()] == [
            n for n, _ in mine.named_parameters()
        ], change
        assert [p.requires_grad for p in theirs.parameters()] == [
            p.requires_grad for p in mine.parameters()
        ], change
        assert [tuple(p.shape) for p in theirs.parameters()] == [
            tuple(p.shape) for p in mine.parameters()
        ], change
    theirs.double()
    theirs.weight.requires_grad_(True)
    theirs(torch.ones(4, dtype=torch.double)).sum().backward()
    assert theirs.weight.grad.dtype == torch.float64


def test_attributes_can_be_lists_of_modules_and_tensors(student):
    theirs = student.Lists(4)
    assert [
        type(layer).__mro__[1] is nn.Module or layer.weight.shape == (4, 4)
        for layer in theirs.layers
    ] == [True, True]
    assert theirs.layers[0](torch.ones(2, 4)).shape == (2, 4)
    assert torch.equal(theirs.tensors[0], torch.ones(4))
    assert list(theirs.state_dict()) == list(plain.Lists(4).state_dict())
    assert theirs.named["zwei 2"](torch.ones(4)).shape == (3,)


def test_equality_uses_the_students_method(student):
    config = student.Config(width=5)
    assert config == student.Config(5) and config != student.Config(6) and config == config
    assert config != 5 and config is not None and config in [student.Config(5)]
    bag = student.Bag([1])
    assert bag == bag and bag != student.Bag([1]) and len({bag, student.Bag([1])}) == 2


def test_every_kind_of_argument_is_transferred(student):
    calls = [
        ((1,), {}),
        ((1, 5, 6, 7), {"c": 8, "d": 9, "a": 10}),
        ((1,), {"b": None, "x": [1, (2,)]}),
    ]
    for args, kwargs in calls:
        assert student.keywords(*args, **kwargs) == plain.keywords(*args, **kwargs)
    with pytest.raises(TypeError, match="positional"):
        student.keywords(b=1)


@pytest.mark.parametrize(
    "name, kind, text",
    [
        ("KeyError", KeyError, "'key'"),
        ("IndexError", IndexError, "index"),
        ("TooLong", ValueError, "too long by 3"),
        ("Unspeakable", ValueError, ""),
        ("StopIteration", StudentRaisedError, "1"),
        ("UnicodeDecodeError", ValueError, "odd"),
        ("SystemExit", StudentRaisedError, "0"),
        ("KeyboardInterrupt", StudentRaisedError, ""),
        ("skip", StudentRaisedError, "skipped"),
        ("GeneratorExit", StudentRaisedError, ""),
    ],
)
def test_every_kind_of_exception_is_reported(student, name, kind, text):
    with pytest.raises(kind) as caught:
        student.fail_with(name)
    assert isinstance(caught.value, StudentRaisedError) and text in str(caught.value)
    assert caught.value.remote.type == {"skip": "Skipped"}.get(name, name)
    assert student.product(torch.ones(1), torch.ones(1)) == 1


@pytest.mark.parametrize("kind", thinned(["deep", "many", "long", "big", "huge"], 5))
def test_too_large_result_is_reported_and_the_worker_continues(connection, student, kind):
    with pytest.raises(StudentCrashedError, match="too much, or nested too deeply"):
        student.returns(kind)
    assert not connection.dead
    assert student.product(torch.ones(1), torch.ones(1)) == 1


def test_value_that_the_test_cannot_send_is_reported(student):
    with pytest.raises(StudentError, match="too large"):
        student.product(torch.zeros(1).expand(10**12), 1)
    assert student.product(torch.ones(1), torch.ones(1)) == 1


def test_student_objects_passed_to_a_callback_are_restored(student):
    _, theirs = pair(student, d=4)
    config = student.Config(width=5)
    seen = []
    student.tell(seen.append, config)
    student.tell(seen.append, theirs)
    assert seen[0].width == 5 and seen[1] is theirs
    assert student.tell(lambda thing: thing.size(3), config) == 15
    assert student.tell(student.counts, config) == {"width": 5, "total": 15}
    assert student.tell(student.Config, 9).width == 9


def test_random_generators_of_both_sides_are_independent(student):
    def draw():
        return torch.rand(1).item(), np.random.rand(), random.random()

    def seed():
        torch.manual_seed(1), np.random.seed(1), random.seed(1)

    seed()
    expected = [draw(), draw()]
    seed()
    student.Net(8)
    first = draw()
    student.draw(3, None)
    inside = []
    student.tell(lambda _: inside.append(draw()), 1)
    assert [first, *inside] == expected


def of_text(text, filename):
    """A student whose file has this text, behind the protocol, in this process."""
    connection = LoopbackConnection(Server(ModuleType("submission_of_text")))
    loaded = connection.request("load", text=text, filename=filename)
    return RemoteStudent(connection, [told_exception(claim) for claim in loaded["errors"]])


def test_an_error_tells_the_line_before_it_and_the_shapes_of_its_own_line():
    student = of_text(
        "class A:\n    w = None\n\ndef f(q, a):\n    a = A; a.w = q\n\n    return q @ a.w\n",
        "heads.py",
    )
    with pytest.raises(StudentRaisedError) as caught:
        student.f(torch.ones(2, 3), None)
    frame = caught.value.remote.frames[-1]
    assert (frame.before, frame.shapes) == ("a = A; a.w = q", "q is (2, 3), a.w is (2, 3)")
