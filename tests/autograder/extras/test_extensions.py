"""Packages of strangers: they add commands, and one that cannot be imported is named."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import autograder
from autograder.cli import app
from autograder.gradebook.journal import Journal
from autograder.installation.extensions import extensions
from autograder.records import Grade
from tests.autograder.extras.strangers_package import example_of_the_docs, installed_package

COMMANDS = (
    "[autograder.commands]\ncount = of_a_stranger:count_command\nbroken = of_a_stranger:nothing\n"
    "gone = not_there.at_all:command\n"
)


@pytest.fixture
def package(tmp_path: Path) -> Iterator[None]:
    """A package with three commands: one works, one names nothing, and the module of one is not there."""
    text = example_of_the_docs("counting.py")
    with installed_package(tmp_path / "site-packages", "of_a_stranger", text, COMMANDS):
        yield


def test_a_package_adds_a_command(package: None, tmp_path: Path) -> None:
    with Journal(tmp_path / "grades") as journal:
        journal.append(Grade("ada", "01_adding", "graded", 1.0, 2.0))
    assert typed(tmp_path, "count", str(tmp_path / "grades")) == "1 grades.\n"
    refused = typed(tmp_path, "count", str(tmp_path / "grades"), "--status", "refused", "--json")
    assert refused == '{"grades": 0}\n'
    assert autograder.count(tmp_path / "grades").grades == 1


@pytest.mark.parametrize(("command", "group"), [("export", "exports"), ("collect", "collectors")])
def test_help_names_each_extension_of_the_kit(command: str, group: str) -> None:
    told = CliRunner(env={"COLUMNS": "400"}).invoke(app, [command, "--help"]).stdout
    names = [
        name
        for name, entry in extensions(f"autograder.{group}").items()
        if entry.value.startswith("autograder.")
    ]
    assert len(names) > 4
    assert [name for name in names if not re.search(rf"\b{name}(,| or|\.)", told)] == []


def typed(folder: Path, *words: str) -> str:
    """Return what a command prints in a process of its own, which finds the package."""
    path = os.pathsep.join(
        [str(folder / "site-packages"), str(Path(autograder.__file__).parents[1])]
    )
    program = [sys.executable, "-c", "from autograder.cli import main; main()", *words]
    done = subprocess.run(
        program, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_command_that_cannot_be_imported_is_named(package: None) -> None:
    done = CliRunner().invoke(app, ["broken"])
    assert done.exit_code == 3
    assert "The extension `broken` (of_a_stranger:nothing) cannot be imported" in done.stderr
    told = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["--help"])
    assert told.exit_code == 0 and "count" in told.stdout and "gone" not in told.stdout
    assert "cannot be imported" in told.stdout


def test_a_command_whose_module_is_not_there_is_not_installed(package: None) -> None:
    done = CliRunner().invoke(app, ["gone"])
    assert done.exit_code == 2 and "No such command 'gone'" in done.stderr
