"""Names of a student's module that the other side answers with the solution, whose text never comes here.

A function is called there. A class of modules becomes one of real modules here: each call sends the
values of its parameters and buffers, so gradients, `state_dict` and `.to(...)` work as usual.
PyTorch's own parts run here. What all of this needs of a forbidden package is not recorded: it is
not the doing of the student's code.
"""

import importlib
from collections.abc import Callable
from typing import Any

from torch import nn

from autograder.bridge.inside.callables import CallBack
from autograder.bridge.shared.generators import take_states


class Names(dict[str, Any]):
    """What the top of a text binds goes to `space`, except for `fixed` names: their definitions are passed over."""

    def __init__(self, space: dict[str, Any], fixed: dict[str, Any]) -> None:
        super().__init__()
        self.space = space
        self.fixed = fixed
        space.update(fixed)

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self.fixed:
            self.space[name] = value

    def __delitem__(self, name: str) -> None:
        if name not in self.fixed:
            del self.space[name]


def stand_in(server: Any, name: str, is_module: bool) -> Any:
    """Return a function, or a class of modules, that the other side answers by this name."""

    def make(self: StandInModule, *args: Any, **kwargs: Any) -> None:
        with server.entries.active(False):
            nn.Module.__init__(self)
            _build(self, server, *_ask(server, "make", name, args, kwargs))

    def call(*args: Any, **kwargs: Any) -> Any:
        with server.entries.active(False):
            value, generators = _ask(server, "call", name, args, kwargs)
            take_states((*args, *kwargs.values()), generators)
            return value

    members = {"__init__": make, "__module__": server.module.__name__}
    return type(name, (StandInModule,), members) if is_module else call


class StandInModule(nn.Module):
    """A module, or a part of one, whose `forward` runs on the other side with the values that it has here."""

    # the first one returns the server, which no copy of a module can copy
    _place: tuple[Callable[[], Any], int, str, list[str]]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        find_server, number, path, names = self._place
        server = find_server()
        with server.entries.active(False):
            own_tensors = {**dict(self.named_parameters()), **dict(self.named_buffers())}
            state = {name: own_tensors[name] for name in names if name in own_tensors}
            modes = {name: part.training for name, part in self.named_modules()}
            return _ask(server, "run", number, path, state, modes, args, kwargs)


def _ask(server: Any, *question: Any) -> Any:
    return CallBack(server, 0, [], question, {}).made()


def _build(root: StandInModule, server: Any, number: int, parts: list[Any]) -> None:
    """Add the parts that `autograder.bridge.outside.solution_answers` describes to a new module."""
    for name, home, kind, plain, parameters, buffers in parts:
        part = _part(home, kind) if name else root
        if name:
            parent, _, leaf = name.rpartition(".")
            root.get_submodule(parent)._modules[leaf] = part
        vars(part).update(plain)
        for key, value, flag in parameters:
            parameter = (
                None if value is None else nn.Parameter(value.detach().clone(), requires_grad=flag)
            )
            part.register_parameter(key, parameter)
        for key, value, persistent in buffers:
            part.register_buffer(key, value, persistent)
    for path, part in root.named_modules():
        names = [name for name, _ in (*part.named_parameters(), *part.named_buffers())]
        if isinstance(part, StandInModule):
            vars(part)["_place"] = (lambda: server), number, path, names


def _part(home: str | None, kind: str) -> nn.Module:
    """A part of the solution's own class, or an empty one of a class in PyTorch's module `home`."""
    part_class: Any = (
        type(kind, (StandInModule,), {})
        if home is None
        else getattr(importlib.import_module(home), kind)
    )
    part: nn.Module = part_class.__new__(part_class)
    nn.Module.__init__(part)
    return part
