"""Checks of a returned value: its type, its shape, its numbers.

Tensors, arrays and numbers are compared in one form, which `checks.numerics` makes of them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy
import torch
from torch import Tensor

from autograder.bridge.shared.wire import Opaque
from autograder.checks.numerics import REAL, as_tensor, is_number, is_plain, is_table, unboxed
from autograder.checks.relations import relation
from autograder.checks.sentences import (
    AXES,
    dtype_kind,
    fault,
    kind,
    number,
    place,
    public_kind,
    returned,
    several,
    show,
    subject,
    two_numbers,
    verb,
    wrong_type,
)
from autograder.checks.tolerance import Tolerance, is_exact, widened
from autograder.failures.failed_check import CheckFailed, without_inputs, without_literals
from autograder.text.wording import article, counted

SEVERAL_ROUNDINGS = 8 * torch.finfo(torch.bfloat16).eps


def close(
    actual: Any,
    expected: Any,
    what: str = "the output",
    *,
    axes: Sequence[str] | None = None,
    atol: float = 1e-6,
    rtol: float = 1e-5,
) -> None:
    """Check that `|actual - expected| <= atol + rtol * |expected|` for all numbers of a table, or a number.

    A table is a tensor or an array of numpy. Compares the type, the shape, the kind of numbers, NaN
    and infinity, and the values, in this order. Nothing is broadcast. A number and a table of shape
    () are comparable; integers and booleans in tables are compared exactly. A tuple, list or dict of
    expected values is compared item by item, and what is no number in it as by `equal`. `axes`
    names the dimensions in the failure: ("batch", "position", "feature").
    """
    actual = unboxed(actual)
    expected = unboxed(expected)
    if isinstance(expected, (tuple, list)):
        wanted_items = f"a {'list' if isinstance(expected, list) else 'tuple'} of {len(expected)}"
        for i, item in enumerate(_items(actual, len(expected), wanted_items, what)):
            close(item, expected[i], f"item {i} of {what}", axes=axes, atol=atol, rtol=rtol)
    elif isinstance(expected, dict):
        _same_keys(actual, expected, what)
        for key, wanted in expected.items():
            name = f"the entry {_key(key)} of {what}"
            close(actual[key], wanted, name, axes=axes, atol=atol, rtol=rtol)
    elif is_number(expected) or is_table(expected):
        wanted = as_tensor(expected)
        got = _comparable(actual, expected, wanted, what)
        _same_numbers(got, wanted, what, axes, Tolerance(atol, rtol), _number_type(actual, got))
    else:
        _equal(actual, expected, what, axes)


def equal(
    actual: Any,
    expected: Any,
    what: str = "the result",
    *,
    axes: Sequence[str] | None = None,
    is_id: bool = False,
) -> None:
    """Check for exactly the expected value: numbers, text, None, tensors, arrays, and lists, tuples and dicts of them.

    Types are compared: True is not 1, 1.0 is not 1, a tuple is not a list; a scalar of numpy is the
    number that it holds. In nested data, and in a text of many lines, the failure names the first
    difference. A whole number that `is_id` is a name: no failure calls it too large or too small.
    """
    _equal(actual, expected, what, axes, is_id)


def _equal(
    actual: Any, expected: Any, what: str, axes: Sequence[str] | None = None, is_id: bool = False
) -> None:
    actual = unboxed(actual)
    expected = unboxed(expected)
    if is_table(expected):
        got = _table(actual, what, expected)
        wanted = as_tensor(expected)
        _same_numbers(got, wanted, what, axes, Tolerance(0.0, 0.0), _number_type(actual, got))
    elif isinstance(expected, numpy.ndarray):  # of texts
        if not isinstance(actual, numpy.ndarray):
            raise wrong_type(actual, kind(expected), what)
        _equal_items(actual.tolist(), expected.tolist(), what)
    elif isinstance(expected, (list, tuple)):
        _equal_items(actual, expected, what)
    elif isinstance(expected, dict):
        _same_keys(actual, expected, what)
        for key, value in expected.items():
            _equal(actual[key], value, f"the entry {_key(key)} of {what}")
    elif type(actual) is not type(expected) or not _same_plain(actual, expected):
        raise _unequal(actual, expected, what, is_id)


def shape(
    actual: Any,
    expected_shape: Sequence[int],
    what: str = "the output",
    *,
    axes: Sequence[str] | None = None,
) -> None:
    """Check for a tensor or an array of exactly that shape; `axes` names its dimensions in the failure."""
    wanted = tuple(expected_shape)
    named = f" ({', '.join(axes)})" if axes is not None and len(axes) == len(wanted) else ""
    end = f"; {wanted}{named} was expected."
    if not is_table(actual):
        no_shape = f", which has no shape{end}"
        full = returned(what, kind(actual)) + no_shape
        raise CheckFailed(full, returned(without_inputs(what), public_kind(actual)) + no_shape)
    if (got := tuple(actual.shape)) != wanted:
        raise fault(what, f"{verb(what, 'has', 'have')} shape {got}{end}")


def dtype(actual: Any, expected_dtype: Any, what: str = "the output") -> None:
    """Check for a tensor of exactly that number type, or for an array if it is one of numpy's."""
    of_torch = isinstance(expected_dtype, torch.dtype)
    wanted = expected_dtype if of_torch else numpy.dtype(expected_dtype)
    if not (is_table(actual) and isinstance(actual, Tensor if of_torch else numpy.ndarray)):
        raise wrong_type(actual, "a tensor" if of_torch else "a numpy array", what)
    if actual.dtype != wanted:
        end = f"{verb(what, 'has', 'have')} the number type {actual.dtype}; {wanted} was expected."
        raise fault(what, end)


