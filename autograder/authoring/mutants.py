"""Mutants: small automatic changes of a solution's gaps, to verify that the suite detects each of them.

An undetected mutant is either a hole in the suite or equivalent; the latter are listed with a
reason in the suite's `equivalent_mutants.yml`. `operators` defines the changes; nothing is run
here.
"""

import ast
import hashlib
import textwrap
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import accumulate

from autograder.authoring.operators import OPERATORS, Step
from autograder.course.config import Assignment, Course, CourseError, Text
from autograder.course.definitions import comments
from autograder.course.markers import BEGIN, END
from autograder.course.yaml_file import MarkedYaml
from autograder.course.yaml_record import YamlRecord
from autograder.text.spelling import did_you_mean

_SHOWN = 100
_ANNOTATIONS = {"annotation", "returns", "type_comment", "type_params"}
_LOOSE = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp)


@dataclass(frozen=True)
class Mutant:
    """The whole solution with one small change in a gap.

    `id` consists of the function's name, the operator, the index among equal changes of the
    statement, and a short hash of the statement: `Head.forward:minus_dropped:1:a54343`. It depends
    only on the statement's first line and the function's name, not on comments, layout and other
    statements.
    """

    id: str
    line: int
    description: str
    source: str


@dataclass(frozen=True)
class _Place:
    """The position of a node: the qualified name of its function, and its statement without its block."""

    function: str
    statement: str


def mutants(source: str) -> Iterator[Mutant]:
    """Yield all mutants of a solution, which is valid Python: top to bottom, all different."""
    tree = ast.parse(source)
    text = _Text(source)
    seen = {ast.dump(tree)}
    count: Counter[str] = Counter()
    for place, (operator, node, new) in _steps(tree, text):
        like = f"{place.function}:{operator}:{place.statement}"
        count[like] += 1
        changed = text.replaced(node, new)
        program = _program(changed)
        if program is not None and program not in seen:
            seen.add(program)
            statement = hashlib.sha256(place.statement.encode()).hexdigest()[:6]
            identity = f"{place.function}:{operator}:{count[like]}:{statement}"
            yield Mutant(identity, _lines(node)[0], _description(node, new, place), changed)


def _steps(tree: ast.Module, text: "_Text") -> Iterator[tuple[_Place, Step]]:
    for place, node in _walk(tree, _Place("", ""), text):
        for operator in OPERATORS:
            for step in operator(node):
                first, last = _lines(step[1])
                if any(first in gap and last in gap for gap in text.gaps):
                    yield place, step


def _lines(node: ast.AST) -> tuple[int, int]:
    return node.lineno, node.end_lineno  # type: ignore[attr-defined]


def _walk(node: ast.AST, place: _Place, text: "_Text") -> Iterator[tuple[_Place, ast.AST]]:
    """Yield all nodes in source order, without annotations and parts of messages."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        place = _Place(f"{place.function}.{node.name}".lstrip("."), place.statement)
    if isinstance(node, ast.stmt):
        place = _Place(place.function, text.head(node))
    yield place, node
    if isinstance(node, ast.JoinedStr | ast.Raise):
        return
    for field, value in ast.iter_fields(node):
        if field in _ANNOTATIONS:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _walk(child, place, text)


class _Text:
    """The solution's text: its gaps, a statement's code, and the text with one node replaced."""

    def __init__(self, source: str) -> None:
        self._bytes = source.encode()
        self._starts = [0, *accumulate(len(line) + 1 for line in self._bytes.split(b"\n"))]
        self._code = bytearray(self._bytes)  # the same text with comments replaced by spaces
        marks: dict[str, list[int]] = {BEGIN: [], END: []}
        for comment in comments(source):
            row, column = comment.start
            start = self._starts[row - 1] + len(comment.line[:column].encode())
            end = self._starts[row] - 1
            self._code[start:end] = b" " * (end - start)
            marks.get(comment.string.rstrip(), []).append(row)
        self.gaps = [
            range(begin + 1, end) for begin, end in zip(marks[BEGIN], marks[END], strict=False)
        ]

    def head(self, node: ast.stmt) -> str:
        """Return the statement on one line without comments, up to its block if it has one."""
        block = getattr(node, "body", None)
        start, end = self._span(node)
        end = self._span(block[0])[0] if block else end
        return " ".join(self._code[start:end].decode().split())

    def replaced(self, node: ast.AST, new: ast.AST) -> str:
        start, end = self._span(node)
        indent = " " * node.col_offset  # type: ignore[attr-defined]
        code = textwrap.indent(_code(new), indent).removeprefix(indent)
        return (self._bytes[:start] + code.encode() + self._bytes[end:]).decode()

    def _span(self, node: ast.AST) -> tuple[int, int]:
        first, last = _lines(node)
        start = self._starts[first - 1] + node.col_offset  # type: ignore[attr-defined]
        return start, self._starts[last - 1] + node.end_col_offset  # type: ignore[attr-defined]


def _code(node: ast.AST) -> str:
    code = ast.unparse(ast.fix_missing_locations(node))
    return f"({code})" if isinstance(node, _LOOSE) else code


def _program(source: str) -> str | None:
    """Normalize a program so that layout does not matter; None if the source is not Python."""
    try:
        compile(source, "mutant", "exec", dont_inherit=True)
    except SyntaxError:
        return None
    return ast.dump(ast.parse(source))


def _description(node: ast.AST, new: ast.AST, place: _Place) -> str:
    """`` `a * b` becomes `a / b` in `area = a * b` ``"""
    before = _shown(node)
    if isinstance(new, ast.Pass):
        return f"`{before}` is deleted"
    after = _shown(new)
    where = "" if isinstance(node, ast.stmt) else f" in `{_cut(place.statement)}`"
    return f"`{before}` becomes `{after}`{where}"


def _shown(node: ast.AST) -> str:
    first, more, _ = ast.unparse(ast.fix_missing_locations(node)).partition("\n")
    return _cut(f"{first} …" if more else first)


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


class _Entry(YamlRecord):
    id: Text
    reason: Text


def load_equivalent_mutants(
    course: Course, assignment: Assignment, names: Collection[str]
) -> dict[str, str]:
    """Load the equivalent mutants with their reasons; empty if the file is missing.

    Raises CourseError with all errors in it, including ids that are not in `names`: those of the
    current mutants.
    """
    if not (file := course.suite_folder(assignment) / "equivalent_mutants.yml").exists():
        return {}
    document = MarkedYaml(
        course.label(file),
        course.read(file, CourseError),
        "the list of equivalent mutants",
        "mutant",
    )
    entries = document.read_list(_Entry)
    document.check_unique((), "id", "mutant")
    for index, entry in enumerate(entries or ()):
        if entry.id not in names:
            hint = (
                did_you_mean(entry.id, names)
                or "; has its statement changed? Then look at it again."
            )
            document.add((index, "id"), f"the solution has no mutant `{entry.id}`{hint}")
    if document.problems or entries is None:
        raise CourseError(document.problems)
    return {entry.id: entry.reason for entry in entries}
