"""A submission's text taken apart: cells, names, outline. Runs only in a worker or in a student's own process.

Nothing here executes the text. Hostile text can at worst exhaust the worker that reads it.
"""

from __future__ import annotations

import ast
import hashlib
import json
import linecache
import re
import types
from collections.abc import Iterator
from typing import Any

DYNAMIC = {
    "getattr",
    "eval",
    "exec",
    "compile",
    "__import__",
    "vars",
    "globals",
    "import_module",
    "attrgetter",
}
_LOCATED = re.compile(r"^[\w.-]+\.(py|ipynb)( cell \d+)?$")


def is_students(filename: str) -> bool:
    """Whether a traceback's file name is one that `cells` gave."""
    return bool(_LOCATED.match(filename))


def qualified_name(code: types.CodeType) -> str:
    """`Head.forward` where Python tells (from 3.11 on), `forward` elsewhere."""
    return getattr(code, "co_qualname", code.co_name)


def line_of(code: types.CodeType, line: int) -> str:
    """The text of a line of the file that a piece of code came from."""
    return linecache.getline(code.co_filename, line).strip()


def cells(text: str, filename: str) -> Iterator[tuple[str, str]]:
    """(name, code) of each piece to be run: one for a `.py`, one a code cell for an `.ipynb`.

    Raises ValueError when a notebook is not one.
    """
    if not filename.endswith(".ipynb"):
        yield filename, text
        return
    from IPython.core.inputtransformer2 import TransformerManager

    notebook = json.loads(text)
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise ValueError("this is not a notebook: it has no cells")
    for number, cell in enumerate(notebook["cells"], start=1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        content = cell.get("source", "")
        content = "".join(content) if isinstance(content, list) else str(content)
        yield f"{filename} cell {number}", TransformerManager().transform_cell(content)


class NoShell:
    """Stands in for IPython where a notebook is graded: magics and shell commands do nothing."""

    def run_line_magic(self, *args: Any, **kwargs: Any) -> None:
        return None

    run_cell_magic = system = getoutput = set_next_input = run_line_magic


def no_shell() -> NoShell:
    return NoShell()


def silent_notebook() -> types.ModuleType:
    """`autograder.notebook` for a worker: a notebook's own `check(...)` and `picture(...)` cells do nothing."""
    module = types.ModuleType("autograder.notebook")
    module.__dict__.update(check=lambda *args, **kwargs: None, picture=lambda *args, **kwargs: None)
    return module


def names_used(text: str, filename: str) -> dict[str, list]:
    """The dotted names that imports and attribute chains in the text stand for, with their lines.

    `uses` lists [name, line]; aliases are followed, so `from torch import nn as n; n.LayerNorm` gives
    `torch.nn.LayerNorm`. `dynamic` lists [name, line] of look-ups that parsing cannot follow.
    """
    uses: dict[str, int] = {}
    dynamic: dict[str, int] = {}
    reader = _NameReader(uses, dynamic)
    for _, code in cells(text, filename):
        try:
            reader.visit(ast.parse(code))
        except SyntaxError:
            continue  # what cannot be parsed cannot run either
    return {
        "uses": [[n, line] for n, line in uses.items()],
        "dynamic": [[n, line] for n, line in dynamic.items()],
    }


class _NameReader(ast.NodeVisitor):
    def __init__(self, uses: dict[str, int], dynamic: dict[str, int]) -> None:
        self.uses, self.dynamic = uses, dynamic
        self.aliases: dict[str, str] = {}

    def visit_Import(self, node: ast.Import) -> None:
        for name in node.names:
            self.uses.setdefault(name.name, node.lineno)
            self.aliases[name.asname or name.name.split(".")[0]] = (
                name.name if name.asname else name.name.split(".")[0]
            )

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for name in node.names:
            full = f"{node.module or ''}.{name.name}"
            self.uses.setdefault(full, node.lineno)
            self.aliases[name.asname or name.name] = full

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        full = self.full_name(node.value)
        for target in node.targets:
            if full and isinstance(target, ast.Name):
                self.aliases[target.id] = full

    def visit_Attribute(self, node: ast.Attribute) -> None:
        full = self.full_name(node)
        if full:
            self.uses.setdefault(full, node.lineno)
        else:
            self.visit(node.value)
        if node.attr in DYNAMIC or node.attr == "__dict__":
            self.dynamic.setdefault(node.attr, node.lineno)

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in DYNAMIC:
            self.dynamic.setdefault(node.id, node.lineno)

    def full_name(self, node: ast.AST) -> str | None:
        """`torch.nn.LayerNorm` for `nn.LayerNorm`, when `nn` was imported; None for other chains."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.aliases:
            return None
        return ".".join([self.aliases[node.id], *reversed(parts)])


def outline(text: str, filename: str) -> str:
    """A digest of the code alone: comments, layout, `check(...)` cells and documentation do not count."""
    pieces = []
    for _, code in cells(text, filename):
        try:
            tree = ast.parse(code)
        except SyntaxError:
            pieces.append(code)
            continue
        pieces.extend(ast.unparse(node) for node in tree.body if not _is_furniture(node))
    return hashlib.sha256("\n".join(pieces).encode("utf-8", "replace")).hexdigest()


def _is_furniture(node: ast.stmt) -> bool:
    """What the notebook has and the `.py` has not: the set-up import, and calls of check and picture."""
    if isinstance(node, ast.ImportFrom):
        return node.module == "autograder.notebook"
    call = node.value if isinstance(node, ast.Expr) else None
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id in ("check", "picture")
    )
