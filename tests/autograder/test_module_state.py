"""What changed in a module since a moment before, whatever its numbers are and however they were changed."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from autograder.bridge.inside.server import Server, answer
from autograder.bridge.shared import wire
from autograder.bridge.shared.module_state import ModuleState, Snapshot


class Net(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.tied = nn.Linear(2, 3)
        self.tied.weight = self.first.weight
        self.register_buffer("mean", torch.tensor([1.0, 0.0]))
        self.extra = KINDS[kind]()


KINDS: dict[str, Callable[[], nn.Module]] = {
    "ordinary": nn.Identity,
    "whole numbers": lambda: nn.BatchNorm1d(2),
    "of other types": lambda: nn.Linear(2, 2).double(),
    "without numbers": lambda: nn.Linear(2, 2, device="meta"),
    "transposed": lambda: _transposed(),
    "without parameters": lambda: nn.ModuleList(),
}


def _transposed() -> nn.Module:
    layer = nn.Linear(2, 3)
    layer.weight = nn.Parameter(torch.randn(2, 3).T)
    return layer


def _swap(net: Net) -> None:
    net.first.bias.data = net.first.bias.flip(0).detach()


CHANGES: dict[str, tuple[Callable[[Net], object], list[str]]] = {
    "nothing": (lambda net: None, []),
    "a new tensor with the same numbers": (
        lambda net: setattr(net.first.bias, "data", net.first.bias.detach().clone()),
        [],
    ),
    "minus zero": (lambda net: net.mean.mul_(torch.tensor([1.0, -1.0])), []),
    "a number": (lambda net: net.tied.bias.data.add_(1), ["tied.bias"]),
    "a tied number": (lambda net: net.tied.weight.data[0, 0].add_(1), ["first.weight"]),
    "the order": (_swap, ["first.bias"]),
    "NaN": (lambda net: net.mean.fill_(math.nan), ["mean"]),
    "a shape": (lambda net: setattr(net, "mean", net.mean.view(2, 1)), ["mean"]),
    "a type": (lambda net: setattr(net, "mean", net.mean.half()), ["mean"]),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("change", "names"), CHANGES.values(), ids=CHANGES)
def test_changed_values_are_told_and_no_others(
    kind: str, change: Callable[[Net], object], names: list[str], dtype: torch.dtype
) -> None:
    torch.manual_seed(1)
    net = Net(kind).to(dtype)
    before = Snapshot(net)
    change(net)
    told = ModuleState(net).changes_since(before)
    assert [*(told or {"values": {}})["values"]] == names
    for name, value in (told or {"values": {}})["values"].items():
        assert torch.equal(value, ModuleState(net).tensors[name]) or value.isnan().any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_module_of_a_single_tensor_is_remembered_as_it_was(dtype: torch.dtype) -> None:
    gate = nn.Linear(2, 3, bias=False).to(dtype)
    before = Snapshot(gate)
    gate.weight.data.add_(1)
    told = ModuleState(gate).changes_since(before)
    assert told is not None
    assert [*told["values"]] == ["weight"]


def test_tensors_that_change_their_names_and_their_order_are_told() -> None:
    """One after the other, their numbers are the same as before."""
    pair = nn.ParameterDict({"a": torch.ones(2), "b": torch.zeros(2)})
    before = Snapshot(pair)
    a, b = pair.pop("a"), pair.pop("b")
    pair["b"], pair["a"] = a, b
    told = ModuleState(pair).changes_since(before)
    assert told is not None
    assert sorted(told["values"]) == ["a", "b"]


def test_another_type_of_all_numbers_is_a_change_of_each() -> None:
    net = Net("ordinary")
    before = Snapshot(net)
    told = ModuleState(net.double()).changes_since(before)
    assert told is not None
    assert told["values"].keys() == before.names


def test_numbers_that_stay_nan_are_no_change() -> None:
    net = Net("ordinary")
    net.mean.fill_(math.nan)
    assert ModuleState(net).changes_since(Snapshot(net)) is None


def test_a_renewed_value_is_no_change_and_the_others_are_kept() -> None:
    net = Net("ordinary")
    before = Snapshot(net)
    net.mean.add_(1)
    net.first.bias.data.add_(1)
    before.renew("mean", net.mean)
    told = ModuleState(net).changes_since(before)
    assert told is not None
    assert [*told["values"]] == ["first.bias"]


# -- between two calls -------------------------------------------------------------------------------

COUNTING = """
import torch
from torch import nn

class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2))

    def forward(self, x):
        return x * self.scale

    def grow(self):
        self.scale.data.add_(1)

    @property
    def grown(self):
        self.grow()
        return 1.0

def grow_from_outside(model):
    model.scale.data.add_(1)

def grow_in_secret():
    every[0].scale.data.add_(1)
"""


class Asked:
    """A server, its only model, and what each call of it reports as changed."""

    def __init__(self) -> None:
        self.server = Server(types.ModuleType("counting"))
        self.server.load(COUNTING, "counting.py")
        self.model = wire.Handle(0)
        made = self.ask("call", target=[None, ["Counting"]], args=(), modules=[])
        self.server.number(made["result"])
        self.server.module.__dict__["every"] = self.server.objects

    def ask(self, operation: str, **arguments: Any) -> dict[str, Any]:
        if operation == "call":
            arguments = {
                "kwargs": {},
                "sync": [],
                "grad": False,
                "wanted": [],
                "modules": [0],
                **arguments,
            }
        return answer(self.server, operation, arguments)["ok"]

    def changed(self, name: str = "", **arguments: Any) -> bool:
        """Whether a call of the model, or of its method, reports other numbers in it."""
        args = () if name else (torch.ones(2),)
        target = [self.model, [name] if name else []]
        reply = self.ask("call", **{"target": target, "args": args, **arguments})
        return bool(reply.get("modules"))


def test_what_the_test_sets_between_two_calls_is_no_change_of_the_second() -> None:
    asked = Asked()
    assert not asked.changed()
    sync = [[asked.model, {"scale": torch.tensor([3.0, 4.0])}, {}, {}]]
    assert not asked.changed(sync=sync)
    assert not asked.changed()
    assert asked.changed("grow")
    assert not asked.changed()
    assert asked.changed("grow")


def test_what_happens_between_two_calls_is_no_change_of_the_second() -> None:
    asked = Asked()
    assert not asked.changed()
    asked.ask("get", target=[asked.model, ["grown"]])
    assert not asked.changed()
    asked.ask("convert", target=[asked.model, []], sync=[], options={"dtype": torch.float64})
    assert not asked.changed()
    secret = {"target": [None, ["grow_in_secret"]], "args": (), "modules": []}
    asked.ask("call", **secret)
    assert not asked.changed()


def test_what_happens_within_a_call_is_a_change_of_it() -> None:
    asked = Asked()
    assert not asked.changed()
    outside = {"target": [None, ["grow_from_outside"]], "args": (asked.model,)}
    assert asked.ask("call", **outside)["modules"]
    assert not asked.changed()
    assert asked.changed("grow")


def test_a_call_that_fails_leaves_nothing_to_compare_with() -> None:
    asked = Asked()
    assert not asked.changed()
    with pytest.raises(KeyError):
        asked.ask("call", target=[asked.model, ["no_method"]], args=())
    asked.server.objects[0].grow()
    assert not asked.changed()
