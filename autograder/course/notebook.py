"""Convert a document to a notebook: the same cells, with nbgrader's metadata and fixed cell ids."""

import ast
import hashlib
import re
import textwrap
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbformat import NotebookNode

from autograder.course.config import Assignment
from autograder.course.definitions import Definition
from autograder.course.document import PERCENT
from autograder.course.markers import BEGIN, PLACEHOLDER, UNWRITTEN

SET_UP = (Path(__file__).parent / "set_up.py.txt").read_text("utf-8").rstrip()
WIDE = 80  # characters that JupyterLab shows beside its side bar
SHAPES = 56  # where shapes stand in a notebook, beside code that leaves room for them
# notes to tools stay in their line
_NOTED = re.compile(r"(\s*)(\S.*?)\s+# (?!noqa|type:|fmt:)(.+)")
FULL = 100  # characters of a line of a docstring that has no room for another word
_BEGINS = re.compile(r"\W*$|\w+: |(Example|Returns|Raises)\b")  # a new paragraph of a docstring
FOLDED = "hide-input"  # the tag of a cell whose code a notebook shows only when it is asked for
_DEMONSTRATION = 'if __name__ == "__main__":'


def to_notebook(assignment: Assignment, text: str) -> NotebookNode:
    """Convert a document (a stub or a solution) to a notebook with nbgrader's metadata and fixed cell ids.

    Cells for the student's code and written answers can be edited but not deleted; each part has
    one locked test cell; prose and given code have no nbgrader metadata.
    """
    cells = [_notebook_cell(assignment, cell) for cell in jupytext.reads(text, PERCENT).cells]
    set_up = nbformat.v4.new_code_cell(SET_UP.replace("@assignment@", assignment.name))
    below_the_title = 1 if cells[0].cell_type == "markdown" else 0
    cells.insert(below_the_title, set_up)
    keys = [
        cell.metadata.get("nbgrader", {}).get("grade_id", str(i)) for i, cell in enumerate(cells)
    ]
    for cell, key in zip(cells, keys, strict=True):
        cell["id"] = hashlib.sha256(f"{assignment.name}/{key}".encode()).hexdigest()[:12]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = nbformat.v4.new_notebook(
        cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}}
    )
    notebook.nbformat_minor = 5
    nbformat.validate(notebook)
    return notebook


def _notebook_cell(assignment: Assignment, cell: NotebookNode) -> NotebookNode:
    part, name, picture = map(cell.metadata.get, ("part", "answer", "picture"))
    if part is not None:
        return _test_cell(assignment, part)
    if name is not None:
        points = assignment.points_in_nbgrader[name]
        written = nbformat.v4.new_markdown_cell(PLACEHOLDER, metadata={"deletable": False})
        return _with_nbgrader(written, name, grade=True, solution=True, points=points)
    if picture is not None:
        return nbformat.v4.new_code_cell(f'picture("{picture}")')
    new = getattr(nbformat.v4, f"new_{cell.cell_type}_cell")
    code = cell.cell_type == "code"
    tags = list(cell.metadata.get("tags", []))
    if code and _DEMONSTRATION in cell.source:
        tags.append("raises-exception")  # so that a notebook goes on after unfinished code
    written = new(with_narrow_lines(cell.source) if code else cell.source)
    if tags:
        written.metadata["tags"] = tags
    if FOLDED in tags:
        written.metadata["jupyter"] = {"source_hidden": True}
    if not code or not (function := _first_gap(cell.source)):
        return written
    written.metadata["deletable"] = False
    return _with_nbgrader(written, f"write-{function}", grade=False, solution=True)


def _test_cell(assignment: Assignment, part: str) -> NotebookNode:
    test = nbformat.v4.new_code_cell(
        f'check("{part}")', metadata={"deletable": False, "editable": False}
    )
    points = assignment.part(part).points
    return _with_nbgrader(test, part, grade=True, solution=False, points=points)


