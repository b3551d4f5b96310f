"""`feedback: {before_due, after_due}` in nbgrader: what students read changes with the date, the scores never do."""

from __future__ import annotations

import pytest

pytest.importorskip("nbgrader", reason="nbgrader is not installed: pip install '.[nbgrader]'")

from nbgrader.api import Gradebook

from tests.autograder.nbgrader.classroom import TINY, Classroom, edited, tiny_classroom

VISIBLE = "2 and 3 together are 5."
TITLE = "Any two whole numbers are added."
SECRET = "was expected"


def setting(room: Classroom, feedback: str, due: str) -> None:
    course = room.folder / "course.yml"
    lines = [
        line
        for line in course.read_text("utf-8").splitlines()
        if not line.lstrip().startswith(("feedback:", "due:"))
    ]
    lines.insert(1, f"feedback: {feedback}")
    lines.insert(lines.index("  - name: 01_adding") + 1, f"    due: {due}")
    course.write_text("\n".join(lines) + "\n", "utf-8")


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Classroom:
    """Ada hands in two whole numbers that are right only for 2 and 3."""
    room = tiny_classroom(tmp_path_factory.mktemp("visibility"))
    setting(room, "{before_due: visible, after_due: full}", "2099-01-01")
    room.hand_in("ada", edited(room.solution(), right_for_two_and_three))
    room.nbgrader("generate_assignment", TINY)
    return room


def right_for_two_and_three(notebook) -> None:
    for cell in notebook.cells:
        cell.source = cell.source.replace(
            "together = a + b", "together = a + b if a == 2 else a - b"
        )


def scores(room: Classroom) -> dict[str, float]:
    with Gradebook(f"sqlite:///{room.folder / 'gradebook.db'}", "attention-by-hand") as gradebook:
        (submission,) = gradebook.assignment_submissions(TINY)
        return {grade.name: grade.score for grade in submission.notebooks[0].grades}


def journal(room: Classroom) -> str:
    return (room.folder / "grades" / "grades.jsonl").read_text("utf-8")


@pytest.mark.slow
def test_feedback_changes_with_the_date_and_scores_do_not(room):
    room.nbgrader("autograde", TINY)
    before = room.feedback_text("ada")
    assert VISIBLE in before and TITLE not in before and SECRET not in before
    assert "2 January 2099" in before or "1 January 2099" in before, (
        "students read when they see the rest"
    )
    found, graded = scores(room), journal(room)
    assert found["add"] == 1, "the points of hidden tests are in the gradebook all the same"

    setting(room, "{before_due: visible, after_due: full}", "2020-01-01")
    room.nbgrader("autograde", TINY, "--force")
    after = room.feedback_text("ada")
    assert VISIBLE in after and TITLE in after and SECRET in after
    assert (scores(room), journal(room)) == (found, graded), "nothing is graded again"

    setting(room, "{before_due: full, after_due: parts}", "2020-01-01")
    room.nbgrader("autograde", TINY, "--force")
    parts = room.feedback_text("ada")
    assert VISIBLE in parts and TITLE not in parts and SECRET not in parts
    assert scores(room) == found
