"""How many minutes a text takes, by one formula: an estimate that is the same for every part and assignment."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from autograder.course.config import Assignment, Course
from autograder.course.definitions import Definition
from autograder.course.document import Document, Gap, load_document

WORDS_A_MINUTE = 150  # of prose with formulas, and of docstrings
MINUTES_A_STEP = 2.0  # of each TODO
MINUTES_A_LINE = 0.5  # of a solution
MINUTES_A_RUN = 1.0  # of each check, picture and demonstration
ROUNDED_TO = 5  # an assignment's minutes; those of a part are whole
_RUN = 'if __name__ == "__main__":'
_WORD = re.compile(r"[^\W_][\w'’.-]*")
_CODE = re.compile(r"```.*?```", re.DOTALL)
_STATED = re.compile(r"^(?:[Aa]bout )?(\d+) minutes, [●○]{3}$", re.MULTILINE)


@dataclass
class _Section:
    """What stands below a heading, counted; `stated` are the minutes that its text says."""

    heading: str = ""
    stated: int | None = None
    words: int = 0
    steps: int = 0
    lines: int = 0
    runs: int = 0

    @property
    def minutes(self) -> float:
        writing = MINUTES_A_STEP * self.steps + MINUTES_A_LINE * self.lines
        return self.words / WORDS_A_MINUTE + writing + MINUTES_A_RUN * self.runs

    def read(self, text: str) -> None:
        if stated := _STATED.search(text):
            self.stated = int(stated[1])
        self.words += len(_WORD.findall(_CODE.sub("", text)))

    def work(self, source: str, gaps: Iterable[Gap]) -> None:
        self.words += sum(len(_WORD.findall(text)) for text in _docstrings(source))
        self.runs += source.count(_RUN)
        for gap in gaps:
            self.steps += len(gap.todo)
            self.lines += sum(bool(line.strip()) for line in gap.lines)


def other_minutes(course: Course, assignment: Assignment) -> list[str]:
    """Return a sentence for each number of minutes that is not what the formula gives.

    Only texts whose parts say their minutes are looked at.
    """
    sections = _sections(load_document(course, assignment))
    stated = [section for section in sections if section.stated is not None]
    if not stated:
        return []
    label = course.label(course.solution_file(assignment))
    problems = [
        f"{label}: {section.heading} says {section.stated} minutes; {_sum_of([section])} make {round(section.minutes)}."
        for section in stated
        if section.stated != round(section.minutes)
    ]
    whole = ROUNDED_TO * round(sum(section.minutes for section in sections) / ROUNDED_TO)
    if assignment.minutes != whole:
        problems.append(
            f"{assignment.name}: course.yml says {assignment.minutes} minutes; {_sum_of(sections)} make {whole}."
        )
    return problems


def _sum_of(sections: Sequence[_Section]) -> str:
    words, steps, lines, runs = (
        sum(getattr(section, name) for section in sections)
        for name in ("words", "steps", "lines", "runs")
    )
    return f"{words} words, {steps} TODOs, {lines} lines to write and {runs} runs"


def _sections(document: Document) -> list[_Section]:
    gaps = {gap.begin: gap for gap in document.gaps}
    ends = [cell.line for cell in document.cells[1:]] + [document.text.count("\n") + 1]
    sections = [_Section()]
    for cell, end in zip(document.cells, ends, strict=True):
        if cell.kind == "markdown":
            first, *others = re.split(r"^(?=## )", cell.source, flags=re.MULTILINE)
            sections[-1].read(first)
            for text in others:
                sections.append(_Section(heading=text.splitlines()[0].removeprefix("## ")))
                sections[-1].read(text)
        elif cell.kind == "code":
            inside = [gaps[line] for line in range(cell.line, end) if line in gaps]
            sections[-1].work(cell.source, inside)
        else:
            sections[-1].runs += 1
    return sections


def _docstrings(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, Definition) and (text := ast.get_docstring(node)):
            yield text
