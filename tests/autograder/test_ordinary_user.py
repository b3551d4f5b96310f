"""The guarantees for ordinary users, and on machines without namespaces.

Each test starts the engine as an unprivileged user, or with user namespaces disabled. By default, a sample of
each class of attacks runs as an ordinary user in the strongest tier; with `ATTACKS=all` in the environment, all of them
in all tiers.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from autograder.walls.inside.jail import SAFE_TIERS
from tests.autograder.attacks.test_attacks import ATTACKS, CLASSES
from tests.autograder.waiting import HANGS

ROOT = Path(__file__).resolve().parents[2]
NAME, FULL = "03_masked_heads", 15.0
NOBODY = 65534
CLI = "from autograder.cli import main; main()"
EVERY_ATTACK = os.environ.get("ATTACKS") == "all"
SAMPLE = [] if EVERY_ATTACK else ["-m", "not slow"]  # of each class, the first attack


@dataclass(frozen=True)
class Surroundings:
    """How to run a command: a prefix, the interpreter, and a working folder."""

    prefix: tuple[str, ...]
    python: str
    folder: Path

    def run(self, *arguments: str, seconds: float = HANGS) -> subprocess.CompletedProcess[str]:
        command = [*self.prefix, *self._environment(), self.python, *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, cwd=self.folder, timeout=seconds, check=False
        )

    def autograder(
        self, *arguments: str, seconds: float = HANGS
    ) -> subprocess.CompletedProcess[str]:
        return self.run("-c", CLI, *arguments, seconds=seconds)

    def pytest(self, file: str, *chosen: str) -> subprocess.CompletedProcess[str]:
        options = [
            "-q", "-rs", "-p", "no:cacheprovider", f"--basetemp={self.folder / 'pytest'}", *chosen,
        ]  # fmt: skip
        return self.run(
            "-m", "pytest", "--rootdir", str(ROOT), *options, str(ROOT / file), seconds=12 * HANGS
        )

    def _environment(self) -> list[str]:
        variables = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.folder),
            "PYTHONPATH": os.pathsep.join([str(ROOT), sysconfig.get_path("purelib")]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
            "COLUMNS": "120",
            "ATTACKS": os.environ.get("ATTACKS", ""),
        }
        return ["env", "-i", *(f"{name}={value}" for name, value in variables.items())]


def grade_the_solution(there: Surroundings) -> dict:
    """Return the journal's line for a correct answer, graded in these surroundings."""
    submitted = there.folder / "submitted" / "ada" / NAME
    submitted.mkdir(parents=True)
    shutil.copy(ROOT / "solutions" / NAME / "masked_heads.py", submitted / "masked_heads.py")
    output = there.folder / "grades"
    done = there.autograder(
        "grade", str(there.folder / "submitted"), "--course", str(ROOT), "--output", str(output), "--jobs", "1",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = (output / "grades.jsonl").read_text().splitlines()
    assert len(lines) == 1
    return json.loads(lines[0])


@pytest.fixture
def folder() -> Iterator[Path]:
    with (
        tempfile.TemporaryDirectory() as name
    ):  # not one of pytest's: those are closed to other users
        os.chmod(name, 0o755)
        home = Path(name, "home")
        home.mkdir()
        yield home


# ------------------------------------------------------------------ an ordinary user


@pytest.fixture
def as_nobody(folder) -> Surroundings:
    """An unprivileged user with a readable Python: this one, or the system's of the same version."""
    if os.getuid() != 0:
        pytest.skip("This user is an ordinary one: all other tests have shown it.")
    if shutil.which("setpriv") is None:
        pytest.skip("There is no setpriv to become an ordinary user with.")
    os.chown(folder, NOBODY, NOBODY)
    become = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/python{version}"):
        there = Surroundings(become, python, folder)
        trial = there.run(
            "-c",
            "import numpy, pytest, autograder.records, importlib.util as i; i.find_spec('torch')",
        )
        if trial.returncode == 0:
            return there
    pytest.skip(
        f"An ordinary user can reach no Python {version} with our packages: {trial.stderr[-200:]}"
    )


def doctors_reports(there: Surroundings) -> dict[str, dict]:
    """Return what the doctor says there of each tier."""
    done = there.autograder("doctor", "--json")
    assert done.stdout, done.stderr
    return {each["tier"]: each for each in json.loads(done.stdout)}


def skip_unless_the_tier_works(there: Surroundings, tier: str) -> None:
    report = doctors_reports(there)[tier]
    if not report["works"]:
        pytest.skip(f"An ordinary user has no tier {tier} here: {report['reason']}")


@pytest.fixture
def nobodys_namespaces(as_nobody) -> Surroundings:
    skip_unless_the_tier_works(as_nobody, "namespaces")
    return as_nobody


@pytest.mark.slow
def test_every_boundary_holds_for_an_ordinary_user(nobodys_namespaces):
    chosen = "promises and namespaces or probe and not landlock"
    assert_all_pass(nobodys_namespaces, "tests/autograder/test_walls.py", "-k", chosen, at_least=4)


def assert_all_pass(there: Surroundings, file: str, *chosen: str, at_least: int) -> None:
    """Run the chosen tests of a file there, none of which may be skipped."""
    done = there.pytest(file, *chosen)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-500:]
    summary = done.stdout.strip().splitlines()[-1]
    assert "skipped" not in summary, done.stdout[-1000:]
    assert int(summary.split(" passed")[0]) >= at_least, summary


