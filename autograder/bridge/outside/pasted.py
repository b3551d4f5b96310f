"""A call of a student's function as a line to paste: plain values only, and few numbers."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

MOST_NUMBERS = 12
MOST_TEXT = 60  # characters of one text
LONGEST = 300  # characters of the line
DEEPEST = 5
_TYPES_BY_DEFAULT = (torch.float32, torch.int64, torch.bool)


class _CannotBeWrittenError(Exception):
    """A value that is too large, or of another kind."""


def pasted(path: list[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return a call as Python that can be pasted; empty if its arguments are many, or no plain values.

    No method of a value runs unless the value is exactly of a plain type.
    """
    room = [MOST_NUMBERS]
    try:
        given = [_written(value, room, 0) for value in args]
        given += [f"{name}={_written(value, room, 0)}" for name, value in kwargs.items()]
    except _CannotBeWrittenError:
        return ""
    line = f"{'.'.join(path)}({', '.join(given)})"
    return line if len(line) <= LONGEST and line.isprintable() else ""


def _written(value: Any, room: list[int], depth: int) -> str:
    write = _WRITERS.get(type(value))
    if write is None or depth > DEEPEST:
        raise _CannotBeWrittenError
    return write(value, room, depth)


def _number(value: Any, room: list[int], depth: int) -> str:
    _take(1, room)
    if type(value) is int and value.bit_length() > 64:
        raise _CannotBeWrittenError
    is_special = type(value) is float and not math.isfinite(value)
    return f"float('{value}')" if is_special else repr(value)


def _text(value: str, room: list[int], depth: int) -> str:
    if len(value) > MOST_TEXT:
        raise _CannotBeWrittenError
    return repr(value).replace("`", "\\x60")


def _sequence(brackets: str) -> Callable[[Any, list[int], int], str]:
    def write(value: Any, room: list[int], depth: int) -> str:
        items = [_written(item, room, depth + 1) for item in value]
        comma = "," if brackets == "()" and len(items) == 1 else ""
        return f"{brackets[0]}{', '.join(items)}{comma}{brackets[1]}"

    return write


def _dict(value: dict[Any, Any], room: list[int], depth: int) -> str:
    items = [
        f"{_written(key, room, depth + 1)}: {_written(item, room, depth + 1)}"
        for key, item in value.items()
    ]
    return f"{{{', '.join(items)}}}"


def _tensor(value: Tensor, room: list[int], depth: int) -> str:
    if value.layout is not torch.strided or value.device.type != "cpu":
        raise _CannotBeWrittenError
    _take(value.numel(), room)
    kind = "" if value.dtype in _TYPES_BY_DEFAULT and value.numel() else f", dtype={value.dtype}"
    if not value.numel():
        return f"torch.zeros({tuple(value.shape)}{kind})"
    short = value.dtype == torch.float32
    return f"torch.tensor({_numbers(value.detach().tolist(), short)}{kind})"


def _array(value: "np.ndarray[Any, Any]", room: list[int], depth: int) -> str:
    if value.dtype.kind not in "biufc":
        raise _CannotBeWrittenError
    _take(value.size, room)
    if not value.size:
        return f"np.zeros({value.shape}, dtype='{value.dtype}')"
    numbers = _numbers(value.tolist(), value.dtype == np.float32)
    kind = "" if value.dtype in (np.float64, np.int64, np.bool_) else f", dtype='{value.dtype}'"
    return f"np.array({numbers}{kind})"


def _numbers(values: Any, short: bool) -> str:
    """Return numbers as a list, those of four bytes with no more digits than they have."""
    if isinstance(values, list):
        return f"[{', '.join(_numbers(value, short) for value in values)}]"
    if isinstance(values, float) and short:
        values = float(str(np.float32(values)))
    return _number(values, [1], 0)


def _take(count: int, room: list[int]) -> None:
    room[0] -= count
    if room[0] < 0:
        raise _CannotBeWrittenError


def _none(value: None, room: list[int], depth: int) -> str:
    return "None"


_WRITERS: dict[type, Callable[[Any, list[int], int], str]] = {
    type(None): _none,
    bool: _number,
    int: _number,
    float: _number,
    complex: _number,
    str: _text,
    list: _sequence("[]"),
    tuple: _sequence("()"),
    dict: _dict,
    Tensor: _tensor,
    np.ndarray: _array,
}
