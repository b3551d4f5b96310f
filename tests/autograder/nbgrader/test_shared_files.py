"""`nbgrader autograde` with an assignment whose tests hand files in and read what submissions write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("nbgrader", reason="nbgrader is not installed: pip install '.[nbgrader]'")

import nbformat

from tests.autograder.nbgrader.classroom import with_settings
from tests.autograder.sharing_course import FILES_NAME, write_sharing_course


@pytest.mark.slow
def test_files_are_shared_with_notebooks(tmp_path: Path) -> None:
    room = with_settings(write_sharing_course(tmp_path), FILES_NAME)
    right = room.solution()
    text = json.dumps(right)
    assert text.count("number**2") == 1
    room.nbgrader("generate_assignment", FILES_NAME)
    room.hand_in("ada", right)
    room.hand_in("bob", nbformat.from_dict(json.loads(text.replace("number**2", "number * 2"))))
    room.hand_in("eve", room.stub())
    room.nbgrader("autograde", FILES_NAME)
    scores = {
        "ada": {"write": 4.0, "read": 2.0},
        "bob": {"write": 0.0, "read": 2.0},
        "eve": {"write": 0.0, "read": 0.0},
    }
    assert room.journal_scores() == room.gradebook_scores() == scores
    assert "'2,4\\n3,9\\n' was expected" in room.feedback_text("bob")
