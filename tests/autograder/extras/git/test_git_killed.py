"""`collect`, `grade` and `export` that are killed at any point end as if they had not been, when they are run again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import autograder
from tests.autograder.killing import killed_at, random_points
from tests.autograder.student_folder import RIGHT, SUBTRACTS
from tests.autograder.student_repositories import (
    NEEDS_GIT,
    StudentRepository,
    make_repository,
    write_table,
)
from tests.autograder.tiny_course import write_tiny_course

pytestmark = NEEDS_GIT

NAME = "01_adding"
POINTS = 20
NEVER = 0


@dataclass(frozen=True)
class Classroom:
    """A course, the repositories of three students, and a folder with what the commands write."""

    folder: Path
    students: dict[str, StudentRepository]

    @property
    def own(self) -> Path:
        return self.folder / "class"

    @property
    def table(self) -> Path:
        return self.folder / "repositories.csv"

    def collect(self) -> None:
        report = autograder.collect(
            [self.table], self.folder / "course", self.own / "submitted", source="git"
        )
        assert report.odd == []

    def grade(self) -> None:
        autograder.grade(
            self.own / "submitted", self.folder / "course", self.own / "grades", jobs=2, seed=1
        )

    def give_back(self) -> None:
        given = autograder.export(
            "git", self.own / "grades", self.folder / "course", repositories=self.table
        )
        assert given.problems == []

    def collected(self) -> object:
        """Return all that was collected: the files, the facts but for the times, and which commits were seen."""
        submitted = self.own / "submitted"
        facts = json.loads((submitted / "collected.json").read_text("utf-8"))
        for one in facts["submissions"]:
            assert one.pop("submitted_at")
        seen = {}
        for file in sorted((self.own / "submitted-git/seen").iterdir()):
            lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
            seen[file.name] = [(line["ref"], line["commit"], line["work"]) for line in lines]
        texts = {str(file): file.read_text("utf-8") for file in sorted(submitted.rglob("*.py"))}
        return facts, seen, texts, names_in(submitted), names_in(self.own / "submitted-git/seen")

    def graded(self) -> object:
        """Return all that was graded: each line of the journal but for its time, and the table."""
        grades = self.own / "grades"
        lines = []
        for text in (grades / "grades.jsonl").read_text("utf-8").splitlines():
            line = json.loads(text)
            tests = [(test["name"], test["outcome"], test["score"]) for test in line["tests"]]
            lines.append((line["student"], line["status"], line["score"], line["seed"], tests))
        return sorted(lines), (grades / "grades.csv").read_text("utf-8"), names_in(grades)

    def given_back(self) -> object:
        heads = {name: one.head("feedback") for name, one in self.students.items()}
        return heads, list((self.own / "grades/return").glob("*.git"))


def names_in(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


@pytest.fixture
def classroom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Classroom:
    """A class whose first work is collected, and that has pushed again: two changed it, one began."""
    monkeypatch.setenv("AUTOGRADER_KEY", "0123456789abcdef" * 4)
    write_tiny_course(tmp_path / "course")
    students = {name: make_repository(tmp_path, name) for name in ("ada", "ben", "eve")}
    students["ada"].commit({"adding.py": SUBTRACTS})
    students["ben"].commit({"adding.py": SUBTRACTS})
    write_table(tmp_path, students)
    found = Classroom(tmp_path, students)
    killed_at(NEVER, found.collect)
    students["ada"].commit({"adding.py": RIGHT})
    students["ben"].commit({f"{NAME}/adding.py": RIGHT})
    students["eve"].commit({"adding.py": SUBTRACTS})
    return found


def check_killed(
    classroom: Classroom, work: Callable[[], None], state: Callable[[], object], points: int
) -> None:
    """Do the work whole, and then killed at random points and again from each; all must end alike."""
    before = classroom.folder / "before"
    shutil.copytree(classroom.own, before)
    _, changes = killed_at(NEVER, work)
    whole = state()
    killed = 0
    for point in random_points(points, changes, work.__name__):
        shutil.rmtree(classroom.own)
        shutil.copytree(before, classroom.own)
        for repository in classroom.students.values():
            if repository.head("feedback"):
                repository.git("update-ref", "-d", "refs/heads/feedback")
        killed += killed_at(point, work)[0]
        assert killed_at(NEVER, work)[0] is False
        assert state() == whole, f"killed at {point} of {changes}"
    assert killed >= points * 3 // 4  # threads make a few changes more or less


@pytest.mark.parametrize("points", [2, pytest.param(POINTS, marks=pytest.mark.slow)])
def test_collect_killed_at_random_points(classroom: Classroom, points: int) -> None:
    check_killed(classroom, classroom.collect, classroom.collected, points)


@pytest.mark.slow
def test_return_killed_at_random_points(classroom: Classroom) -> None:
    killed_at(NEVER, classroom.collect)
    killed_at(NEVER, classroom.grade)
    check_killed(classroom, classroom.give_back, classroom.given_back, POINTS)
