"""Cells with IPython's magics run as in the student's own notebook: in grading, in `check`, and as they are read."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from autograder.bridge.inside.server import Server
from autograder.bridge.shared.errors import LOADING_STOPPED
from autograder.course.reading import load_course
from autograder.grading.grader import Grader
from autograder.grading.preparation import open_grader
from autograder.records import SourceFile, Submission
from autograder.selfcheck.check import check_target
from autograder.source import text as source
from autograder.source.magics import CELL_MAGICS, LINE_MAGICS, plain_cell
from autograder.source.names_used import names_used
from autograder.source.places import CodeLocation, StudentText
from autograder.walls.outside.launcher import Sandbox
from tests.autograder.sampling import thinned
from tests.autograder.student_folder import RIGHT, copy_of
from tests.autograder.tiny_course import write_tiny_course

NAME = "01_adding"

BELOW = "def defined():\n    return 1\n"


def names_after(text: str, filename: str = "net.ipynb") -> dict:
    server = Server(types.ModuleType("submission"))
    told = server.load(cells(text) if filename.endswith(".ipynb") else text, filename)
    assert told["errors"] == []
    return vars(server.module)


def cells(*texts: str) -> str:
    return json.dumps({"cells": [{"cell_type": "code", "source": text} for text in texts]})


@pytest.mark.parametrize("magic", [*CELL_MAGICS, "timeit -n1 -r 1", "capture out", "prun -s time"])
def test_cell_below_a_magic_runs_and_is_read(magic: str) -> None:
    text = f"%%{magic}\nfrom torch import nn\n{BELOW}nn.GELU()\n"
    assert names_after(text)["defined"]() == 1
    assert ["torch.nn.GELU", 5, 1] in names_used(cells(text), "net.ipynb")["uses"]
    without = source.outline(cells(text.partition("\n")[2]), "net.ipynb")
    assert magic == "capture out" or source.outline(cells(text), "net.ipynb") == without


@pytest.mark.parametrize(
    "magic", ["bash", "sh", "script true", "writefile a.py", "html", "latex", "python", "!", "own"]
)
def test_cell_below_another_magic_does_not_run(magic: str) -> None:
    assert "defined" not in names_after(f"%%{magic}\n{BELOW}")


def test_lines_keep_their_numbers() -> None:
    server = Server(types.ModuleType("submission"))
    told = server.load(
        cells("%%time\n\n1 / 0\n", "\n\n%%capture out\n# why\n1 / 0\n", "\n1 / 0\n"), "net.ipynb"
    )
    assert [error["frames"][-1][1] for error in told["errors"]] == [3, 5, 2]


def test_what_a_magic_gives_can_be_used() -> None:
    found = names_after("%%capture printed\nprint(1)\n") | names_after(
        "x = %time 3\n%timeit x\n%time y = x\n"
    )
    assert found["printed"].stdout == "" and (found["x"], found["y"]) == (3, 3)
    assert names_after("%%timeit -n1 -r1 x = 3\ny = x\n")["y"] == 3


@pytest.mark.parametrize("name", LINE_MAGICS)
def test_line_magic_runs_its_line(name: str) -> None:
    assert names_after(f"%{name} x = 3")["x"] == 3


@pytest.mark.parametrize(
    "cell",
    [
        "%%time\ndef (", "%%", "%%time", "%", "get_ipython().run_cell_magic(*x)",
        "get_ipython().run_cell_magic('time', 1, 2)",
        "get_ipython().run_line_magic('time', '\\\\')", "%%time\n" * 50 + "x = 1",
    ],
)  # fmt: skip
def test_odd_cells_stop_nobody(cell: str) -> None:
    """What Python cannot read is an error of that cell alone."""
    assert plain_cell(cell)
    server = Server(types.ModuleType("submission"))
    server.load(cells(cell, BELOW), "net.ipynb")
    assert "defined" in vars(server.module)


SCRIPTS = {
    "Colab": "!pip install einops\n%matplotlib inline\nimport math\n" + BELOW,
    "Colab, a timed cell": (
        "# Commented out IPython magic to ensure Python compatibility.\n# %%time\n"
        "# def defined():\n#     return 1\n# \n\nx = 1\n"
    ),
    "nbconvert": (
        "# In[1]:\n\nget_ipython().run_line_magic('matplotlib', 'inline')\n"
        "get_ipython().run_cell_magic('time', '', 'def defined():\\n    return 1\\n')\n"
    ),
    "a timed line": "%time defined = lambda: 1\n",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_notebook_that_was_saved_as_a_script_is_read(name: str) -> None:
    assert names_after(SCRIPTS[name], "net.py")["defined"]() == 1


CONVERTED = """import torch

