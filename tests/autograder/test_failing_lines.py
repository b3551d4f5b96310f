"""A failing line at the top of a file costs nothing, wherever it stands and in whichever form the file is handed in."""

from __future__ import annotations

import ast
import itertools
import json
import re
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autograder.bridge.inside.server import Server
from autograder.bridge.shared.errors import READ_ON
from autograder.course.reading import load_course
from autograder.feedback.html import as_html
from autograder.feedback.markdown import as_markdown
from autograder.grading.grader import Grader
from autograder.grading.preparation import open_grader
from autograder.records import Grade, SourceFile, Submission
from autograder.walls.outside.launcher import Sandbox
from tests.autograder.pages import page_of
from tests.autograder.sampling import sampled

COURSE = load_course(Path(__file__).parents[2])
ASSIGNMENTS = {
    each.name: each
    for each in COURSE.assignments
    if each.name[:2] in ("00", "03", "05", "09", "13", "16")
}
PLACES = 40
FORMS = ("py", "ipynb")
LINES = {
    "assert 1 == 2, 'a wrong expectation'": "The check in",
    "print([1, 2] @ [3])": "failed with TypeError",
    "own_result = not_defined(3)": "failed with NameError",
    "for own_step in range(3): [][own_step]": "failed with IndexError",
    "open('data.txt').read()": "failed with FileNotFoundError",
    "class Own(int, str): pass": "failed with TypeError",
}


def solution(name: str) -> str:
    return re.sub(r".*### (BEGIN|END) SOLUTION\n", "", COURSE.read_solution(ASSIGNMENTS[name]))


def with_failing_line(text: str, place: int) -> tuple[str, str, int]:
    """Return the text with a line that fails above one of its statements or at its end, the line and its number."""
    above = [
        min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
        for node in ast.parse(text).body
        if not (isinstance(node, ast.ImportFrom) and node.module == "__future__")
    ][1:]
    rows = text.splitlines()
    places = [*above, len(rows) + 1]
    number = places[place * len(places) // PLACES]
    line = list(LINES)[place % len(LINES)]
    return "\n".join([*rows[: number - 1], line, *rows[number - 1 :]]), line, number


def in_form(text: str, form: str) -> str:
    """Return a py:percent text as a script, or as a notebook with the same cells."""
    if form == "py":
        return text
    sources = re.split(r"^# %%.*\n", text, flags=re.MULTILINE)
    return json.dumps({"cells": [{"cell_type": "code", "source": source} for source in sources]})


def names_after(text: str, form: str) -> set[str]:
    server = Server(types.ModuleType("submission"))
    server.load(in_form(text, form), f"net.{form}")
    return {name for name in vars(server.module) if name[:1] != "_" and name != "In"}


@pytest.mark.parametrize("name", sampled(ASSIGNMENTS, lambda name: name[:2] == "00"))
def test_everything_else_is_defined(name: str) -> None:
    text = solution(name)
    defined = {form: names_after(text, form) for form in FORMS}
    for place, form in itertools.product(range(PLACES), FORMS):
        failing, line, number = with_failing_line(text, place)
        assert defined[form] <= names_after(failing, form), (line, number, form)


@pytest.fixture(scope="module")
def grade(sandbox: Sandbox) -> Iterator[Callable[[str, str, str], Grade]]:
    graders: dict[str, Grader] = {}

    def graded(name: str, text: str, form: str) -> Grade:
        if name not in graders:
            graders[name] = open_grader(COURSE, sandbox, 5, [name])
        file = SourceFile(f"{ASSIGNMENTS[name].stem}.{form}", in_form(text, form))
        return graders[name].grade(Submission("ada", name, (file,)))

    yield graded
    for grader in graders.values():
        grader.session.close()


@pytest.mark.parametrize(
    ("name", "place"),
    sampled(itertools.product(ASSIGNMENTS, range(PLACES)),
            lambda case: case == ("00_why_transformers", 12),
            lambda case: f"{case[0][:2]}-{case[1]}"),
)  # fmt: skip
def test_both_forms_have_full_marks_and_are_told(
    grade: Callable[[str, str, str], Grade], tmp_path: Path, name: str, place: int
) -> None:
    text, line, number = with_failing_line(solution(name), place)
    for form in FORMS:
        found = grade(name, text, form)
        lost = [(test.name, test.message) for test in found.tests if test.outcome != "passed"]
        assert (found.score, lost) == (found.max_score, []), (line, number, form)
        (flag,) = found.flags
        assert LINES[line] in flag and flag.endswith(READ_ON)
        assert form != "py" or re.search(rf"\bline {number}\b", flag, re.I), flag
        page = page_of(tmp_path, COURSE, found)
        assert READ_ON in as_html(page).decode() and READ_ON in as_markdown(page).text
