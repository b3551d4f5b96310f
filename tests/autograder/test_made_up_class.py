"""The made-up class: reproducible by its seed, similar to a real class, and graded as intended."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from made_up_class import ANSWER_KINDS, MadeUpStudent, SampleAnswer, main, write_class

from autograder.course.config import Course, CourseError
from autograder.course.reading import load_course

TINY = "01_adding"


@pytest.fixture(scope="module")
def tiny(built_course: Path) -> Course:
    return load_course(built_course)


def answers(students: list[MadeUpStudent]) -> list[SampleAnswer]:
    return [answer for student in students for answer in student.answers.values()]


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()
    }


def test_equal_seeds_create_equal_classes(tiny: Course, tmp_path: Path) -> None:
    classes = [
        write_class(tiny, tmp_path / name, 12, seed)
        for name, seed in (("a", 5), ("b", 5), ("c", 6))
    ]
    assert classes[0] == classes[1] != classes[2]
    assert contents(tmp_path / "a") == contents(tmp_path / "b") != contents(tmp_path / "c")


@pytest.mark.parametrize("seed", range(5))
def test_class_of_thirty_contains_every_kind_of_answer(
    tiny: Course, tmp_path: Path, seed: int
) -> None:
    kinds = Counter(answer.kind for answer in answers(write_class(tiny, tmp_path, 30, seed)))
    assert set(kinds) == set(ANSWER_KINDS)
    assert kinds["loop"] == 1


def test_existing_class_is_not_overwritten(tiny: Course, tmp_path: Path) -> None:
    write_class(tiny, tmp_path / "class", 2)
    for output in (tmp_path / "class", tmp_path / "class" / "file"):
        (tmp_path / "class" / "file").write_text("x")
        with pytest.raises(CourseError, match="already exists"):
            write_class(tiny, output, 2)


def test_script_names_students_without_a_folder(
    tiny: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--students", "6", "--course", str(tiny.root)]
    for seed in range(20):
        folder = tmp_path / str(seed)
        assert main([*options, "--seed", str(seed), "--output", str(folder)]) == 0
        said = capsys.readouterr().out
        _, _, absent = said.strip().partition("; no submissions from ")
        names = absent.split(", ") if absent else []
        folders = [path.name for path in folder.iterdir() if path.is_dir()]
        assert said.startswith(f"6 students in {folder}")
        assert len(names) + len(folders) == 6 and not set(names) & set(folders)
        if names:
            return
    pytest.fail("no seed has a student without a submission")


# -- graded -------------------------------------------------------------------------------------------
