"""Trivial answers: the solution's names, shapes and refusals, with answers that compute nothing.

Each of them is the official solution whose functions give back ones, zeros, noise, their first argument or nothing.
The audit demands that none of them earns more than a quarter of an assignment's points.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.course.config import Assignment, Course
from autograder.course.document import Document, load_document

LIMIT = 0.25
_KINDS = {
    "ones": ("one.new_ones(one.shape)", "type(one)(1)", "_like(answer)"),
    "zeros": ("one.new_zeros(one.shape)", "type(one)(0)", "_like(answer)"),
    "noise": ("_noise(one)", "type(one)(_random.uniform(-3, 3))", "_like(answer)"),
    "first argument": ("one", "one", "(first[0] if first else None)"),
    "nothing": ("one", "one", "None"),
    "empty": ("one.new_zeros(0)", "type(one)(0)", "_like(answer, 0)"),
}
_HELPERS = """
import functools as _functools
import random as _random
import torch as _torch

_inside = []


def _noise(one):
    return (3 * _torch.randn(one.shape)).to(one.dtype)


def _like(one, items=None):
    if isinstance(one, _torch.Tensor):
        return {tensor}
    if isinstance(one, (bool, int, float)):
        return {number}
    if isinstance(one, _torch.nn.Module):
        for parameter in one.parameters():
            parameter.data = _torch.zeros_like(parameter) if items == 0 else _like(parameter.data)
        return one
    if isinstance(one, dict):
        return {{key: _like(value) for key, value in [*one.items()][:items]}}
    if isinstance(one, (list, tuple)):
        return type(one)([_like(value) for value in one[:items]])
    return "" if isinstance(one, str) else None


def _trivial(skipped):
    def decorated(function):
        @_functools.wraps(function)
        def trivial(*arguments, **named):
            if _inside:
                return function(*arguments, **named)
            _inside.append(True)
            try:
                answer = function(*arguments, **named)
            finally:
                _inside.clear()
            first = [*arguments, *named.values()][skipped:]
            return {result}

        return trivial

    return decorated
"""


def trivial_answers(course: Course, assignment: Assignment) -> Iterator[tuple[str, str]]:
    """Yield each trivial answer to an assignment as (name, text)."""
    document = load_document(course, assignment)
    for name, (tensor, number, result) in _KINDS.items():
        yield name, _answer(document, _HELPERS.format(tensor=tensor, number=number, result=result))


def _answer(document: Document, helpers: str) -> str:
    """Decorate the functions that students write; of those that return nothing, only the refusals are left."""
    tree = ast.parse(document.text)
    written = {gap.function for gap in document.gaps}
    for name, node in _functions(tree, ""):
        if name not in written or node.name == "__init__":
            continue
        if isinstance(node.returns, ast.Constant) and node.returns.value is None:
            node.body = [*_up_to_the_last_refusal(node.body), ast.Pass()]
        else:
            node.decorator_list.append(ast.parse(f"_trivial({int('.' in name)})", mode="eval").body)
    start = next((i for i, node in enumerate(tree.body) if not _comes_first(node)), len(tree.body))
    tree.body[start:start] = ast.parse(helpers).body
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _functions(node: ast.AST, around: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield f"{around}{child.name}", child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{around}{child.name}.")


def _up_to_the_last_refusal(body: list[ast.stmt]) -> list[ast.stmt]:
    refusals = [
        i for i, node in enumerate(body) if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise)
    ]
    return body[: refusals[-1] + 1] if refusals else []


def _comes_first(node: ast.stmt) -> bool:
    """Whether a statement is the module's docstring or an import from `__future__`."""
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return docstring or (isinstance(node, ast.ImportFrom) and node.module == "__future__")
