"""The functions, classes and comments of a Python text."""

import ast
import io
import tokenize
from collections.abc import Iterator

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_WITH_STATEMENTS = ast.stmt | ast.excepthandler | ast.match_case  # no expression holds a definition


def definitions(tree: ast.AST, around: str = "") -> Iterator[tuple[str, Definition]]:
    """Yield all functions and classes in a tree with their qualified names, outer ones before those inside."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Definition):
            yield f"{around}{node.name}", node
            yield from definitions(node, f"{around}{node.name}.")
        elif isinstance(node, _WITH_STATEMENTS):
            yield from definitions(node, around)


def functions(tree: ast.AST) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield all functions and methods in a tree with their qualified names, as `definitions` does."""
    return ((name, node) for name, node in definitions(tree) if isinstance(node, ast.FunctionDef))


def comments(text: str) -> Iterator[tokenize.TokenInfo]:
    """Yield the comments of a text, in order; raises SyntaxError or TokenError if it is invalid."""
    return (
        token
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    )
