"""The solution's functions and classes, answering for names of a student's module (see `protocol.stand_ins`).

The student's process sees what they return and the parameters of their modules, never their text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.func import functional_call

from autograder.protocol.containers import leaves
from autograder.protocol.module_state import ModuleState
from autograder.protocol.wire import Opaque
from autograder.proxy.connection import own_attribute

PLAIN = (bool, int, float, str, type(None))
MAX_MODULES = 1000  # of one test


class StandIns:
    """Answers for some names of a module with those of the `reference`; `called` are the names that were used."""

    def __init__(self, reference: Any, names: Iterable[str]) -> None:
        self._things = {name: getattr(reference, name) for name in names}
        self.kinds = {name: _is_module_class(thing) for name, thing in self._things.items()}
        self.called: set[str] = set()
        self.begin(0)

    def begin(self, seed: int) -> None:
        """Forget the modules of earlier tests; the solution draws its own random numbers, never the test's."""
        self.called.clear()
        self._modules: list[nn.Module] = []
        self._random = torch.Generator().manual_seed(seed).get_state()

    def answer(self, operation: str, *given: Any) -> Any:
        """Answer one question of the student's process; raises what the solution raises."""
        answers: dict[str, Callable[..., Any]] = {
            "call": self._call,
            "make": self._make,
            "run": self._run,
            "get": self._get,
        }
        with self._own_random_numbers():
            return answers[operation](*given)

    def _call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.called.add(name)
        value = self._things[name](*args, **kwargs)
        generators = [leaf for leaf in (*args, *kwargs.values()) if isinstance(leaf, torch.Generator)]
        return value, generators

    def _make(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.called.add(name)
        if len(self._modules) >= MAX_MODULES:
            raise ValueError("there are too many modules")
        self._modules.append(self._things[name](*args, **kwargs))
        return len(self._modules) - 1, _described(self._modules[-1])

    def _run(
        self,
        number: int,
        path: str,
        method: str,
        state: dict[str, Any],
        modes: dict[str, bool],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        part = self._modules[number].get_submodule(path)
        if method != "forward":
            own_attribute(part, method)
        for name, inside in part.named_modules():
            inside.training = bool(modes.get(name, inside.training))
        values = {f"part.{name}": value for name, value in state.items()}
        return functional_call(_Method(part, method), values, args, kwargs)

    def _get(self, number: int, path: str, name: str) -> Any:
        value = own_attribute(self._modules[number].get_submodule(path), name)
        if callable(value):
            return Opaque("method")
        if not all(isinstance(leaf, PLAIN) for leaf in leaves(value)):
            raise AttributeError(name)
        return value

    @contextmanager
    def _own_random_numbers(self) -> Iterator[None]:
        of_test = torch.default_generator.get_state()
        torch.default_generator.set_state(self._random)
        try:
            yield
        finally:
            self._random = torch.default_generator.get_state()
            torch.default_generator.set_state(of_test)


class _Method(nn.Module):
    """One method of a module as the `forward` of another, so that it can be called with other values."""

    def __init__(self, part: nn.Module, method: str) -> None:
        super().__init__()
        self.part, self.method = part, method

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return (
            self.part(*args, **kwargs)
            if self.method == "forward"
            else getattr(self.part, self.method)(*args, **kwargs)
        )


def _is_module_class(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, nn.Module)


def _described(module: nn.Module) -> list[Any]:
    """Each part: name, first name of the same part, PyTorch's module and class, mode, options, parameters, buffers."""
    first: dict[int, str] = {}

    def once(name: str, tensor: torch.Tensor | None) -> Any:
        """The values, or the name of an earlier tensor that is the same one."""
        known = first.setdefault(id(tensor), name)
        return tensor if tensor is None else tensor.detach() if known == name else known

    found = []
    for name, part, known in ModuleState(module).parts:
        prefix, home = f"{name}." if name else "", type(part).__module__
        native = home.startswith("torch.nn.modules.")
        options = {key: value for key, value in vars(part).items() if native and _is_plain(value)}
        passing = part._non_persistent_buffers_set
        parameters = [
            [key, once(prefix + key, each), each is not None and each.requires_grad]
            for key, each in part._parameters.items()
        ]
        buffers = [[key, once(prefix + key, each), key not in passing] for key, each in part._buffers.items()]
        kind = type(part).__name__
        found.append(
            [name, known, home if native else None, kind, part.training, options, parameters, buffers]
        )
    return found


def _is_plain(value: Any) -> bool:
    return isinstance(value, PLAIN) or isinstance(value, tuple) and all(map(_is_plain, value))
