"""Trivial answers: the solution's names, shapes and refusals, with answers that compute nothing.

The audit demands that none of them earns more than a quarter of an assignment's points. Where
refusals are the lesson, `share_for_refusals` says what those may earn that refuse, and the quarter
is for the same answers without refusals.
"""

import ast
from collections.abc import Iterator, Mapping

from autograder.authoring.template import filled
from autograder.course.config import Assignment, Course
from autograder.course.definitions import functions
from autograder.course.document import load_document

LIMIT = 0.25
WITHOUT = ", without refusals"
# Of each kind, the expressions that stand for a tensor, an array or a number `one`, and for the whole
# `answer`; `_like` replaces what the answer holds.
_KINDS = {
    "ones": {
        "tensor": "one.new_ones(one.shape)",
        "array": "_numpy.ones_like(one)",
        "number": "type(one)(1)",
        "result": "_like(answer)",
    },
    "zeros": {
        "tensor": "one.new_zeros(one.shape)",
        "array": "_numpy.zeros_like(one)",
        "number": "type(one)(0)",
        "result": "_like(answer)",
    },
    "noise": {
        "tensor": "one.detach().double().clone().normal_(0, 3).to(one.dtype)",
        "array": "_numpy.random.normal(0, 3, one.shape).astype(one.dtype)",
        "number": "type(one)(3 * _random.random())",
        "result": "_like(answer)",
    },
    "first argument": {
        "tensor": "one",
        "array": "one",
        "number": "type(one)(0)",
        "result": "(first[0] if first else None)",
    },
    "nothing": {"tensor": "one", "array": "one", "number": "type(one)(0)", "result": "None"},
    "empty": {
        "tensor": "one.new_zeros(0)",
        "array": "_numpy.zeros(0)",
        "number": "type(one)(0)",
        "result": "_like(answer, 0)",
    },
}


def trivial_answers(course: Course, assignment: Assignment) -> Iterator[tuple[str, str]]:
    """Yield each trivial answer to an assignment as (name, text).

    Constructors work as in the solution; a function that returns nothing works on copies, so that
    it only refuses. None of them prints.
    """
    for kind, words in _KINDS.items():
        yield kind, _answer(course, assignment, {**words, "swallowed": "()"})
        if assignment.share_for_refusals is not None:
            yield kind + WITHOUT, _answer(course, assignment, {**words, "swallowed": "Exception"})


def limit_of(assignment: Assignment, name: str) -> float:
    """Return the share of the points that the trivial answer of this name may earn."""
    share = None if name.endswith(WITHOUT) else assignment.share_for_refusals
    return LIMIT if share is None else share


def _answer(course: Course, assignment: Assignment, words: Mapping[str, str]) -> str:
    document = load_document(course, assignment)
    written = {gap.function for gap in document.gaps}
    tree = ast.parse(document.text)
    for name, node in functions(tree):
        if name in written or node.name == "__init__":
            node.decorator_list.append(
                ast.parse(f"_trivial({_kind(name, node)!r})", mode="eval").body
            )
    start = next((i for i, node in enumerate(tree.body) if not _comes_first(node)), len(tree.body))
    tree.body[start:start] = ast.parse(filled("trivial.py", words)).body
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _kind(name: str, function: ast.FunctionDef) -> str:
    if function.name == "__init__":
        return "makes"
    if isinstance(function.returns, ast.Constant) and function.returns.value is None:
        return "changes"
    return "method" if "." in name else "function"


def _comes_first(node: ast.stmt) -> bool:
    """Whether a statement is the module's docstring or an import from `__future__`."""
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return docstring or (isinstance(node, ast.ImportFrom) and node.module == "__future__")
