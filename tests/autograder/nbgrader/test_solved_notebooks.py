"""A notebook with only correct answers runs from top to bottom, passes its checks and draws its pictures.

Each notebook runs in its own kernel, in a folder as students receive it. The executed notebooks are saved in
`build/notebooks/`. Every line is run, but long trainings take fewer steps; `NOTEBOOKS=whole` in the environment trains
as long as students do, which takes some minutes more.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

pytest.importorskip("nbgrader", reason="nbgrader is not installed: pip install '.[nbgrader]'")

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

from autograder.course.reading import load_course
from tests.autograder.nbgrader.classroom import ROOT, Classroom, train_briefly

COURSE = load_course(ROOT)
KEPT = ROOT / "build" / "notebooks"
SECONDS = 900  # for one cell, on a machine that is busy with other things


def executed(name: str, folder: Path) -> NotebookNode:
    """The solved notebook after all its cells ran, with the released tests and pictures beside it."""
    room = Classroom(ROOT, name)
    shutil.copytree(COURSE.release_folder(room.assignment), folder, dirs_exist_ok=True)
    notebook = room.solution()
    train_briefly(notebook, name)
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # others run at the same time
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        allow_errors=True,
        coalesce_streams=True,  # a bar that grows is kept as it stood at last
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    done: NotebookNode = client.execute(env={**os.environ, **threads})
    return done


def asks(cell: NotebookNode, what: str) -> bool:
    """Whether a cell consists only of `check("…")` or `picture("…")`."""
    return cell.cell_type == "code" and cell.source.startswith(f'{what}("')


def errors(notebook: NotebookNode) -> list[str]:
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", []))
    return [
        f"{output.ename}: {output.evalue}" for output in outputs if output.output_type == "error"
    ]


def words(cell: NotebookNode) -> str:
    """Return all text output of a cell."""
    return "\n".join(
        output.get("text") or output.get("data", {}).get("text/plain", "")
        for output in cell.outputs
    )


def images(cell: NotebookNode) -> int:
    return sum("image/png" in output.get("data", {}) for output in cell.outputs)


@pytest.mark.slow
@pytest.mark.parametrize("name", [each.name for each in COURSE.assignments])
def test_solved_notebook_passes_all_checks_and_draws_pictures(name, tmp_path):
    assignment = COURSE.assignment(name)
    notebook = executed(name, tmp_path)
    KEPT.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, KEPT / f"{assignment.stem}.ipynb")

    assert errors(notebook) == []
    checks = [cell for cell in notebook.cells if asks(cell, "check")]
    assert [cell.source for cell in checks] == [
        f'check("{part.name}")' for part in assignment.parts
    ]
    for cell in checks:
        assert "All visible tests of this part pass" in words(cell), cell.source
    pictures = [cell for cell in notebook.cells if asks(cell, "picture")]
    assert len(pictures) >= 2
    for cell in pictures:
        assert images(cell) >= 1, f"{cell.source} has drawn nothing"
        assert "cannot be drawn" not in words(cell)
