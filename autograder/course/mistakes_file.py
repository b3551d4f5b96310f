"""Known mistakes, as edits of the solution, and alternatives.

`mistakes.yml` beside a suite is a list of mistakes. Each edit must match the solution exactly once,
so a mistake stays in step with it. An edit of several lines can be written with or without the
indentation of its place; the first of the two readings that is valid Python is used.
"""

import ast
import itertools
import json
import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from types import CodeType
from typing import Annotated, Any

from pydantic import Field

from autograder.course.config import Assignment, Course, CourseError, Text
from autograder.course.definitions import definitions
from autograder.course.markers import parts_of_lines
from autograder.course.mistakes import Mistake, Program, Weight
from autograder.course.yaml_file import MarkedYaml
from autograder.course.yaml_record import YamlRecord
from autograder.text.spelling import did_you_mean


class _Edit(YamlRecord):
    place: Text = Field(alias="in")
    old: Text = Field(alias="replace")
    new: str = Field(alias="with")


class _Program(YamlRecord):
    input: Text
    story: Text


class _Entry(YamlRecord):
    id: str = Field(
        pattern=r"^[a-z][a-z0-9_]*$",
        description="small letters, digits and underscores, such as `forgets_the_last_one`",
    )
    title: Text | None = None
    hint: Text
    weight: Weight | None = None
    exception: Text | None = None
    part: Text | None = None
    place: Text | None = Field(default=None, alias="in")
    old: Text | None = Field(default=None, alias="replace")
    new: str | None = Field(default=None, alias="with")
    edits: Annotated[tuple[_Edit, ...], Field(min_length=1, strict=False)] | None = None
    program: _Program | None = Field(default=None, alias="catch")


_Span = tuple[int, int, str]  # the begin and the end of a text in the solution, and its replacement


def load_mistakes(course: Course, assignment: Assignment) -> tuple[Mistake, ...]:
    """Load the known mistakes, in order; none without a mistakes.yml.

    Raises CourseError with all errors in it.
    """
    if not (file := course.mistakes_file(assignment)).exists():
        return ()
    solution = course.solution_file(assignment)
    parts = tuple(part.name for part in assignment.parts)
    texts = (
        course.label(file),
        course.read(file, CourseError),
        course.label(solution),
        course.read_solution(assignment),
    )
    recorded = recorded_failing_tests(course, assignment)
    return tuple(
        replace(mistake, fails=recorded.get(mistake.id)) for mistake in _mistakes(*texts, parts)
    )


def recorded_failing_tests(course: Course, assignment: Assignment) -> dict[str, frozenset[str]]:
    """Return the recorded tests that each mistake fails; raises CourseError if the file is not what an audit writes."""
    if not (file := course.failing_tests_file(assignment)).exists():
        return {}
    try:
        return {
            name: frozenset(tests)
            for name, tests in json.loads(course.read(file, CourseError)).items()
        }
    except (ValueError, TypeError, AttributeError):
        raise CourseError(
            f"{course.label(file)} is damaged. Write it anew: autograder audit --record"
        ) from None


@lru_cache(maxsize=32)
def _mistakes(
    label: str, text: str, solution_label: str, solution_text: str, parts: tuple[str, ...]
) -> tuple[Mistake, ...]:
    """Build, release and audit load the mistakes of an assignment repeatedly, so the result is cached."""
    document = MarkedYaml(label, text, "the list of mistakes", item="mistake")
    entries = document.read_list(_Entry)
    document.check_unique((), "id", "mistake")
    try:
        solution = _Solution(solution_text)
    except SyntaxError as error:
        raise CourseError(
            f"{solution_label}, line {error.lineno}: this is not Python: {error.msg}."
        ) from None
    mistakes = []
    for index, entry in enumerate(entries or ()):
        if entry.part not in (None, *parts):
            hint = did_you_mean(str(entry.part), parts) or "."
            document.add(
                (index, "part"), f"the mistake `{entry.id}`: there is no part `{entry.part}`{hint}"
            )
        if source := _apply(solution, entry, index, document):
            title = entry.title or entry.id.replace("_", " ")
            mistakes.append(
                Mistake(
                    entry.id,
                    title,
                    entry.hint,
                    source,
                    entry.weight,
                    entry.exception or "",
                    entry.part,
                    places=tuple(dict.fromkeys(edit.place for edit in _edits(entry) or ())),
                    program=_program(entry, index, document),
                )
            )
    if document.problems:
        raise CourseError(document.problems)
    return tuple(mistakes)


