"""The wording of failures: descriptions of values, printed numbers, and their public versions.

Values can come from a student's code: the type of a value is checked before anything else of it is
used, and all shown text has a maximum length.
"""

import datetime
import math
import re
from collections.abc import Callable, Collection, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import islice
from pathlib import PurePath
from typing import Any

import numpy
import torch
from torch import Tensor, nn

from autograder.checks.numerics import is_plain, is_table, unboxed
from autograder.failures.failed_check import CheckFailed, without_inputs
from autograder.text.wording import LONGEST, article, begun, cut, joined

STANDS_FOR_THE_STUDENTS = ("autograder.bridge.",)  # modules of classes for a student's objects
MOST_ITEMS = 8
AXES: dict[int, tuple[str, ...]] = {
    1: ("index",),
    2: ("row", "column"),
    3: ("batch", "position", "feature"),
    4: ("batch", "head", "position", "feature"),
}
_CALL = re.compile(r"^\S*\w\(.*\)$", re.DOTALL)
_TAIL = re.compile(
    r" (?:of|for|at|in|after|with|without|from|to|when|on|by|under|before)\b.*$", re.DOTALL
)


_ABOUT_FORM = re.compile(
    r"""\b(?:has|have)\ shape\ \( | ,\ which\ has\ no\ shape;
    | \b(?:has|have)\ the\ number\ type\b
    | \b(?:holds|hold)\ (?:floating-point|whole|complex|True)\b
    | ;\ (?:an?\ \w+(?:\ of\ [^;]*|\ with\ [^;]*|\ or\ an\ array)?|True\ or\ False)\ was\ expected\.$""",
    re.VERBOSE,
)


def is_about_form(sentence: str) -> bool:
    """Return whether a failure tells of a shape or a type alone: 'The loss has shape (3,); () was expected.'"""
    return _ABOUT_FORM.search(sentence) is not None


def is_call(what: str) -> bool:
    return bool(_CALL.match(what))


def subject(what: str) -> str:
    """Return the subject of a sentence: 'The output', 'The result of causal_mask(5)', 'out.grad', 'labels'.

    A first word without an article ('labels', 'embed with two ids') is an identifier and stays
    unchanged.
    """
    if is_call(what):
        return f"The result of {what}"
    return what if _TAIL.sub("", what).isidentifier() else begun(what)


def verb(what: str, one: str, many: str) -> str:
    """Return `many` if the description is plural ('the weights of head 2'), otherwise `one`."""
    head = "" if is_call(what) else _TAIL.sub("", what)
    plural = re.search(r"[a-z]s$", head) and not re.search(r"(ss|us|is|as|'s)$", head)
    return many if plural else one


def returned(what: str, value: str) -> str:
    """Return 'f(x) returned None' for a call, or 'The output is None' for any other description."""
    if is_call(what):
        return f"{what} returned {value}"
    return f"{subject(what)} {verb(what, 'is', 'are')} {value}"


def actor(what: str) -> str:
    """Return the subject of a sentence about the call or the object itself instead of its result."""
    return what if is_call(what) else subject(what)


def fault(
    what: str,
    end: str,
    begin: Callable[[str], str] = subject,
    public: str | None = None,
    could_be_rounding: bool = False,
) -> CheckFailed:
    """Return a failure in which the inputs in the description `what` are secret, and `end` if another is `public`."""
    hidden = f"{begin(without_inputs(what))} {end if public is None else public}"
    return CheckFailed(f"{begin(what)} {end}", hidden, could_be_rounding)


def wrong_type(actual: Any, wanted: str, what: str) -> CheckFailed:
    """Return the failure for a value that is not `wanted`, such as 'a tensor'."""
    end = f"; {wanted} was expected."
    return CheckFailed(
        returned(what, kind(actual)) + end,
        returned(without_inputs(what), public_kind(actual)) + end,
    )


def number(value: Any, digits: int = 4) -> str:
    """Format a number briefly: 0.1235, 1e-07, 109482240, 2363904.0, True."""
    if isinstance(value, float) and value.is_integer() and 10**digits <= abs(value) < 1e15:
        return f"{value:.1f}"
    if isinstance(value, (float, complex)):
        return f"{value + 0.0:.{digits}g}"
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 80:
        return f"a whole number of about {value.bit_length() * 0.30103:.0f} digits"
    return str(value)


def two_numbers(first: Any, second: Any) -> tuple[str, str]:
    """Format two numbers with the fewest digits that show their difference, at least four."""
    for digits in (4, 6, 8, 12, 17):
        pair = number(first, digits), number(second, digits)
        if pair[0] != pair[1] and _show_the_difference(pair, first, second):
            break
    return pair


def _show_the_difference(pair: tuple[str, str], first: Any, second: Any) -> bool:
    """Whether the numbers as shown are about as far apart as they are."""
    if not (isinstance(first, float) and isinstance(second, float)):
        return True
    apart = abs(first - second)
    shown = abs(float(pair[0]) - float(pair[1]))
    return not math.isfinite(apart) or abs(shown - apart) <= 0.2 * apart


def show(value: Any, longest: int = LONGEST) -> str:
    """Return short plain data itself, or else the kind of the value."""
    return cut(_show(value, 0), longest)


