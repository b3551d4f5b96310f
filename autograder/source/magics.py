"""IPython's magics in a student's text: those that run Python code are replaced by the code that they run.

All other magics and shell commands stay calls of `get_ipython()`, which does nothing during
grading.
"""

import ast
import re
from contextlib import suppress
from typing import Any

DEEPEST = 5  # cell magics below one another

# Cell magics that run the code below them in the notebook's own names, and their options with a
# value and without one. IPython runs a cell below `%%timeit` in a function; here it is run once.
CELL_MAGICS = {
    "capture": ("", ""),
    "debug": ("b", ""),
    "prun": ("DlsT", "rq"),
    "time": ("", ""),
    "timeit": ("nrpv", "tcqo"),
}
LINE_MAGICS = ("debug", "prun", "time")  # `%timeit` binds no name

_SOME = re.compile(
    r"^[ \t]*(?:(?![ \t])[^#\n]*=[ \t]*)?[!%][\w!%]|get_ipython\(|^[ \t]*\?|\?[ \t]*$", re.MULTILINE
)
_CELL = re.compile(r"^get_ipython\(\)\.run_cell_magic(\(.*\))[ \t]*$", re.MULTILINE)
_LINE = re.compile(
    r"^([ \t]*(?:(?![ \t])[^#'\"\n]*=[ \t]*)?)get_ipython\(\)\.run_line_magic(\('.*\))[ \t]*$",
    re.MULTILINE,
)
_LONG_OPTION = r"--[\w-]+"
_OUTPUT = re.compile(r"(?:^|\s)([A-Za-z_]\w*)\s*$")  # the last word of `%%capture --no-stderr name`

# Colab comments a cell with a magic out when it saves a notebook as a script
_COLAB = re.compile(
    r"^# Commented out IPython magic to ensure Python compatibility\.\n((?:#.*(?:\n|\Z))+)",
    re.MULTILINE,
)
_read_before: dict[str, ast.Module] = {}  # the last text that was only asked whether it is Python


def plain_cell(source: str) -> str:
    """Return the Python code of a notebook's cell, with as many lines as far as possible.

    Code that Python cannot read is returned as it is, and reported when it is compiled.
    """
    return _plain(source, DEEPEST) if _SOME.search(source) else source


def plain_script(text: str) -> str:
    """Return the Python code of a script, which can be a notebook that was saved as one, with as many lines.

    Calls of cell magics stay: nbconvert writes a cell below `%%time` into one line. See `parse`.
    """
    text = _COLAB.sub(_uncommented, text)
    if "get_ipython()" in text:
        text = _LINE.sub(_of_line, text)
    if _SOME.search(text) and not _is_python(text):
        text = _plain(text, DEEPEST)
    return text


def without_calls(code: str, depth: int = DEEPEST) -> str:
    """Return code that IPython has transformed, with what its calls of these magics run in their place."""

    def of_cell(call: re.Match[str]) -> str:
        name, line, body = _arguments(call[1], 3)
        if name not in CELL_MAGICS or not depth:
            return call[0]
        return f"{_first_line(name, line)}\n{_plain(body, depth - 1)}".rstrip("\n")

    return _LINE.sub(_of_line, _CELL.sub(of_cell, code))


def _of_line(call: re.Match[str]) -> str:
    name, line = _arguments(call[2], 2)
    return call[1] + _after_options(name, line) if name in LINE_MAGICS and line else call[0]


def parse(code: str, filename: str = "<unknown>") -> ast.Module:
    """Parse code; in place of calls of cell magics stands what they run, all of it in the line of the call."""
    tree = _read_before.pop(code, None) or ast.parse(code, filename)
    if "run_cell_magic" in code:
        body: list[ast.stmt] = []
        for statement in tree.body:
            body += _run_by(statement, filename)
        tree.body = body
    return tree


def _run_by(statement: ast.stmt, filename: str) -> list[ast.stmt]:
    """Return the statements that a call of a cell magic runs, or another statement itself."""
    call = _CELL.fullmatch(ast.unparse(statement)) if isinstance(statement, ast.Expr) else None
    if call is None:
        return [statement]
    try:
        body = ast.parse(without_calls(call[0])).body
    except SyntaxError as error:
        raise SyntaxError(error.msg, (filename, statement.lineno, 1, error.text)) from None
    for part in body:
        for node in ast.walk(part):
            if hasattr(node, "lineno"):
                ast.copy_location(node, statement)
    return body


def _plain(source: str, depth: int) -> str:
    from IPython.core.inputtransformer2 import TransformerManager

    with suppress(SyntaxError):
        blank = len(source) - len(source.lstrip("\n"))  # IPython drops them, and the lines count
        return "\n" * blank + without_calls(TransformerManager().transform_cell(source), depth)
    return source


def _arguments(call: str, number: int) -> tuple[str, ...]:
    """Return the texts with which a magic is called, or empty ones if they are no constants."""
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        values: Any = ast.literal_eval(call)
        if (
            isinstance(values, tuple)
            and len(values) == number
            and all(isinstance(value, str) for value in values)
        ):
            return values
    return ("",) * number


def _first_line(name: str, line: str) -> str:
    """Return the code in a cell magic's own line: the set-up of `%%timeit`, the name of what was captured."""
    if name == "capture":
        output = _OUTPUT.search(line)
        return f"{output[1]} = get_ipython().captured()" if output else ""
    return "" if name == "time" else _after_options(name, line)


def _after_options(name: str, line: str) -> str:
    with_value, without = CELL_MAGICS[name]
    kinds = [_LONG_OPTION]
    kinds += [rf"-[{with_value}][ \t]*\S+"] if with_value else []
    kinds += [rf"-[{without}]+(?!\S)"] if without else []
    options = re.compile(rf"(?:[ \t]*(?:{'|'.join(kinds)}))*[ \t]*")
    match = options.match(line)
    return line[match.end() :] if match else line


def _uncommented(match: re.Match[str]) -> str:
    lines = [re.sub(r"^# ?", "", line) for line in match[1].split("\n")]
    magic = re.match(r"%%(\w+)(.*)", lines[0])
    if magic is None or magic[1] not in CELL_MAGICS:
        return match[0]
    return "\n".join(["", _first_line(magic[1], magic[2]), *lines[1:]])


def _is_python(text: str) -> bool:
    _read_before.clear()
    try:
        _read_before[text] = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
