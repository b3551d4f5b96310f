"""Lists, tuples and dicts as trees, five times as fast as PyTorch's pytree, which supports many more containers."""

import operator
from collections.abc import Callable
from itertools import chain
from typing import Any


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Apply `function` to all leaves, and return the same containers with the results."""
    if type(value) is list:
        return [mapped(function, item) for item in value]
    if isinstance(value, tuple):
        return tuple([mapped(function, item) for item in value])
    if isinstance(value, dict):
        return {key: mapped(function, item) for key, item in value.items()}
    return function(value)


def leaves(value: Any) -> list[Any]:
    """Return all leaves of the containers in order."""
    leaves_in_order: list[Any] = []
    mapped(leaves_in_order.append, value)
    return leaves_in_order


def containers(value: Any) -> list[list[Any] | dict[str, Any]]:
    """Return every list and dict in the value, which can be changed in place, outermost first."""
    if type(value) is list:
        return [value, *chain.from_iterable(map(containers, value))]
    if isinstance(value, tuple):
        return list(chain.from_iterable(map(containers, value)))
    if isinstance(value, dict):
        return [value, *chain.from_iterable(map(containers, value.values()))]
    return []


def contents(container: list[Any] | dict[str, Any]) -> list[Any]:
    """Return a snapshot of a container, keys and values alternating, to detect later changes."""
    if isinstance(container, dict):
        return list(chain.from_iterable(container.items()))
    return list(container)


def same_things(first: list[Any], second: list[Any]) -> bool:
    """Whether both hold identical objects in the same order."""
    return len(first) == len(second) and all(map(operator.is_, first, second))