def _show(value: Any, depth: int) -> str:
    value = unboxed(value)
    if type(value) in _WRITTEN:
        return str(value)
    if value is None or isinstance(value, (bool, int, float, complex)):
        return number(value)
    if isinstance(value, (str, bytes)):
        return _quoted(value, LONGEST - 10)
    inside = partial(_show, depth=depth + 1)
    if isinstance(value, list) and depth < 3:
        return f"[{_joined(value, inside)}]"
    if isinstance(value, tuple) and depth < 3:
        return f"({_joined(value, inside)}{',' if len(value) == 1 else ''})"
    if isinstance(value, (set, frozenset)) and value and depth < 3:
        return f"{{{_joined(sorted(value, key=repr), inside)}}}"
    if isinstance(value, dict) and depth < 3:
        return (
            f"{{{_joined(value.items(), lambda pair: f'{_show(pair[0], 3)}: {inside(pair[1])}')}}}"
        )
    if is_table(value) and value.ndim <= 1 and math.prod(value.shape) <= MOST_ITEMS:
        name = "tensor" if isinstance(value, Tensor) else "array"
        return f"{name}({_show(value.tolist(), 2)})"
    return kind(value)


_WRITTEN = (Fraction, Decimal, datetime.date, datetime.datetime)  # as their own text


def _quoted(value: str | bytes, longest: int) -> str:
    return repr(value) if len(value) <= longest else f"{value[:longest]!r}…"


def _joined(items: Collection[Any], show_one: Callable[[Any], str]) -> str:
    rest = f", … ({len(items)} in all)" if len(items) > MOST_ITEMS else ""
    return ", ".join(map(show_one, islice(items, MOST_ITEMS))) + rest


_KNOWN_TO_PYTHON = {
    "bytes",
    "filter",
    "frozenset",
    "function",
    "generator",
    "map",
    "range",
    "set",
    "zip",
}
_PUBLIC_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "a truth value"),
    (int, "a whole number"),
    (float, "a number"),
    (complex, "a complex number"),
    (str, "a text"),
    (list, "a list"),
    (tuple, "a tuple"),
    (dict, "a dict"),
    (nn.Module, "a module"),
)


def kind(value: Any) -> str:
    """Return the kind of a value: 'None', 'a tensor of shape (3, 5)', 'a tuple of 2', 'a generator'."""
    value = unboxed(value)
    if value is None or isinstance(value, (bool, int, float, complex)):
        return number(value)
    if isinstance(value, Tensor):
        return _kind_of_tensor(value)
    if isinstance(value, numpy.ndarray):
        return f"a numpy array of shape {value.shape}"
    if isinstance(value, str):
        return f"the text {_quoted(value, 60)}"
    if isinstance(value, PurePath):
        return f"the path {_quoted(value.name, 60)}"  # the folders above it are the grader's
    for container in (list, tuple, dict):
        if isinstance(value, container):
            return f"a {container.__name__} of {len(value)}"
    if isinstance(value, nn.Module):
        return f"a module ({cut(str(value._get_name()), 60)})"
    return _strange_kind(value)


def _kind_of_tensor(tensor: Tensor) -> str:
    if not is_plain(tensor):
        return (
            "a sparse tensor" if tensor.layout is not torch.strided else "a tensor without numbers"
        )
    if tensor.ndim == 0:
        return "a tensor with a single number"
    return f"a tensor of shape {tuple(tensor.shape)}"


def public_kind(value: Any) -> str:
    """As `kind`, without text that the student's code could have put into the value, such as inputs."""
    value = unboxed(value)
    if value is None or isinstance(value, (Tensor, numpy.ndarray)):
        return kind(value)
    for base, word in _PUBLIC_KINDS:
        if isinstance(value, base):
            return word
    strange = _strange_kind(value)
    return strange if strange.split()[-1] in _KNOWN_TO_PYTHON else "something else"


def _strange_kind(value: Any) -> str:
    if isinstance(value, type):
        return f"the class {cut(value.__name__, 60)}"
    name = type(value).__name__
    if type(value).__module__.startswith(STANDS_FOR_THE_STUDENTS):
        match = re.match(r"<(?:the student's )?(\w+)", repr(value))
        name = match.group(1) if match else "strange object"
    return article(cut(name, 60))


def place(index: Sequence[int], axes: Sequence[str] | None = None) -> str:
    """Describe an index: (1, 3, 0) -> 'batch 1, position 3, feature 0'."""
    names = axes if axes is not None and len(axes) == len(index) else AXES.get(len(index))
    if names is None:
        return f"index {tuple(index)}" if index else ""
    return ", ".join(f"{name} {i}" for name, i in zip(names, index, strict=True))


def several(noun: str, names: Sequence[Any]) -> str:
    """Return 'the parameter a' or 'the parameters a and b'."""
    return f"the {noun}{'s' if len(names) > 1 else ''} {some(names)}"


def some(names: Sequence[Any], most: int = 4) -> str:
    """Join names: 'a', 'a and b', 'a, b, c, d and 3 more'; long names are cut."""
    return joined([cut(str(name), 60) for name in names], most)


def dtype_kind(dtype: torch.dtype) -> str:
    if dtype is torch.bool:
        return "True and False"
    if dtype.is_complex:
        return "complex numbers"
    return "floating-point numbers" if dtype.is_floating_point else "whole numbers"
