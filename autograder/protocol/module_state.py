"""The contents of a module by name, read in one pass from PyTorch's own dicts.

Both sides of the sandbox use the same order and names. Methods such as `named_parameters` are not called: the student
may have overridden them, and they are too slow to call before and after every call.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn


class ModuleState:
    """`parts` are (name, module, first name of the same module); tensors and modes are listed by first name."""

    def __init__(self, module: nn.Module) -> None:
        self.parts = _parts(module)
        self.own = [(name, part) for name, part, first in self.parts if first == name]
        taken: set[int] = set()
        self.parameters = self._once("_parameters", taken)
        self.buffers = self._once("_buffers", taken)

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        return {**self.parameters, **self.buffers}

    def modes(self) -> dict[str, bool]:
        """The training mode of each part."""
        return {name: bool(part.training) for name, part in self.own}

    def flags(self) -> dict[str, bool]:
        """Whether each parameter requires a gradient."""
        return {name: parameter.requires_grad for name, parameter in self.parameters.items()}

    def all(self, book: str) -> Iterator[tuple[str, torch.Tensor, bool]]:
        """Yield (name, tensor, whether state_dict contains it) of `_parameters` or `_buffers`, for all names."""
        for name, part in self.own:
            prefix, passing = f"{name}." if name else "", vars(part).get("_non_persistent_buffers_set", ())
            for key, tensor in vars(part).get(book, {}).items():
                if tensor is not None:
                    yield prefix + key, tensor, key not in passing

    def _once(self, book: str, taken: set[int]) -> dict[str, torch.Tensor]:
        found = {}
        for name, part in self.own:
            tensors = vars(part).get(book)
            for key, tensor in tensors.items() if tensors else ():
                if tensor is not None and id(tensor) not in taken:
                    taken.add(id(tensor))
                    found[f"{name}.{key}" if name else key] = tensor
        return found


def _parts(module: nn.Module) -> list[tuple[str, nn.Module, str]]:
    """Return the parts in PyTorch's order; a module that occurs again is not entered."""
    first: dict[int, str] = {}
    found, waiting = [], [("", module)]
    while waiting:
        name, part = waiting.pop()
        known = first.setdefault(id(part), name)
        found.append((name, part, known))
        inside = vars(part).get("_modules") if known == name else None
        if inside:
            prefix = f"{name}." if name else ""
            waiting += [(prefix + key, sub) for key, sub in reversed(inside.items()) if sub is not None]
    return found