get_ipython().run_cell_magic('time', '', {body!r})


# In[3]:


def below(a):
    return a.nothing
"""
BODY = "class Other:\n    def forward(self, a):\n        return a\n\n\ndef timed(a):\n    return a.nothing\n"


def line_of_error(module: types.ModuleType, name: str) -> int:
    with pytest.raises(AttributeError) as caught:
        getattr(module, name)(1)
    return caught.value.__traceback__.tb_next.tb_lineno


def test_lines_of_a_script_from_nbconvert_are_those_of_the_file() -> None:
    text = CONVERTED.format(body=BODY)
    module = types.SimpleNamespace(**names_after(text, "net.py"))
    assert line_of_error(module, "timed") == 3
    assert line_of_error(module, "below") == text.splitlines().index("    return a.nothing") + 1
    places = StudentText(text, "net.py")
    assert {name: place.line for name, place in places.functions().items()} == {
        "Other": 3, "Other.forward": 3, "timed": 3, "below": 9,
    }  # fmt: skip
    assert places.named(CodeLocation("net.py", 3, None, "timed")).function == "timed"
    body = "import torch.nn.functional as F\nx = F.layer_norm\n"
    assert dict((name, line) for name, line, _ in names_used(CONVERTED.format(body=body), "net.py")["uses"])[
        "torch.nn.functional.layer_norm"
    ] == 3  # fmt: skip


def test_definitions_beside_a_training_in_one_line_are_kept() -> None:
    """As when a submission is loaded again, without the statement that took too long."""
    text = CONVERTED.format(body="def timed():\n    return 1\n\nraise ValueError\n")
    server = Server(types.ModuleType("submission"))
    told = server.load(text, "net.py", skipped=[["net.py", 3]])
    assert vars(server.module)["timed"]() == 1 and "below" in vars(server.module)
    assert [error["type"] for error in told["errors"]] == [LOADING_STOPPED]


@pytest.fixture(scope="module")
def grader(tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox) -> Iterator[Grader]:
    course = load_course(write_tiny_course(tmp_path_factory.mktemp("magics") / "course"))
    grader = open_grader(course, sandbox, 7)
    yield grader
    grader.close()


def as_cells(magic: str) -> list[str]:
    top, below = RIGHT.split("# %% [markdown]\n# ## Part 1")
    return [top, f"{magic}\n{below.partition('# %%')[2].partition(chr(10))[2]}"]


@pytest.mark.parametrize(
    "magic", thinned(["%%time", "%%timeit -n 1", "%%capture out", "%%prun -q"], 3)
)
def test_grade_and_check_count_what_is_below_a_magic(
    grader: Grader, released: Path, tmp_path: Path, magic: str
) -> None:
    text = cells(*as_cells(magic))
    grade = grader.grade(Submission("ada", NAME, (SourceFile("adding.ipynb", text),)))
    assert (grade.score, grade.status) == (10, "graded"), grade.tests
    folder = copy_of(released, tmp_path)
    file = folder / "adding.ipynb"
    opened = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(each) for each in as_cells(magic)]
    )
    nbformat.write(opened, file)
    (folder / "adding.py").unlink()
    assert check_target(folder).all_passed
    places = StudentText(file.read_text(), file.name).functions()
    assert places["add"].cell == 2 and places["add"].line == 2
