"""A student's text as people read it, and small changes of it. It is read and never run."""

import ast
import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autograder.course.definitions import definitions
from autograder.extras.sheets.questions import Edit
from autograder.records import SourceFile
from autograder.source.magics import without_calls
from autograder.source.text import cells

MOST_LINES = 30  # of a student's code on a sheet
MANY_LINES = 18  # functions that are only called are left out beyond them
LONGEST_LINE = 118
_REMARK = re.compile(r"(?<!\s)\s{2,}#.*$")  # a run of spaces is tried once
_TOKEN = re.compile(r"\$\w+|\w+|[^\w\s]")
# a name with attributes, an index or arguments
# each letter belongs to one loop, and all loops are short: the text is a student's
_ANY = r"[A-Za-z_]\w{0,79}(?:\.\w{1,80}|\[[^\[\]]{0,100}\]|\([^()]{0,100}\)){0,8}"
MOST_LETTERS = 100_000  # of a text that is searched
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


@dataclass(frozen=True)
class CodeLine:
    """A line of a student's code with its number, in its cell if the file is a notebook."""

    number: int
    text: str
    cell: int = 0

    @property
    def place(self) -> str:
        return f"line {self.number} of cell {self.cell}" if self.cell else f"line {self.number}"


@dataclass(frozen=True)
class Change:
    """A changed text, with the line that was changed and what stands there now."""

    text: str
    line: CodeLine
    new: str


