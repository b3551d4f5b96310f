"""The proxy behaves as the plain module does: here in this process, and across a worker's wall."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from autograder.student.connection import LoopbackConnection
from autograder.student.errors import MissingName, StudentError
from autograder.student.remote import RemoteStudent

NET = Path(__file__).with_name("net.py")
spec = importlib.util.spec_from_file_location("plain_net", NET)
plain = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plain)


@pytest.fixture(params=["loopback"])
def student(request):
    connection = LoopbackConnection("submission_net")
    connection.request("load", text=NET.read_text(), filename="net.py")
    connection.start_test(3)
    yield RemoteStudent(connection)


def pair(student, **options):
    mine, theirs = plain.Net(**options), student.Net(**options)
    theirs.load_state_dict(mine.state_dict())
    return mine, theirs


def test_state_dict_names_modules_and_counts(student):
    mine, theirs = pair(student, d=4, p=0.0)
    assert list(mine.state_dict()) == list(theirs.state_dict())
    assert sum(p.numel() for p in mine.parameters()) == sum(p.numel() for p in theirs.parameters())
    assert [name for name, _ in mine.named_modules()] == [name for name, _ in theirs.named_modules()]
    assert [name for name, _ in theirs.named_buffers()] == ["table"]


def test_values_and_gradients(student):
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


def test_a_local_graph_on_both_sides_of_the_call(student):
    mine, theirs = pair(student, d=4, p=0.0)
    weight, x = torch.randn(4, 4, requires_grad=True), torch.randn(2, 4)
    (expected,) = torch.autograd.grad(mine(mine(x @ weight)).sum(), weight)
    (found,) = torch.autograd.grad(theirs(theirs(x @ weight)).sum(), weight)
    torch.testing.assert_close(found, expected)


def test_gradcheck_in_double(student):
    _, theirs = pair(student, d=3, p=0.0)
    theirs.double()
    x = torch.randn(2, 3, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(theirs, (x,))


def test_double_converts_parameters_and_buffers_but_not_plain_attributes(student):
    _, theirs = pair(student, d=3)
    theirs.double()
    assert theirs.a.weight.dtype == torch.float64 and theirs.table.dtype == torch.float64
    assert theirs.plain.dtype == torch.float32


def test_to_the_meta_device(student):
    _, theirs = pair(student, d=3)
    theirs.to("meta")
    assert theirs.a.weight.is_meta
    assert theirs(torch.empty(2, 3, device="meta")).shape == (2, 3)


def test_training_mode_switches_dropout(student):
    _, theirs = pair(student, d=50, p=0.5)
    x = torch.ones(1, 50)
    assert not torch.equal(theirs(x), theirs(x))
    theirs.eval()
    assert torch.equal(theirs(x), theirs(x))
    theirs.train()
    assert not torch.equal(theirs(x), theirs(x))


def test_part_of_a_module_in_eval_mode(student):
    _, theirs = pair(student, d=50, p=0.5)
    theirs.dropout.eval()
    x = torch.ones(1, 50)
    assert theirs.training and torch.equal(theirs(x), theirs(x))


def test_attributes(student):
    _, theirs = pair(student, d=4)
    x = torch.randn(2, 4)
    theirs(x)
    theirs(x)
    assert theirs.count == 2 and theirs.hidden.shape == (2, 4) and theirs.width == 4
    assert not hasattr(theirs, "nothing")
    assert theirs.a.in_features == 4 and theirs.a.weight.shape == (4, 4)
    theirs.dropout.p = 0.0
    assert theirs.dropout.p == 0.0 and torch.equal(theirs(x), theirs(x))


def test_module_list(student):
    mine, theirs = pair(student, d=4)
    assert len(theirs.parts) == 3 and theirs.parts.base == "ModuleList"
    x = torch.randn(2, 4)
    torch.testing.assert_close(theirs.parts[1](x), mine.parts[1](x))
    assert [part.weight.shape for part in theirs.parts] == [(4, 4)] * 3


def test_submodules_and_methods(student):
    mine, theirs = pair(student, d=4, p=0.0)
    x = torch.randn(2, 4)
    torch.testing.assert_close(theirs.a(x), mine.a(x))
    expected, found = mine.two(x), theirs.two(x)
    torch.testing.assert_close(found["y"], expected["y"])
    assert found["aux"][1:] == (3, "s", None) and isinstance(found["aux"], tuple)


def test_no_grad(student):
    _, theirs = pair(student, d=4)
    with torch.no_grad():
        assert not theirs(torch.randn(2, 4)).requires_grad
    assert theirs(torch.randn(2, 4)).requires_grad


def test_frozen_parameters(student):
    _, theirs = pair(student, d=4, p=0.0)
    theirs.a.weight.requires_grad_(False)
    theirs(torch.randn(2, 4)).sum().backward()
    assert theirs.a.weight.grad is None and theirs.b.weight.grad is not None


def test_an_optimiser_on_this_side(student):
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


def test_training_on_the_other_side_comes_home(student):
    mine, theirs = pair(student, d=4, p=0.0)
    x = torch.randn(8, 4)
    expected, found = plain.train(mine, x, 3), student.train(theirs, x, 3)
    assert found == pytest.approx(expected, rel=1e-4)
    torch.testing.assert_close(theirs.a.weight, mine.a.weight)


def test_tied_weights(student):
    mine, theirs = pair(student, d=4, p=0.0, tie=True)
    x = torch.randn(2, 4)
    torch.testing.assert_close(theirs(x), mine(x))
    assert len(list(theirs.parameters())) == len(list(mine.parameters()))


def test_modules_as_arguments(student):
    mine, theirs = pair(student, d=4, p=0.0)
    x = torch.randn(2, 4)
    torch.testing.assert_close(student.loss_of(theirs, x), plain.loss_of(mine, x))
    student.loss_of(theirs, x).backward()
    plain.loss_of(mine, x).backward()
    torch.testing.assert_close(theirs.a.weight.grad, mine.a.weight.grad)


def test_a_function_that_changes_a_module(student):
    _, source = pair(student, d=4)
    _, target = pair(student, d=4)
    assert not torch.equal(source.a.weight, target.a.weight)
    student.copy_weights(source, target)
    assert torch.equal(source.a.weight, target.a.weight)


def test_functions(student):
    x, y = torch.randn(3, requires_grad=True), torch.randn(3)
    student.product(x, y).sum().backward()
    torch.testing.assert_close(x.grad, y)
    assert not student.without_gradient(torch.ones(2, requires_grad=True)).requires_grad
    assert student.CONSTANT == {"lr": 0.1, "dims": (1, 2)}
    assert student.returns_module(3)(torch.ones(2, 2)).shape == (2, 3)
    assert isinstance(student.array(3), np.ndarray) and student.array(3).dtype == np.float32
    assert student.dtype_of(torch.ones(1, dtype=torch.float64)) is torch.float64
    assert repr(student.returns_generator()) == "<generator object>"


def test_changed_inputs_are_changed_here_too(student):
    x = torch.zeros(2)
    student.in_place(x)
    assert torch.equal(x, torch.ones(2))


def test_exceptions_keep_their_type_and_line(student):
    with pytest.raises(ValueError, match="my message") as caught:
        student.boom(torch.ones(1))
    assert isinstance(caught.value, StudentError)
    frame = caught.value.remote.frames[-1]
    assert (frame.file, frame.code) == ("net.py", 'raise ValueError("my message")')


def test_missing_names(student):
    with pytest.raises(MissingName, match="There is no `nothing` in the submission"):
        student.nothing  # noqa: B018


def test_backward_twice(student):
    x = torch.randn(3, requires_grad=True)
    y = student.product(x, torch.ones(3)).sum()
    y.backward(retain_graph=True)
    y.backward()
    torch.testing.assert_close(x.grad, torch.full((3,), 2.0))


def test_second_derivatives_are_refused(student):
    x = torch.randn(3, requires_grad=True)
    (gradient,) = torch.autograd.grad(student.product(x, torch.ones(3)).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable|differentiate twice"):
        gradient.sum().backward()


def test_objects_of_the_students_own_classes(student):
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
    """A fake model: after n it always says n + 1."""

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


def test_a_function_of_the_test_is_called_back(student):
    assert torch.equal(student.twice(lambda x: x + 1, torch.zeros(2)), torch.full((2,), 2.0))


def test_a_failing_check_inside_a_callback_is_the_outcome(student):
    def refuse(x):
        raise AssertionError("the model was called with too long a text")

    with pytest.raises(AssertionError, match="too long a text"):
        student.twice(refuse, torch.zeros(2))


def test_generators_travel_and_advance(student):
    mine, theirs = torch.Generator().manual_seed(5), torch.Generator().manual_seed(5)
    for _ in range(2):
        torch.testing.assert_close(student.draw(3, theirs), plain.draw(3, mine))


def test_answers_are_recorded(student):
    connection = student._connection
    transcript = connection.start_test(1)
    x = torch.randn(3, requires_grad=True)
    student.product(x, torch.ones(3)).sum().backward()
    with pytest.raises(ValueError):
        student.boom(x)
    assert [answer.operation for answer in transcript.answers] == ["call", "backward", "call"]
    assert transcript.answers[-1].value == ("raised", "ValueError")
    assert transcript.same_as(transcript)


def test_one_module_under_two_names(student):
    mine, theirs = plain.Shared(4), student.Shared(4)
    theirs.load_state_dict(mine.state_dict())
    x = torch.randn(2, 4)
    torch.testing.assert_close(theirs(x), mine(x))
    assert list(theirs.state_dict()) == list(mine.state_dict())
    assert len(list(theirs.parameters())) == len(list(mine.parameters())) == 2
    assert theirs.first.weight is theirs.layers[2].weight
