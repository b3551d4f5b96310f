"""Where functions, gaps, parts and headings stand in a student's text."""

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from autograder.course.definitions import Definition, definitions
from autograder.source.magics import parse, plain_cell, plain_script
from autograder.source.text import notebook_cells

_PART_CELL = re.compile(r"""^# %% .*\bpart="(\w+)"|^\s*check\(["'](\w+)["']\)""", re.MULTILINE)


@dataclass(frozen=True)
class CodeLocation:
    """A line in a student's file; in a notebook, a line of a cell."""

    file: str
    line: int
    cell: int | None = None
    function: str = ""

    def __str__(self) -> str:
        return (
            f"{self.file}:{self.line}"
            if self.cell is None
            else f"{self.file}, cell {self.cell}, line {self.line}"
        )


@dataclass(frozen=True)
class _Cell:
    """A piece of a student's file; `first` is its first line in the file, or in the notebook's cell."""

    code: bool
    text: str
    first: int
    number: int | None

    def definitions(self) -> Iterator[tuple[str, Definition]]:
        """Yield the functions and classes of valid code with their qualified names."""
        with suppress(SyntaxError):
            yield from definitions(parse(self.text)) if self.code else ()


class StudentText:
    """A parsed student's file; parsing never fails, as invalid parts are left out."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.text = text
        self.cells = list(
            _notebook_cells(text) if name.endswith(".ipynb") else _percent_cells(text)
        )
        self._defined: list[tuple[_Cell, str, Definition]] = []
        for cell in self.cells:
            self._defined += [(cell, name, node) for name, node in cell.definitions()]

    def functions(self) -> dict[str, CodeLocation]:
        """Functions, classes and methods by qualified name, using the last definition of each."""
        return {name: self._place(cell, node.lineno, name) for cell, name, node in self._defined}

    def parts_of_functions(self) -> dict[str, str]:
        """The part of each function: the one whose test cell comes next."""
        parts: dict[str, str] = {}
        waiting: list[str] = []
        for cell in self.cells:
            waiting += [name for owner, name, _ in self._defined if owner is cell]
            if match := _PART_CELL.search(cell.text):
                parts |= dict.fromkeys(waiting, match[1] or match[2])
                waiting = []
        return parts

    def named(self, place: CodeLocation) -> CodeLocation:
        """Return the location with the name of its function or method, whatever Python's traceback calls it."""
        around = []
        for cell, name, node in self._defined:
            here = (place.file, place.cell) == (self.name, cell.number) and not isinstance(
                node, ast.ClassDef
            )
            if here and node.lineno <= place.line - cell.first + 1 <= (
                node.end_lineno or node.lineno
            ):
                around.append(name)
        if not around or place.function in around:  # one line can hold several, below a cell magic
            return place
        return replace(place, function=around[0])

    def todos(self, function: str) -> list[tuple[CodeLocation, str]]:
        """The `# TODO:` comments inside a function, with their lines."""
        todos = []
        for cell, name, node in self._defined:
            if name == function:
                lines = enumerate(
                    cell.text.splitlines()[node.lineno - 1 : node.end_lineno], start=node.lineno
                )
                todos += [
                    (self._place(cell, n, name), _todo(line))
                    for n, line in lines
                    if "# TODO" in line
                ]
        return todos

    def section(self, function: str) -> tuple[CodeLocation, str] | None:
        """Return the heading above a function's definition, and its place."""
        heading: tuple[CodeLocation, str] | None = None
        for cell in self.cells:
            if not cell.code:
                for number, line in enumerate(cell.text.splitlines(), start=1):
                    if match := re.match(r"#{1,3} (.+)", line):
                        heading = (self._place(cell, number, ""), match[1].strip())
            elif any((owner, name) == (cell, function) for owner, name, _ in self._defined):
                return heading
        return None

    def part_titles(self) -> dict[str, str]:
        """The heading above each part's test cell, by the part's name."""
        titles: dict[str, str] = {}
        heading = ""
        for cell in self.cells:
            if not cell.code:
                headings = re.findall(r"^## (.+)", cell.text, re.MULTILINE)
                heading = headings[-1].strip() if headings else heading
            elif match := _PART_CELL.search(cell.text):
                titles.setdefault(match[1] or match[2], heading)
        return titles

    def _place(self, cell: _Cell, line: int, function: str) -> CodeLocation:
        return CodeLocation(self.name, cell.first + line - 1, cell.number, function)


def _percent_cells(text: str) -> Iterator[_Cell]:
    lines = plain_script(text).splitlines()
    starts = [0, *(n for n, line in enumerate(lines) if n and line.startswith("# %%")), len(lines)]
    for start, end in zip(starts, starts[1:]):
        body = lines[start:end]
        if prose := bool(body) and body[0].startswith("# %% [markdown]"):
            body = [re.sub(r"^# ?", "", line) for line in body]
        yield _Cell(not prose, "\n".join(body), start + 1, None)


def _notebook_cells(text: str) -> Iterator[_Cell]:
    try:
        for number, cell in enumerate(notebook_cells(text), start=1):
            is_code = cell["cell_type"] == "code"
            source = "".join(cell["source"])
            yield _Cell(is_code, plain_cell(source) if is_code else source, 1, number)
    except (ValueError, KeyError, TypeError):
        return


def _todo(line: str) -> str:
    """`a table of booleans` from `    # TODO: a table of booleans            (T, T)`."""
    return re.split(r"\s{3,}", line.partition("# TODO:")[2].strip())[0]
