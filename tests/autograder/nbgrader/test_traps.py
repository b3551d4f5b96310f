"""Unusual and hostile notebooks: each gets the score of its code, and none stops nbgrader.

One class hands in all of them and is graded by one `nbgrader autograde`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("nbgrader", reason="nbgrader is not installed: pip install '.[nbgrader]'")

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell

from tests.autograder.nbgrader.classroom import (
    TINY,
    Classroom,
    edited,
    generated_classroom,
    test_cells,
    tiny_classroom,
)
from tests.autograder.waiting import wait_until

FULL = {"add": 4.0, "total": 6.0}
NOTHING = {"add": 0.0, "total": 0.0}
SLEEP = "86399.5"  # how long a process that is left behind would sleep


@dataclass(frozen=True)
class Trap:
    """One student's submission, its expected score, and words of its feedback."""

    work: NotebookNode | str | bytes | None
    scores: dict[str, float]
    says: tuple[str, ...] = ()
    file: str | None = None
    beside: tuple[tuple[str, str], ...] = ()


def with_test_source(source: str) -> Callable[[NotebookNode], None]:
    def change(notebook: NotebookNode) -> None:
        for cell in test_cells(notebook):
            cell.source = source

    return change


def first_cell(source: str) -> Callable[[NotebookNode], None]:
    return lambda notebook: notebook.cells.insert(0, new_code_cell(source))