def finite(actual: Any, what: str = "the output", *, axes: Sequence[str] | None = None) -> None:
    """Check for a tensor, an array or a number without NaN and infinity."""
    actual = unboxed(actual)
    got = as_tensor(actual) if is_number(actual) else _table(actual, what)
    _no_surprising(got, torch.zeros_like(got), what, axes)


def tensor(actual: Any, what: str = "the output") -> Tensor:
    """Return the value as a detached tensor; fails if it is not a tensor."""
    if isinstance(actual, Tensor) and is_plain(actual):
        return as_tensor(actual)
    raise wrong_type(actual, "a tensor", what)


def _table(actual: Any, what: str, expected: Any = None) -> Tensor:
    """Return the numbers of a tensor or an array; fails if it is none, or not of the kind that is expected."""
    kinds = Tensor if isinstance(expected, Tensor) else numpy.ndarray
    if is_table(actual) and (expected is None or isinstance(actual, kinds)):
        return as_tensor(actual)
    raise wrong_type(actual, "a tensor or an array" if expected is None else kind(expected), what)


def unpack(actual: Any, names: int | Sequence[str], what: str = "the result") -> tuple[Any, ...]:
    """Return the items of a tuple or list of known length: `output, weights = unpack(a, ("output", "weights"))`."""
    length = names if isinstance(names, int) else len(names)
    wanted = (
        f"a tuple of {length}"
        if isinstance(names, int)
        else f"a tuple of {length} ({', '.join(names)})"
    )
    return _items(actual, length, wanted, what, "" if isinstance(names, int) else names)


def _items(
    actual: Any, length: int, wanted: str, what: str, names: Sequence[str] = ""
) -> tuple[Any, ...]:
    if not isinstance(actual, (tuple, list)):
        raise wrong_type(actual, wanted, what)
    if len(actual) != length:
        listed = f" ({', '.join(names)})" if names else ""
        has = f"{verb(what, 'has', 'have')} {counted(len(actual), 'item')}"
        raise fault(what, f"{has}; {length}{listed} {'was' if length == 1 else 'were'} expected.")
    return tuple(actual)


def between(
    actual: Any, low: float, high: float, what: str = "the result", *, telling: str = ""
) -> None:
    """Check that low <= actual <= high for a number, also one in a table; for shares and statistics.

    `telling` is the sentence for a number outside, for hidden tests as well, if it says by itself
    what is wrong: "About 2 of 100 words became another one; 10 were promised."
    """
    value = _only_number(actual)
    if isinstance(value, bool) or not isinstance(value, REAL):
        raise wrong_type(actual, "a number", what)
    if not low <= value <= high:
        if telling:
            raise CheckFailed(telling, telling, telling=telling)
        if value != value:
            side = "NaN"
        else:
            side = "too small" if value < low else "too large"
        end = f"{number(low)} to {number(high)} was expected."
        raise CheckFailed(
            f"{returned(what, number(value))}; {end}",
            f"{returned(without_inputs(what), number(value))}, which is {side}.",
        )


