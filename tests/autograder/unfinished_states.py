"""The states of a hand-in that hold no answer, for the tests that no command takes one for an answer."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from autograder.course.config import Assignment, Course

_MARKERS = re.compile(r"^[ \t]*### (?:BEGIN|END) SOLUTION\n", re.MULTILINE)


@dataclass(frozen=True)
class Material:
    """The texts of one assignment from which the states are made."""

    course: Course
    assignment: Assignment

    @property
    def stub(self) -> str:
        return self.course.stub_file(self.assignment).read_text("utf-8")

    @property
    def stub_notebook(self) -> str:
        return self.course.notebook_file(self.assignment).read_text("utf-8")

    @property
    def solved(self) -> str:
        return _MARKERS.sub("", self.course.read_solution(self.assignment))

    @property
    def script(self) -> str:
        return f"{self.assignment.stem}.py"

    @property
    def notebook(self) -> str:
        return f"{self.assignment.stem}.ipynb"


def untouched(material: Material) -> dict[str, str]:
    return {material.script: material.stub, material.notebook: material.stub_notebook}


def bare_raise(material: Material) -> dict[str, str]:
    return {material.script: "raise\n"}


def empty(material: Material) -> dict[str, str]:
    return {material.script: ""}


def syntax_error(material: Material) -> dict[str, str]:
    return {material.script: f"{material.solved}\ndef (:\n"}


def only_markdown(material: Material) -> dict[str, str]:
    """The solution stands in cells of prose."""
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": f"```python\n{material.solved}\n```"}
    ]
    return {material.notebook: _notebook(cells)}


def script_false(material: Material) -> dict[str, str]:
    """The solution stands in cells that IPython gives to the program `false`."""
    pieces = re.split(r"^# %%.*\n", material.solved, flags=re.MULTILINE)
    return {
        material.notebook: _notebook(
            [_code(f"%%script false\n{piece}") for piece in pieces if piece.strip()]
        )
    }


def solved_elsewhere(material: Material) -> dict[str, str]:
    """A solved module of the same name stands wherever Python looks for modules: see `solved_on_the_path`."""
    return untouched(material)


STATES: dict[str, Callable[[Material], dict[str, str]]] = {
    "untouched stub": untouched,
    "bare raise": bare_raise,
    "empty file": empty,
    "syntax error": syntax_error,
    "only Markdown": only_markdown,
    "%%script false": script_false,
    "solved elsewhere": solved_elsewhere,
}
NOT_TO_PACK = ("untouched stub", "empty file", "only Markdown", "solved elsewhere")


def renamed_copy(material: Material) -> dict[str, str]:
    """The work is in another file beside the stub. This one is an answer, and counts."""
    return {**untouched(material), f"{material.assignment.stem} copy.py": material.solved}


def write_state(folder: Path, files: dict[str, str]) -> None:
    """Write a student's own files in place of the stub and the notebook."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")


@contextmanager
def solved_on_the_path(material: Material, *folders: Path) -> Iterator[None]:
    """Put a solved module of the same name into these folders and onto Python's path, here and in child processes."""
    before, outside = list(sys.path), os.environ.get("PYTHONPATH")
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / material.script).write_text(material.solved, "utf-8")
    sys.path[:0] = map(str, folders)
    os.environ["PYTHONPATH"] = os.pathsep.join(map(str, folders))
    try:
        yield
    finally:
        sys.path[:] = before
        sys.modules.pop(material.assignment.stem, None)
        if outside is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = outside


def _code(source: str) -> dict[str, object]:
    return {
        "cell_type": "code", "metadata": {}, "execution_count": None, "outputs": [],
        "source": source,
    }  # fmt: skip


def _notebook(cells: list[dict[str, object]]) -> str:
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4})
