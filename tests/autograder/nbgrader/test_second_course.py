"""A course of another subject goes through nbgrader's commands."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("nbgrader", reason="nbgrader is not installed: pip install '.[nbgrader]'")

from autograder.course.mistakes_file import load_mistakes
from autograder.course.reading import load_course
from tests.autograder.nbgrader.classroom import with_settings
from tests.second_course import FOLDER, OF_TRANSFORMERS

NAME = "02_measurements"


def test_arrays_are_released_and_graded_by_nbgrader(tmp_path: Path) -> None:
    folder = shutil.copytree(FOLDER, tmp_path / "course")
    room = with_settings(folder, NAME)
    room.nbgrader("generate_assignment", NAME)
    course = load_course(folder)
    wrong = load_mistakes(course, course.assignment(NAME))[0]
    room.hand_in("ada", room.solution())
    room.hand_in("ben", wrong.source, "measurements.py")
    said = room.nbgrader("autograde", NAME)
    assert room.gradebook_scores() == {
        "ada": {"summary": 4.0, "standard": 3.0, "resample": 3.0},
        "ben": {"summary": 1.0, "standard": 3.0, "resample": 3.0},
    }
    feedback = room.feedback_text("ben")
    assert wrong.hint in feedback and "Is this wrong?" in feedback
    assert not OF_TRANSFORMERS.search(feedback) and not OF_TRANSFORMERS.search(said)
