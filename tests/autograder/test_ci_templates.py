"""The workflows that `autograder new --ci` writes: right by their schemas, and run step by step with a local forge."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from autograder.authoring import new as making
from autograder.authoring.new import CI, new
from tests.autograder.ci_runner import Machine
from tests.autograder.student_repositories import (
    NEEDS_GIT,
    StudentRepository,
    git,
    make_repository,
    write_table,
)
from tests.autograder.tiny_course import COURSE, write_tiny_course

SCHEMAS = {"github": "vendor.github-workflows", "gitlab": "vendor.gitlab-ci"}
NAME = "01_mean"
STUB = f"assignments/{NAME}/mean.py"
SOLUTION = f"solutions/{NAME}/mean.py"
TOKEN = "a-token-of-the-forge"
KEY = "0123456789abcdef" * 4
SECRETS = {"FORGE_TOKEN": TOKEN, "AUTOGRADER_KEY": KEY}


# ------------------------------------------------------------------ schemas


def complaints(schema: str, *files: Path) -> str:
    """Return what is wrong with workflows by a forge's schema; empty if nothing is."""
    words = ["check_jsonschema", "--no-cache", "--builtin-schema", schema]
    done = subprocess.run(
        [sys.executable, "-m", *words, *map(str, files)], capture_output=True, text=True
    )
    return done.stdout if done.returncode else ""


