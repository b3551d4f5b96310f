"""What students on Windows and macOS have: another console, other line ends, no fork, folders that ignore case."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder.cli import app
from autograder.selfcheck import watch
from autograder.selfcheck.check import check_target
from autograder.selfcheck.workspace import find_work
from autograder.source.stub import source_files
from autograder.submissions.files import DiskFolder, Entry
from autograder.text.consoles import REPLACEMENTS, encodable
from tests.autograder.student_folder import RIGHT, SUBTRACTS, write_answer

NAME = "01_adding"
COMMAND = "from autograder.cli import main; main()"
# As on Windows: no fork, no alarm, and none of the modules that only Unix has. IPython, matplotlib and PyTorch are
# imported before, because they ask for the system's name and not for the modules.
LIKE_WINDOWS = """
import os, signal, sys
os.environ["USERNAME"] = "student"  # as Windows sets it, so that Python asks no pwd for the name
import IPython.core.interactiveshell, matplotlib.figure, torch
UNIX_ONLY = ("fcntl", "resource", "termios", "tty", "pty", "pwd", "grp")
class NoSuchModules:
    def find_spec(self, name, path=None, target=None):
        if name in UNIX_ONLY:
            raise ImportError(name)
sys.meta_path.insert(0, NoSuchModules())
for name in UNIX_ONLY:
    sys.modules.pop(name, None)
for module, names in ((os, ("fork", "register_at_fork")), (signal, ("setitimer", "SIGALRM", "SIGKILL"))):
    for name in names:
        delattr(module, name)
"""


def command(
    folder: Path, *words: str, before: str = "", encoding: str = "utf-8"
) -> tuple[int, str]:
    """Run a command in a process of its own; return its exit code and what its console shows."""
    variables = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0", "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-c", before + COMMAND, *words], cwd=folder, env=variables,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.returncode, done.stdout.decode(encoding)


# -- consoles ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [["check"], ["progress"], ["hint"], ["check", "--picture"], ["pack"]]
)
def test_console_without_a_character_shows_another_one(
    folder: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_answer(folder, SUBTRACTS)
    monkeypatch.setenv("COLUMNS", "80")
    usual = CliRunner().invoke(app, words).output
    (folder / f"{NAME}.zip").unlink(missing_ok=True)
    (folder / ".autograder" / "steps.json").unlink(missing_ok=True)
    _, shown = command(folder, *words, encoding="cp1252")
    assert shown.count("?") == usual.count("?"), shown
    assert [len(line) for line in shown.splitlines()] == [len(line) for line in usual.splitlines()]


def test_replacements_are_single_characters_that_every_console_has() -> None:
    assert all(
        len(lacking) == len(other) == 1 and other.isascii()
        for lacking, other in REPLACEMENTS.items()
    )
    console = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    assert encodable("✓ Größe \ud800 猫", console) == "+ Größe ? ?"
    assert encodable("✓ 猫", io.StringIO()) == "✓ 猫"


# -- without what only Unix has ---------------------------------------------------------------------

WATCH = """
import autograder.cli.commands, autograder.notebook
import io
from rich.console import Console
from autograder.selfcheck.watch import Watch
screen = io.StringIO()
keys = iter(["h", "p", "q"])
watching = Watch(".", Console(file=screen, width=80), lambda seconds: next(keys))
while watching.step():
    pass
print(screen.getvalue())
"""
NOTEBOOK = """
import nbformat
from IPython.core.interactiveshell import InteractiveShell
import __main__
shell = InteractiveShell.instance(user_module=__main__)
for cell in nbformat.read("adding.ipynb", as_version=4).cells:
    if cell.cell_type == "code":
        done = shell.run_cell(cell.source.replace(%r, "return a - b"), store_history=True)
        if cell.source.startswith("check("):
            print("RESULT", repr(done.result))
for call in ("hint('add')", "picture('add')", "progress()"):
    done = shell.run_cell(call, store_history=True)
    done.raise_error()
    print("RESULT", repr(done.result))
"""
GAP = 'raise NotImplementedError("add is not written yet.")'


def like_windows(folder: Path, program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", LIKE_WINDOWS + program], capture_output=True, text=True, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_watch_needs_nothing_that_only_unix_has(folder: Path) -> None:
    write_answer(folder, SUBTRACTS)
    screens = like_windows(folder, WATCH)
    assert "Do two heaps become smaller" in screens
    assert "Hint 1 of" in screens
    assert "add_a_row_of_sums.png" in screens.replace("\\", "/")


@pytest.mark.slow
def test_notebook_needs_nothing_that_only_unix_has(folder: Path) -> None:
    told = like_windows(folder, NOTEBOOK % GAP)
    assert "RESULT 0 of 1 visible points of this part so far." in told
    assert "This looks familiar: subtracts." in told
    assert "Hint 1 of" in told and "0 of 3 points of the visible tests." in told


@pytest.mark.parametrize(
    "words", [["check"], ["check", "--picture"], ["hint"], ["progress"], ["answers"], ["pack"]]
)
@pytest.mark.slow
def test_commands_need_nothing_that_only_unix_has(folder: Path, words: list[str]) -> None:
    write_answer(folder, RIGHT)
    code, told = command(folder, *words, before=LIKE_WINDOWS)
    assert code == 0, told


# -- files and folders ------------------------------------------------------------------------------


def with_windows_line_ends(folder: Path) -> None:
    for file in folder.iterdir():
        if file.is_file():
            file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))


def test_stub_with_line_ends_of_windows_is_untouched(folder: Path) -> None:
    with_windows_line_ends(folder)
    assert find_work(folder).is_untouched()
    assert find_work(folder / "adding.ipynb").is_untouched()
    done = CliRunner().invoke(app, ["pack"])
    assert done.exit_code == 2 and "holds no answer of yours" in done.output


@pytest.fixture
def ignores_case(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand for a folder that ignores case, with a file Adding.py: that is listed, and adding.py opens it, too.

    Such a file system cannot be made everywhere: one name is a link to the other, and no listing has it.
    """
    (folder / "adding.py").rename(folder / "Adding.py")
    (folder / "adding.py").symlink_to("Adding.py")

    listed_on_disk = DiskFolder.entries

    def listed(folder: Path) -> list[Path]:
        return [file for file in source_files(folder) if file.name != "adding.py"]

    def entries(folder: DiskFolder) -> list[Entry]:
        return [entry for entry in listed_on_disk(folder) if entry.name != "adding.py"]

    monkeypatch.setattr(watch, "source_files", listed)
    monkeypatch.setattr(DiskFolder, "entries", entries)
    return folder


def test_name_in_other_letters_is_the_same_file_where_case_is_ignored(ignores_case: Path) -> None:
    write_answer(ignores_case, SUBTRACTS)
    work = find_work(ignores_case)
    assert work.file.samefile(ignores_case / "adding.py")
    assert (work.problem, work.note) == ("", "")
    assert not work.is_untouched()
    report = check_target(ignores_case)
    assert report.score < report.max_score and not report.note


def test_broken_link_beside_the_answer_is_left_out(folder: Path) -> None:
    write_answer(folder, RIGHT)
    (folder / "older.py").symlink_to(folder / "nowhere.py")
    assert find_work(folder).file.name == "adding.py"