def mistakes_by_id(course: Course, assignment: Assignment) -> dict[str, Mistake]:
    """Load an assignment's mistakes by id; raises CourseError like `load_mistakes`."""
    return {mistake.id: mistake for mistake in load_mistakes(course, assignment)}


def parts_of_mistakes(mistakes: Iterable[Mistake], solution: str) -> Iterator[tuple[Mistake, str]]:
    """Yield each mistake with the part that it is about: its own, or that of the first line that it changes."""
    parts = parts_of_lines(solution)
    for mistake in mistakes:
        yield mistake, mistake.part or parts[_first_change(solution, mistake.source)]


def _first_change(solution: str, mistake: str) -> int:
    """Return the index of the first line that the mistake changes; 0 if it only adds or removes lines at the end."""
    lines = zip(solution.split("\n"), mistake.split("\n"), strict=False)
    return next((number for number, (old, new) in enumerate(lines) if old != new), 0)


def load_alternatives(course: Course, assignment: Assignment) -> tuple[tuple[str, str], ...]:
    """Load the alternatives as (name, text), sorted by name; raises CourseError for invalid Python."""
    alternatives = []
    problems = []
    for file in course.alternatives(assignment):
        text = course.read(file, CourseError)
        try:
            ast.parse(text)
        except SyntaxError as error:
            problems.append(
                f"{course.label(file)}, line {error.lineno}: this is not Python: {error.msg}."
            )
        alternatives.append((file.stem, text))
    if problems:
        raise CourseError(problems)
    return tuple(alternatives)


def _apply(solution: "_Solution", entry: _Entry, index: int, document: MarkedYaml) -> str | None:
    """Return the `source` of the mistake; None if a problem was added to the document."""
    name = f"the mistake `{entry.id}`"
    if (edits := _edits(entry)) is None:
        document.add(
            (index,), f"{name} needs `in`, `replace` and `with`, or else a list of `edits`."
        )
        return None
    choices = []
    for number, edit in enumerate(edits):
        place = (index, "edits", number, "in") if entry.edits else (index, "in")
        try:
            choices.append(list(solution.spans(edit)))
        except ValueError as error:
            document.add(place, f"{name}: {error}")
    if len(choices) < len(edits):
        return None
    try:
        return solution.with_edits(choices)
    except ValueError as error:
        document.add((index, "id"), f"{name} {error}")
        return None


def _program(entry: _Entry, index: int, document: MarkedYaml) -> Program | None:
    """Return what the entry says about catching it; an input that is no expression is a problem."""
    if entry.program is None:
        return None
    try:
        compile(entry.program.input.strip(), "input", "eval")
    except SyntaxError as error:
        document.add(
            (index, "catch", "input"),
            f"the mistake `{entry.id}`: its `input` is not an expression of Python: {error.msg}.",
        )
    return Program(" ".join(entry.program.input.split()), " ".join(entry.program.story.split()))


def _edits(entry: _Entry) -> tuple[_Edit, ...] | None:
    short_form = {"in": entry.place, "replace": entry.old, "with": entry.new}
    if entry.edits is not None:
        return entry.edits if set(short_form.values()) == {None} else None
    return None if None in short_form.values() else (_Edit.model_validate(short_form),)


