"""Words for `pictures.py`: what the numbers of a picture look like, whatever a student's code has made of them.

No function here raises for a value: what is no number is said to be none.

Example:
    >>> sentence(cells(mask, "word", "word"), curve(losses, "your loss"))
    28 of 49 cells are lit; the brightest: word 0, word 0 (1). Your loss goes from 3.8 to 1.2.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy
from torch import Tensor

from autograder.checks.numerics import as_tensor, is_number, is_table, unboxed
from autograder.text.wording import listed as enumerated

MOST_NUMBERS = 100_000
DEEPEST = 8
TINY = 1e-6
HUGE = 1e7
Names = str | Sequence[str]  # "word", for "word 3", or a name for each place


def number(value: Any) -> str:
    """Return one number with three digits: '0.25', '−3', '1,024', 'not a number', 'infinite'."""
    drawn_numbers = numbers(value)
    if len(drawn_numbers) != 1 or math.isnan(drawn_numbers[0]):
        return "not a number"
    value = drawn_numbers[0]
    if math.isinf(value):
        return "infinite" if value > 0 else "−infinite"
    if 0 < abs(value) < TINY:
        return "about 0"
    digits = ",.0f" if 1000 <= abs(value) < HUGE else ".3g"
    return f"{value + 0.0:{digits}}".replace("-", "−")


def numbers(values: Any) -> list[float]:
    """Return the numbers of a tensor, an array, a number or a list of these, one after another."""
    return [value for value, _ in zip(_each(values), range(MOST_NUMBERS))]


def listed(values: Any, names: Names = "") -> str:
    """Return the first numbers, each behind its name."""
    drawn_numbers = numbers(values)
    words = [number(value) for value in drawn_numbers]
    if names:
        words = [f"{_name(names, place)}: {word}" for place, word in enumerate(words)]
    return enumerated(words) if words else "no numbers"


def curve(values: Any, name: str = "", places: Any = None) -> str:
    """Return from where to where numbers go, and their highest and lowest in between.

    `places` are where they stand; without, they are counted from 0.
    """
    drawn_numbers = numbers(values)
    at = numbers(range(len(drawn_numbers)) if places is None else places)
    begun = f"{name} goes" if name else "goes"
    real = [(value, place) for value, place in zip(drawn_numbers, at) if not math.isnan(value)]
    if not real:
        return f"{name} has no numbers".strip()
    words = [f"{begun} from {number(drawn_numbers[0])} to {number(drawn_numbers[-1])}"]
    ends = {number(drawn_numbers[0]), number(drawn_numbers[-1])}
    for what, (value, place) in (("highest", max(real)), ("lowest", min(real))):
        if number(value) not in ends:
            words.append(f"{what} at {number(place)} ({number(value)})")
    return ", ".join(words) + _missing(drawn_numbers)


def largest(values: Any, names: Names = "place") -> str:
    """Return where the largest of some numbers stands, and the number."""
    drawn_numbers = numbers(values)
    real = [(value, place) for place, value in enumerate(drawn_numbers) if not math.isnan(value)]
    if not real:
        return "no numbers"
    value, place = max(real, key=lambda pair: pair[0])
    return f"{_name(names, place)} ({number(value)})" + _missing(drawn_numbers)


def cells(
    values: Any,
    rows: Names = "row",
    columns: Names = "column",
    from_: float = 1e-9,
    diagonal: bool = False,
) -> str:
    """Return how many cells of a table are lit, with more than `from_` on either side of zero, and the brightest.

    With `diagonal`, also how many of them stand above it.
    """
    table = _table(values)
    if not table:
        return "there is no table of numbers"
    flat: list[tuple[float, int, int]] = []
    for row, line in enumerate(table):
        flat += [(value, row, column) for column, value in enumerate(line)]
    lit = [(value, row, column) for value, row, column in flat if abs(value) > from_]
    words = f"{len(lit)} of {len(flat)} cells are lit"
    if diagonal:
        words += f", {sum(column > row for _, row, column in lit)} of them above the diagonal"
    if lit:
        value, row, column = max(lit, key=lambda cell: abs(cell[0]))
        words += f"; the brightest: {_name(rows, row)}, {_name(columns, column)} ({number(value)})"
    return words + _missing([value for value, _, _ in flat])


def lines(axes: Any, name: str = "") -> str:
    """Return the course of each line with a label; what a legend says behind a colon is left out."""
    before = f"{name}: " if name else ""
    drawn = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    curves = [
        curve(line.get_ydata(), str(line.get_label()).split(":")[0], line.get_xdata())
        for line in drawn
        if len(line.get_ydata()) > 2  # no line of the axes' own
    ]
    return before + "; ".join(curves)


def bars(axes: Any) -> list[float]:
    """Return the heights of the bars."""
    return numbers([patch.get_height() for patch in axes.patches])


def image(axes: Any, rows: Names = "row", columns: Names = "column", diagonal: bool = False) -> str:
    """Return `cells` of the picture in some axes; what has no colour is not lit."""
    drawn = numpy.nan_to_num(numpy.asarray(axes.get_images()[0].get_array(), dtype=float))
    return cells(drawn, rows, columns, diagonal=diagonal)


def span(values: Any) -> str:
    """Return between which numbers some numbers lie."""
    drawn_numbers = numbers(values)
    real = [value for value in drawn_numbers if not math.isnan(value)]
    if not real:
        return "no numbers"
    low = number(min(real))
    high = number(max(real))
    return (low if low == high else f"{low} to {high}") + _missing(drawn_numbers)


def places(values: Any, from_: float = 1e-9) -> str:
    """Return at which places some numbers are not zero."""
    lit = [place for place, value in enumerate(numbers(values)) if abs(value) > from_]
    return listed(lit) if lit else "none"


def sentence(*parts: str) -> str:
    """Join what is said of a picture, a sentence each."""
    said = [part.strip() for part in parts if part.strip()]
    return " ".join(f"{part[:1].upper()}{part[1:].rstrip('.')}." for part in said)


def _each(values: Any, depth: int = 0) -> Iterator[float]:
    value = unboxed(values)
    if is_table(value):
        value = as_tensor(value).flatten()[:MOST_NUMBERS].tolist()
    if is_number(value):
        yield _real(value)
    elif isinstance(value, (list, tuple, range)) and depth < DEEPEST:
        for item in value:
            yield from _each(item, depth + 1)


def _real(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):  # a complex number
        return math.nan


def _table(values: Any) -> list[list[float]]:
    """Return a table as lists; empty for all that is no table of two dimensions."""
    is_flat = isinstance(values, (Tensor, numpy.ndarray)) and values.ndim != 2
    if is_flat or (is_table(values) and math.prod(values.shape) > MOST_NUMBERS):
        return []
    lines = as_tensor(values).tolist() if is_table(values) else values
    return [numbers(line) for line in lines] if isinstance(lines, (list, tuple)) else []


def _name(names: Names, place: int) -> str:
    if isinstance(names, str):
        return f"{names} {place}" if names else ""
    return str(names[place]) if place < len(names) else f"place {place}"


def _missing(drawn_numbers: Sequence[float]) -> str:
    count = sum(map(math.isnan, drawn_numbers))
    return f"; {count} of {len(drawn_numbers)} are not numbers" if count else ""