def tagged(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        cell.metadata["tags"] = ["skip-execution", "raises-exception"]


def doubled(notebook: NotebookNode) -> None:
    for cell in test_cells(notebook):
        notebook.cells.append(cell)


def deleted(notebook: NotebookNode) -> None:
    notebook.cells = [cell for cell in notebook.cells if cell not in test_cells(notebook)]


def moved(notebook: NotebookNode) -> None:
    first, second = test_cells(notebook)
    places = [notebook.cells.index(first), notebook.cells.index(second)]
    notebook.cells[places[0]], notebook.cells[places[1]] = second, first


def retyped(notebook: NotebookNode) -> None:
    for cell in test_cells(notebook):
        cell.cell_type = "markdown"
        del cell["outputs"], cell["execution_count"]


def without_metadata(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        cell.metadata = {}


def worth_a_hundred(notebook: NotebookNode) -> None:
    for cell in test_cells(notebook):
        cell.metadata.nbgrader.points = 100


def own_test_cell(notebook: NotebookNode) -> None:
    bonus = {
        "grade": True, "grade_id": "bonus", "locked": True, "points": 100, "schema_version": 3,
        "solution": False,
    }  # fmt: skip
    notebook.cells.append(new_code_cell("100.0", metadata={"nbgrader": bonus}))


def other_schema(version: object) -> Callable[[NotebookNode], None]:
    def change(notebook: NotebookNode) -> None:
        for cell in notebook.cells:
            if "nbgrader" in cell.metadata:
                cell.metadata.nbgrader.schema_version = version

    return change


def odd_metadata(notebook: NotebookNode) -> None:
    odd = [
        "text",
        7,
        {"grade_id": 3},
        {"grade": True},
        {"grade_id": "add", "points": "nan", "grade": "yes"},
    ]
    for cell, metadata in zip(notebook.cells, odd * 3, strict=False):
        cell.metadata["nbgrader"] = metadata


def forged_outputs(notebook: NotebookNode) -> None:
    for cell in test_cells(notebook):
        result = {
            "output_type": "execute_result", "data": {"text/plain": "6.0"}, "metadata": {},
            "execution_count": 1,
        }  # fmt: skip
        cell.outputs = [result]


def of_kernel(name: str) -> Callable[[NotebookNode], None]:
    def change(notebook: NotebookNode) -> None:
        notebook.metadata = {"kernelspec": {"name": name, "display_name": name, "language": name}}

    return change


def with_page_of_their_own(notebook: NotebookNode) -> None:
    attack = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    notebook.cells += [
        new_markdown_cell(attack),
        new_raw_cell(attack),
        new_code_cell(f"# {attack}"),
    ]


NOISE = """
import logging, sys, warnings
warnings.warn("a warning on stderr")
print("progress 50 %", file=sys.stderr)
logging.error("a line in the log")
"""

TRANSFORMERS = """
import ast
class NoAsserts(ast.NodeTransformer):
    def visit_Assert(self, node): return ast.Pass()
get_ipython().ast_transformers.append(NoAsserts())
get_ipython().input_transformers_post.append(lambda lines: ["100.0"])
"""

LEFT_BEHIND = f"""
import subprocess
subprocess.Popen(["sleep", "{SLEEP}"], start_new_session=True)
"""


def reads_the_solution(root: Path) -> str:
    return f"exec(open({str(root / 'solutions' / TINY / 'adding.py')!r}).read())"


def writes_the_gradebook(root: Path) -> str:
    return f"""
import sqlite3
connection = sqlite3.connect({str(root / "gradebook.db")!r})
connection.execute("update grade set auto_score = 100, manual_score = 100")
connection.commit()
"""


def plants_files(root: Path) -> str:
    poison = f"open({str(root / 'poisoned')!r}, 'w')"
    return f"""
import os
for folder in ({str(root)!r}, {str(root / "autograded")!r}, os.path.expanduser("~"), "."):
    for name in ("ipykernel_launcher.py", "nbgrader_config.py", "sitecustomize.py"):
        try:
            with open(os.path.join(folder, name), "a") as file:
                file.write({poison!r})
        except OSError:
            pass
"""


def replacing(stub: NotebookNode, code: str) -> NotebookNode:
    return edited(stub, first_cell(code))


def the_traps(room: Classroom) -> dict[str, Trap]:
    """Return the submissions, one per student; those with a correct solution must keep all points, the others
    get none.
    """
    stub, right, root = room.stub(), room.solution(), room.folder
    solution = (root / "solutions" / TINY / "adding.py").read_text("utf-8")
    poison = f"open({str(root / 'poisoned')!r}, 'w')"
    values = {
        "numpy_float": "import numpy\nnumpy.float64(6.0)",
        "torch_number": "import torch\ntorch.tensor(6.0)",
        "true": "True",
        "nan": "float('nan')",
        "negative": "-5.0",
        "none": "None",
        "above_maximum": "1000.0",
    }
    traps = {
        f"value_{name}": Trap(edited(stub, with_test_source(code)), NOTHING)
        for name, code in values.items()
    }
    traps |= {
        "right_value_above": Trap(
            edited(right, with_test_source("1000.0")), FULL, ("had been changed",)
        ),
        "stub": Trap(stub, NOTHING, ("not written yet",)),
        "right": Trap(right, FULL),
        "noise": Trap(edited(right, first_cell(NOISE)), FULL),
        "noise_in_tests": Trap(edited(right, with_test_source(NOISE)), FULL),
        "skip_tag_stub": Trap(edited(stub, tagged), NOTHING, ("had tags",)),
        "skip_tag_right": Trap(edited(right, tagged), FULL),
        "doubled": Trap(edited(right, doubled), FULL, ("was there 2 times",)),
        "doubled_stub": Trap(edited(stub, doubled), NOTHING),
        "deleted": Trap(edited(right, deleted), FULL, ("was missing",)),
        "deleted_stub": Trap(edited(stub, deleted), NOTHING),
        "moved": Trap(edited(right, moved), FULL, ("had been moved",)),
        "retyped": Trap(edited(right, retyped), FULL, ("had become a markdown cell",)),
        "retyped_stub": Trap(edited(stub, retyped), NOTHING),
        "without_metadata": Trap(edited(right, without_metadata), FULL),
        "worth_a_hundred": Trap(edited(right, worth_a_hundred), FULL),
        "own_test_cell": Trap(edited(stub, own_test_cell), NOTHING),
        "schema_zero": Trap(edited(right, other_schema(0)), FULL),
        "schema_new": Trap(edited(right, other_schema(99)), FULL),
        "schema_text": Trap(edited(right, other_schema("new")), FULL),
        "odd_metadata": Trap(edited(right, odd_metadata), FULL),
        "forged_outputs": Trap(edited(stub, forged_outputs), NOTHING),
        "kernel_r": Trap(edited(right, of_kernel("ir")), FULL),
        "kernel_none": Trap(edited(right, lambda notebook: notebook.pop("metadata")), FULL),
        "surrogates": Trap(edited(right, first_cell("# \ud800 alone")), FULL),
        "page": Trap(edited(right, with_page_of_their_own), FULL),
        "python_beside": Trap(
            right, FULL, beside=(("adding.py", room.course.stub_file(room.assignment).read_text()),)
        ),
        "only_python": Trap(solution, FULL, file="adding.py"),
        "other_name": Trap(right, FULL, file="adding (1).ipynb"),
        "transformers": Trap(edited(stub, first_cell(TRANSFORMERS)), NOTHING),
        "reads_solution": Trap(replacing(stub, reads_the_solution(root)), NOTHING),
        "writes_gradebook": Trap(replacing(stub, writes_the_gradebook(root)), NOTHING),
        "leaves_process": Trap(replacing(right, LEFT_BEHIND), FULL),
        "plants_files": Trap(replacing(right, plants_files(root)), FULL),
        "launcher_beside": Trap(
            right, FULL, beside=(("ipykernel_launcher.py", poison), ("nbgrader_config.py", poison))
        ),
        "not_json": Trap("{ this is not json", NOTHING),
        "no_cells": Trap('{"cells": 3, "metadata": {}}', NOTHING),
        "a_list": Trap("[]", NOTHING),
        "deep": Trap("[" * 100_000, NOTHING),
        "latin1": Trap("caf\xe9".encode("latin-1"), NOTHING, ("UTF-8",)),
        "empty_file": Trap("", NOTHING),
        "no_file": Trap("notes of mine", NOTHING, file="readme.txt"),
        # the other cells run: what they do not write is said, and the instructor has a note about the endless one
        "endless": Trap(replacing(stub, "while True: pass"), NOTHING, ("is not written yet",)),
        "exits": Trap(replacing(stub, "import os\nos._exit(0)"), NOTHING),
        "12345": Trap(right, FULL),
        "josé ünal": Trap(right, FULL),
    }
    return traps


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Classroom:
    """The class, graded."""
    room = generated_classroom(tmp_path_factory.mktemp("traps"))
    return graded(room, the_traps(room))


def graded(room: Classroom, traps: dict[str, Trap]) -> Classroom:
    """Hand in these submissions, and grade them by one command."""
    for student, trap in traps.items():
        if trap.work is not None:
            room.hand_in(student, trap.work, trap.file)
        for name, text in trap.beside:
            room.hand_in(student, text, name)
    room.log = room.nbgrader("autograde", TINY)  # type: ignore[attr-defined]
    return room


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Provide the students' names, which are needed before the class exists."""
    if "student" in metafunc.fixturenames:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            metafunc.parametrize("student", the_traps(tiny_classroom(Path(folder))))


@pytest.fixture(scope="module")
def scores(room: Classroom) -> dict[str, dict[str, float]]:
    return room.gradebook_scores()


@pytest.mark.slow
def test_score_depends_on_the_code_alone(room, scores, student):
    trap = the_traps(room)[student]
    assert scores[student] == trap.scores, room.feedback_text(student)
    for words in trap.says:
        assert words in room.feedback_text(student)


def processes_with(word: str) -> list[str]:
    """Return the processes of this machine with this word in their command line."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended meanwhile
            if word.encode() in file.read_bytes().split(b"\0"):
                found.append(file.parent.name)
    return found


@pytest.mark.slow
def test_no_files_or_processes_of_students_remain(room):
    assert not (room.folder / "poisoned").exists()
    assert not (room.folder / "ipykernel_launcher.py").exists()
    assert wait_until(lambda: not processes_with(SLEEP)), processes_with(SLEEP)


@pytest.mark.slow
def test_released_and_graded_files_do_not_contain_the_solution(room):
    secret = "together = a + b"
    assert secret in (room.folder / "solutions" / TINY / "adding.py").read_text()
    wrote_it = {name for name, trap in the_traps(room).items() if trap.scores == FULL}
    for place in ("assignments", "autograded"):
        for file in (room.folder / place).rglob("*.*"):
            student = file.relative_to(room.folder / place).parts[0]
            if file.is_file() and student not in wrote_it:
                assert secret not in file.read_text("utf-8", "replace"), file


@pytest.mark.slow
def test_gradebook_is_not_damaged(room):
    with sqlite3.connect(room.folder / "gradebook.db") as database:
        assert database.execute("pragma integrity_check").fetchone() == ("ok",)
        assert database.execute(
            "select count(*) from grade where manual_score is not null"
        ).fetchone() == (0,)


@pytest.mark.slow
def test_feedback_pages_contain_no_active_content_of_students(room):
    room.nbgrader("generate_feedback", TINY, "--student", "page")
    page = (room.folder / "feedback" / "page" / TINY / "adding.html").read_text()
    assert "alert(1)" in page
    assert "<script>alert(1)" not in page
    assert "<img src=x" not in page
    pages = [file for file in (room.folder / "feedback").rglob("*") if file.is_file()]
    assert {file.suffix for file in pages} == {".html"}
