"""`nbgrader autograde` and `autograder grade` give the same score for every part of every submission.

A made-up class of 30 and a sample of the known mistakes and other right answers of one assignment, graded twice from
nothing. All mistakes and all other right answers of all assignments, or of one (`-k 05_encoder_block`), take some
minutes; `-s` prints the number of differences for each assignment:

    AUTOGRADER_PARITY=all python -m pytest -s tests/autograder/nbgrader/test_parity.py
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

pytest.importorskip("nbgrader", reason="nbgrader is not installed: pip install '.[nbgrader]'")

from made_up_class import write_class

from autograder.course.mistakes_file import load_alternatives, load_mistakes
from autograder.course.notebook import to_notebook
from autograder.course.reading import load_course
from autograder.gradebook.journal import FILE_NAME, Reading
from tests.autograder.nbgrader.classroom import ROOT, Classroom, real_classroom
from tests.autograder.sampling import UNSTEADY

ALL = os.environ.get("AUTOGRADER_PARITY") == "all"
NAMES = (
    [assignment.name for assignment in load_course(ROOT).assignments]
    if ALL
    else ["03_masked_heads"]
)
EVERY = 1 if ALL else 5


def hand_in_known_answers(room: Classroom) -> int:
    """Hand in every mistake, or every fifth, as a notebook, and every alternative as a `.py`."""
    mistakes = [m for m in load_mistakes(room.course, room.assignment) if m.id not in UNSTEADY][
        ::EVERY
    ]
    alternatives = load_alternatives(room.course, room.assignment)[::EVERY]
    for mistake in mistakes:
        room.hand_in(f"mistake-{mistake.id}", to_notebook(room.assignment, mistake.source))
    for name, text in alternatives:
        room.hand_in(f"right-{Path(name).stem}", text, f"{room.stem}.py")
    return len(mistakes) + len(alternatives)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_nbgrader_autograde_and_autograder_grade_give_the_same_scores(
    tmp_path: Path, name: str
) -> None:
    room = real_classroom(tmp_path, name)
    write_class(room.course, tmp_path / "demo", students=30, seed=7, assignments=[name])
    shutil.copytree(tmp_path / "demo", tmp_path / "submitted")
    known = hand_in_known_answers(room)
    room.nbgrader("generate_assignment", name)
    room.nbgrader("autograde", name, "--GradedExporter.pictures=False")
    first = next(iter(Reading(tmp_path / "grades" / FILE_NAME)))
    seed = str(first.seed)  # a few mistakes pass a test by chance
    room.autograder(
        "grade", "submitted", "--assignment", name, "--output", "second", "--seed", seed
    )
    ours, theirs = room.journal_scores("second"), room.gradebook_scores()
    differing = [
        student for student in {*ours, *theirs} if ours.get(student) != theirs.get(student)
    ]
    print(f"\n{name}: {known} known answers, {len(ours)} submissions, {len(differing)} differences")
    assert differing == []
    assert len(ours) >= known + 25
    assert len({tuple(parts.values()) for parts in ours.values()}) > 5
    for student, parts in ours.items():
        if student.startswith("right-"):
            assert sum(parts.values()) == room.assignment.points
        if student.startswith("mistake-"):
            assert sum(parts.values()) < room.assignment.points
