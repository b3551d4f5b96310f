"""Parse a submission's text: cells, names, outline. Runs only in a worker or in a student's own process.

The text is not executed. Hostile text can at worst exhaust the worker that parses it.
"""

import ast
import hashlib
import json
import linecache
import re
import types
from collections.abc import Iterator, Sequence
from typing import Any

from autograder.source.magics import parse, plain_cell, plain_script

NOTEBOOK_FUNCTIONS = (
    *("answers", "catch", "check", "draw_model", "hint"),
    *("open_assignment", "pack", "picture", "progress"),
)
_DOTTED = re.compile(r"(?<![\w.\"'])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
NEAR = 20  # lines above and below one that raised
_LOCATED = re.compile(r"^[\w.-]+\.(py|ipynb)( cell \d+)?$")


def is_in_cells(step: types.FrameType) -> bool:
    """Whether a frame's file has one of the names from `cells`."""
    return bool(_LOCATED.match(step.f_code.co_filename))


def line_of(code: types.CodeType, line: int) -> str:
    """Return the text of a line in the file of a code object."""
    return linecache.getline(code.co_filename, line).strip()


def frame_texts(
    step: types.FrameType, line: int, error: BaseException
) -> tuple[str, str, str, str, str]:
    """Return the rest of a `Frame`: the function, the line, the nearest line above it, the shapes on the line, and
    the next statement below it in the same block.
    """
    code = step.f_code
    above = (line_of(code, number) for number in range(line - 1, max(0, line - NEAR), -1))
    before = next((text for text in above if text), "")
    shapes = _shapes_on(step, line) if issubclass(type(error), (RuntimeError, IndexError)) else ""
    lines = [text.rstrip("\n") for text in linecache.getlines(code.co_filename)]
    return qualified_name(code), line_of(code, line), before, shapes, statement_below(lines, line)


def statement_below(lines: Sequence[str], number: int) -> str:
    """Return the first line below a numbered one that goes on in its block; nothing if the block ends there."""
    if not 1 <= number <= len(lines):
        return ""
    indent = _indent(lines[number - 1])
    for line in lines[number : number + NEAR]:
        if line.strip() and not line.lstrip().startswith("#"):
            return line.strip() if _indent(line) == indent else ""
    return ""


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def qualified_name(code: types.CodeType) -> str:
    """Return `Head.forward` for a method; in Python 3.10, where code knows no such name, from the class in its file."""
    if name := getattr(code, "co_qualname", ""):
        return str(name)
    tree = parsed("".join(linecache.getlines(code.co_filename)))
    classes = [
        node for node in ast.walk(tree or ast.Module([], [])) if isinstance(node, ast.ClassDef)
    ]
    for definition in classes:
        methods = [
            node
            for node in definition.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        if (code.co_name, code.co_firstlineno) in [
            (method.name, _first_line(method)) for method in methods
        ]:
            return f"{definition.name}.{code.co_name}"
    return code.co_name


def _first_line(method: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min([method.lineno, *(decorator.lineno for decorator in method.decorator_list)])


def _shapes_on(step: types.FrameType, line: int) -> str:
    """Describe the tensors that a line of a running function names: `q is (3, 5, 4), self.key.weight is (4, 7)`."""
    shapes: dict[str, str] = {}
    for dotted in _DOTTED.findall(line_of(step.f_code, line)):
        root, *names = dotted.split(".")
        value: Any = step.f_locals.get(root, step.f_globals.get(root))
        owner = root
        for name in names:
            if hasattr(value, "dtype"):
                break
            value = getattr(value, name, None)
            owner = f"{owner}.{name}"
        if hasattr(value, "dtype") and hasattr(value, "shape"):
            shapes[owner] = f"{owner} is {tuple(value.shape)}"
    return ", ".join([*shapes.values()][:6])[:300]


def notebook_cells(text: str) -> list[Any]:
    """Return the cells of a notebook's text as in format 4; in format 3 they are in worksheets, and code is `input`.

    Raises ValueError if this is not a notebook. The cells themselves are unverified.
    """
    try:
        notebook = json.loads(text)
    except RecursionError:
        raise ValueError("this is nested too deeply for a notebook") from None
    if not isinstance(notebook, dict):
        raise ValueError("this is not a notebook")
    if isinstance(notebook.get("cells"), list):
        return list(notebook["cells"])
    if not isinstance(notebook.get("worksheets"), list):
        raise ValueError("this is not a notebook: it has no cells")
    cells: list[Any] = []
    for sheet in notebook["worksheets"]:
        if isinstance(sheet, dict) and isinstance(sheet.get("cells"), list):
            cells += map(_in_format_4, sheet["cells"])
    return cells


def _in_format_4(cell: Any) -> Any:
    if not isinstance(cell, dict):
        return cell
    kind = {"heading": "markdown", "html": "raw"}.get(
        str(cell.get("cell_type")), cell.get("cell_type")
    )
    return {**cell, "cell_type": kind, "source": cell.get("input", cell.get("source", ""))}


def cell_source(cell: dict[str, Any]) -> str:
    """Return the text of a notebook's cell, which is stored whole or as a list of lines."""
    source = cell.get("source", "")
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def cells(text: str, filename: str) -> Iterator[tuple[str, str]]:
    """Yield (name, code) of each piece to run: one for a `.py`, one per code cell for an `.ipynb`.

    Raises ValueError if a notebook is invalid.
    """
    if not filename.endswith(".ipynb"):
        yield filename, plain_script(text)
        return
    for number, cell in enumerate(notebook_cells(text), start=1):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            yield f"{filename} cell {number}", plain_cell(cell_source(cell))


def leaves_main_out(text: str) -> bool:
    """Whether the text can have an `if __name__ == "__main__":` block, which is neither read nor run."""
    return "__name__" in text and "__main__" in text


def without_main(code: str, filename: str, leaves_out: bool = True) -> ast.Module:
    """Parse the code, with nothing in that block, whatever `__name__` is; raises the exceptions of `compile`."""
    tree = parse(code, filename)
    blocks: list[Any] = [tree] if leaves_out else []
    for block in blocks:  # without expressions, which are most of a tree
        if isinstance(block, ast.If) and asks_for_main(block.test):
            block.test = ast.copy_location(ast.Constant(False), block.test)
            block.body = [ast.copy_location(ast.Pass(), block.body[0])]
        for inside in ("body", "orelse", "finalbody", "handlers", "cases"):
            blocks += getattr(block, inside, ())
    return tree


def asks_for_main(test: ast.expr) -> bool:
    """Whether this is `__name__ == "__main__"`, or begins with it and `and`."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return asks_for_main(test.values[0])
    if (
        not isinstance(test, ast.Compare)
        or not isinstance(test.ops[0], ast.Eq)
        or len(test.ops) > 1
    ):
        return False
    sides = (test.left, test.comparators[0])
    names = {side.id for side in sides if isinstance(side, ast.Name)}
    texts = {side.value for side in sides if isinstance(side, ast.Constant)}
    return names == {"__name__"} and texts == {"__main__"}


def parsed(code: str) -> ast.Module | None:
    """Parse the code; None if it is invalid and so cannot run."""
    try:
        return parse(code)
    except (SyntaxError, ValueError):  # ValueError: null bytes
        return None


def outline(text: str, filename: str) -> str:
    """Return a digest of the code alone, without comments, layout, `check(...)` cells and docstrings."""
    pieces: list[str] = []
    for _, code in cells(text, filename):
        if tree := parsed(code):
            _drop_documentation(tree)
            pieces.extend(ast.unparse(node) for node in tree.body if not _is_furniture(node))
        else:
            pieces.append(code)
    return hashlib.sha256("\n".join(pieces).encode("utf-8", "replace")).hexdigest()


def _drop_documentation(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [part for part in body if not _is_text(part)]  # type: ignore[attr-defined]


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _is_furniture(node: ast.stmt) -> bool:
    """Whether only the notebook has this node: the set-up cell's import, and calls of the functions that it imports."""
    if isinstance(node, ast.Try):
        node = node.body[0]
    if isinstance(node, ast.ImportFrom):
        return node.module == "autograder.notebook"
    call = node.value if isinstance(node, ast.Expr) else None
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id in NOTEBOOK_FUNCTIONS
    )
