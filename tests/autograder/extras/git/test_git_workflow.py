"""The workflows that grade a class on a schedule, and their script, run with a forge on this machine."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from autograder.authoring import new as making
from autograder.authoring.new import CI, new
from autograder.authoring.template import filled
from autograder.cli import app
from tests.autograder.student_folder import RIGHT
from tests.autograder.student_repositories import (
    NEEDS_GIT,
    StudentRepository,
    make_repository,
    write_table,
)
from tests.autograder.tiny_course import COURSE, write_tiny_course

pytestmark = NEEDS_GIT

SCRIPT = "scripts/grade-class"


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny course with something due, and without a wheel, which takes seconds to build."""
    monkeypatch.setattr(making, "kit", dict)
    folder = write_tiny_course(tmp_path / "course")
    due = COURSE.replace("title: A tiny course", "title: A tiny course\ntimezone: Asia/Tokyo")
    text = due.replace("minutes: 10\n", "minutes: 10\n    due: 2026-12-01 08:00\n")
    (folder / "course.yml").write_text(text, "utf-8")
    return folder


def test_workflow_of_github_runs_one_at_a_time_and_more_often_when_something_is_due(
    course: Path,
) -> None:
    new(course, "02_mean", ci="github-course")
    text = (course / ".github/workflows/grade.yml").read_text("utf-8")
    workflow = yaml.safe_load(text)
    assert [entry["cron"] for entry in workflow[True]["schedule"]] == [
        "17 * * * *",
        "*/10 * 30 11 *",
    ]
    assert workflow["concurrency"] == {"group": "grade", "cancel-in-progress": False}
    steps = workflow["jobs"]["grade"]["steps"]
    assert [step["run"] for step in steps if "run" in step] == [
        "python kit/install.py kit/*.whl jinja2",
        f"sh {SCRIPT}",
    ]
    secret = [step for step in steps if "secrets." in str(step)]
    assert [step["run"] for step in secret] == [f"sh {SCRIPT}"]
    assert {file.name for file in (course / ".github/workflows").iterdir()} == {
        "course.yml",
        "grade.yml",
    }


@pytest.mark.parametrize("site", ["github-course", "gitlab-course"])
def test_students_get_no_workflow_with_a_secret(site: str) -> None:
    (students,) = (template for place, template in CI[site].items() if "students" in place)
    text = filled(students)
    assert "secrets" not in text and "FORGE_TOKEN" not in text
    assert "autograder check assignments" in text


def test_script_uses_only_commands_and_options_that_exist() -> None:
    lines = filled("grade_class.sh").splitlines()
    commands = [
        shlex.split(line)[shlex.split(line).index("autograder") :]
        for line in lines
        if " autograder " in line
    ]
    assert [command[1] for command in commands] == ["collect", "grade", "report", "export"]
    for command in commands:
        said = CliRunner().invoke(app, [command[1], "--help"]).stdout
        assert all(word in said for word in command[2:] if word.startswith("--"))


@pytest.fixture
def forge(tmp_path: Path) -> dict[str, StudentRepository]:
    """The repositories of two students, of the course's journal with their table, and one that is not there."""
    students = {
        "ada": make_repository(tmp_path, "ada", {"adding.py": RIGHT}),
        "ben": make_repository(tmp_path, "ben"),
    }
    write_table(tmp_path, students)
    journal = make_repository(tmp_path, "journal")
    journal.commit(
        {"repositories.csv": (tmp_path / "repositories.csv").read_text("utf-8")}, branch="journal"
    )
    return {**students, "journal": journal}