def rows_sum_to_one(
    actual: Any, what: str = "the weights", *, axes: Sequence[str] | None = None, atol: float = 1e-5
) -> None:
    """Check that every row along the last axis is a probability distribution: not negative, with the sum 1."""
    got = _table(actual, what)
    _no_surprising(got, torch.zeros_like(got), what, axes)
    if got.ndim == 0:
        raise wrong_type(actual, "a table with at least one axis", what)
    if bool((got < 0).any()):
        raise fault(
            what, f"{verb(what, 'is', 'are')} negative at {place(first_index(got < 0), axes)}."
        )
    sums = got.double().sum(-1)
    if bool((wrong := (sums - 1).abs() > atol).any()):
        at = first_index(wrong)
        where = place(at, (axes or AXES.get(got.ndim, ()))[:-1])
        row = f"the row at {where}" if where else "the row"
        came, _ = two_numbers(sums[at].item(), 1.0)
        end = f"{row} sums to {came}; each row should sum to 1."
        near = _is_near((sums - 1).abs(), torch.ones(1))
        raise fault(what, end, "In {},".format, f"{row} does not sum to one.", near)


def true(condition: Any, sentence: str, *, public: str | None = None, telling: str = "") -> None:
    """Check that the condition is true; otherwise fail with `sentence`.

    `public` is the sentence for hidden tests; by default, `sentence` without its numbers, quoted
    texts and lists. `telling` is what says by itself which mistake it is, whatever the student's own
    names and random numbers are: known mistakes with the same text are recognised by it.
    """
    condition = _only_number(condition)
    if condition is not True:
        raise CheckFailed(sentence, public, telling=telling)


def _only_number(value: Any) -> Any:
    """Return the number of a table that holds a single one, and of a scalar; another value is itself."""
    alone = is_table(value) and math.prod(value.shape) == 1
    return value.item() if alone else unboxed(value)


@dataclass(frozen=True)
class Difference:
    """The first difference between two tensors of equal shape, in words, the extent of all, and what they share.

    All are `near` if a number type of 16 bits explains them.
    """

    where: str
    came: str
    expected: str
    extent: str
    relation: str
    several: bool = True
    near: bool = False

    def failure(self, what: str) -> CheckFailed:
        if not self.where:
            hidden = f"{verb(what, 'is', 'are')} not as expected ({self.extent})."
            full = f"{returned(what, self.came)}; {self.expected} was expected ({self.extent})."
            return CheckFailed(full, f"{subject(without_inputs(what))} {hidden}", self.near)
        first = " first" if self.several else ""
        start = f"{verb(what, 'differs', 'differ')}{first} at {self.where}"
        extent = (
            f"{self.extent}, {self.relation}"
            if self.relation.startswith("only")
            else self.relation or self.extent
        )
        all_of_them = f" {extent}." if extent else ""
        full = f"{start}: {self.came} came back, {self.expected} was expected.{all_of_them}"
        return fault(what, full, public=f"{start}.{all_of_them}", could_be_rounding=self.near)


def first_difference(
    actual: Any,
    expected: Any,
    *,
    atol: float = 1e-6,
    rtol: float = 1e-5,
    axes: Sequence[str] | None = None,
) -> Difference | None:
    """Return the first difference of two tensors, arrays or numbers of equal shape beyond the tolerance, or None."""
    return _difference(as_tensor(actual), as_tensor(expected), Tolerance(atol, rtol), axes)


def _difference(
    actual: Tensor, expected: Tensor, tolerance: Tolerance, axes: Sequence[str] | None
) -> Difference | None:
    if tolerance.surely_agree(actual, expected):
        return None
    wrong = tolerance.differ(actual, expected)
    if not bool(wrong.any()):
        return None
    both_exact = is_exact(actual) and is_exact(expected)
    apart = None if both_exact else (widened(actual, expected) - widened(expected, actual)).abs()
    at = first_index(wrong)
    came, wanted = two_numbers(actual[at].item(), expected[at].item())
    extent = _extent(wrong, apart, "entries" if actual.dtype is torch.bool else "numbers")
    shared = relation(actual, expected, wrong, axes, tolerance)
    could_round = apart is not None and _is_near(apart, expected)
    return Difference(place(at, axes), came, wanted, extent, shared, wrong.numel() > 1, could_round)


