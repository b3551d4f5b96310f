"""The grades of a made-up class and of a real one are never in the same folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.gradebook.demo_marker import choose_output_folder, mark
from autograder.gradebook.journal import FILE_NAME


@pytest.fixture
def grades(tmp_path: Path) -> Path:
    (tmp_path / "grades").mkdir()
    (tmp_path / "grades" / FILE_NAME).write_text("grades of a real class\n", "utf-8")
    return tmp_path / "grades"


@pytest.fixture
def made_up(tmp_path: Path) -> Path:
    mark(tmp_path / "class")
    return tmp_path / "class"


def test_real_class_continues_in_the_folder_of_real_grades(grades: Path, tmp_path: Path) -> None:
    assert choose_output_folder(grades, tmp_path / "submitted") == (grades, "")
    assert choose_output_folder(tmp_path / "new", tmp_path / "submitted") == (tmp_path / "new", "")


def test_made_up_class_continues_in_the_folder_of_made_up_grades(
    tmp_path: Path, made_up: Path
) -> None:
    for _ in range(2):
        assert choose_output_folder(tmp_path / "new", made_up) == (tmp_path / "new", "")


def test_made_up_class_is_graded_beside_real_grades(grades: Path, made_up: Path) -> None:
    for _ in range(2):
        place, sentence = choose_output_folder(grades, made_up)
        assert place.name == "grades-made-up" and "grades-made-up" in sentence
    assert (grades / FILE_NAME).read_text("utf-8") == "grades of a real class\n"


def test_made_up_grades_are_moved_before_a_real_class(grades: Path, tmp_path: Path) -> None:
    for name in ("grades-made-up", "grades-made-up-2"):
        mark(grades)
        (grades / FILE_NAME).touch()
        place, sentence = choose_output_folder(grades, tmp_path / "submitted")
        assert place == grades and not grades.exists()
        assert (tmp_path / name / FILE_NAME).exists() and sentence.endswith(f"{name}.")
