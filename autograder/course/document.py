"""A solution document: one `.py` file with prose, code, gaps, and the places of tests and pictures.

The document is py:percent (`# %%` begins a cell). A *gap* is the code between `### BEGIN SOLUTION`
and `### END SOLUTION`; a cell `# %% part="mask"` is the place where the notebook tests a part, `#
%% picture="mask"` where it draws one, and `# %% answer="why" points=2` where students answer in
words. Reading reports every error of the author; building is done elsewhere.
"""

import ast
import difflib
import itertools
import re
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jupytext

from autograder.course.config import Assignment, Course, CourseError
from autograder.course.definitions import comments, definitions
from autograder.course.markers import ANSWER, BEGIN, END, PLACEHOLDER, QUESTION_LEADS, UNWRITTEN
from autograder.text.spelling import closest, did_you_mean

PERCENT = {"extension": ".py", "format_name": "percent", "comment_magics": False}

_COMMENTS = {
    "part": "# Written? `autograder check {name}` shows how you are doing.",
    "picture": "# The notebook draws a picture of your own code here.",
    "answer": "# " + PLACEHOLDER,
}
_KINDS = ("part", "picture", "answer")
_CELL_OPTIONS = (*_KINDS, "tags", "points", "rubric")
_QUESTION = re.compile(rf"(?:^|(?<=\s))\**(?:{QUESTION_LEADS})\b.*?(?=\n\s*\n|\Z)", re.DOTALL)
_EFFORT = re.compile(r"\d+ minutes, (?=[●○]{3})(●+)○*")
_JUPYTEXT_KEYS = {"lines_to_next_cell", "title", "incorrectly_encoded_metadata"}


@dataclass(frozen=True)
class Gap:
    """Code that a student writes: `function` is `causal_mask` or `Head.forward`; lines count from 1."""

    function: str
    begin: int
    end: int
    indent: str
    todo: tuple[str, ...]
    lines: tuple[str, ...]

    @property
    def line_numbers(self) -> range:
        """The lines from the first marker to the last."""
        return range(self.begin, self.end + 1)

    @property
    def stub_line(self) -> str:
        """The line of the stub that replaces the gap."""
        return f'{self.indent}raise NotImplementedError("{self.function}{UNWRITTEN}")'


def lines_inside(gaps: Iterable[Gap]) -> set[int]:
    """Return the lines of all gaps, with their markers."""
    lines: set[int] = set()
    for gap in gaps:
        lines.update(gap.line_numbers)
    return lines


@dataclass(frozen=True)
class Cell:
    """One cell: `kind` is markdown, code, raw, part, picture or answer; `name` is its part, or the answer's name."""

    kind: str
    line: int
    source: str
    name: str | None = None


@dataclass(frozen=True)
class Question:
    """A question of the text; `is_graded` if it is the last one before a cell for a written answer."""

    text: str
    is_graded: bool = False


