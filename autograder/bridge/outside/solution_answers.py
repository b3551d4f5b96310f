"""The solution's functions and modules, which answer for names of a student's module (see `bridge.inside.stand_ins`)."""

import dataclasses
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.func import functional_call

from autograder.bridge.shared import claims
from autograder.bridge.shared.containers import mapped
from autograder.bridge.shared.generators import is_generator

PLAIN = (bool, int, float, str, type(None))


class StandIns:
    """Answers for some names of the `reference`; `kinds` tells which are modules.

    `called` are the names that the present test has used, or the top of the text, on which each of
    its tests depends.
    """

    def __init__(self, reference: Any, names: Iterable[str]) -> None:
        self._reference = reference
        self._things = {name: getattr(reference, name) for name in names}
        self.kinds = {
            name: isinstance(thing, type) and issubclass(thing, nn.Module)
            for name, thing in self._things.items()
        }
        self.begin()

    def begin(self) -> None:
        """Begin with a text that is read, for the first time or anew."""
        self.called: set[str] = set()
        self._modules: dict[int, nn.Module] = {}
        self._first_number = 0
        self._count = 0
        self._of_text: tuple[dict[int, nn.Module], set[str]] | None = None

    def begin_test(self, seed: int) -> None:
        """Begin the test with this seed: forget the modules of the one before, but not those of the top.

        What the text has kept of an earlier test has no answer: no two tests number modules alike.
        """
        if self._of_text is None:
            self._of_text = self._modules, self.called
        modules, called = self._of_text
        self._modules = dict(modules)
        self.called = set(called)
        self._first_number = (1 + seed) << 20
        self._count = 0

    def answer(self, operation: str, *given: Any) -> Any:
        """Answer one question of the student's process, with random numbers that tell nothing of the test's."""
        self._count += 1
        given = mapped(self._own, given)
        operations: dict[Any, Any] = {"call": self._call, "make": self._make, "run": self._run}
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self._count)
            return operations[claims.text(operation)](*given)

    def _own(self, leaf: Any) -> Any:
        """Return an object of a student's dataclass as one of the solution's, with the same fields."""
        kind: Any = (
            getattr(self._reference, str(vars(leaf).get("_kind")), None)
            if hasattr(leaf, "as_handle")
            else None
        )
        if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
            return leaf
        return kind(**{field.name: getattr(leaf, field.name) for field in dataclasses.fields(kind)})

    def _call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.called.add(claims.text(name))
        value = self._things[name](*args, **kwargs)
        return value, [*filter(is_generator, (*args, *kwargs.values()))]

    def _make(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.called.add(claims.text(name))
        module = self._things[name](*args, **kwargs)
        number = self._first_number + self._count
        self._modules[number] = module
        return number, [_described(*part) for part in module.named_modules()]

    def _run(
        self,
        number: int,
        path: str,
        state: dict[str, Any],
        modes: dict[str, bool],
        args: Any,
        kwargs: Any,
    ) -> Any:
        part = self._modules[claims.integer(number)].get_submodule(claims.text(path))
        for name, inside in part.named_modules():
            inside.training = claims.flag(modes.get(name, inside.training))
        return functional_call(part, state, args, kwargs)


def _described(name: str, part: nn.Module) -> list[Any]:
    """One part: its name, where PyTorch defines its class, if it does, plain attributes, parameters, buffers."""
    home = type(part).__module__
    return [
        name,
        home if home.startswith("torch.nn.modules.") else None,
        type(part).__name__,
        {key: value for key, value in vars(part).items() if _is_plain(value)},
        [
            [key, _value(p), p is not None and p.requires_grad]
            for key, p in part._parameters.items()
        ],
        [
            [key, _value(b), key not in part._non_persistent_buffers_set]
            for key, b in part._buffers.items()
        ],
    ]


def _value(tensor: torch.Tensor | None) -> torch.Tensor | None:
    return None if tensor is None else tensor.detach()


def _is_plain(value: Any) -> bool:
    return isinstance(value, PLAIN) or (isinstance(value, tuple) and all(map(_is_plain, value)))
