"""What a module holds, by name: read in one walk from PyTorch's own books.

Both sides of the wall count in the same way, so names mean the same on both. Methods such as `named_parameters` are
not asked: the student may have overridden them, and they are slow to ask before and after every call.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn


class ModuleState:
    """`parts` are (name, module, first name of the same module); tensors and modes come under their first names."""

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
        """Which parts are in training mode."""
        return {name: bool(part.training) for name, part in self.own}

    def flags(self) -> dict[str, bool]:
        """Which parameters want a gradient."""
        return {name: parameter.requires_grad for name, parameter in self.parameters.items()}

    def all(self, book: str) -> Iterator[tuple[str, torch.Tensor, bool]]:
        """(name, tensor, whether state_dict keeps it) of the `_parameters` or `_buffers`, under all their names."""
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
    """In PyTorch's order; a module that has been met is not entered again."""
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