def with_narrow_lines(source: str) -> str:
    """Wrap docstrings, and move the shape at the end of a line that is too wide: to the left, or
    else above code and below a comment.
    """
    lines = _with_narrow_docstrings(source.split("\n"), ast.parse(source))
    meaning = _meaning("\n".join(lines))
    for number in reversed(range(len(lines))):
        noted = _NOTED.fullmatch(lines[number]) if len(lines[number]) > WIDE else None
        if noted is None:
            continue
        indent, code, shape = noted.groups()
        beside = f"{indent + code:{SHAPES}}  # {shape}"
        if len(beside) <= WIDE:
            moved = [beside]
        elif code.startswith("#"):
            moved = [indent + code, f"{indent}#       {shape}"]
        else:
            moved = [f"{indent}# {shape}", indent + code]
        narrow = [*lines[:number], *moved, *lines[number + 1 :]]
        if _meaning("\n".join(narrow)) == meaning:  # not in a text of several lines
            lines = narrow
    return "\n".join(lines)


def _with_narrow_docstrings(lines: list[str], tree: ast.Module) -> list[str]:
    """Wrap the wide lines of docstrings; a shape at the end of a line moves to the next one if it does not fit."""
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, Definition) and ast.get_docstring(node):
            text = node.body[0]
            inside.update(range(text.lineno - 1, text.end_lineno or 0))
    narrow: list[str] = []
    number = 0
    while number < len(lines):
        first = last = lines[number]
        paragraph = [first]
        wide = number in inside and len(first) > WIDE
        while wide and number + 1 in inside and _goes_on(first, last, lines[number + 1]):
            number += 1
            last = lines[number]
            paragraph.append(last.strip())
        narrow += _wrapped(" ".join(paragraph)) if wide else paragraph
        number += 1
    return narrow


def _goes_on(first: str, last: str, line: str) -> bool:
    """Whether the author broke a paragraph here only because the line was full."""
    start, gap, _ = _columns(first)
    column = len(start + gap) if gap else len(first) - len(first.lstrip())
    full = len(f"{last} {line.strip().partition(' ')[0]}") > FULL
    return full and len(line) - len(line.lstrip()) == column and not _BEGINS.match(line.strip())


def _columns(line: str) -> tuple[str, str | None, str | None]:
    """Split a line at the last gap of several spaces: what is left of it, the gap, and what is right of it."""
    return re.fullmatch(r"(\s*\S.*?)(?:(\s{2,})(\S.*))?", line).groups()  # type: ignore[union-attr,return-value]


def _wrapped(line: str) -> list[str]:
    """Wrap a line of prose, a line that ends in a shape, or a line with a name and, in a column, what it means."""
    start, gap, end = _columns(line)
    indent = line[: len(line) - len(line.lstrip())]
    if gap and len(start + gap) > WIDE // 2:
        return (
            [f"{start}  {end}"] if len(f"{start}  {end}") <= WIDE else [start, f"{indent}    {end}"]
        )
    column = " " * len(start + gap) if gap else indent
    pieces = textwrap.wrap(
        line[len(column) :], WIDE - len(column), break_long_words=False, break_on_hyphens=False
    )
    return [line[: len(column)] + pieces[0], *(column + piece for piece in pieces[1:])]


def _meaning(source: str) -> str | None:
    try:
        return ast.dump(ast.parse(source))
    except SyntaxError:
        return None


def _first_gap(source: str) -> str | None:
    """Return the outermost function around the cell's first gap, in a stub or in a solution."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, Definition):
            code = ast.get_source_segment(source, node) or ""
            if UNWRITTEN in code or BEGIN in code:
                return node.name
    return None


def _with_nbgrader(
    cell: NotebookNode, grade_id: str, grade: bool, solution: bool, points: float | None = None
) -> NotebookNode:
    """Add nbgrader's metadata; by its checksum, nbgrader knows an unchanged solution cell as "no response"."""
    locked = not solution
    facts = [cell.source, cell.cell_type, grade, solution, locked, grade_id]
    facts += [] if points is None else [float(points)]
    metadata: dict[str, Any] = {
        "cell_type": cell.cell_type,
        "checksum": hashlib.md5(
            "".join(map(str, facts)).encode(), usedforsecurity=False
        ).hexdigest(),
        "grade": grade,
        "grade_id": grade_id,
        "locked": locked,
        "schema_version": 3,
        "solution": solution,
        "task": False,
    }
    if points is not None:
        metadata["points"] = int(points) if points == int(points) else points
    cell.metadata["nbgrader"] = NotebookNode(metadata)
    return cell