class _Solution:
    """The solution's text, with the ranges of its functions, classes and methods, and of the statements at its margin."""

    def __init__(self, text: str) -> None:
        self.text = text
        compile(text, "solution", "exec", dont_inherit=True)
        self._line_starts = [0, *itertools.accumulate(len(line) + 1 for line in text.split("\n"))]
        tree = ast.parse(text)
        self.regions = {name: self._region(node) for name, node in definitions(tree)}
        self._statements = [self._region(node) for node in tree.body]
        self._code_of_ranges: dict[tuple[int, int], tuple[Any, ...]] = {}

    def _region(self, node: ast.stmt) -> tuple[int, int]:
        decorators = getattr(node, "decorator_list", ())
        first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
        return self._line_starts[first - 1], self._line_starts[node.end_lineno or node.lineno] - 1

    def spans(self, edit: _Edit) -> Iterator[_Span]:
        """Yield the possible readings of an edit; raises ValueError unless it matches exactly once."""
        if edit.place not in self.regions:
            raise ValueError(
                f"the solution has no `{edit.place}`{did_you_mean(edit.place, self.regions) or '.'}"
            )
        if edit.old == edit.new:
            raise ValueError("the edit changes nothing, `replace` and `with` are the same.")
        begin, end = self.regions[edit.place]
        old = edit.old.rstrip("\n")
        new = edit.new.rstrip("\n")
        spans = [
            match.span(1) for match in re.finditer(rf"(?=({re.escape(old)}))", self.text[begin:end])
        ]
        indented = not spans and "\n" in old
        if indented:
            spans = [match.span(2) for match in _at_any_indent(old).finditer(self.text[begin:end])]
        if len(spans) != 1:
            times = "is not found" if not spans else f"is found {len(spans)} times"
            raise ValueError(
                f"`{_first_line(old)}` {times} in `{edit.place}`; it must be there exactly once."
            )
        start, stop = (begin + at for at in spans[0])
        indent = self._indent_at(start)
        if not indented and all(
            line.startswith(indent) for line in new.split("\n")[1:] if line.strip()
        ):
            yield start, stop, new
        if indented or "\n" in new:
            # its first line starts in its place
            yield start, stop, textwrap.indent(new, indent).removeprefix(indent)

    def _indent_at(self, position: int) -> str:
        start = self.text.rfind("\n", 0, position) + 1
        line = self.text[start:].partition("\n")[0]
        return line[: len(line) - len(line.lstrip())]

    def with_edits(self, choices: list[list[_Span]]) -> str:
        """Apply one span of each edit; raises ValueError if the result is not a mistake."""
        problem: SyntaxError | None = None
        for spans in itertools.product(*choices):
            source = self._replaced(spans)
            try:
                if self._differs(source, spans):
                    return source
                raise ValueError("changes nothing: Python reads it like the solution.")
            except SyntaxError as error:
                problem = problem or error
        raise ValueError(f"is not Python after its edits: {problem.msg if problem else 'no edit'}.")

    def _differs(self, source: str, spans: tuple[_Span, ...]) -> bool:
        """Whether Python reads the edited source otherwise; compiled are the statements at the margin
        that the edits touch, as there may be hundreds of mistakes.
        """
        first = min(start for start, _, _ in spans)
        last = max(end for _, end, _ in spans)
        begin = max(start for start, _ in self._statements if start <= first)
        end = min(end for _, end in self._statements if end >= last)
        if (begin, end) not in self._code_of_ranges:
            self._code_of_ranges[begin, end] = _code_of(self.text[begin:end])
        return (
            _code_of(source[begin : len(source) - len(self.text) + end])
            != (self._code_of_ranges[begin, end])
        )

    def _replaced(self, spans: tuple[_Span, ...]) -> str:
        pieces = []
        at = 0
        for start, end, new in sorted(spans):
            if start < at:
                raise ValueError("has two edits of the same place; make them one.")
            pieces += [self.text[at:start], new]
            at = end
        return "".join([*pieces, self.text[at:]])


def _code_of(text: str) -> tuple[Any, ...]:
    return _without_lines(compile(text, "solution", "exec", dont_inherit=True))


def _without_lines(code: CodeType) -> tuple[Any, ...]:
    """Return a code object, and the code inside it, without the numbers of its lines."""
    line = code.co_firstlineno if "__firstlineno__" in code.co_names else None  # since Python 3.13
    constants = [
        _without_lines(constant)
        if isinstance(constant, CodeType)
        else repr(constant)  # 0.0 equals -0.0
        for constant in code.co_consts
        if constant != line
    ]
    return code.replace(co_consts=(), co_firstlineno=1, co_linetable=b""), constants


def _at_any_indent(block: str) -> re.Pattern[str]:
    """Match a block of several lines that is written without the indentation of its place."""
    first, *others = block.split("\n")
    lines = [
        re.escape(first),
        *(rf"\1{re.escape(line)}" if line.strip() else line for line in others),
    ]
    return re.compile(r"^([ \t]*)(?=\S)(" + "\n".join(lines) + ")", re.MULTILINE)


def _first_line(text: str) -> str:
    first, newline, _ = text.strip().partition("\n")
    return f"{first} …" if newline else first
