"""`nbgrader autograde` gives no points for a hand-in without an answer, as in `test_no_green_by_accident.py`.

One assignment; with AUTOGRADER_NO_GREEN=all in the environment all of them, which takes some minutes.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("nbgrader", reason="nbgrader is not installed: pip install '.[nbgrader]'")

from autograder.course.reading import load_course
from tests.autograder.nbgrader.classroom import ROOT, real_classroom
from tests.autograder.unfinished_states import (
    STATES,
    Material,
    renamed_copy,
    solved_on_the_path,
    write_state,
)

ALL = os.environ.get("AUTOGRADER_NO_GREEN") == "all"
NAMES = (
    [assignment.name for assignment in load_course(ROOT).assignments]
    if ALL
    else ["12_rotary_positions"]
)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_nbgrader_gives_no_points(tmp_path: Path, name: str) -> None:
    room = real_classroom(tmp_path, name)
    room.nbgrader("generate_assignment", name)
    material = Material(room.course, room.assignment)
    for number, state in enumerate(STATES):
        write_state(tmp_path / "submitted" / f"s{number}" / name, STATES[state](material))
    write_state(tmp_path / "submitted" / "full" / name, renamed_copy(material))
    write_state(
        tmp_path / "submitted" / "released" / name, {material.notebook: material.stub_notebook}
    )
    with solved_on_the_path(material, tmp_path / "site-packages"):
        room.nbgrader("autograde", name, "--GradedExporter.pictures=False")
    scores = {student: sum(parts.values()) for student, parts in room.gradebook_scores().items()}
    assert scores.pop("full") == room.assignment.points, "the work in a copy beside the stub"
    assert scores == dict.fromkeys(
        [*(f"s{number}" for number in range(len(STATES))), "released"], 0
    )
