"""The cells of a notebook whose definitions a kernel holds, as IPython keeps them."""

import linecache
import re
import types
from typing import Any

from autograder.source.magics import without_calls


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