def assert_attacks_fail(there: Surroundings, tier: str) -> None:
    assert_all_pass(
        there, "tests/autograder/attacks/test_attacks.py", "-k", f"test_attack and {tier}", *SAMPLE,
        at_least=len(ATTACKS if EVERY_ATTACK else CLASSES),
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("tier", SAFE_TIERS if EVERY_ATTACK else SAFE_TIERS[:1])
def test_attacks_fail_as_an_ordinary_user(as_nobody, tier):
    skip_unless_the_tier_works(as_nobody, tier)
    assert_attacks_fail(as_nobody, tier)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "chosen", "at_least"),
    [
        ("test_shut_in.py", "refused_in_the_fork or goes_on or temporary", 4),
        ("test_files_of_workers.py", "alike or never_kept or is_told", 40),
    ],
)
def test_forks_and_folders_are_the_same_for_an_ordinary_user(as_nobody, file, chosen, at_least):
    assert_all_pass(as_nobody, f"tests/autograder/{file}", "-k", chosen, at_least=at_least)


@pytest.mark.slow
def test_ordinary_user_can_grade(as_nobody):
    grade = grade_the_solution(as_nobody)
    assert grade["score"] == FULL
    if grade["isolation"] != "namespaces":
        skip_unless_the_tier_works(as_nobody, "namespaces")
    assert grade["isolation"] == "namespaces"


# ------------------------------------------------------------------ without namespaces


def skip_unless_it_works(prefix: tuple[str, ...], purpose: str) -> None:
    if shutil.which(prefix[0]) is None:
        pytest.skip(f"There is no {prefix[0]} to switch {purpose} with.")
    trial = subprocess.run(
        [*prefix, "true"], capture_output=True, text=True, timeout=HANGS, check=False
    )
    if trial.returncode:
        pytest.skip(f"{prefix[0]} cannot switch {purpose} here: {trial.stderr.strip()}")


@pytest.fixture
def without_namespaces(folder, tiers) -> Surroundings:
    """Surroundings in which no user namespace can be created, as in many containers."""
    prefix = (
        "bwrap", "--unshare-user", "--disable-userns", "--die-with-parent", "--dev-bind", "/", "/",
    )  # fmt: skip
    skip_unless_it_works(prefix, "namespaces off")
    if not tiers["landlock"].works:
        pytest.skip("There is no Landlock here to fall back to.")
    return Surroundings(prefix, sys.executable, folder)


@pytest.mark.slow
def test_doctor_explains_missing_namespaces(without_namespaces):
    reports = doctors_reports(without_namespaces)
    assert not reports["namespaces"]["works"] and reports["landlock"]["works"]
    assert "namespace" in reports["namespaces"]["reason"] and reports["namespaces"]["hint"]


@pytest.mark.slow
def test_landlock_boundaries_hold_without_namespaces(without_namespaces):
    chosen = "(promises or probe) and landlock"
    assert_all_pass(without_namespaces, "tests/autograder/test_walls.py", "-k", chosen, at_least=3)


@pytest.mark.slow
def test_grading_under_landlock_works_without_namespaces(without_namespaces):
    grade = grade_the_solution(without_namespaces)
    assert (grade["score"], grade["isolation"]) == (FULL, "landlock")