@pytest.mark.parametrize("forge", sorted(SCHEMAS))
def test_workflows_are_right_by_the_schema_of_their_forge(
    tmp_path: Path, forge: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("check_jsonschema", reason="check-jsonschema needs Python 3.11")
    monkeypatch.setattr(making, "kit", dict)
    due = COURSE.replace("minutes: 10\n", "minutes: 10\n    due: 2026-12-01 08:00\n")
    workflows = []
    for site in (forge, f"{forge}-course"):
        course = write_tiny_course(tmp_path / site)
        (course / "course.yml").write_text(due, "utf-8")
        new(course, "02_mean", ci=site)
        workflows += [course / place for place in CI[site] if place.endswith(".yml")]
    assert len(workflows) >= 4
    assert complaints(SCHEMAS[forge], *workflows) == ""


WRONG = {
    "github": [
        "on: push\njobs: {a: {steps: [{run: echo}]}}\n",  # no runs-on
        "on: push\njobs: {a: {runs-on: x, steps: [{run: echo, use: y}]}}\n",
    ],
    "gitlab": ["a: {script: [echo], rules: [{when: perhaps}]}\n"],
}


@pytest.mark.parametrize("forge", WRONG)
def test_workflow_that_is_wrong_is_seen(tmp_path: Path, forge: str) -> None:
    pytest.importorskip("check_jsonschema", reason="check-jsonschema needs Python 3.11")
    files = [tmp_path / f"wrong-{number}.yml" for number, _ in enumerate(WRONG[forge])]
    for file, text in zip(files, WRONG[forge]):
        file.write_text(text, "utf-8")
    said = complaints(SCHEMAS[forge], *files)
    assert all(file.name in said for file in files)


# ------------------------------------------------------------------ steps


def environment_of_a_machine(folder: Path) -> dict[str, str]:
    """Make an environment in which the kit's wheel can be installed without a network: all that it needs is there."""
    venv.create(folder, with_pip=True)
    # Python 3.10 and 3.11 bring an old one, which hides the one that is there
    run(folder, "bin/python", "-m", "pip", "uninstall", "--quiet", "--yes", "setuptools")
    scheme = {"base": str(folder), "platbase": str(folder)}
    own = Path(sysconfig.get_path("purelib", "venv", scheme))
    packages = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (own / "packages.pth").write_text("\n".join(sorted(packages)), "utf-8")
    return {
        "PATH": f"{folder}/bin:{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "OMP_NUM_THREADS": "1",
    }


def run(folder: Path, *words: str) -> None:
    done = subprocess.run([*words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def repository_of(folder: Path, place: Path, name: str) -> StudentRepository:
    """Return a repository with everything in a folder that its .gitignore does not leave out."""
    repository = make_repository(place, name)
    author = ("-c", "user.name=Teacher", "-c", "user.email=t@school.example")
    git("init", "--quiet", "--initial-branch=main", folder=folder)
    git("add", "--all", folder=folder)
    git(*author, "commit", "--quiet", "--message=first", folder=folder)
    git("push", "--quiet", repository.url, "main", folder=folder)
    return repository


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return environment_of_a_machine(tmp_path_factory.mktemp("machine") / "python")


@dataclass(frozen=True)
class Forge:
    """A course with the workflows of a forge, its journal, and the repositories of ada, who has done
    everything, and of ben, who has changed nothing.
    """

    folder: Path
    course: StudentRepository
    students: Mapping[str, StudentRepository]
    environment: Mapping[str, str]

    def machine(self, name: str, repository: StudentRepository | None = None) -> Machine:
        """Return a fresh machine for one job, by default in the course's repository."""
        whose = repository or self.course
        kept = self.folder / f"kept-of-{whose.path.stem}"
        return Machine(self.folder / name, whose, kept, self.environment, SECRETS)

    def push_mistake(self) -> None:
        """Let ben push an answer with a mistake that is known."""
        right = self.course.show("main", SOLUTION)
        wrong = right.replace("together / len(numbers)", "together / (len(numbers) + 1)")
        assert wrong != right
        self.students["ben"].commit({STUB: wrong})


def forge_with(folder: Path, site: str, workflow: str, environment: Mapping[str, str]) -> Forge:
    """Make a course for a site; `workflow` is where a student's repository has its own."""
    own = folder / "course"
    own.mkdir()
    program = str(Path(sys.executable).with_name("autograder"))
    run(own, program, "new", NAME, "--ci", site)
    run(own, program, "build")
    run(own, program, "release", "--output", str(folder / "released"))
    (students_workflow,) = (own / place for place in CI[site] if "students" in place)
    released = folder / "released"
    (released / workflow).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(students_workflow, released / workflow)
    shutil.copytree(released, folder / "work-of-ada")
    shutil.copy(own / SOLUTION, folder / "work-of-ada" / STUB)
    students = {
        "ada": repository_of(folder / "work-of-ada", folder, "ada"),
        "ben": repository_of(released, folder, "ben"),
    }
    course = repository_of(own, folder, "teaching")
    table = write_table(folder, students)
    course.commit({"repositories.csv": table.read_text("utf-8")}, branch="journal")
    return Forge(folder, course, students, environment)


def assert_class_is_graded(forge: Forge, log: str) -> None:
    """Check what the job of the first hour did, and where no secret and no hidden test is."""
    assert "2 repositories: 2 fetched" in log and "1 pushed" in log
    assert "4 of 4 points" in forge.students["ada"].show("feedback", "README.md")
    assert forge.students["ben"].refs() == ["refs/heads/main"]
    kept = forge.course.names("journal")
    assert {"grades/grades.jsonl", "repositories.csv"} < set(kept)
    report = forge.folder / "kept-of-teaching/report"
    assert (report / "index.html").is_file()
    (forge.folder / "journal").mkdir()
    words = ("clone", "--quiet", "--branch=journal", forge.course.url, "journal")
    git(*words, folder=forge.folder)
    for place in (report, forge.folder / "journal"):
        for file in (file for file in place.rglob("*") if file.is_file()):
            content = file.read_bytes()
            assert TOKEN.encode() not in content and KEY.encode() not in content, file
    assert TOKEN not in log and KEY not in log
    assert (Path(forge.environment["PATH"].partition(":")[0]) / "autograder").is_file()
    names = forge.students["ada"].names("main") + forge.students["ada"].names("feedback")
    assert not [name for name in names if "hidden" in name or "solution" in name]


def assert_next_hour_grades_what_changed(forge: Forge, log: str) -> None:
    """Check what a job on another machine did after ben has pushed."""
    assert "2 repositories: 1 fetched, 1 unchanged" in log
    assert "1 pushed, 1 unchanged" in log
    page = forge.students["ben"].show("feedback", f"{NAME}/README.md")
    assert "Among how many do you share?" in page


@NEEDS_GIT
@pytest.mark.slow
def test_workflows_of_github_run_step_by_step(tmp_path: Path, python: dict[str, str]) -> None:
    forge = forge_with(tmp_path, "github-course", ".github/workflows/check.yml", python)
    forge.machine("checking").github(".github/workflows/course.yml", "check")
    student = forge.machine("student", forge.students["ada"])
    student.github(".github/workflows/check.yml", "check")
    assert "test_hidden" not in student.log
    first = forge.machine("first")
    first.github(".github/workflows/grade.yml", "grade")
    assert_class_is_graded(forge, first.log)
    forge.push_mistake()
    second = forge.machine("second")
    second.github(".github/workflows/grade.yml", "grade")
    assert_next_hour_grades_what_changed(forge, second.log)
    before = forge.course.head("journal")
    third = forge.machine("third")
    third.github(".github/workflows/grade.yml", "grade")
    assert "0 pushed, 2 unchanged" in third.log and forge.course.head("journal") == before


@NEEDS_GIT
@pytest.mark.slow
def test_pipelines_of_gitlab_run_step_by_step(tmp_path: Path, python: dict[str, str]) -> None:
    address = f"https://oauth2:{TOKEN}@forge.example/"
    variables = {
        "CI_SERVER_HOST": "forge.example",
        "CI_PROJECT_PATH": "teaching",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{tmp_path}/.insteadOf",
        "GIT_CONFIG_VALUE_0": address,
    }
    forge = forge_with(tmp_path, "gitlab-course", ".gitlab-ci.yml", {**python, **variables})
    assert forge.machine("checking").gitlab(".gitlab-ci.yml", "push") == ["check"]
    student = forge.machine("student", forge.students["ada"])
    assert student.gitlab(".gitlab-ci.yml", "push") == ["check"]
    assert "test_hidden" not in student.log
    first = forge.machine("first")
    assert first.gitlab(".gitlab-ci.yml", "schedule") == ["grade"]
    assert_class_is_graded(forge, first.log)
    forge.push_mistake()
    second = forge.machine("second")
    assert second.gitlab(".gitlab-ci.yml", "web") == ["grade"]
    assert_next_hour_grades_what_changed(forge, second.log)
