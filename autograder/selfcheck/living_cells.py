"""The cells of a notebook whose definitions a kernel holds, as IPython keeps them, and those that it lacks."""

import ast
import importlib.util
import linecache
import re
import types
from collections.abc import Iterable
from typing import Any

from autograder.source.magics import parse, without_calls

_LATER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def cell_to_run(name: str, cells: Iterable[str]) -> str:
    """Return the words for the cell that binds a name: its own, or that with the imports; nothing if none does."""
    for code in cells:
        imported, bound = _names_bound(code)
        if name in imported:
            return "the cell with the imports"
        if name in bound:
            return "its cell"
    is_module = name.isidentifier() and importlib.util.find_spec(name) is not None
    return "the cell with the imports" if is_module else ""


def _names_bound(code: str) -> tuple[set[str], set[str]]:
    """Return the names that a cell imports and those that it binds otherwise, without those inside its functions."""
    imported = set[str]()
    bound = set[str]()
    try:
        waiting: list[ast.AST] = [parse(code)]
    except (SyntaxError, ValueError):
        return imported, bound
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.alias):
            imported.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        if isinstance(node, _LATER):
            bound.add(getattr(node, "name", ""))
        else:
            waiting += ast.iter_child_nodes(node)
    return imported, bound


def living_cells(space: dict[str, Any]) -> list[str]:
    """Return the texts of the cells that defined what is in a kernel's space now."""
    names = {
        name: _cell_of(value) for name, value in list(space.items()) if not name.startswith("_")
    }
    kept = {
        cell: "".join(linecache.getlines(cell)) for cell in sorted(filter(None, names.values()))
    }
    below_magics = [
        _below_magic(name, space) for name, cell in names.items() if cell and not kept[cell]
    ]
    return [*filter(None, kept.values()), *dict.fromkeys(filter(None, below_magics))]


def _below_magic(name: str, space: dict[str, Any]) -> str:
    """Return the latest cell below a magic such as `%%time` that defines the name: IPython keeps no file of it."""
    begun = re.compile(rf"^(?:async def|def|class) {re.escape(name)}\b", re.MULTILINE)
    for cell in reversed(space.get("In", [])):
        code = without_calls(cell)
        if code != cell and begun.search(code):
            return code
    return ""


def _cell_of(value: Any) -> str | None:
    """Return the file name under which IPython stores the cell that defined a function or class."""
    if isinstance(value, type) and value.__module__ == "__main__":
        functions = (item for item in vars(value).values() if isinstance(item, types.FunctionType))
        value = next(functions, None)
    if isinstance(value, types.FunctionType) and value.__module__ == "__main__":
        return value.__code__.co_filename
    return None
