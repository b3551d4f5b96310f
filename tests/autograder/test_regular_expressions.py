"""Our regular expressions over students' text end in time linear in it: each meets texts made from its own signs."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import autograder
from autograder.course.reading import load_course
from autograder.extras.sheets.own_code import CodeLine, OwnCode, short_line
from autograder.extras.sheets.questions import Edit, load_question_file
from autograder.source.python_versions import newer_syntax

try:
    from re import _parser as parser  # type: ignore[attr-defined]
except ImportError:  # Python 3.10
    import sre_parse as parser  # type: ignore[no-redef]

ROOT = Path(__file__).parents[2]
# whose text is the author's, the instructor's or the machine's; and what is imported where its packages are
TRUSTED = ("authoring.", "course.", "installation.", "cli.", "extras.cluster.")
SIGNS = 6  # of an expression, in the texts
LETTERS = 5_000  # of a text
SECONDS = 0.04  # of processor time: a linear search takes less than a hundredth of it
STEEP = 3.0  # times as long for a text twice as long: linear is 2, quadratic 4


# expressions that are put together from others: a test of its own searches with each
MADE = {
    "extras.sheets.own_code": "first + ''.join(pieces[1:]) + last",
    "nbgrader.inbound": "_NAME.format(names)",  # on the name of one folder
    "source.python_versions": "pattern",
}


def modules() -> Iterator[tuple[str, ModuleType, str]]:
    """The name, the module and the text of each that searches texts of students."""
    for module in pkgutil.walk_packages(autograder.__path__, "autograder."):
        name = module.name.removeprefix("autograder.")
        if name.startswith(TRUSTED):
            continue
        try:
            loaded = importlib.import_module(module.name)
        except ModuleNotFoundError:
            continue
        yield name, loaded, Path(str(loaded.__file__)).read_text("utf-8")


def expressions() -> Iterator[tuple[str, re.Pattern[Any], tuple[str, ...]]]:
    """The expressions of all modules, and how each is used."""
    for module, loaded, source in modules():
        for name, value in vars(loaded).items():
            if isinstance(value, re.Pattern):
                used = set(
                    re.findall(rf"\b{name}\.(match|fullmatch|search|sub|split|find)", source)
                )
                whole = used <= {"match", "fullmatch"} and used
                yield f"{module}.{name}", value, tuple(used) if whole else ("search",)
        yield from _inline(module, ast.parse(source))


def _inline(module: str, tree: ast.Module) -> Iterator[tuple[str, re.Pattern[Any], tuple[str]]]:
    """The expressions in calls such as `re.search("…", text)`, with a word for each placeholder."""
    assigned = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    at_the_top = [id(node.value) for node in tree.body if isinstance(node, ast.Assign)]
    for call in filter(_is_search, ast.walk(tree)):
        if id(call) in at_the_top:
            continue  # it is an expression of the module
        first = call.args[0]
        if ast.unparse(first) == MADE.get(module):
            continue
        text = _text_of(assigned.get(first.id, first) if isinstance(first, ast.Name) else first)
        multiline = re.MULTILINE if "re.M" in ast.unparse(call) else 0
        used = call.func.attr if call.func.attr in ("match", "fullmatch") else "search"
        yield f"{module}:{text}", re.compile(text, multiline), (used,)


def _is_search(node: Any) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and ast.unparse(node.func.value) == "re"
        and node.func.attr != "escape"
    )


def _text_of(node: Any) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(_text_of(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return "name"
    assert isinstance(node, ast.Constant), (
        f"add a test of this to those of MADE: {ast.unparse(node)}"
    )
    return str(node.value)


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
    expression: re.Pattern[Any] | Searching, method: str, text: tuple[str, str, str], letters: int
) -> float:
    begin, middle, end = text
    whole: Any = begin + middle * (letters // len(middle)) + end
    if isinstance(expression.pattern, bytes):
        whole = whole.encode("latin-1")
    started = time.process_time()
    getattr(expression, method)(whole)
    return time.process_time() - started


def is_steep(
    expression: re.Pattern[Any] | Searching, method: str, text: tuple[str, str, str]
) -> bool:
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
    ("expression", "methods"), [pytest.param(*each[1:], id=each[0]) for each in EXPRESSIONS]
)
def test_expression_takes_time_linear_in_the_text(
    expression: re.Pattern[Any], methods: tuple[str, ...]
) -> None:
    for method in methods:
        for text in hostile_texts(expression):
            assert not is_steep(expression, method, text), (method, text)


@pytest.mark.slow
def test_steep_expressions_are_seen() -> None:
    """The kinds of fault that were there, so that the test above is known to see them."""
    for steep in (r"[A-Za-z_][\w.]*(?:\.\w+)*@", r"\s+$", r"(?:a|aa)+$", r"=[^\n]*x[^\n]*y"):
        expression = re.compile(steep)
        assert any(is_steep(expression, "search", text) for text in hostile_texts(expression)), (
            steep
        )


@dataclass(frozen=True)
class Searching:
    """A function that searches a text with expressions that it puts together, in place of an expression."""

    search: Callable[[str], object]
    pattern: str = ""


def with_questions(text: str) -> None:
    """Search a text as `sheet` does for each question of the course."""
    for edit in QUESTIONS:
        OwnCode(text).changed([edit])


def questions() -> Iterator[Edit]:
    course = load_course(ROOT)
    for assignment in course.assignments:
        file = load_question_file(course, assignment)
        for topic in file.topics if file else ():
            for what_if in topic.what_if:
                yield from what_if.edits


QUESTIONS = list(questions())
UNITS = {
    with_questions: ["a.", "a[", "a(", "a ", "a[0]", "( ", "a.a(a)[a] "],
    lambda text: newer_syntax(text, (3, 10)): ['f"{', "f'", "a[", "a[ ", "a[*", "type a[]", "def "],
    lambda text: short_line(CodeLine(1, text)): [" ", "\t", "  #", " a"],
}


@pytest.mark.parametrize(
    ("function", "unit"), [(function, unit) for function, units in UNITS.items() for unit in units]
)
def test_made_expression_takes_time_linear_in_the_text(
    function: Callable[[str], object], unit: str
) -> None:
    assert QUESTIONS
    for begin in ("", "x"):
        assert not is_steep(Searching(function), "search", (begin, unit, "\0"))
