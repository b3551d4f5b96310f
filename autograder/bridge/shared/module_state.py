"""The contents of a module by name, read in one pass from PyTorch's own dicts.

Methods such as `named_parameters` are not called: the student may have overridden them, and they
are too slow.
"""

from collections.abc import Collection, Iterator, Mapping, Set
from typing import Any

import torch
from torch import nn
from torch._utils import _flatten_dense_tensors

USUAL_KINDS = {(dtype, torch.strided, True) for dtype in (torch.float32, torch.float64)}


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

    def has_names_of(self, old: "Snapshot") -> bool:
        """Whether an earlier state had tensors, parameters and parts with the same names."""
        return (
            self.tensors.keys() == old.names
            and self.parameters.keys() == old.flags.keys()
            and {name for name, _ in self.own} == old.modes.keys()
        )

    def changes_since(self, old: "Snapshot") -> dict[str, Any] | None:
        """Return the `values` and `flags` that are not those of an earlier state with the same names.

        The `modes` are all there if one of them changed. None if nothing did.
        """
        values = old.other_values(self.tensors)
        flags = {name: flag for name, flag in self.flags().items() if flag != old.flags[name]}
        modes = self.modes()
        if not values and not flags and modes == old.modes:
            return None
        return {"values": values, "flags": flags, "modes": modes if modes != old.modes else {}}

    def all(self, book: str) -> Iterator[tuple[str, torch.Tensor, bool]]:
        """Yield (name, tensor, whether state_dict contains it) of `_parameters` or `_buffers`, for all names."""
        for name, part in self.own:
            if tensors := vars(part).get(book):
                prefix = f"{name}." if name else ""
                passing = vars(part).get("_non_persistent_buffers_set", ())
                for key, tensor in tensors.items():
                    if tensor is not None:
                        yield prefix + key, tensor, key not in passing

    def _once(self, book: str, taken: set[int]) -> dict[str, torch.Tensor]:
        """Return the tensors of `all` that are not in `taken` yet, by their first names."""
        tensors = {}
        for name, tensor, _ in self.all(book):
            if id(tensor) not in taken:
                taken.add(id(tensor))
                tensors[name] = tensor
        return tensors


class Snapshot:
    """The values, flags and modes of a module at one moment."""

    def __init__(self, module: nn.Module) -> None:
        state = ModuleState(module)
        self.flags = state.flags()
        self.modes = state.modes()
        tensors = state.tensors
        self._shapes = _shapes(tensors)
        self._numbers = _in_one_row(tensors.values())
        self._values: dict[str, torch.Tensor] = {}
        if self._numbers is None:
            self._values = {name: tensor.detach().clone() for name, tensor in tensors.items()}

    @property
    def names(self) -> Set[str]:
        """The names of the tensors."""
        return self._shapes.keys()

    def renew(self, name: str, value: torch.Tensor) -> None:
        """Put a copy in place of an earlier value."""
        self._values = self._by_name()
        self._values[name] = value.clone()
        self._shapes[name] = value.shape
        self._numbers = None

    def other_values(self, tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return those of these tensors, with the same names, whose values are other ones now."""
        in_order = [*self._shapes.items()] == [*_shapes(tensors).items()]
        if self._numbers is not None and in_order:
            numbers = _in_one_row(tensors.values())
            if numbers is not None and is_same(numbers, self._numbers):
                return {}
        values = self._by_name()
        return {
            name: tensor.detach()
            for name, tensor in tensors.items()
            if not is_same(tensor, values[name])
        }

    def _by_name(self) -> dict[str, torch.Tensor]:
        if self._numbers is None:
            return self._values
        pieces = self._numbers.split([shape.numel() for shape in self._shapes.values()])
        return {
            name: piece.view(shape) for (name, shape), piece in zip(self._shapes.items(), pieces)
        }


def is_same(first: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors have the same type, shape, device and numbers, NaN included."""
    if (first.dtype, first.shape, first.device) != (other.dtype, other.shape, other.device):
        return False
    if first.is_meta or torch.equal(first, other):
        return True
    return bool(((first == other) | ((first != first) & (other != other))).all())


def _shapes(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in tensors.items()}


def _in_one_row(tensors: Collection[torch.Tensor]) -> torch.Tensor | None:
    """Return a copy of all numbers, one tensor after the other; None if they are not all of one usual kind."""
    kinds = {(tensor.dtype, tensor.layout, tensor.is_cpu) for tensor in tensors}
    if len(kinds) != 1 or not kinds <= USUAL_KINDS:
        return None
    with torch.no_grad():
        numbers: torch.Tensor = _flatten_dense_tensors([*tensors])
    # of a single tensor, it is no copy
    return numbers.clone() if len(tensors) == 1 else numbers


def _parts(module: nn.Module) -> list[tuple[str, nn.Module, str]]:
    """Return the parts in PyTorch's order; a module that occurs again is not entered."""
    first: dict[int, str] = {}
    parts = []
    waiting = [("", module)]
    while waiting:
        name, part = waiting.pop()
        first_name = first.setdefault(id(part), name)
        parts.append((name, part, first_name))
        inside = vars(part).get("_modules") if first_name == name else None
        if inside:
            prefix = f"{name}." if name else ""
            waiting += [
                (prefix + key, sub) for key, sub in reversed(inside.items()) if sub is not None
            ]
    return parts
