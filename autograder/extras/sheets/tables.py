"""Small tables: what code gives on small inputs, as text on paper, and whether two look different."""

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

MOST_CELLS = 8  # in a row, and in a column
VISIBLE = 0.08  # the smallest difference to be seen, as a share of the span of both tables


@dataclass(frozen=True)
class Cell:
    """A number as it is shown, with a shade between 0 and 1 for its size."""

    text: str
    shade: float


@dataclass(frozen=True)
class SmallTable:
    """The numbers that an option shows, row by row."""

    numbers: tuple[tuple[float, ...], ...]
    is_whole: bool

    def rows(self) -> list[list[Cell]]:
        """Return the cells as they are printed."""
        finite = _finite(self.numbers)
        largest = max((abs(number) for number in finite), default=0.0) or 1.0
        return [[Cell(self._text(n), _shade(n, largest)) for n in row] for row in self.numbers]

    def looks_like(self, other: "SmallTable") -> bool:
        """Whether a person could take one for the other: the shown numbers are nearly equal."""
        if [len(row) for row in self.numbers] != [len(row) for row in other.numbers]:
            return False
        mine = list(itertools.chain.from_iterable(self.numbers))
        theirs = list(itertools.chain.from_iterable(other.numbers))
        if list(map(math.isfinite, mine)) != list(map(math.isfinite, theirs)):
            return False
        numbers = _finite([mine, theirs])
        span = max(numbers, default=0.0) - min(numbers, default=0.0)
        pairs = zip(_finite([mine]), _finite([theirs]), strict=True)
        furthest = max((abs(number - another) for number, another in pairs), default=0.0)
        return furthest < max(VISIBLE * span, 0.5 if self.is_whole and other.is_whole else 0.02)

    def _text(self, number: float) -> str:
        if not math.isfinite(number):
            return str(number)
        if self.is_whole:
            return f"{number:.0f}"
        text = f"{number:.2f}"
        return text.removeprefix("-") if float(text) == 0 else text


def table_of(value: Any) -> SmallTable:
    """Return the table of a tensor, a number or nested lists; raises ValueError for other values."""
    table = value.detach().cpu() if isinstance(value, torch.Tensor) else torch.tensor(value)
    if table.dim() < 2:
        table = table.reshape(1, -1)
    if table.dim() != 2 or not table.numel() or max(table.shape) > MOST_CELLS:
        raise ValueError(f"a table of shape {tuple(table.shape)} does not fit on a sheet")
    numbers = tuple(tuple(row) for row in table.double().tolist())
    return SmallTable(numbers, all(number == round(number) for number in _finite(numbers)))


def _finite(rows: Iterable[Iterable[float]]) -> list[float]:
    return list(filter(math.isfinite, itertools.chain.from_iterable(rows)))


def _shade(number: float, largest: float) -> float:
    return min(1.0, abs(number) / largest) if math.isfinite(number) else 0.0
