"""Numbers are compared alike in tensors, arrays, scalars of numpy and Python's own types, and told of alike."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from autograder import checks
from autograder.checks.values import first_difference

HOLDERS: dict[str, Callable[[Any], Any]] = {
    "tensor": lambda numbers: torch.tensor(numbers, dtype=torch.float64),
    "array": lambda numbers: np.array(numbers, dtype="float64"),
    "array backwards in memory": lambda numbers: np.array(numbers[::-1], dtype="float64")[::-1],
    "array of the other byte order": lambda numbers: np.array(numbers, dtype=">f8"),
    "list": lambda numbers: list(numbers),
    "tuple": lambda numbers: tuple(numbers),
    "list of numpy's scalars": lambda numbers: list(np.array(numbers)),
    "list of Fractions": lambda numbers: [Fraction(number) for number in numbers],
    "list of Decimals": lambda numbers: [Decimal(number) for number in numbers],
    "complex": lambda numbers: np.array(numbers, dtype=complex),
    "dict": lambda numbers: {f"item{i}": number for i, number in enumerate(numbers)},
    "nested": lambda numbers: [{"all": [numbers]}],
}


@pytest.mark.parametrize("check", [checks.close, checks.equal])
@pytest.mark.parametrize("holder", HOLDERS)
def test_equal_numbers_pass_and_others_name_their_place(holder, check):
    hold = HOLDERS[holder]
    check(hold([1.0, 2.5, 4.0]), hold([1.0, 2.5, 4.0]))
    with pytest.raises(checks.CheckFailed) as failed:
        check(hold([1.0, 2.75, 4.0]), hold([1.0, 2.5, 4.0]), "the row")
    said = str(failed.value)
    place = ("index 1", "item 1", "item1")
    assert any(word in said.lower() for word in place), said
    assert "2.5" in said or "5/2" in said, said
    assert "2.5" not in failed.value.public and "2.75" not in failed.value.public


@pytest.mark.parametrize(
    ("actual", "expected", "sentence"),
    [
        (np.float64(1.0), 1.0, ""),
        (np.int64(3), 3, ""),
        (np.bool_(True), True, ""),
        (np.str_("a"), "a", ""),
        ([np.int64(3)], [3], ""),
        (1 + 2j, 1 + 2j, ""),
        (np.array(["a", "b"]), np.array(["a", "b"]), ""),
        (np.array([1, 2], dtype="uint16"), np.array([1, 2], dtype="uint16"), ""),
        (np.float64(2.0), 1.0, "The mean is 2; 1 was expected."),
        (np.int64(3), 3.0, "The mean is 3 (an int); 3 (a float) was expected."),
        ([1.0], np.array([1.0]), "The mean is a list of 1; a numpy array of shape (1,) was expected."),
        (
            torch.ones(2),
            np.ones(2),
            "The mean is a tensor of shape (2,); a numpy array of shape (2,) was expected.",
        ),
        (np.ones(3), np.ones(2), "The mean has shape (3,); (2,) was expected."),
        (
            np.array([1, 2]),
            np.array([1.0, 2.0]),
            "The mean holds whole numbers (int64); floating-point numbers were expected.",
        ),
        (np.array([1.0, np.nan]), np.ones(2), "The mean is NaN at index 1: 1 of 2 numbers is NaN."),
        (Fraction(1, 3), Fraction(1, 2), "The mean is 1/3; 1/2 was expected."),
        (1 + 2j, 1 + 3j, "The mean is 1+2j; 1+3j was expected."),
        ({"a": np.ones(2)}, {"a": np.zeros(2)}, "The entry a of the mean differs first at index 0: "),
    ],
)  # fmt: skip
def test_exactly_equal_values(actual, expected, sentence):
    assert told(checks.equal, actual, expected).startswith(sentence)
    assert bool(told(checks.equal, actual, expected)) == bool(sentence)


@pytest.mark.parametrize(
    ("actual", "expected", "sentence"),
    [
        (Fraction(1, 2), 0.5, ""),
        (0.5, Fraction(1, 2), ""),
        (np.float32(0.5), 0.5, ""),
        (np.array(0.5), 0.5, ""),
        (0.5, np.array(0.5), ""),
        (2.0, 2 + 0j, ""),
        ({"name": "Ada", "mean": 0.5}, {"name": "Ada", "mean": 0.5 + 1e-9}, ""),
        ([[0.5], (1,)], [[0.5], (1.0,)], ""),
        (1j, 1.0, "The mean is 0+1j; a real number was expected."),
        ([1.0], [1.0, 2.0], "The mean has 1 item; 2 were expected."),
        (np.ones(2), [1.0, 1.0], "The mean is a numpy array of shape (2,); a list of 2 was expected."),
        ({"a": 1.0}, {"b": 1.0}, "The mean lacks the key b and has the unexpected key a."),
        ("1", 1.0, "The mean is the text '1'; a number was expected."),
        ({"name": "Bob"}, {"name": "Ada"}, "The entry name of the mean is 'Bob'; 'Ada' was expected."),
        (np.eye(2).T * 2, np.eye(2), "The mean differs first at row 0, column 0: 2 came back"),
    ],
)  # fmt: skip
def test_close_values(actual, expected, sentence):
    assert told(checks.close, actual, expected).startswith(sentence)
    assert bool(told(checks.close, actual, expected)) == bool(sentence)


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        (lambda: checks.shape(np.ones((2, 3)), (2, 3)), ""),
        (lambda: checks.shape([1], (1,)), "The output is a list of 1, which has no shape; (1,) was expected."),
        (lambda: checks.finite(np.ones(3)), ""),
        (lambda: checks.finite(np.array([1, np.inf])), "The output is infinite at index 1"),
        (lambda: checks.dtype(np.ones(3), "float64"), ""),
        (lambda: checks.dtype(np.ones(3), np.float32), "The output has the number type float64; float32"),
        (lambda: checks.dtype(torch.ones(3), float), "The output is a tensor of shape (3,); a numpy array"),
        (lambda: checks.rows_sum_to_one(np.eye(2)), ""),
        (lambda: checks.rows_sum_to_one(np.eye(2) * 2), "In the weights, the row at row 0 sums to 2"),
        (lambda: checks.between(np.array([0.5]), 0, 1), ""),
        (lambda: checks.between(Fraction(3, 2), 0, 1), "The result is 3/2; 0 to 1 was expected."),
        (lambda: checks.true(np.array([True]), "no"), ""),
        (lambda: checks.input_untouched(list, np.ones(3)), ""),
        (lambda: checks.input_untouched(doubles, np.ones(3)), "The call changed its input at index 0: it was 1 "),
        (lambda: checks.input_untouched(doubles_first, [np.ones(3)]), "The call changed its input: it was "),
    ],
)  # fmt: skip
def test_checks_take_arrays(check, sentence):
    assert told(check).startswith(sentence)
    assert bool(told(check)) == bool(sentence)


@pytest.mark.parametrize(
    ("actual", "expected", "sentence", "public"),
    [
        ("a\nb\nC\nd", "a\nb\nc\nd",
         "The poem differs first in line 3: 'C\\n' came back, 'c\\n' was expected.",
         "The poem differs first in line 3."),
        ("a\n", "a\nb\n", "The poem ends before line 2; the line 'b\\n' was expected.",
         "The poem ends before line 2."),
        ("a\nb\n", "a\n",
         "The poem differs first in line 2: 'b\\n' came back, no such line was expected.",
         "The poem differs first in line 2."),
        ("a\nb", "a\nb\n", "The poem differs first in line 2: 'b' came back, 'b\\n' was expected.",
         "The poem differs first in line 2."),
        ("ab", "b", "The poem is 'ab'; 'b' was expected.", "The poem is not the expected text."),
    ],
)  # fmt: skip
def test_text_of_many_lines_shows_the_first_that_differs(actual, expected, sentence, public):
    with pytest.raises(checks.CheckFailed) as failed:
        checks.equal(actual, expected, "the poem")
    assert (str(failed.value), failed.value.public) == (sentence, public)


def test_first_difference_takes_any_numbers():
    for hold in (np.array, torch.tensor):
        gap = first_difference(hold([1.0, 3.0]), hold([1.0, 2.0]))
        assert gap is not None and (gap.where, gap.came, gap.expected) == ("index 1", "3", "2")
    assert first_difference(Fraction(1, 2), 0.5) is None


def doubles(numbers):
    numbers *= 2


def doubles_first(arrays):
    arrays[0] *= 2


def told(check: Callable[..., None], *values: Any) -> str:
    """Return the sentence with which a check of these values of 'the mean' fails; nothing if it passes."""
    try:
        check(*values, "the mean") if values else check()
    except checks.CheckFailed as failure:
        return str(failure)
    return ""
