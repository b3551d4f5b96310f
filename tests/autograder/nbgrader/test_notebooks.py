"""Released notebooks in a real kernel run from top to bottom, answer with sentences, and show no traceback."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

pytest.importorskip("nbgrader", reason="nbgrader is not installed: pip install '.[nbgrader]'")

import nbformat
import nbformat.corpus.words
from nbclient import NotebookClient
from nbformat import NotebookNode

from autograder.course.mistakes import Mistake
from autograder.course.mistakes_file import load_mistakes
from autograder.course.notebook import to_notebook
from autograder.course.reading import load_course
from tests.autograder.nbgrader.classroom import (
    ROOT,
    Classroom,
    edited,
    generated_classroom,
    real_classroom,
    test_cells,
    train_briefly,
)

COURSE = load_course(ROOT)
NAME, MISTAKE = "03_masked_heads", "mask_one_late"
READY = [
    assignment for assignment in COURSE.assignments if COURSE.notebook_file(assignment).is_file()
]


def run_all(work: list[tuple[NotebookNode, Path]]) -> list[NotebookNode]:
    """Run all cells of the notebooks, one notebook after another in one kernel that is reset in between."""
    cells = []
    for notebook, folder in work:
        forget = "%reset -f\n%reset -f in\nfrom autograder.selfcheck.kernel import this_kernel\n"
        forget += "this_kernel.seen.clear()\n"
        forget += f"import os\nos.chdir({str(folder)!r})"
        cells += [nbformat.v4.new_code_cell(forget), *notebook.cells]
    for cell in cells:
        cell["id"] = nbformat.corpus.words.generate_corpus_id()
    together = nbformat.v4.new_notebook(cells=cells)
    done = (
        NotebookClient(together, timeout=600, allow_errors=True, kernel_name="python3")
        .execute()
        .cells
    )
    for notebook, _ in work:
        assert not [output for output in done.pop(0).outputs if output.output_type == "error"]
        notebook.cells = [done.pop(0) for _ in notebook.cells]
    return [notebook for notebook, _ in work]


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, NotebookNode]:
    """The executed notebooks: every assignment's as released, one with correct answers, and one with a known mistake."""
    room = real_classroom(tmp_path_factory.mktemp("room"), NAME)
    here = room.course.release_folder(room.assignment)
    work = {
        "right": (room.solution(), here),
        MISTAKE: (to_notebook(room.assignment, mistake_of(room).source), here),
    }
    for assignment in READY:
        folder = tmp_path_factory.mktemp(assignment.name)
        shutil.copytree(COURSE.release_folder(assignment), folder, dirs_exist_ok=True)
        released = nbformat.read(COURSE.notebook_file(assignment), as_version=4)
        train_briefly(released, assignment.name)
        work[assignment.name] = released, folder
    return dict(zip(work, run_all(list(work.values())), strict=True))


def mistake_of(room: Classroom) -> Mistake:
    return next(m for m in load_mistakes(room.course, room.assignment) if m.id == MISTAKE)


def outputs(notebook: NotebookNode) -> list[NotebookNode]:
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def shown_text(notebook: NotebookNode) -> str:
    return "\n".join(
        output.get("text") or output.get("data", {}).get("text/plain", "")
        for output in outputs(notebook)
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", [assignment.name for assignment in READY])
def test_stub_runs_from_top_to_bottom(executed, name):
    notebook = executed[name]
    assert [output.evalue for output in outputs(notebook) if output.output_type == "error"] == []
    assert "Traceback" not in shown_text(notebook)
    for cell in test_cells(notebook):
        (verdict,) = cell.outputs
        assert "not written yet" in verdict.data["text/html"]
        assert re.search(r"0 of [\d.]+ visible points", verdict.data["text/plain"])


@pytest.mark.parametrize("name", [assignment.name for assignment in READY])
def test_notebook_is_valid_for_every_editor(name):
    """The notebook is valid, and has the metadata that VS Code reads: the language, a kernel name, and cell ids."""
    text = COURSE.notebook_file(COURSE.assignment(name)).read_text("utf-8")
    notebook = nbformat.reads(text, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert notebook.metadata.language_info.name == "python"
    assert notebook.metadata.kernelspec.name == "python3"
    assert notebook.metadata.kernelspec.language == "python"
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[\w-]{1,64}", one) for one in ids)
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in notebook.cells)
    assert text.endswith("}\n") and "\r" not in text


@pytest.mark.slow
def test_known_mistake_shows_its_hint(executed, tmp_path):
    assert mistake_of(real_classroom(tmp_path, NAME)).hint in shown_text(executed[MISTAKE])


def test_test_cell_raises_in_nbgraders_own_kernel(tmp_path):
    """nbgrader's own kernel would give full marks for a returned value, so the cell raises an error."""
    room = generated_classroom(tmp_path)
    own = "['nbgrader.preprocessors.Execute', 'nbgrader.preprocessors.SaveAutoGrades']"
    config = tmp_path / "nbgrader_config.py"
    config.write_text(
        config.read_text()
        + "from nbconvert.exporters import NotebookExporter\n"
        + f"c.Autograde.exporter_class = NotebookExporter\nc.Autograde.autograde_preprocessors = {own}\n"
    )
    room.hand_in("ada", edited(room.stub(), lambda notebook: None))
    room.nbgrader("autograde", room.name)
    assert room.gradebook_scores() == {"ada": {"add": 0.0, "total": 0.0}}
