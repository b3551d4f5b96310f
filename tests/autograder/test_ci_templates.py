"""The workflows that `autograder new --ci` writes: right by their schemas, and run step by step with a local forge."""

from __future__ import annotations

import os
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
from tests.autograder.student_repositories import StudentRepository
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
