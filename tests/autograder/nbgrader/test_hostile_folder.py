"""`nbgrader autograde` meets the folders of hostile students: it ends, reads nothing outside, and honest grades stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.autograder.hostile_folder import SECRET, make_hostile
from tests.autograder.nbgrader.classroom import TINY, generated_classroom

FULL = {"add": 4.0, "total": 6.0}


@pytest.mark.slow
def test_autograde_meets_hostile_folders(tmp_path: Path) -> None:
    room = generated_classroom(tmp_path / "course")
    room.hand_in("ada", room.solution())
    (room.folder / "submitted" / "ada" / TINY / "timestamp.txt").write_text(
        "2026-11-20 10:00:00 UTC\n", "utf-8"
    )
    hostile = make_hostile(room.folder / "submitted", TINY, "adding.py")
    for _ in range(2):  # the second time, nbgrader compares the times of what it has graded
        said = room.nbgrader("autograde", TINY)
        assert "Traceback" not in said and SECRET not in said
    scores = room.gradebook_scores()
    assert scores["ada"] == FULL
    assert set(hostile) - set(scores) == {
        "away",
        "moved",
        *(each for each in hostile if "\n" in each),
    }
    assert all(scores[student]["add"] in (0.0, 4.0) for student in scores)
    for folder in ("autograded", "grades"):
        for file in (room.folder / folder).rglob("*"):
            assert not file.is_symlink() and (file.is_dir() or file.is_file()), file
            assert file.is_dir() or SECRET.encode() not in file.read_bytes(), file
