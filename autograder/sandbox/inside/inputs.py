"""The inputs of a student's catch.py, made in a worker, where the student's own module can be imported, too."""

import sys
import types
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any


class OwnModule(MetaPathFinder, Loader):
    """Finds the student's module by its name; `load` runs its text when it is imported."""

    def __init__(self, name: str, load: Callable[[types.ModuleType], None]) -> None:
        self._name = name
        self._load = load

    def install(self) -> None:
        sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname == self._name else None

    def exec_module(self, module: types.ModuleType) -> None:
        self._load(module)


def count_inputs(module: types.ModuleType) -> dict[str, int]:
    """Return how many inputs there are for each part."""
    return {str(part): len(_listed(given)) for part, given in _inputs(module).items()}


def make_input(module: types.ModuleType, part: str, index: int) -> tuple[Any, ...]:
    """Return the arguments of one input."""
    value = _listed(_inputs(module)[part])[index]
    if callable(value):
        value = value()
    return value if isinstance(value, tuple) else (value,)


def _inputs(module: types.ModuleType) -> dict[str, Any]:
    inputs = module.__dict__.get("INPUTS")
    if not isinstance(inputs, dict):
        raise ValueError("catch.py has no INPUTS: a dict with an input for each part.")
    return inputs


def _listed(given: Any) -> list[Any]:
    return given if isinstance(given, list) else [given]
