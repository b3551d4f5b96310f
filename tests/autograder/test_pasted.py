"""A failure ends with the call that failed, as a line to paste; only plain values are written, and few numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from autograder.bridge.outside.pasted import LONGEST, pasted


class Hostile:
    """Every way of looking at it fails."""

    def __repr__(self) -> str:
        raise AssertionError("its text was asked for")

    __len__ = __iter__ = __str__ = __repr__


class HostileList(list):
    __iter__ = __repr__ = Hostile.__repr__  # type: ignore[assignment]


class HostileNumber(float):
    __repr__ = Hostile.__repr__


WRITTEN: dict[str, Any] = {
    "float32": torch.tensor([0.1, -2.0, math.nan]),
    "float64": torch.tensor([[0.1], [1 / 3]], dtype=torch.float64),
    "half": torch.tensor(0.5, dtype=torch.bfloat16),
    "whole": torch.tensor([1, 2]),
    "short": torch.tensor([1, 2], dtype=torch.int8),
    "truth": torch.tensor([[True, False]]),
    "complex tensor": torch.tensor([1 + 2j]),
    "empty": torch.zeros(0, 4),
    "gradient": torch.tensor([1.0], requires_grad=True),
    "array": np.array([[1.5, math.inf]]),
    "small array": np.array([0.1], dtype=np.float32),
    "empty array": np.zeros((2, 0)),
    "text": "a`b`\n\x1b[31m\u202e'\"",
    "nested": {"a": [1, (2.5,), None, True, {"b": ()}]},
    "number": -math.inf,
    "complex": 1 - 2j,
}
NOT_WRITTEN: dict[str, Any] = {
    "hostile": Hostile(),
    "hostile list": HostileList([1]),
    "hostile number": HostileNumber(1.0),
    "hostile inside": [1, {"a": Hostile()}],
    "parameter": torch.nn.Parameter(torch.ones(1)),
    "module": torch.nn.Linear(1, 1),
    "function": len,
    "sparse": torch.eye(2).to_sparse(),
    "meta": torch.ones(2, device="meta"),
    "many numbers": torch.ones(13),
    "many in lists": [[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12, 13]],
    "huge": 10**5000,
    "long text": "a" * 61,
    "objects": np.array([Hostile()], dtype=object),
}


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(
            one.detach().nan_to_num(), other.nan_to_num()
        )
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return bool(one == other)


@pytest.mark.parametrize("kind", WRITTEN)
def test_line_gives_the_same_values_when_it_is_pasted(kind: str) -> None:
    line = pasted(["f"], (WRITTEN[kind],), {"by": 1})
    assert line.isprintable() and "`" not in line
    names = {"torch": torch, "np": np, "f": lambda value, by: value}
    assert same(WRITTEN[kind], eval(line, names)), line


@pytest.mark.parametrize("kind", NOT_WRITTEN)
def test_what_is_not_plain_and_small_is_not_written(kind: str) -> None:
    assert pasted(["f"], (NOT_WRITTEN[kind],), {}) == ""
    assert pasted(["f"], (), {"x": NOT_WRITTEN[kind]}) == ""


def test_a_list_in_itself_and_many_texts_are_not_written() -> None:
    nested: list[Any] = []
    nested.append(nested)
    assert pasted(["f"], (nested,), {}) == ""
    assert pasted(["f"], tuple("a" * 50 for _ in range(LONGEST // 50)), {}) == ""


def test_numbers_are_counted_over_all_arguments() -> None:
    assert pasted(["f"], (torch.ones(6),), {"y": torch.ones(6)}).startswith("f(torch.tensor([1.0")
    assert pasted(["f"], (torch.ones(6), 1), {"y": torch.ones(6)}) == ""
