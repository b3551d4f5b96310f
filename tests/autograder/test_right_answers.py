"""Every official solution keeps full marks with what honest students leave beside an answer; none is falsely rejected."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import nbformat
import pytest

from autograder.course.config import Assignment
from autograder.course.notebook import to_notebook
from autograder.course.reading import load_course
from autograder.grading.grader import Grader
from autograder.grading.preparation import collect_suites, open_grader
from autograder.records import Grade, SourceFile, Submission
from tests.autograder.sampling import sampled

ROOT = Path(__file__).parents[2]
COURSE = load_course(ROOT)

TRAINING = """
import torch as own_torch
from torch import nn as own_nn

own_model = own_nn.Linear(3, 1)
own_optimiser = own_torch.optim.SGD(own_model.parameters(), lr=0.1)
own_generator = own_torch.Generator().manual_seed(1)
for own_step in range(200):
    own_rows = own_torch.randn(8, 3, generator=own_generator)
    own_loss = (own_model(own_rows) - own_rows.sum(-1, keepdim=True)).pow(2).mean()
    own_optimiser.zero_grad()
    own_loss.backward()
    own_optimiser.step()
print("loss", own_loss.item())
"""
IMPORTS = """
import math, os, sys, time, typing
import numpy as own_numpy
import pandas as pd
import seaborn as sns
from einops import rearrange
from jaxtyping import Float
from sklearn.metrics import accuracy_score
from torchinfo import summary
"""
LOOK_UPS = """
import timeit
import torch as own_torch

own_layer = own_torch.nn.Linear(2, 2)
print(getattr(own_layer, "bias", None) is None, getattr(own_layer, "we" + "ight").shape, sorted(vars(own_layer)))
print(timeit.timeit(lambda: own_layer(own_torch.ones(1, 2)), number=2) >= 0)


@own_torch.jit.script
def own_doubled(x: own_torch.Tensor):
    return x + x
"""
CHECKS_AT_THE_END = """

def own_tests():
    import doctest
    assert doctest is not None


if __name__ == "__main__":
    own_tests()
    for own_count in range(10**9):
        pass
"""


def forbidden(assignment: Assignment) -> list[str]:
    """Return what the tests of an assignment forbid."""
    names: set[str] = set()
    with closing(collect_suites(COURSE, [assignment])) as session:
        for test in session.tests():
            names.update(test.forbids)
    return sorted(names)


def compared(assignment: Assignment) -> str:
    """Return a helper that nobody calls, and that names and calls all that is forbidden."""
    lines = ["", "", "def own_comparison(*given):"]
    for name in forbidden(assignment) or ["torch.nn.functional.softmax"]:
        package = name.partition(".")[0]
        lines += [
            f"    import {package}",
            f"    own_ready = {name}",
            f"    print(own_ready, {name}.__name__)",
        ]
    return "\n".join([*lines, "    return own_ready(*given)", ""])


def notebook(assignment: Assignment, magic: str) -> str:
    """Return the solution as a notebook, with its cells below a magic, and others around them."""
    cells = to_notebook(assignment, COURSE.read_solution(assignment))
    for cell in cells.cells:
        if cell.cell_type == "code" and "%" not in cell.source:
            cell.source = f"{magic}\n{cell.source}"
    cells.cells.insert(
        0,
        nbformat.v4.new_code_cell(
            "%matplotlib inline\n%load_ext autoreload\n!pip install einops -q"
        ),
    )
    cells.cells.append(nbformat.v4.new_code_cell("%%bash\necho done; exit 1"))
    cells.cells.append(nbformat.v4.new_code_cell("%timeit -n 1 -r 1 sum(range(10))"))
    return nbformat.writes(cells)


ALONE = "nothing beside it"
WAYS: dict[str, Callable[[Assignment, str], tuple[str, str]]] = {
    ALONE: lambda assignment, text: ("py", text),
    "uncalled comparison": lambda assignment, text: ("py", text + compared(assignment)),
    "look-ups": lambda assignment, text: ("py", text + LOOK_UPS),
    "training at the top": lambda assignment, text: ("py", text + TRAINING),
    "unused imports": lambda assignment, text: ("py", after_future_imports(text, IMPORTS)),
    "a loop of its own": lambda assignment, text: ("py", text + CHECKS_AT_THE_END),
    "%%time": lambda assignment, text: ("ipynb", notebook(assignment, "%%time")),
    "%%capture": lambda assignment, text: ("ipynb", notebook(assignment, "%%capture out")),
}


def after_future_imports(text: str, lines: str) -> str:
    """Put lines before the first statement, but after the module's docstring and `from __future__`."""
    first = next(
        node
        for node in ast.parse(text).body
        if not (
            isinstance(node, ast.Expr)
            or (isinstance(node, ast.ImportFrom) and node.module == "__future__")
        )
    )
    rows = text.splitlines(keepends=True)
    return "".join([*rows[: first.lineno - 1], lines, *rows[first.lineno - 1 :]])


@pytest.fixture(scope="module")
def grade(sandbox) -> Iterator[Callable[[Assignment, str], Grade]]:
    graders: dict[str, Grader] = {}

    def graded(assignment: Assignment, way: str) -> Grade:
        if assignment.name not in graders:
            graders[assignment.name] = open_grader(COURSE, sandbox, 5, [assignment.name])
        suffix, text = WAYS[way](assignment, COURSE.read_solution(assignment))
        file = SourceFile(f"{assignment.stem}.{suffix}", text)
        return graders[assignment.name].grade(Submission("ada", assignment.name, (file,)))

    yield graded
    for grader in graders.values():
        grader.session.close()


CHOSEN = {"03_masked_heads", "06_bert_param_count"}


@pytest.mark.parametrize(
    ("assignment", "way"),
    sampled(itertools.product(COURSE.assignments, WAYS),
            lambda case: case[0].name in CHOSEN or case[1] == ALONE,
            lambda case: f"{case[0].name}-{case[1]}"),
)  # fmt: skip
def test_solution_with_what_students_leave_beside_it_has_full_marks(
    grade: Callable[[Assignment, str], Grade], assignment: Assignment, way: str
) -> None:
    graded = grade(assignment, way)
    lost = [(test.name, test.message) for test in graded.tests if test.outcome != "passed"]
    assert (graded.problem, graded.score, lost) == (None, graded.max_score, [])
