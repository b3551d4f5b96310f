"""A made-up class that resembles a real one: most answers are right or nearly right, some are odd, one never ends.

python scripts/made_up_class.py --students 30 --output class --seed 1

It reads any course.yml (`--course`) and writes `<student>/<assignment>/<file>`. Equal seeds give
equal bytes. As in a real class, some students hand in nothing; they are named.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import nbformat

from autograder.course.config import Assignment, Course, CourseError
from autograder.course.definitions import definitions
from autograder.course.document import Gap, load_document
from autograder.course.markers import BEGIN, END, parts_of_lines
from autograder.course.mistakes import Mistake
from autograder.course.mistakes_file import load_alternatives, load_mistakes
from autograder.course.notebook import to_notebook
from autograder.course.reading import load_course
from autograder.gradebook.demo_marker import mark
from autograder.text.files import write_whole
from autograder.text.wording import counted, listed

NAMES = [
    "ada", "aiko", "alan", "amara", "amir", "ana", "anouk", "arjun", "asha", "aziz", "bao",
    "ben", "bilal", "carmen", "chidi", "chloe", "dalia", "dana", "diego", "elif", "emil",
    "emmy", "enzo", "esi", "farah", "fatou", "finn", "freya", "gael", "grace", "hana", "hassan",
    "hugo", "ida", "ines", "isaac", "iva", "jamal", "jun", "kai", "kamala", "karim", "keiko",
    "kofi", "lars", "leila", "lena", "lin", "luca", "maja", "malik", "mei", "mila", "nadia",
    "nia", "noor", "olga", "omar", "otto", "pablo", "petra", "priya", "quinn", "rafa", "ravi",
    "rosa", "sami", "sara", "sofia", "tariq", "tess", "thi", "timo", "uma", "vera", "viktor",
    "wen", "yara", "yuki", "zane", "zoe",
]  # fmt: skip
_ONCE_IN_A_CLASS = ("loop", "exit", "memory")
# how often students of ability 0 and of ability 1 give each kind of answer
_WEIGHTS: dict[str, tuple[float, float]] = {
    "right": (10, 60),
    "alternative": (1, 12),
    "notebook": (6, 12),
    "both_files": (2, 2),
    "mistake": (34, 10),
    "two_mistakes": (14, 1),
    "unfinished": (14, 1),
    "stub": (6, 0),
    "crash": (4, 0.5),
    "syntax_error": (3, 0.5),
    "latin1": (0.5, 0.2),
    "nothing": (8, 0.5),
}
ANSWER_KINDS = (*_ONCE_IN_A_CLASS, *_WEIGHTS)
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


@dataclass(frozen=True)
class MadeUpStudent:
    """A made-up student: an ability from 0 to 1, and the answer to each assignment."""

    name: str
    ability: float
    answers: dict[str, SampleAnswer]


def write_class(
    course: Course,
    output: Path,
    students: int = 30,
    seed: int = 0,
    assignments: Iterable[str] | None = None,
    tell: Callable[[str], None] = lambda step: None,
) -> list[MadeUpStudent]:
    """Write a class as `<student>/<assignment>/<file>` to `output`, and return its students.

    The assignments are the named ones, or for None all with a solution. In a class of thirty every
    kind of answer occurs, the endless loop once. `tell` is called with a description of each step.
    Raises CourseError if the course is broken, there is nothing to answer, or `output` is not
    empty.
    """
    chosen = [
        a for a in course.select(assignments) if assignments or course.solution_file(a).is_file()
    ]
    if not chosen:
        raise CourseError("The course has no solutions yet; a made-up class is created from them.")
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise CourseError(f"{output} already exists; remove it or choose another folder.")
    books = {}
    for a in chosen:
        tell(f"Collecting answers to {a.name}")
        books[a.name] = AnswerBook(course, a, _random(seed, a.name))
    tell(f"Writing the answers of {counted(students, 'student')}")
    class_of_students = _make(books, students, seed)
    mark(output)
    for student in class_of_students:
        for assignment, answer in student.answers.items():
            for name, content in answer.files:
                write_whole(output / student.name / assignment / name, content)
    return class_of_students


def _make(books: dict[str, AnswerBook], count: int, seed: int) -> list[MadeUpStudent]:
    names = _names(count, _random(seed, "names"))
    abilities = {name: round(_random(seed, name).betavariate(2.2, 1.2), 3) for name in names}
    kinds = {}
    for name in names:
        for assignment, book in books.items():
            rng = _random(seed, name, assignment)
            kinds[name, assignment] = _usual(book, abilities[name], rng)
    _add_the_rare(kinds, books, _random(seed, "rare"))
    students = []
    for name in names:
        answers = {}
        for assignment, book in books.items():
            rng = _random(seed, name, assignment, "answer")
            answers[assignment] = book.answer(kinds[name, assignment], rng)
        students.append(MadeUpStudent(name, abilities[name], answers))
    return students


def _usual(book: AnswerBook, ability: float, rng: random.Random) -> str:
    kinds = [kind for kind in _WEIGHTS if book.has(kind)]
    weights = [_weight(kind, ability) for kind in kinds]
    return rng.choices(kinds, weights)[0]


def _weight(kind: str, ability: float) -> float:
    at_ability_0, at_ability_1 = _WEIGHTS[kind]
    return at_ability_0 + ability * (at_ability_1 - at_ability_0)


def _add_the_rare(
    kinds: dict[tuple[str, str], str], books: dict[str, AnswerBook], rng: random.Random
) -> None:
    """Insert the kinds that occur once per class, then, if there is room, those that were not drawn."""
    slots = list(kinds)
    rng.shuffle(slots)
    for kind in ANSWER_KINDS[: len(slots) // 2]:
        counts = Counter(kinds.values())
        fitting = (slot for slot in slots if counts[kinds[slot]] > 1 and books[slot[1]].has(kind))
        if kind not in counts and (slot := next(fitting, None)):
            kinds[slot] = kind


def _names(count: int, rng: random.Random) -> list[str]:
    """Return that many different names; after the end of the list they continue as `ada2`."""
    rounds: list[str] = []
    while len(rounds) < count:
        number = len(rounds) // len(NAMES) + 1
        once = [f"{name}{number}" if number > 1 else name for name in NAMES]
        rng.shuffle(once)
        rounds += once
    return sorted(rounds[:count])


def _random(seed: int, *words: str) -> random.Random:
    """Return an independent generator per choice, so that one more student does not change the others."""
    return random.Random("/".join([str(seed), *words]))


def absent_students(made_up: Iterable[MadeUpStudent]) -> list[str]:
    """Return the names of the students who hand in nothing."""
    return [s.name for s in made_up if not any(answer.files for answer in s.answers.values())]


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--students", type=int, default=30, help="how many; 30 by default")
    parser.add_argument("--output", type=Path, required=True, help="the folder to write to")
    parser.add_argument("--seed", type=int, default=0, help="the same seed makes the same class")
    parser.add_argument("--assignment", action="append", help="only this one; repeatable")
    parser.add_argument("--course", type=Path, default=Path("."), help="the folder of course.yml")
    options = parser.parse_args(words)
    if options.students < 1:
        parser.error("--students must be at least 1.")
    try:
        made_up = write_class(
            load_course(options.course),
            options.output,
            options.students,
            options.seed,
            options.assignment,
            tell=lambda step: print(f"{step} …", file=sys.stderr),
        )
    except CourseError as problem:
        print(problem, file=sys.stderr)
        return 2
    absent = absent_students(made_up)
    nothing = f"; no submissions from {listed(absent)}" if absent else ""
    print(f"{counted(len(made_up), 'student')} in {options.output}{nothing}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
