"""Run tests of the core in a copy of the tracked files from which `autograder/extras/` is really away.

An editable installation finds what a copy lacks in the folder from which it was installed. Therefore the copy brings a
`sitecustomize.py`, which takes that finder away in each process that the tests start. The tests are chosen such that
each command of the core runs once; before them, every module of the core is imported.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
AWAY = ("autograder/extras/", "tests/autograder/extras/")
WITHOUT_THE_INSTALLED_ONE = """\
import sys

sys.meta_path[:] = [finder for finder in sys.meta_path if not finder.__module__.startswith("__editable__")]
"""
IMPORTS = """\
import importlib, pkgutil, sys
from importlib.util import find_spec
from pathlib import Path

import autograder

assert Path(autograder.__file__).is_relative_to(Path.cwd()), autograder.__file__
assert find_spec("autograder.extras") is None, "autograder.extras is still found"
without_nbgrader = find_spec("nbgrader") is None
for module in pkgutil.walk_packages(autograder.__path__, "autograder."):
    if not (without_nbgrader and "nbgrader" in module.name):
        importlib.import_module(module.name)
print(len([name for name in sys.modules if name.startswith("autograder.")]), "modules are imported")
"""
TESTS = (
    "test_answers.py",
    "test_api.py",
    "test_before_grading.py",
    "test_build.py",
    "test_command_line.py",
    "test_compare.py",
    "test_course.py",
    "test_decisions.py",
    "test_journal.py",
    "test_new.py",
    "test_nudges.py",
    "test_pack.py",
    "test_run_state.py",
    "test_session.py",
    "test_task.py",
)


def copy_without_extras(folder: Path) -> None:
    """Copy what git tracks, as it lies in the working tree, but for the extras and their tests."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        if not name.startswith(AWAY) and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    (folder / "sitecustomize.py").write_text(WITHOUT_THE_INSTALLED_ONE, "utf-8")


def main() -> int:
    """Return the exit code of the first step that fails, or 0."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "core"
        copy_without_extras(folder)
        chosen = [f"tests/autograder/{test}" for test in TESTS]
        steps = (
            ["-c", IMPORTS],
            ["-m", "pytest", "-q", "-n", "auto", "-m", "not slow and not extras", *chosen],
        )
        for step in steps:
            done = subprocess.run(
                [sys.executable, *step], cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)}
            )
            if done.returncode:
                return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
