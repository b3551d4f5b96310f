"""Lists, tuples and dicts with something in them: what travels between a test and a student's code.

PyTorch's own trees know many more containers and cost five times as much, at every call.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """The same containers with `function` applied to everything in them that is none."""
    if type(value) is list:
        return [mapped(function, item) for item in value]
    if isinstance(value, tuple):
        return tuple([mapped(function, item) for item in value])
    if isinstance(value, dict):
        return {key: mapped(function, item) for key, item in value.items()}
    return function(value)


def leaves(value: Any) -> list[Any]:
    """Everything in the containers that is none, in order."""
    found: list[Any] = []
    mapped(found.append, value)
    return found


def containers(value: Any) -> list[list[Any] | dict[str, Any]]:
    """Every list and dict in the value that can be changed in place, the outer ones first."""
    if type(value) is list:
        return [value, *[inside for item in value for inside in containers(item)]]
    if isinstance(value, tuple):
        return [inside for item in value for inside in containers(item)]
    if isinstance(value, dict):
        return [value, *[inside for item in value.values() for inside in containers(item)]]
    return []


def contents(container: list[Any] | dict[str, Any]) -> list[Any]:
    """What it holds, keys and values one after the other: to see later whether it still does."""
    if isinstance(container, dict):
        return [part for entry in container.items() for part in entry]
    return list(container)


def same_things(one: list[Any], other: list[Any]) -> bool:
    """Whether both hold the very same objects in the same order."""
    return len(one) == len(other) and all(map(operator.is_, one, other))
