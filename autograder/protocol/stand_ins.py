"""Names of a student's module that are answered on the other side, such as by the solution, which never comes here.

A function is called there. A class of modules becomes a class of real modules here, with real parameters and buffers:
each call sends their values, so gradients, `state_dict`, `.to(...)` and training modes are those of any module.
PyTorch's own parts are rebuilt and run here.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, MutableMapping
from typing import Any

import torch
from torch import nn

from autograder.protocol import wire
from autograder.protocol.callables import CallBack


class Names(MutableMapping[str, Any]):
    """The names of a module while its text runs: definitions of some of them are passed over."""

    def __init__(self, space: dict[str, Any], fixed: dict[str, Any]) -> None:
        self._space, self._fixed = space, fixed
        space.update(fixed)

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self._fixed:
            self._space[name] = value

    def __delitem__(self, name: str) -> None:
        if name not in self._fixed:
            del self._space[name]

    def __getitem__(self, name: str) -> Any:
        return self._space[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._space)

    def __len__(self) -> int:
        return len(self._space)


def stand_in(server: Any, name: str, is_module: bool) -> Any:
    """Return a function or a class of modules that is called on the other side by this name."""
    if is_module:

        def __init__(self: StandInModule, *args: Any, **kwargs: Any) -> None:
            nn.Module.__init__(self)
            number, parts = _ask(server, "make", name, args, kwargs)
            _build(self, server, number, parts)

        members = {"__init__": __init__, "__module__": server.module.__name__}
        return type(name, (StandInModule,), members)

    def function(*args: Any, **kwargs: Any) -> Any:
        generators = [leaf for leaf in (*args, *kwargs.values()) if isinstance(leaf, torch.Generator)]
        value, advanced = _ask(server, "call", name, args, kwargs)
        for generator, state in zip(generators, advanced):
            generator.set_state(state.get_state())
        return value

    function.__name__ = function.__qualname__ = name
    return function


class StandInModule(nn.Module):
    """A module, or a part of one, whose methods run on the other side with the values that it has here."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._run("forward", args, kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("_") or "_place" not in self.__dict__:
                raise
        server, number, path, _ = self._place
        value = _ask(server, "get", number, path, name)
        if isinstance(value, wire.Opaque):
            return lambda *args, **kwargs: self._run(name, args, kwargs)
        return value

    def _run(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        server, number, path, names = self._place
        own = {**dict(self.named_parameters()), **dict(self.named_buffers())}
        state = {name: own[name] for name in names if name in own}
        modes = {name: part.training for name, part in self.named_modules()}
        return _ask(server, "run", number, path, method, state, modes, args, kwargs)


def _ask(server: Any, *question: Any) -> Any:
    return CallBack(server, 0, [], question, {}).made()


def _build(root: StandInModule, server: Any, number: int, parts: list[Any]) -> None:
    """Add what the other side describes (see `autograder.proxy.stand_ins`) to a new module."""
    places: dict[str, nn.Module] = {"": root}
    tensors: dict[str, Any] = {}
    for name, first, home, kind, training, plain, parameters, buffers in parts:
        if name:
            parent, _, leaf = name.rpartition(".")
            places[name] = places[first] if first != name else _part(home, kind, plain)
            places[parent]._modules[leaf] = places[name]
        if first != name:
            continue
        part, prefix = places[name], f"{name}." if name else ""
        part.training = training
        for key, value, flag in parameters:
            if isinstance(value, torch.Tensor):
                value = nn.Parameter(value.detach().clone(), requires_grad=flag)
            tensors[prefix + key] = tensors[value] if isinstance(value, str) else value
            part.register_parameter(key, tensors[prefix + key])
        for key, value, persistent in buffers:
            tensors[prefix + key] = tensors[value] if isinstance(value, str) else value
            part.register_buffer(key, tensors[prefix + key], persistent)
    for path, part in places.items():
        if isinstance(part, StandInModule):
            prefix = f"{path}." if path else ""
            names = [name.removeprefix(prefix) for name in tensors if name.startswith(prefix)]
            vars(part)["_place"] = server, number, path, names


def _part(home: str | None, kind: str, plain: dict[str, Any]) -> nn.Module:
    if home is None:
        part: nn.Module = type(kind, (StandInModule,), {})()
    else:
        library = getattr(importlib.import_module(home), kind)
        part = library.__new__(library)
        nn.Module.__init__(part)
    vars(part).update(plain)
    return part