def _is_near(apart: Tensor, expected: Tensor) -> bool:
    """Whether no number is further off than several roundings to bfloat16 explain."""
    return bool(apart.max() <= SEVERAL_ROUNDINGS * expected.abs().max())


def first_index(wrong: Tensor) -> tuple[int, ...]:
    """Return the index of the first True in row-major order."""
    flat = int(wrong.reshape(-1).to(torch.uint8).argmax())
    return tuple(map(int, numpy.unravel_index(flat, wrong.shape)))


def _extent(wrong: Tensor, apart: Tensor | None, noun: str) -> str:
    """Return how many numbers differ and by how much; for integers and booleans, only how many."""
    largest = "" if apart is None else number(apart[wrong].nan_to_num(nan=math.inf).max().item(), 2)
    if not wrong.ndim:
        return f"off by {largest}" if largest else "no other value will do"
    if wrong.numel() == 1:
        return f"It is off by {largest}" if largest else ""
    count = int(wrong.sum())
    differ = f"{count} of {wrong.numel()} {noun} {'differs' if count == 1 else 'differ'}"
    return f"{differ}, by at most {largest}" if largest else differ


def _number_type(actual: Any, got: Tensor) -> str:
    """Return the name of the number type, as the library knows it that holds the numbers."""
    return str(actual.dtype if is_table(actual) else got.dtype)


def _comparable(actual: Any, expected: Any, wanted: Tensor, what: str) -> Tensor:
    """Return the actual value as a tensor, converting a number to the kind of the expected value."""
    if is_number(actual) and wanted.ndim == 0:
        if isinstance(actual, bool) is not (wanted.dtype is torch.bool):
            raise wrong_type(
                actual, "a number" if isinstance(actual, bool) else "True or False", what
            )
        if isinstance(actual, complex) and not wanted.is_complex():
            raise wrong_type(actual, "a real number", what)
        whole = is_exact(wanted) and wanted.dtype is not torch.bool
        return as_tensor(actual).to(torch.float64 if whole else wanted.dtype)
    if not is_number(expected):
        return _table(actual, what, expected)
    if not is_table(actual):
        raise wrong_type(actual, "a number", what)
    got = as_tensor(actual)
    if wanted.is_complex():
        return got.to(torch.complex128)
    return got.double() if is_exact(got) and got.dtype is not torch.bool else got


def _same_numbers(
    got: Tensor,
    wanted: Tensor,
    what: str,
    axes: Sequence[str] | None,
    tolerance: Tolerance,
    number_type: str,
) -> None:
    shape(got, tuple(wanted.shape), what, axes=axes)
    held = dtype_kind(got.dtype)
    due = dtype_kind(wanted.dtype)
    if held != due:
        end = f"{verb(what, 'holds', 'hold')} {held} ({number_type}); {due} were expected."
        raise fault(what, end)
    _no_surprising(got, wanted, what, axes)
    if difference := _difference(got, wanted, tolerance, axes):
        raise difference.failure(what)


def _no_surprising(got: Tensor, wanted: Tensor, what: str, axes: Sequence[str] | None) -> None:
    """Check that there is no NaN or infinity where the expected tensor has none."""
    if is_exact(got) or bool(got.isfinite().all()):
        return
    for word, odd in (
        ("NaN", got.isnan() & ~wanted.isnan()),
        ("infinite", got.isinf() & wanted.isfinite()),
    ):
        if not bool(odd.any()):
            continue
        start = f"{verb(what, 'is', 'are')} {word}"
        if not odd.ndim:
            raise fault(what, f"{start}.")
        if odd.numel() == 1:
            raise fault(what, f"{start}.")
        count = f"{int(odd.sum())} of {odd.numel()} numbers {'is' if int(odd.sum()) == 1 else 'are'} {word}"
        raise fault(what, f"{start} at {place(first_index(odd), axes)}: {count}.")


def _same_plain(actual: Any, expected: Any) -> bool:
    both_nan = isinstance(actual, float) and actual != actual and expected != expected
    return bool(actual == expected) or both_nan


