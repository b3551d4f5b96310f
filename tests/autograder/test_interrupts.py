"""Ctrl-C at fixed points: one line and exit code 130, whatever is being imported, and no word of a child process.

A finder on `sys.meta_path` sends the signal when a module is about to be imported, so no test depends on a clock.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from autograder.cli.interrupts import STOPPED
from autograder.runs.pool import end_on_ctrl_c
from autograder.walls.outside.trusted_process import spawning
from tests.autograder.tiny_course import ALTERNATIVE, write_tiny_course

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no process groups for signals")

NAME = "01_adding"
PROGRAM = """\
import os, signal, sys

class Interrupting:
    done = False
    def find_spec(self, name, path=None, target=None):
        if name == POINT and not self.done:
            self.done = True
            os.killpg(0, NUMBER)
        return None

sys.meta_path.insert(0, Interrupting())
from autograder.cli import main
main()
"""
POINTS = {
    "typer": ["--help", "check"],
    "autograder.cli.instructors": ["grade class"],
    "autograder.extras.commands": ["export --to csv"],
    "pydantic": ["check", "build"],
    "rich.console": ["progress"],
    "rich.panel": ["--help"],
    "numpy": ["check"],
    "numpy.random": ["check"],
    "torch": ["check", "audit"],
    "torch.nn": ["check"],
    "torch.autograd": ["check"],
    "autograder.runs.run": ["grade class"],
    "autograder.gradebook.journal": ["report", "export --to csv"],
    "jinja2": ["report"],
}
CASES = [(point, command) for point, commands in POINTS.items() for command in commands]
SAMPLE = {"typer", "autograder.extras.commands", "autograder.gradebook.journal"}


def interrupted(
    folder: Path, point: str, command: str, number: int = signal.SIGINT
) -> subprocess.CompletedProcess[str]:
    program = f"POINT, NUMBER = {point!r}, {int(number)}\n{PROGRAM}"
    return subprocess.run(
        [sys.executable, "-c", program, *command.split()],
        cwd=folder, start_new_session=True, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A course with a submission and a grade."""
    write_tiny_course(tmp_path)
    work = tmp_path / "class" / "ada" / NAME
    work.mkdir(parents=True)
    (work / "adding.py").write_text(ALTERNATIVE)
    return tmp_path


@pytest.mark.parametrize(
    ("point", "command"),
    [pytest.param(*case, marks=[] if case[0] in SAMPLE else [pytest.mark.slow]) for case in CASES],
)
def test_ctrl_c_prints_one_line_wherever_it_comes(folder: Path, point: str, command: str) -> None:
    if command == "report" or command.startswith("export"):
        from autograder.gradebook.journal import Journal
        from autograder.records import Grade

        with Journal(folder / "grades") as journal:
            journal.append(Grade("ada", NAME, "graded", 4, 10))
    done = interrupted(folder, point, command)
    assert (done.returncode, done.stderr.splitlines()) == (130, [STOPPED]), done.stderr
    assert "Traceback" not in done.stdout


def test_ignored_signal_stays_ignored(folder: Path) -> None:
    """As in a job that a shell started in the background."""
    ignoring = ("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)", PROGRAM)
    program = "\n".join(("POINT, NUMBER = 'typer', 2", *ignoring))
    done = subprocess.run([sys.executable, "-c", program, "--version"], capture_output=True, text=True,
                          start_new_session=True)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("autograder ")


def interrupt_myself() -> str:
    os.kill(os.getpid(), signal.SIGINT)
    return "alive"


def test_processes_of_a_pool_do_not_hear_ctrl_c() -> None:
    with ProcessPoolExecutor(1, spawning()) as pool:
        assert pool.submit(interrupt_myself).result() == "alive"
        assert pool.submit(interrupt_myself).result() == "alive"
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_grader_that_is_ready_ends_without_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    pool = ProcessPoolExecutor(1, spawning(), initializer=end_on_ctrl_c)
    with pool, pytest.raises(Exception, match="terminated abruptly"):
        pool.submit(interrupt_myself).result()
    assert capfd.readouterr() == ("", "")


CHILD = """\
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["POINT"]:
            try:
                os.close(os.open(os.environ["ONCE"], os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return None
            os.killpg(int(os.environ["GROUP"]), signal.SIGINT)
        return None

if "GROUP" not in os.environ:
    os.environ["GROUP"] = str(os.getpid())
else:
    sys.meta_path.insert(0, Interrupting())
"""
IN_CHILDREN = {
    "grade class --jobs 1": ["pydantic", "autograder.grading.grader", "torch"],
    "grade class --cluster local:1": [
        "distributed.nanny", "autograder.extras.cluster.cluster_worker",
        "autograder.extras.cluster.grader_process", "autograder.grading.grader",
    ],
    "build": ["autograder.authoring.hints_file", "torch"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("command", "point"),
    [
        pytest.param(command, point, marks=[] if point == "pydantic" else [pytest.mark.slow])
        for command, points in IN_CHILDREN.items()
        for point in points
    ],
)
def test_ctrl_c_while_a_process_of_the_command_imports_prints_one_line(
    folder: Path, tmp_path: Path, command: str, point: str
) -> None:
    if "--cluster" in command:
        pytest.importorskip("distributed")
    (tmp_path / "sitecustomize.py").write_text(CHILD)
    environment = {name: value for name, value in os.environ.items() if name != "GROUP"}
    environment |= {"PYTHONPATH": str(tmp_path), "POINT": point, "ONCE": str(tmp_path / "once")}
    program = [sys.executable, "-c", "from autograder.cli import main; main()", *command.split()]
    done = subprocess.run(
        program, cwd=folder, env=environment, start_new_session=True, capture_output=True, text=True
    )
    assert (tmp_path / "once").exists(), "no process of the command imports this"
    assert (done.returncode, done.stderr.splitlines()[-1:]) == (130, [STOPPED]), done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_every_process_is_started_by_the_context_for_trusted_ones() -> None:
    """Otherwise it would print a traceback of its own."""
    package = Path(__file__).parents[2] / "autograder"
    calls = [line for path in package.rglob("*.py") for line in path.read_text("utf-8").split("\n")]
    pools = [
        line.strip()
        for line in calls
        if re.search(r"(?<!class )\bProcessPoolExecutor\(|^ +super\(\).__init__\(plan.jobs", line)
    ]
    assert len(pools) == 2
    assert [line for line in pools if "spawning()" not in line] == []
