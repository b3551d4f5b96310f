"""The functions of a notebook: hint, progress, pack, pictures, and the first cell, wherever the notebook lies."""

from __future__ import annotations

import linecache
import shutil
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder import notebook
from autograder.course.notebook import SET_UP, with_narrow_lines
from autograder.selfcheck.drawing import NEUTRAL, on_any_page
from autograder.source.text import outline
from tests.autograder.student_folder import copy_of

NAME = "01_adding"
GAP = 'raise NotImplementedError("add is not written yet.")'


@pytest.fixture
def folder(released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A student's folder of the assignment, as the working directory of a new kernel."""
    folder = copy_of(released, tmp_path)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(notebook, "_folder", None)
    monkeypatch.setattr(notebook, "_seen", {})
    return folder


def run_cells(folder: Path, monkeypatch: pytest.MonkeyPatch, answer: str = GAP, save: bool = True) -> None:
    """Write the answer to the notebook, save it, and run its cells of code with definitions, as a kernel does."""
    file = folder / "adding.ipynb"
    opened = nbformat.read(file, as_version=4)
    space: dict[str, Any] = {"__name__": "__main__", "In": []}
    for number, cell in enumerate(opened.cells):
        cell.source = cell.source.replace(GAP, answer).replace("return a - b", answer)
        if cell.cell_type == "code" and ("def " in cell.source or "STEP" in cell.source):
            name, text = f"{folder}/{number}.py", cell.source + "\n"
            monkeypatch.setitem(linecache.cache, name, (len(text), None, text.splitlines(keepends=True), name))
            exec(compile(text, name, "exec"), space)
    monkeypatch.setattr(notebook, "_notebook_space", lambda: space)
    if save:
        nbformat.write(opened, file)


def test_hint_in_a_notebook_helps_in_steps(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_cells(folder, monkeypatch, "return a - b")
    steps = [repr(notebook.hint("add")) for _ in range(5)]
    assert "Hint 1 of 4 · What the test looks at" in steps[0] and "add(2, 3) returned -1" in steps[0]
    assert "Do two heaps become smaller when they are put together?" in steps[1]
    assert "adding.ipynb, cell 5, line 1, in `add`" in steps[2] and "It asks for: both numbers together" in steps[2]
    assert "From the first: `again=True`" in steps[4]
    assert "Hint 1 of 4" in repr(notebook.hint("add", again=True))
    run_cells(folder, monkeypatch, "return a + b")
    assert "no hint is needed" in repr(notebook.hint("add"))
    assert "`Total.push` is not written yet" in repr(notebook.hint())


def test_check_in_a_notebook_names_the_mistake(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_cells(folder, monkeypatch, "return a - b")
    assert "This looks familiar: subtracts." in repr(notebook.check("add"))
    assert ">○ not yet</span>" in notebook.check("total")._repr_html_()


def test_pack_in_a_notebook_refuses_what_is_not_saved(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_cells(folder, monkeypatch, "return a + b", save=False)
    notebook.pack()
    assert "Save the notebook there and run this cell again." in capsys.readouterr().out
    assert not list(folder.glob("*.zip"))


@pytest.mark.slow
def test_pack_and_progress_print_what_the_terminal_prints(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_cells(folder, monkeypatch, "return a + b")
    notebook.pack()
    assert f"Hand in {NAME}.zip." in capsys.readouterr().out and (folder / f"{NAME}.zip").is_file()
    notebook.progress()
    assert "1 of 3 points of the visible tests." in capsys.readouterr().out


def test_first_cell_explains_itself_without_the_kit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "autograder.notebook", None)
    exec(SET_UP, {})
    told = capsys.readouterr().out
    assert "cannot import autograder.notebook" in told and "python -m pip install -r requirements.txt" in told


@pytest.mark.parametrize("place", [".", "course/assignments/01_adding", "assignments/01_adding", "01_adding"])
def test_files_are_found_near_a_notebook_that_was_opened_alone(
    released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    monkeypatch.setattr(notebook, "_folder", None)
    monkeypatch.chdir(tmp_path)
    notebook.open_assignment(NAME)
    assert f"The tests of {NAME} are not in {tmp_path}." in capsys.readouterr().out
    shutil.copytree(released / NAME, tmp_path / place, dirs_exist_ok=True)
    notebook.open_assignment(NAME)
    assert notebook._here().samefile(tmp_path / place) and capsys.readouterr().out == ""
    assert notebook._pictures("add")


def test_notebook_and_script_have_the_same_outline(folder: Path) -> None:
    """Otherwise a student who hands in both would be refused."""
    texts = [(folder / f"adding{kind}").read_text("utf-8") for kind in (".py", ".ipynb")]
    assert outline(texts[0], "adding.py") == outline(texts[1], "adding.ipynb")


SHAPES = '''\
def f(x):
    """A text.

    a line of a text that is much wider than any notebook shows beside its bar   # (B, T)
    """
    # TODO: a comment that is much wider than any notebook shows beside it        # (B, T, C)
    y = x.reshape(1, 2, 3).transpose(0, 1).reshape(6)                             # (B, T * C)
    return y  # short
'''


def test_shapes_of_wide_lines_get_a_line_of_their_own() -> None:
    assert with_narrow_lines(SHAPES).splitlines()[3:] == [
        SHAPES.splitlines()[3],
        '    """',
        "    # TODO: a comment that is much wider than any notebook shows beside it",
        "    #       (B, T, C)",
        "    # (B, T * C)",
        "    y = x.reshape(1, 2, 3).transpose(0, 1).reshape(6)",
        "    return y  # short",
    ]


def test_pictures_are_readable_on_light_and_dark_pages() -> None:
    """Outside the axes there is no background; dark words there become grey, and colours stay as they are."""
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots()
    title, inside = axes.set_title("a title"), axes.text(0.5, 0.5, "inside")
    label = axes.set_xlabel("a label", color="orangered")
    on_any_page(figure)
    assert figure.get_facecolor()[3] == 0
    assert (title.get_color(), inside.get_color(), label.get_color()) == (NEUTRAL, "black", "orangered")
    plain = Figure()
    plain.subplots().set_axis_off()
    on_any_page(plain)
    assert plain.get_facecolor()[3] == 1