@dataclass(frozen=True)
class Document:
    """A valid solution document; `label` names its file in messages."""

    assignment: str
    label: str
    text: str
    cells: tuple[Cell, ...]
    gaps: tuple[Gap, ...]

    @property
    def stub(self) -> str:
        """Return the stub: gaps raise NotImplementedError, special cells are comments, the rest stays as it is."""
        return "".join(f"{text}\n" for _, text in self.stub_lines())

    def stub_lines(self) -> list[tuple[int, str]]:
        """Return the stub's lines, each with the number of its line in the document."""
        comments = {
            cell.line: _COMMENTS[cell.kind] for cell in self.cells if cell.kind in _COMMENTS
        }
        gaps = {gap.begin: gap for gap in self.gaps}
        inside = lines_inside(self.gaps)
        result: list[tuple[int, str]] = []
        for number, text in enumerate(self.text[:-1].split("\n"), start=1):
            if number in gaps:
                result.append((number, gaps[number].stub_line))
            elif answer := ANSWER.fullmatch(text):
                result.append((number, f'# %% [markdown] answer="{answer["name"]}"'))
            elif number not in inside:
                result.append((number, _with_difficulty(text)))
            if number in comments:
                result.append((number, comments[number].format(name=self.assignment)))
        return result

    def questions(self) -> dict[str, list[Question]]:
        """Return the questions of the text by part.

        A question is the end of a paragraph that begins with “To think about” or a similar lead. It
        belongs to the part whose test cell comes next, or to the last part.
        """
        texts: list[str] = []
        graded: set[int] = set()
        parts: list[str] = []  # of each of the texts
        part = ""
        for cell in self.cells:
            if cell.kind == "markdown":
                texts += [
                    " ".join(match[0].replace("*", "").split())
                    for match in _QUESTION.finditer(cell.source)
                ]
            elif cell.kind == "answer":
                graded.add(len(texts) - 1)
            elif cell.kind == "part":
                part = cell.name or ""
                parts += [part] * (len(texts) - len(parts))
        parts += [part] * (len(texts) - len(parts))
        questions: dict[str, list[Question]] = {}
        for number, text in enumerate(texts):
            questions.setdefault(parts[number], []).append(Question(text, number in graded))
        return questions


def _with_difficulty(line: str) -> str:
    """Say in words what the dots behind a number of minutes mean, for people who hear the text."""
    return _EFFORT.sub(lambda effort: f"{effort[0]} (difficulty {len(effort[1])} of 3)", line)


def load_document(course: Course, assignment: Assignment) -> Document:
    """Load the solution document of an assignment; raises CourseError with all errors in it."""
    return read_document(
        course.read_solution(assignment), course.label(course.solution_file(assignment)), assignment
    )


@lru_cache(maxsize=32)
def read_document(text: str, label: str, assignment: Assignment) -> Document:
    """Parse a document; `label` names the file in the sentences of CourseError."""
    text = text.rstrip() + "\n"
    reader = _Reader(text, assignment)
    reader.read()
    if reader.problems:
        ordered = sorted(reader.problems, key=lambda problem: problem[0])
        raise CourseError(f"{label}, line {line}: {sentence}" for line, sentence in ordered)
    document = Document(assignment.name, label, text, tuple(reader.cells), tuple(reader.gaps))
    _check_stub(document)
    return document


def _check_stub(document: Document) -> None:
    try:
        ast.parse(document.stub)
    except SyntaxError as error:
        where = document.stub_lines()[(error.lineno or 1) - 1][0]
        raise CourseError(
            f"{document.label}, line {where}: without its gaps the document is not Python ({error.msg}); "
            "a gap must be whole statements."
        ) from None


