"""Checks of decoded values: each is of a known type before it is turned into text, iterated or compared.

A frame can hold a tensor of millions of numbers wherever the honest side sends a word, and turning
it into text or iterating over it takes seconds. Each function returns its value, or raises
TypeError or ValueError.
"""

from collections.abc import Iterator
from typing import Any


def text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError("a text was expected")
    return value


def integer(value: Any) -> int:
    if type(value) is not int:
        raise TypeError("an integer was expected")
    return value


def flag(value: Any) -> bool:
    if type(value) is not bool:
        raise TypeError("a truth value was expected")
    return value


def one_of(values: tuple[str, ...], value: Any) -> str:
    word = text(value)
    if word not in values:
        raise ValueError("a word that there is not")
    return word


def items(value: Any) -> list[Any] | tuple[Any, ...]:
    if type(value) is not list and type(value) is not tuple:
        raise TypeError("a list was expected")
    return value


def table(value: Any) -> dict[Any, Any]:
    if type(value) is not dict:
        raise TypeError("a dict was expected")
    return value


def rows(value: Any, *kinds: type | tuple[type, ...]) -> Iterator[Any]:
    """Yield the rows of a list, each of which has a value of each of the kinds, in order."""
    for row in items(value):
        if len(items(row)) != len(kinds) or not all(map(isinstance, row, kinds)):
            raise TypeError("a row has other values than expected")
        yield row
