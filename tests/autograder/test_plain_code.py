"""Ratchets that ruff has no rule for: one thing a line, and no expression inside of its like. They only go down."""

from __future__ import annotations

import ast
import typing
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ENGINE = Path(__file__).parents[2] / "autograder"
TESTS = Path(__file__).parent
BY_NAME = {"delattr", "getattr", "hasattr", "setattr", "patch", "object"}  # of `patch.object`, too
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def nested_conditions(node: ast.AST) -> bool:
    """`a if b else c if d else e`"""
    if not isinstance(node, ast.IfExp):
        return False
    return any(isinstance(each, ast.IfExp) for each in (node.test, node.body, node.orelse))


def assigned_inside(node: ast.AST) -> bool:
    """`[y for x in xs if (y := f(x))]`"""
    if not isinstance(node, COMPREHENSIONS):
        return False
    return any(isinstance(each, ast.NamedExpr) for each in ast.walk(node))


def packed(node: ast.AST) -> bool:
    """`a, b = f(), g()`; exchanging two values needs it."""
    if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple)):
        return False
    return isinstance(node.value, ast.Tuple)


def two_loops(node: ast.AST) -> bool:
    """`[y for x in xs for y in x]`"""
    return isinstance(node, COMPREHENSIONS) and len(node.generators) > 1


LOOKED_AT = (*COMPREHENSIONS, ast.IfExp, ast.Assign, ast.Attribute, ast.Name, ast.arg)
VAGUE = {"each", "found", "known", "made", "one", "own", "told"}


def vague(node: ast.AST) -> bool:
    """`found = …`, `for one in …`, `def f(told)`: a name that does not say what it holds."""
    if isinstance(node, ast.Name):
        return isinstance(node.ctx, ast.Store) and node.id in VAGUE
    return isinstance(node, ast.arg) and node.arg in VAGUE


def inside_typing(node: ast.AST) -> bool:
    """`Annotated.__class_getitem__`, which Python 3.13 does not have."""
    if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
        return False
    return node.attr.startswith("__") and node.value.id in typing.__all__


MOST = {
    nested_conditions: 0,
    assigned_inside: 2,
    packed: 0,
    two_loops: 15,
    vague: 7,
    inside_typing: 0,
}


@cache
def nodes() -> list[tuple[str, ast.AST]]:
    """The nodes of the engine's files that a rule looks at, with the file's name."""
    every: list[tuple[str, ast.AST]] = []
    for file in sorted(ENGINE.rglob("*.py")):
        name = str(file.relative_to(ENGINE))
        tree = ast.parse(file.read_text("utf-8"))
        every += [(name, node) for node in ast.walk(tree) if isinstance(node, LOOKED_AT)]
    return every


def places(matches) -> Iterator[str]:
    for name, node in nodes():
        if matches(node):
            yield f"{name}:{node.lineno}"


@pytest.mark.parametrize("matches", MOST, ids=lambda matches: matches.__name__)
def test_dense_expressions_become_fewer(matches) -> None:
    found = list(places(matches))
    assert len(found) == MOST[matches], f"lower the figure if there are fewer: {found}"


def is_private(name: str) -> bool:
    """`_step`, or `autograder.runs.run._step`; not `__name__`."""
    parts = name.split(".")
    return any(part.startswith("_") and not part.startswith("__") for part in parts)


def private_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the private names that a test imports from the engine or gives to `setattr` and its like,
    with their lines: ruff (SLF001) only sees `object._name`.
    """
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("autograder"):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            values = [*node.args, *(keyword.value for keyword in node.keywords)]
            texts = [value.value for value in values if isinstance(value, ast.Constant)]
            names = [text for text in texts if isinstance(text, str) and called in BY_NAME]
        yield from ((node.lineno, name) for name in names if is_private(name))


def test_no_test_names_a_private_attribute_of_the_engine() -> None:
    found = []
    for file in sorted(TESTS.rglob("*.py")):
        for line, name in private_names(ast.parse(file.read_text("utf-8"))):
            found.append(f"{file.relative_to(TESTS)}:{line}: {name}")
    assert found == [], "go through a public door, or make it one"
