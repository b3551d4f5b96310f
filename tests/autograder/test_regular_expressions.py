"""Our regular expressions over students' text end in time linear in it: each meets texts made from its own signs."""

from __future__ import annotations

import importlib
import pkgutil
import re
import time
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

import autograder

try:
    from re import _parser as parser  # type: ignore[attr-defined]
except ImportError:  # Python 3.10
    import sre_parse as parser  # type: ignore[no-redef]

# whose text is the author's, the instructor's or the machine's; and what is imported where its packages are
TRUSTED = ("authoring.", "course.", "installation.", "cli.", "extras.cluster.")
SIGNS = 6  # of an expression, in the texts
LETTERS = 5_000  # of a text
SECONDS = 0.04  # of processor time: a linear search takes less than a hundredth of it
STEEP = 3.0  # times as long for a text twice as long: linear is 2, quadratic 4


def expressions() -> Iterator[tuple[str, re.Pattern[Any], tuple[str, ...]]]:
    """The expressions of all modules, and how each is used."""
    for module in pkgutil.walk_packages(autograder.__path__, "autograder."):
        if module.name.removeprefix("autograder.").startswith(TRUSTED):
            continue
        try:
            loaded = importlib.import_module(module.name)
        except ModuleNotFoundError:
            continue
        source = Path(str(loaded.__file__)).read_text("utf-8")
        for name, value in vars(loaded).items():
            if isinstance(value, re.Pattern):
                used = set(
                    re.findall(rf"\b{name}\.(match|fullmatch|search|sub|split|find)", source)
                )
                whole = used <= {"match", "fullmatch"} and used
                yield f"{module.name}.{name}", value, tuple(used) if whole else ("search",)


EXPRESSIONS = list(expressions())


def signs_of(tree: Any) -> Iterator[int]:
    """One letter for each set of letters in an expression."""
    for operation, value in tree:
        kind = str(operation)
        if kind == "LITERAL":
            yield value
        elif kind in ("ANY", "NOT_LITERAL"):
            yield ord("a")
        elif kind == "IN":
            yield from _of_set(value)
        elif kind in ("MAX_REPEAT", "MIN_REPEAT"):
            yield from signs_of(value[2])
        elif kind in ("ASSERT", "ASSERT_NOT"):
            yield from signs_of(value[1])
        elif kind == "SUBPATTERN":
            yield from signs_of(value[3])
        elif kind == "BRANCH":
            for branch in value[1]:
                yield from signs_of(branch)


def _of_set(members: Any) -> Iterator[int]:
    letters = {"CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "a"}
    for kind, value in members:
        if str(kind) == "NEGATE":
            yield ord("a")
            return
        if str(kind) == "LITERAL":
            yield value
        elif str(kind) == "RANGE":
            yield value[0]
        else:
            yield ord(letters.get(str(value), "-"))


def hostile_texts(expression: re.Pattern[Any]) -> Iterator[tuple[str, str, str]]:
    """The beginning, the repeated middle and the end of texts on which loops can share their letters."""
    flags = expression.flags & ~re.DEBUG
    signs = [chr(sign % 256) for sign in signs_of(parser.parse(expression.pattern, flags))]
    lead = "".join(signs[:20])
    few = list(dict.fromkeys(signs))[:SIGNS]
    for middle in (*few, *map("".join, permutations(few, 2)), lead):
        for begin in ("", signs[0], lead):
            for end in ("", "\0"):
                yield begin, middle, end


def seconds_of(
    expression: re.Pattern[Any], method: str, text: tuple[str, str, str], letters: int
) -> float:
    begin, middle, end = text
    whole: Any = begin + middle * (letters // len(middle)) + end
    if isinstance(expression.pattern, bytes):
        whole = whole.encode("latin-1")
    started = time.process_time()
    getattr(expression, method)(whole)
    return time.process_time() - started


def is_steep(expression: re.Pattern[Any], method: str, text: tuple[str, str, str]) -> bool:
    """Whether twice the text takes more than about twice as long, once it takes long at all."""
    letters = 16
    while letters < LETTERS:
        letters *= 2
        if seconds_of(expression, method, text, letters) > SECONDS:
            little = min(seconds_of(expression, method, text, letters // 2) for _ in range(3))
            much = min(seconds_of(expression, method, text, letters) for _ in range(3))
            return much > SECONDS and much > STEEP * little
    return False


@pytest.mark.parametrize(
    ("expression", "methods"),
    [pytest.param(*each[1:], id=each[0].removeprefix("autograder.")) for each in EXPRESSIONS],
)
def test_expression_takes_time_linear_in_the_text(
    expression: re.Pattern[Any], methods: tuple[str, ...]
) -> None:
    for method in methods:
        for text in hostile_texts(expression):
            assert not is_steep(expression, method, text), (method, text)


def test_steep_expressions_are_seen() -> None:
    """The kinds of fault that were there, so that the test above is known to see them."""
    for steep in (r"[A-Za-z_][\w.]*(?:\.\w+)*@", r"\s+$", r"(?:a|aa)+$", r"=[^\n]*x[^\n]*y"):
        expression = re.compile(steep)
        assert any(is_steep(expression, "search", text) for text in hostile_texts(expression)), (
            steep
        )