class OwnCode:
    """The Python code of a submitted file; `text` is all of it, the cells of a notebook joined."""

    def __init__(self, text: str, cell_starts: Sequence[tuple[int, int]] = ()) -> None:
        self.text = text
        self._rows = text.split("\n")
        self._cell_starts = cell_starts
        self._tree = _parsed(text)
        self._nodes = dict(definitions(self._tree)) if self._tree else {}

    @classmethod
    def of(cls, file: SourceFile) -> "OwnCode":
        """Read a file; one that cannot be read has no code."""
        pieces = []
        starts = []
        line = 1
        try:
            for name, code in cells(file.text, file.name):
                piece = without_calls(code).rstrip("\n")
                cell = name.rpartition(" cell ")[2]
                if cell.isdecimal():
                    starts.append((line, int(cell)))
                pieces.append(piece)
                line += piece.count("\n") + 1
        except _UNREADABLE:
            return cls("")
        return cls("\n".join(pieces), starts)

    @property
    def is_readable(self) -> bool:
        return self._tree is not None and bool(self.text.strip())

    def has(self, function: str) -> bool:
        return function in self._nodes

    def line(self, number: int) -> CodeLine:
        """Return a line of the joined text with the number that it has for its author."""
        text = self._rows[number - 1]
        start, cell = max(
            ((start, cell) for start, cell in self._cell_starts if start <= number), default=(1, 0)
        )
        return CodeLine(number - start + 1, text, cell)

    def lines_of(self, functions: Iterable[str]) -> list[list[CodeLine]]:
        """Return the lines of these functions, each once, without docstrings, comments and empty lines.

        Short functions of the file that they call by name come after them.
        """
        named = list(functions)
        chosen: list[list[int]] = []
        shown = set[int]()
        for name in named:
            numbers = [number for number in self._numbers(name) if number not in shown]
            chosen.append(numbers[: MOST_LINES - len(shown)])
            shown.update(chosen[-1])
        for name in self._called_by(named):
            numbers = [number for number in self._numbers(name) if number not in shown]
            if len(shown) + len(numbers) <= MANY_LINES:
                chosen.append(numbers)
                shown.update(numbers)
        return [
            [short_line(self.line(number)) for number in numbers] for numbers in chosen if numbers
        ]

    def _called_by(self, functions: Sequence[str]) -> list[str]:
        """Return the functions of the file that these call by name, and those that they call."""
        names = list(functions)
        for name in names:  # it grows meanwhile
            node = self._nodes.get(name)
            called = _called_names(node) if node else []
            names += [
                other
                for other in called
                if isinstance(self._nodes.get(other), ast.FunctionDef) and other not in names
            ]
        return names[len(functions) :]

    def _numbers(self, name: str) -> list[int]:
        node = self._nodes.get(name)
        if node is None:
            return []
        hidden = set[int]()
        for inner in ast.walk(node):
            if isinstance(inner, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(inner):
                hidden.update(_span(inner.body[0]))
        return [
            number
            for number in _span(node)
            if number not in hidden and _is_code(self._rows[number - 1])
        ]

    def changed(self, edits: Iterable[Edit]) -> Change | None:
        """Return the text with the first of these edits that fits exactly once, or None."""
        for edit in edits:
            changed = self._changed(edit)
            if changed is not None:
                return changed
        return None

    def _changed(self, edit: Edit) -> Change | None:
        begin = 0
        end = len(self.text)
        if end > MOST_LETTERS:
            return None
        if edit.place is not None:
            node = self._nodes.get(edit.place)
            if node is None:
                return None
            begin, end = self._region(node)
        pattern = _pattern(edit.old)
        matches = [
            match
            for match in pattern.finditer(self.text, begin, end)
            if _is_code(self._rows[self.text.count("\n", 0, match.start())])
        ]
        if len(matches) != 1:
            return None
        match = matches[0]
        new = re.sub(r"\$(\w+)", lambda name: match[name[1]], edit.new)
        text = self.text[: match.start()] + new + self.text[match.end() :]
        return self._change(text)

    def with_lines(self, hunks: Sequence[tuple[list[str], list[str]]]) -> Change | None:
        """Return the text with lines replaced by others, or None unless each is found exactly once."""
        rows = list(self._rows)
        for old, new in hunks:
            wanted = [_squeezed(line) for line in old]
            squeezed = [_squeezed(row) for row in rows]
            places = [
                at
                for at in range(len(rows) - len(old) + 1)
                if squeezed[at : at + len(old)] == wanted
            ]
            if not wanted or len(places) != 1:
                return None
            shift = _indent(rows[places[0]]) - _indent(old[0])
            moved = [_shifted(line, shift) for line in new]
            rows[places[0] : places[0] + len(old)] = moved
        return self._change("\n".join(rows))

    def _change(self, text: str) -> Change | None:
        """Return the change if it is one for Python, too."""
        form = _form(text)
        if form is None or form == _form(self.text):
            return None
        rows = text.split("\n")
        first = _equal_at_the_begin(self._rows, rows)
        last = _equal_at_the_begin(self._rows[:first:-1], rows[:first:-1])
        before = self._rows[first : len(self._rows) - last]
        after = rows[first : len(rows) - last]
        for old, new in _replaced(before, after):
            shown = " ".join(_without_remark(row).strip() for row in after[new.start : new.stop])
            return Change(text, self.line(first + old.start + 1), shown or "(nothing)")
        return None

    def _region(self, node: ast.AST) -> tuple[int, int]:
        """Return where a function's code begins and ends, behind its docstring."""
        lines = _span(node)
        first = lines.start
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            first = (node.body[0].end_lineno or first) + 1
        starts = [0]
        for row in self._rows:
            starts.append(starts[-1] + len(row) + 1)
        return starts[first - 1], starts[lines.stop - 1] - 1


def hunks_of(solution: str, changed: str) -> list[tuple[list[str], list[str]]]:
    """Return the lines that a mistake replaces in the solution, and those in their place.

    Empty if it only adds lines at some place, as nothing tells where that is in another text.
    """
    old = solution.split("\n")
    new = changed.split("\n")
    hunks = []
    for there, here in _replaced(old, new):
        if not len(there):
            return []
        hunks.append((old[there.start : there.stop], new[here.start : here.stop]))
    return hunks


def function_of(solution: str, changed: str) -> str:
    """Return the innermost function or class in which a mistake first differs from the solution."""
    first = next(
        (there.start + 1 for there, _ in _replaced(solution.split("\n"), changed.split("\n"))), 0
    )
    around = [name for name, node in definitions(ast.parse(solution)) if first in _span(node)]
    return around[-1] if around else ""


def _equal_at_the_begin(some: Sequence[str], others: Sequence[str]) -> int:
    """Return how many lines are the same."""
    pairs = zip(some, others)
    return next(
        (number for number, (line, other) in enumerate(pairs) if line != other),
        min(len(some), len(others)),
    )


def _replaced(old: list[str], new: list[str]) -> Iterable[tuple[range, range]]:
    for tag, begin, end, start, stop in difflib.SequenceMatcher(
        None, old, new, False
    ).get_opcodes():
        if tag != "equal":
            yield range(begin, end), range(start, stop)


def _called_names(node: ast.AST) -> list[str]:
    """Return the plain names that are called in a function, in the order of its text."""
    calls = [inner for inner in ast.walk(node) if isinstance(inner, ast.Call)]
    calls.sort(key=lambda call: (call.lineno, call.col_offset))
    return [call.func.id for call in calls if isinstance(call.func, ast.Name)]


def _pattern(code: str) -> re.Pattern[str]:
    """Match code whatever its spaces are; `$name` matches any name, and the same one each time."""
    pieces: list[str] = []
    seen = set[str]()
    before = ""
    for token in _TOKEN.findall(code):
        words = before[-1:].isidentifier() and token[0].isidentifier()
        pieces.append(r"\s+" if words else r"\s*")
        if token[0] == "$":
            name = token[1:]
            pieces.append(f"(?P={name})" if name in seen else f"(?P<{name}>{_ANY})")
            seen.add(name)
        else:
            pieces.append(re.escape(token))
        before = token
    first = r"(?<!\w)" if code.strip()[:1].isalnum() else ""
    last = r"(?!\w)" if code.strip()[-1:].isalnum() else ""
    return re.compile(first + "".join(pieces[1:]) + last)


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except _UNREADABLE:
        return None


def _form(text: str) -> str | None:
    """Return what Python reads in a text, whatever its spaces and remarks are; None if it cannot be read."""
    tree = _parsed(text)
    try:
        return None if tree is None else ast.dump(tree)
    except RecursionError:  # Python itself reads a little deeper
        return None


def _span(node: ast.AST) -> range:
    first = int(getattr(node, "lineno", 1))
    decorators = [decorator.lineno for decorator in getattr(node, "decorator_list", ())]
    return range(min([first, *decorators]), int(getattr(node, "end_lineno", first)) + 1)


def _is_code(row: str) -> bool:
    return bool(row.strip()) and not row.lstrip().startswith("#")


def _squeezed(row: str) -> str:
    """Return a line without its spaces and the remark at its end."""
    return "".join(row.partition("  #")[0].split())


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip(" "))


def _shifted(row: str, columns: int) -> str:
    return " " * max(0, _indent(row) + columns) + row.lstrip(" ")


def _without_remark(row: str) -> str:
    return _REMARK.sub("", row)


def short_line(line: CodeLine) -> CodeLine:
    """Return a line without the remark in the margin, cut to what fits on paper."""
    text = _without_remark(line.text.expandtabs(4))
    if len(text) > LONGEST_LINE:
        text = text[: LONGEST_LINE - 1] + "…"
    return CodeLine(line.number, text, line.cell)
