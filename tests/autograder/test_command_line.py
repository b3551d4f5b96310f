"""What all commands have in common: quiet, verbose and JSON output, completion, and the end by a signal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

import autograder
from autograder.cli import app
from autograder.gradebook.journal import Journal
from autograder.records import Grade, TestResult
from tests.autograder.tiny_course import write_tiny_course

NAME = "01_adding"
TESTS = (
    TestResult("test_add", "add", "It adds.", "passed", 4, 4, hidden=False),
    TestResult("test_sums", "total", "It sums up.", "failed", 0, 6, "It is 3."),
)
WAITING = """\
import time
import typer
from autograder.cli.base import report_errors
from autograder.cli.interrupts import answer_signals

def command() -> int:
    print("ready", flush=True)
    while True:
        time.sleep(0.05)  # a signal that arrives just before a sleep is answered after it

answer_signals()
app = typer.Typer()
app.command()(report_errors(command))
app()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course with the grade of ada in `grades`."""
    write_tiny_course(tmp_path)
    with Journal(tmp_path / "grades") as journal:
        journal.append(Grade("ada", NAME, "graded", 4, 10, TESTS, seed=7))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(app, words)


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_version(option):
    assert run(option).stdout == f"autograder {autograder.__version__}\n"


def test_quiet_command_prints_only_problems(folder):
    signed = "give: 1, reason: R, by: G, at: 2026-11-30 14:05"
    entry = f"- {{assignment: {NAME}, student: ben, {signed}}}\n"
    (folder / "decisions.yml").write_text(entry, "utf-8")
    assert run("report").stdout == "grades/index.html\n"
    done = run("report", "-q")
    assert (done.stdout, done.exit_code) == ("", 1)
    assert done.stderr == "decisions.yml, line 1: no student in these grades has the name ben.\n"


@pytest.mark.parametrize("watch", [(), ("--watch",)], ids=str)
@pytest.mark.parametrize(("user", "wanted"), [(0, 1), (1000, 0)])
def test_root_is_told_once_that_an_ordinary_user_is_safer(folder, monkeypatch, user, wanted, watch):
    monkeypatch.setattr(os, "geteuid", lambda: user, raising=False)
    said = run("grade", "no_such_folder", *watch)
    assert said.stderr.count("an ordinary user is safer") == wanted
    assert "safer" not in said.stdout
    assert "safer" not in run("grade", "no_such_folder", "--json", *watch).output


def test_quiet_command_prints_json(folder):
    assert json.loads(run("report", "--quiet", "--json").stdout)["report"] == "grades/index.html"


def test_verbose_command_adds_tracebacks_and_times(folder):
    (folder / "course.yml").write_text("title: [\n", "utf-8")
    plain, verbose = run("report"), run("report", "-v")
    assert (plain.exit_code, verbose.exit_code) == (2, 2)
    assert "Traceback" not in plain.output and "Traceback" in verbose.output
    assert verbose.stderr.splitlines()[-1].startswith(
        f"autograder {autograder.__version__}, Python "
    )


def test_quiet_and_verbose_end_with_their_command(folder):
    run("report", "-q", "-v")
    assert "Python" not in run("report").stderr and run("report").stdout


@pytest.mark.extras
def test_report_prints_scores_and_paths_as_json(folder):
    (folder / "roster.csv").write_text("student,name\nada,Ada Lovelace\neve,Eve Even\n", "utf-8")
    record = json.loads(run("report", "--json").stdout)
    assert (record["output"], record["report"]) == ("grades", "grades/index.html")
    assert record["absent"] == {"eve": "Eve Even"}
    (grade,) = record["grades"]
    page = grade.pop("page")
    assert page == "grades/feedback/ada/01_adding.html" and Path(page).is_file()
    scores = {"score": 4, "final_score": 4, "max_score": 10, "days_late": 0}
    facts = {"student": "ada", "assignment": NAME, "status": "graded", "problem": None, "seed": 7}
    assert grade == {**scores, **facts}


@pytest.mark.extras
@pytest.mark.parametrize("tool", ["csv", "junit", "classroom50"])
def test_export_prints_scores_and_paths_as_json(folder, tool):
    record = json.loads(run("export", "--to", tool, "--json").stdout)
    (path,) = record["files"]
    assert Path(path).is_file() and path in record["summary"]
    (one,) = record["scores"]
    assert (one["student"], one["score"], one["max_score"]) == ("ada", 4, 10)


def test_help_begins_with_what_students_need():
    said = run("--help").stdout
    assert "Students need the first group of commands only." in said
    in_order = ["─ Students ─", "│ check ", "│ pack ", "─ Instructors ─", "─ Authors ─"]
    assert sorted(in_order, key=said.index) == in_order


REPORTING = "grade report compare decide doctor audit check progress"


@pytest.mark.parametrize("command", REPORTING.split())
def test_every_command_that_reports_offers_json(command):
    assert "--json" in run(command, "--help").stdout


COMMANDS = list(typer.main.get_command(app).commands)  # with those of the extras


def test_every_command_can_be_quiet_or_verbose():
    assert {"check", "grade", "audit"} <= set(COMMANDS)
    for command in COMMANDS:
        said = run(command, "--help").stdout
        assert "--quiet" in said and "-q" in said and "--verbose" in said and "-v" in said


def test_help_names_values_and_says_nothing_of_types():
    for words in ((), *zip(COMMANDS)):
        assert "<" not in run(*words, "--help").stdout.replace("<student>", ""), words


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM for other processes")
def test_sigterm_ends_a_command_with_a_sentence():
    started = subprocess.Popen([sys.executable, "-c", WAITING], stdout=-1, stderr=-1, text=True)
    assert started.stdout.readline() == "ready\n"
    started.send_signal(signal.SIGTERM)
    _, said = started.communicate()
    told = "Stopped. Finished work is kept; run the same command again to continue.\n"
    assert (started.returncode, said) == (143, told)


def test_the_package_is_a_command_too() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "autograder", "--help"], capture_output=True, text=True, check=True
    )
    assert "check" in told.stdout and "Usage: python -m autograder " in told.stdout
