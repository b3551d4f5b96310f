"""Sample answers derived from the solution document: right, wrong, unfinished, crashing, looping."""

import ast
import itertools
import random
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import nbformat

from autograder.course.config import Assignment, Course
from autograder.course.definitions import definitions
from autograder.course.document import Gap, load_document
from autograder.course.markers import BEGIN, END, parts_of_lines
from autograder.course.mistakes import Mistake, load_alternatives, load_mistakes
from autograder.course.notebook import to_notebook

_CRASH = "show_what_i_have(so_far)  # from my notebook"
_TROUBLE: Mapping[str, tuple[str, ...]] = {
    "loop": ("step = 0", "while step < 10:", "    step = step * 2"),
    "exit": ("import os", "os._exit(0)"),
    "memory": ("everything = []", "while True:", "    everything.append(bytes(10_000_000))"),
}
_WRONG_NOTEBOOKS = 0.4


@dataclass(frozen=True)
class SampleAnswer:
    """Files by name, with the mistakes in them and the functions left unwritten."""

    kind: str
    files: tuple[tuple[str, bytes], ...]
    mistakes: tuple[str, ...] = ()
    unwritten: tuple[str, ...] = ()

    @property
    def expected(self) -> Literal["full", "part", "none"]:
        """The expected marks: all, some, or none."""
        if self.kind in ("stub", "crash", "syntax_error", "latin1", "nothing"):
            return "none"
        right = (
            self.kind in ("right", "alternative", "notebook", "both_files") and not self.mistakes
        )
        return "full" if right else "part"


class AnswerBook:
    """Sample answers to one assignment.

    Raises CourseError if its solution, mistakes or alternatives are broken.
    """

    def __init__(self, course: Course, assignment: Assignment, rng: random.Random) -> None:
        self.assignment = assignment
        self._document = load_document(course, assignment)
        self._parts = _by_part(self._document.text)
        self._alternatives = load_alternatives(course, assignment)
        mistakes = list(load_mistakes(course, assignment))
        rng.shuffle(mistakes)  # the first ones are the most frequent in this class
        self._changes = {mistake.id: self._changes_of(mistake) for mistake in mistakes}
        pairs = itertools.combinations(self._changes, 2)
        self._pairs = [
            (first, second)
            for first, second in pairs
            if not self._changes[first].keys() & self._changes[second]
        ]

    def has(self, kind: str) -> bool:
        """Whether this assignment supports answers of this kind."""
        needed: dict[str, Collection[object]] = {
            "alternative": self._alternatives,
            "mistake": self._changes,
            "two_mistakes": self._pairs,
            "unfinished": self._document.gaps[1:],
        }
        return kind not in needed or bool(needed[kind])

    def answer(self, kind: str, rng: random.Random) -> SampleAnswer:
        """Create an answer of this kind; an equal `rng` gives the same bytes."""
        if kind in ("right", "crash", "syntax_error", "latin1"):
            return self._in_one_file(kind, rng)
        if kind in _TROUBLE:
            gap = self._document.gaps[-1] if kind == "loop" else rng.choice(self._document.gaps)
            return self._module(kind, _trimmed(self._text(first={gap: _TROUBLE[kind]}), rng))
        if kind == "alternative":
            return self._module(kind, rng.choice(self._alternatives)[1])
        if kind == "stub":
            return self._module(kind, self._document.stub)
        if kind == "unfinished":
            return self._unfinished(rng)
        if kind in ("mistake", "two_mistakes"):
            return self._with_mistakes(kind, rng)
        if kind in ("notebook", "both_files"):
            return self._with_notebook(kind, rng)
        return SampleAnswer(kind, ())

    def _in_one_file(self, kind: str, rng: random.Random) -> SampleAnswer:
        text = _trimmed(self._text(), rng)
        if kind == "crash":
            text = _after_imports(text, _CRASH)
        if kind == "syntax_error":
            text = re.sub(r"(?m)^(def .*):[ ]*$", r"\1", text, count=1)
        if kind == "latin1":
            text = f"# Meine Lösung, gespeichert wie früher\n{text}"
            return SampleAnswer(
                kind, ((f"{self.assignment.stem}.py", text.encode("latin-1", "replace")),)
            )
        return self._module(kind, text)

    def _module(
        self, kind: str, text: str, mistakes: tuple[str, ...] = (), unwritten: tuple[str, ...] = ()
    ) -> SampleAnswer:
        return SampleAnswer(
            kind, ((f"{self.assignment.stem}.py", text.encode()),), mistakes, unwritten
        )

    def _unfinished(self, rng: random.Random) -> SampleAnswer:
        """Create an answer with unwritten gaps at the end and sometimes one before it, as students work in order."""
        gaps = self._document.gaps
        written = rng.randrange(1, len(gaps))
        left = list(gaps[written:])
        if written > 1 and rng.random() < 0.3:
            left.insert(0, gaps[rng.randrange(written)])
        text = _trimmed(self._text(unwritten=left), rng)
        return self._module("unfinished", text, unwritten=tuple(gap.function for gap in left))

    def _with_mistakes(self, kind: str, rng: random.Random) -> SampleAnswer:
        choices = [(name,) for name in self._changes] if kind == "mistake" else self._pairs
        mistakes = _favourite(choices, rng)
        return self._module(kind, _trimmed(self._text(mistakes), rng), mistakes)

    def _with_notebook(self, kind: str, rng: random.Random) -> SampleAnswer:
        """Create a notebook, alone or with the untouched stub beside it."""
        wrong = kind == "notebook" and bool(self._changes) and rng.random() < _WRONG_NOTEBOOKS
        mistakes = _favourite([(name,) for name in self._changes], rng) if wrong else ()
        notebook = (
            nbformat.writes(to_notebook(self.assignment, self._text(mistakes))).rstrip() + "\n"
        )
        files = [(f"{self.assignment.stem}.ipynb", notebook.encode())]
        if kind == "both_files":
            files.append((f"{self.assignment.stem}.py", self._document.stub.encode()))
        return SampleAnswer(kind, tuple(files), mistakes)

    def _text(
        self,
        mistakes: Iterable[str] = (),
        unwritten: Collection[Gap] = (),
        first: Mapping[Gap, Sequence[str]] | None = None,
    ) -> str:
        """Return the solution as a student's file, without markers.

        It can contain mistakes, unwritten gaps as in the stub, or lines that come first in a gap.
        """
        parts = dict(self._parts)
        gaps = iter(self._document.gaps)
        for name in mistakes:
            parts |= self._changes[name]
        lines: list[str] = []
        left_out = False
        for line in itertools.chain(*parts.values()):
            if line.strip() == BEGIN:
                gap = next(gaps)
                left_out = gap in unwritten
                if left_out:
                    lines.append(gap.stub_line)
                else:
                    del lines[len(lines) - len(gap.todo) :]
                    lines += [gap.indent + text for text in (first or {}).get(gap, ())]
            elif line.strip() == END:
                left_out = False
            elif not left_out:
                lines.append(line)
        return "".join(f"{line}\n" for line in lines)

    def _changes_of(self, mistake: Mistake) -> dict[str, list[str]]:
        return {
            part: lines
            for part, lines in _by_part(mistake.source).items()
            if lines != self._parts.get(part)
        }


