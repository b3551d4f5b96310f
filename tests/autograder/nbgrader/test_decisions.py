"""Decisions count in nbgrader's gradebook, and count once where its points are exported again."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("nbgrader", reason="nbgrader is not installed: pip install '.[nbgrader]'")

from tests.autograder.nbgrader.classroom import TINY, Classroom, generated_classroom

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Classroom:
    """Ada's total forgets the earlier numbers (3 of 6 points); a point is given back for the part, 1.5 for the whole."""
    room = generated_classroom(tmp_path_factory.mktemp("decisions"))
    solution = (room.folder / "solutions" / TINY / "adding.py").read_text("utf-8")
    wrong = solution.replace("self.value = self.value + number", "self.value = number")
    room.hand_in("ada", wrong, "adding.py")
    room.autograder("grade", "submitted", "--jobs", "1")
    about = (
        "ada", "--assignment", TINY, "--by", "Grace", "--reason", "Shown in the tutorial.", "--give",
    )  # fmt: skip
    room.autograder("decide", *about, "1", "--part", "total")
    room.autograder("decide", *about, "1.5")
    return room


def total(room: Classroom) -> str:
    room.autograder("export", "grades", "--to", "csv")
    return Path(room.folder / "scores.csv").read_text("utf-8").splitlines()[-1]


def test_export_and_autograde_write_the_decided_points_which_count_once(room):
    room.autograder("export", "grades", "--to", "nbgrader")
    assert room.gradebook_scores() == {"ada": {"add": 4.0, "total": 5.5}}
    assert "1 point given back: Shown in the tutorial." in room.feedback_text("ada")
    assert total(room) == "ada,,9.5,9.5"
    room.nbgrader("autograde", TINY, "--force")
    assert room.gradebook_scores() == {"ada": {"add": 4.0, "total": 5.5}}
    assert total(room) == "ada,,9.5,9.5"