def _unequal(actual: Any, expected: Any, what: str, is_id: bool) -> CheckFailed:
    if isinstance(actual, Opaque) and actual.kind == type(expected).__name__:
        end = f"{article(actual.kind)}, which cannot come back from where the code runs; ask for its text or numbers."
        return CheckFailed(returned(what, end), returned(without_inputs(what), end))
    if isinstance(actual, str) and isinstance(expected, str) and "\n" in actual + expected:
        return _unequal_lines(actual, expected, what)
    if isinstance(actual, float) and isinstance(expected, float):
        mine, theirs = two_numbers(actual, expected)
    else:
        mine = show(actual)
        theirs = show(expected)
    if type(actual) is type(expected) or expected is None:
        hidden = f"{subject(without_inputs(what))} {verb(what, 'is', 'are')} {_how_wrong(actual, expected, is_id)}."
    else:
        mine = _typed(actual, mine)
        theirs = _typed(expected, theirs)
        wanted = _PLAIN.get(type(expected), f"a {type(expected).__name__}")
        hidden = f"{returned(without_inputs(what), public_kind(actual))}; {wanted} was expected."
    return CheckFailed(f"{returned(what, mine)}; {theirs} was expected.", hidden)


def _unequal_lines(actual: str, expected: str, what: str) -> CheckFailed:
    """Return the failure that names the first line in which two texts differ."""
    lines = zip_longest(actual.splitlines(keepends=True), expected.splitlines(keepends=True))
    differing = ((row, *pair) for row, pair in enumerate(lines, start=1) if pair[0] != pair[1])
    row, mine, theirs = next(differing)
    if mine is None:
        start = f"{verb(what, 'ends', 'end')} before line {row}"
        return fault(what, f"{start}; the line {show(theirs)} was expected.", public=f"{start}.")
    start = f"{verb(what, 'differs', 'differ')} first in line {row}"
    wanted = "no such line" if theirs is None else show(theirs)
    return fault(
        what, f"{start}: {show(mine)} came back, {wanted} was expected.", public=f"{start}."
    )


def _how_wrong(actual: Any, expected: Any, is_id: bool) -> str:
    """Return the difference for hidden tests: whether a number is too large or too small, not by
    how much; ids are names, and none is too large.
    """
    if isinstance(expected, str):
        return "not the expected text"
    if is_id and type(expected) is int:
        return "not the expected number"
    if (
        type(expected) in (int, float)
        and actual != expected
        and actual == actual
        and expected == expected
    ):
        return "too large" if actual > expected else "too small"
    return "not as expected"


_PLAIN = {bool: "a bool", int: "an int", float: "a float", str: "a text"}


def _typed(value: Any, shown: str) -> str:
    return f"{shown} ({_PLAIN[type(value)]})" if type(value) in _PLAIN else shown


def _equal_items(actual: Any, expected: Sequence[Any], what: str) -> None:
    word = list if isinstance(expected, list) else tuple
    if not isinstance(actual, word):
        raise wrong_type(actual, f"a {word.__name__}", what)
    for i, (item, wanted) in enumerate(zip(actual, expected, strict=False)):
        # whole numbers in a list are mostly ids
        _equal(item, wanted, f"item {i} of {what}", is_id=True)
    if len(actual) != len(expected):
        many = "few" if len(actual) < len(expected) else "many"
        start = f"{verb(what, 'has', 'have')} {counted(len(actual), 'item')}"
        were = "was" if len(expected) == 1 else "were"
        end = f"{start}; {len(expected)} {were} expected."
        raise fault(what, end, public=f"{start}, which is too {many}.")


def _same_keys(actual: Any, expected: dict[Any, Any], what: str) -> None:
    if not isinstance(actual, dict):
        raise wrong_type(actual, "a dict", what)
    missing = [_key(key) for key in expected if key not in actual]
    extra = [_key(key) for key in actual if key not in expected]
    if missing or extra:
        faults = [f"{verb(what, 'lacks', 'lack')} {several('key', missing)}"] if missing else []
        faults += (
            [f"{verb(what, 'has', 'have')} {several('unexpected key', extra)}"] if extra else []
        )
        end = f"{' and '.join(faults)}."
        raise fault(what, end, public=without_literals(end))


def _key(key: Any) -> str:
    return key if isinstance(key, str) and key.isidentifier() and len(key) < 60 else show(key, 60)
