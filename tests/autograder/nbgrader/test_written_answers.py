"""Written answers and pictures in nbgrader: graded notebooks, its gradebook, its feedback, and our export."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

pytest.importorskip("nbgrader", reason="nbgrader is not installed: pip install '.[nbgrader]'")

from nbgrader.api import Gradebook

from autograder.authoring.build import build
from autograder.course.document import load_document
from autograder.course.notebook import to_notebook
from tests.autograder.nbgrader.classroom import TINY, Classroom, edited, tiny_classroom
from tests.autograder.student_folder import PICTURES
from tests.autograder.tiny_course import SOLUTION

TEXT = "Because counting on from a gives a + b."
HEADER = '# %% answer="why_one" points=2 rubric="Names counting on."'
CELLS = f'# %% part="add"\n\n# %% picture="add"\n\n{HEADER}\n'


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Classroom:
    """Ada answers, Bob answers nothing, Cleo subtracts and answers in a cell from which she has removed the picture."""
    folder = tmp_path_factory.mktemp("written")
    tiny_classroom(folder)
    (folder / "solutions" / TINY / "adding.py").write_text(
        SOLUTION.replace('# %% part="add"\n', CELLS), "utf-8"
    )
    (folder / "tests/assignments" / TINY / "pictures.py").write_text(PICTURES, "utf-8")
    room = Classroom(folder)
    build(room.course)
    text = load_document(room.course, room.assignment).stub
    wrong = to_notebook(
        room.assignment, text.replace('raise NotImplementedError("add is', 'return a - b  # ("')
    )
    room.hand_in("ada", edited(room.solution(), answer))
    room.hand_in("bob", edited(wrong, lambda notebook: None))
    room.hand_in("cleo", edited(edited(wrong, answer), without_picture))
    room.nbgrader("generate_assignment", TINY)
    room.nbgrader("autograde", TINY)
    return room


@pytest.fixture
def room(graded: Classroom, tmp_path: Path) -> Classroom:
    return graded.copy(tmp_path)


def answer(notebook) -> None:
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "why_one":
            cell.source = TEXT


def without_picture(notebook) -> None:
    notebook.cells = [cell for cell in notebook.cells if cell.source != 'picture("add")']


def manual(
    room: Classroom, student: str, points: float | None = None, comment: str = ""
) -> tuple[bool, float]:
    """Return whether nbgrader asks for manual grading of the answer, and its score; `points` grade it first."""
    with Gradebook(f"sqlite:///{room.folder / 'gradebook.db'}", "attention-by-hand") as gradebook:
        grade = gradebook.find_grade("why_one", "adding", TINY, student)
        if points is not None:
            grade.manual_score, grade.needs_manual_grade = points, False
            gradebook.find_comment("why_one", "adding", TINY, student).manual_comment = comment
            gradebook.db.commit()
        return grade.needs_manual_grade, grade.score


def images(cell) -> int:
    return sum("image/png" in output.get("data", {}) for output in cell.outputs)


def scores(room: Classroom, code: int) -> dict[str, dict[str, str]]:
    room.autograder("export", "--to", "csv", "grades", "--output", "scores.csv", fails=bool(code))
    rows = list(csv.DictReader((room.folder / "scores.csv").open(encoding="utf-8")))
    return {row["student"]: row for row in rows[1:]}


@pytest.mark.slow
def test_an_answer_needs_manual_grading_and_an_empty_one_does_not(room):
    assert manual(room, "ada") == (True, 0)
    assert manual(room, "bob") == (False, 0)
    assert manual(room, "cleo") == (True, 0)
    cell = next(cell for cell in room.autograded("ada").cells if cell.source == TEXT)
    assert (cell.cell_type, cell.metadata.nbgrader.points) == ("markdown", 2)


@pytest.mark.slow
def test_pictures_of_failing_parts_are_in_the_graded_notebook_and_in_the_feedback(room):
    cells = {student: room.autograded(student).cells for student in ("ada", "bob", "cleo")}
    picture = next(cell for cell in cells["bob"] if cell.source == 'picture("add")')
    assert images(picture) == 1
    assert any(
        "The sums climb" in output.get("data", {}).get("text/plain", "")
        for output in picture.outputs
    )
    assert images(next(cell for cell in cells["cleo"] if cell.source == 'check("add")')) == 1
    assert not any(images(cell) for cell in cells["ada"] if cell.cell_type == "code")
    room.nbgrader("generate_feedback", TINY)
    assert "data:image/png" in (room.folder / "feedback/bob" / TINY / "adding.html").read_text(
        "utf-8"
    )


@pytest.mark.slow
def test_points_of_formgrader_reach_the_export_with_their_comment(room):
    assert scores(room, code=1)["ada"][f"{TINY}: why_one"] == "waits"
    manual(room, "ada", 1.5, "Say which number you count from.")
    manual(room, "cleo", 0)
    found = scores(room, code=0)
    assert (found["ada"][TINY], found["ada"][f"{TINY}: why_one"]) == ("11.5", "1.5")
    assert "Say which number you count from." in found["ada"]["comments"]
    assert found["cleo"][f"{TINY}: why_one"] == "0"


@pytest.mark.slow
def test_grades_made_on_the_command_line_go_to_the_gradebook_with_their_answers(room):
    shutil.rmtree(room.folder / "autograded")
    manual(room, "cleo", 1)
    room.autograder("export", "--to", "nbgrader", "grades")
    assert manual(room, "cleo")[1] == 1
    assert manual(room, "ada") == (True, 0)
    assert scores(room, code=1)["cleo"][f"{TINY}: why_one"] == "1"
    assert (
        images(
            next(cell for cell in room.autograded("bob").cells if cell.source == 'picture("add")')
        )
        == 1
    )