class _Reader:
    def __init__(self, text: str, assignment: Assignment) -> None:
        self.text = text
        self.lines = text[:-1].split("\n")
        self.assignment = assignment
        self.cells: list[Cell] = []
        self.gaps: list[Gap] = []
        self.problems: list[tuple[int, str]] = []

    def add(self, line: int, sentence: str) -> None:
        self.problems.append((line, sentence))

    def read(self) -> None:
        try:
            tree = ast.parse(self.text)
            comments_by_line = [
                (comment.start[0], comment.string.rstrip()) for comment in comments(self.text)
            ]
        except (SyntaxError, tokenize.TokenError) as error:
            line = getattr(error, "lineno", None) or 1
            self.add(line, f"this is not Python: {getattr(error, 'msg', error)}.")
            return
        self._read_cells(comments_by_line)
        self._read_gaps(tree, comments_by_line)

    def _read_cells(self, comments: list[tuple[int, str]]) -> None:
        headers = [
            line for line, text in comments if re.match(r"# ?%%", text) and self._at_margin(line)
        ]
        if not headers or any(line.strip() for line in self.lines[: headers[0] - 1]):
            self.add(1, "the document must begin with a cell: `# %% [markdown]` or `# %%`.")
            return
        if len(cells := jupytext.reads(self.text, PERCENT).cells) != len(headers):
            self.add(
                1, f"{len(headers)} lines begin with `# %%`, but jupytext sees {len(cells)} cells."
            )
            return
        for line, cell in zip(headers, cells, strict=True):
            self._read_cell(line, cell)
        self._check_parts()

    def _at_margin(self, line: int) -> bool:
        return self.lines[line - 1].startswith("#")

    def _read_cell(self, line: int, cell: Any) -> None:
        options = {key: value for key, value in cell.metadata.items() if key not in _JUPYTEXT_KEYS}
        if broken := cell.metadata.get("incorrectly_encoded_metadata"):
            self.add(
                line, f'the cell\'s option `{broken}` cannot be read; write it as `part="mask"`.'
            )
        for key in options:
            if key not in _CELL_OPTIONS:
                hint = (
                    did_you_mean(key, _CELL_OPTIONS)
                    or "; a cell can have `part`, `picture` or `answer`."
                )
                self.add(line, f"`{key}` is not an option of a cell{hint}")
        if not (kinds := [kind for kind in _KINDS if kind in options]):
            if cell.cell_type == "code":
                try:
                    ast.parse(cell.source)
                except SyntaxError as error:
                    self.add(
                        line + (error.lineno or 1),
                        f"this cell cannot run by itself in a notebook: {error.msg}.",
                    )
            self.cells.append(Cell(cell.cell_type, line, cell.source))
        elif len(kinds) == 2:
            self.add(
                line,
                "a cell is for a part, a picture or an answer, not for two of them; make it two cells.",
            )
        else:
            self._read_special(line, kinds[0], str(options[kinds[0]]), cell.source)

    def _read_special(self, line: int, kind: str, name: str, source: str) -> None:
        if source.strip():
            self.add(line, f'the cell `{kind}="{name}"` must be empty; the build fills it.')
        names = [part.name for part in self.assignment.parts]
        if kind == "answer":
            self._check_answer(line, name, names)
        elif name not in names:
            hint = did_you_mean(name, names) or f"; course.yml has {', '.join(names)}."
            self.add(line, f"{self.assignment.name} has no part `{name}`{hint}")
        self.cells.append(Cell(kind, line, source, name))

    def _check_answer(self, line: int, name: str, parts: list[str]) -> None:
        match = ANSWER.fullmatch(self.lines[line - 1])
        if match is None or not float(match["points"]):
            self.add(
                line,
                'write the cell of an answer as `# %% answer="why" points=2 rubric="What gives points."`.',
            )
        elif name in parts or name in (cell.name for cell in self.cells if cell.kind == "answer"):
            self.add(line, f"the name `{name}` is taken; give this answer another one.")

    def _check_parts(self) -> None:
        seen: dict[str | None, int] = {}
        for cell in self.cells:
            if (
                cell.kind == "part"
                and (first := seen.setdefault(cell.name, cell.line)) != cell.line
            ):
                self.add(
                    cell.line, f"the part `{cell.name}` has its cell already, in line {first}."
                )
        names = [part.name for part in self.assignment.parts]
        meant = {closest(name, names) for name in seen}  # a misspelt part is already reported
        for name in names:
            if name not in meant:
                self.add(
                    len(self.lines),
                    f'the part `{name}` of course.yml has no cell `# %% part="{name}"`.',
                )

    def _read_gaps(self, tree: ast.Module, comments: list[tuple[int, str]]) -> None:
        begin: int | None = None
        for line, text in comments:
            marker = self._marker(line, text)
            if marker == BEGIN and begin is not None:
                self.add(
                    line, f"a gap begins inside the gap of line {begin}; close that one first."
                )
            elif marker == BEGIN:
                begin = line
            elif marker == END and begin is None:
                self.add(line, f"`{END}` without a `{BEGIN}` above it.")
            elif marker == END and begin is not None:
                self._read_gap(tree, begin, line)
                begin = None
        if begin is not None:
            self.add(begin, f"this gap is never closed; write `{END}` after its last line.")
        elif not self.gaps and not self.problems:
            self.add(
                1, f"the document has no gap: mark what students write by `{BEGIN}` and `{END}`."
            )
        self._check_cells_of_gaps()
        self._check_todos(comments)

    def _check_cells_of_gaps(self) -> None:
        """Check that each function's gaps are in one cell, as the gradebook identifies cells by function."""
        first: dict[str, int] = {}
        for gap in self.gaps:
            name = gap.function.partition(".")[0]
            cell = max((cell.line for cell in self.cells if cell.line < gap.begin), default=0)
            if first.setdefault(name, cell) != cell:
                self.add(
                    gap.begin, f"`{name}` has a gap in another cell already (line {first[name]})."
                )

    def _marker(self, line: int, text: str) -> str | None:
        if text in (BEGIN, END):
            if self.lines[line - 1].strip() == text:
                return text
            self.add(line, f"`{text}` must stand alone in its line.")
            return None
        words = text.strip("#: ").upper()
        for marker in (BEGIN, END):
            meant = marker.strip("# ")
            if difflib.SequenceMatcher(None, words[: len(meant)], meant).ratio() > 0.85:
                self.add(line, f"`{text}` looks like a marker; the marker is exactly `{marker}`.")
        return None

    def _read_gap(self, tree: ast.Module, begin: int, end: int) -> None:
        inside = self.lines[begin : end - 1]
        code = [
            begin + 1 + i
            for i, text in enumerate(inside)
            if text.strip() and not text.strip().startswith("#")
        ]
        indents = [re.sub(r"\S.*", "", self.lines[line - 1]) for line in (begin, end)]
        if not code:
            self.add(begin, "this gap is empty; the solution stands between its markers.")
            return
        if indents[0] != indents[1]:
            self.add(end, f"`{END}` must be indented like its `{BEGIN}` in line {begin}.")
        function = _function_around(tree, begin, code[0])
        if function is None or function[1] < code[-1]:
            what = (
                "must be inside a function"
                if function is None
                else f"goes on after the end of `{function[0]}`"
            )
            self.add(begin, f"this gap {what}.")
            return
        above = (line.strip() for line in reversed(self.lines[: begin - 1]))
        todo = tuple(itertools.takewhile(lambda line: line.startswith("#"), above))[::-1]
        if not any(line.startswith("# TODO:") for line in todo):
            self.add(begin, f"the gap of `{function[0]}` has no `# TODO:` line directly above it.")
        self.gaps.append(Gap(function[0], begin, end, indents[0], todo, tuple(inside)))

    def _check_todos(self, comments: list[tuple[int, str]]) -> None:
        """Report a TODO without a gap: its markers were forgotten, and its answer would be released."""
        if self.problems:
            return
        above_gaps: set[int] = set()
        for gap in self.gaps:
            above_gaps.update(range(gap.begin - len(gap.todo), gap.begin))
        inside = lines_inside(self.gaps)
        for line, text in comments:
            if not text.startswith("# TODO") or self._at_margin(line):
                continue
            if line in inside:
                self.add(
                    line,
                    f"this TODO is inside the gap; it must stand above `{BEGIN}` to reach the student.",
                )
            elif line not in above_gaps:
                self.add(line, f"this TODO has no gap below it; write `{BEGIN}` in the next line.")


def _function_around(tree: ast.Module, begin: int, code: int) -> tuple[str, int] | None:
    """Return the qualified name and last line of the innermost function that spans `begin` to `code`."""
    around = [
        (name, node.end_lineno or node.lineno)
        for name, node in definitions(tree)
        if not isinstance(node, ast.ClassDef)
        and node.lineno < begin
        and (node.end_lineno or 0) >= code
    ]
    return around[-1] if around else None