def _by_part(solution: str) -> dict[str, list[str]]:
    """Return the lines of each part of a solution, in their order; those after the last part have the name ""."""
    lines: dict[str, list[str]] = {}
    text = solution.rstrip()
    for line, part in zip(text.split("\n"), parts_of_lines(text)):
        lines.setdefault(part, []).append(line)
    return lines


def _favourite(choices: Sequence[tuple[str, ...]], rng: random.Random) -> tuple[str, ...]:
    """Choose from `choices`, with much higher weights for the first ones, as in a real class."""
    return rng.choices(choices, [(number + 1) ** -1.5 for number in range(len(choices))])[0]


def _trimmed(text: str, rng: random.Random) -> str:
    """Return the text as some students leave it: without the prose, without docstrings, or unchanged."""
    if rng.random() < 0.5:
        text = _without_prose(text)
    return _without_docstrings(text) if rng.random() < 0.3 else text


def _without_prose(text: str) -> str:
    cells = re.split(r"(?m)^(?=# %%)", text)
    code = [cell for cell in cells if not cell.startswith("# %% [markdown]")]
    return "".join(re.sub(r"\A# %%.*\n", "", cell) for cell in code).strip("\n") + "\n"


def _without_docstrings(text: str) -> str:
    left_out = set[int]()
    for _, node in definitions(ast.parse(text)):
        if len(node.body) > 1 and ast.get_docstring(node) is not None:
            left_out.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return "\n".join(
        line for number, line in enumerate(text.split("\n"), start=1) if number not in left_out
    )


def _after_imports(text: str, line: str) -> str:
    imports = [
        node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    at = max((node.end_lineno or node.lineno for node in imports), default=0)
    lines = text.split("\n")
    return "\n".join([*lines[:at], line, *lines[at:]])
