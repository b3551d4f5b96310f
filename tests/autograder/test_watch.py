"""Watching a file: in this process, and in a pseudo-terminal."""

from __future__ import annotations

import io
import json
import os
import re
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from autograder.selfcheck.watch import Watch
from tests.autograder.student_folder import RIGHT, SUBTRACTS, copy_of, same_as_golden
from tests.autograder.waiting import HANGS, wait_until

COMMAND = "from autograder.cli import main; main()"


@pytest.fixture
def folder(released: Path, tmp_path: Path) -> Path:
    return copy_of(released, tmp_path)


def write(folder: Path, text: str) -> None:
    """Save as editors do: replace the old file by a new one."""
    fresh = folder / "adding.py.new"
    fresh.write_text(text, "utf-8")
    fresh.replace(folder / "adding.py")


class Session:
    """A watch with simulated keys and clock; `screen` is the output since the last look."""

    def __init__(self, target: Path, seconds: float = HANGS) -> None:
        self.keys: list[str] = []
        self.output = io.StringIO()
        console = Console(file=self.output, width=80, color_system=None, force_terminal=False)
        self.watch = Watch(target, console, self._key, lambda: "10:31:07", seconds)

    def _key(self, seconds: float) -> str:
        return self.keys.pop(0) if self.keys else ""

    def step(self, key: str = "") -> str:
        if key:
            self.keys.append(key)
        self.goes_on = self.watch.step()
        text = self.output.getvalue()
        self.output.seek(0)
        self.output.truncate()
        return text


def test_watch_prints_the_golden_session(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    session = Session(folder)
    screens = ["first look", session.step()]
    write(folder, SUBTRACTS)
    screens += ["saved with a mistake", session.step()]
    for key in "hhp":
        screens += [f"key {key}", session.step(key)]
    write(folder, RIGHT)
    screens += ["saved, right", session.step(), "key h", session.step("h")]
    assert max(screen.count("\n") for screen in screens) < 24, "the lines of a small terminal"
    same_as_golden("watch", "\n$ ".join(["", *screens]))
    assert session.step() == "", "nothing was saved, nothing is said"
    assert session.goes_on
    session.step("q")
    assert not session.goes_on


def test_keys_ask_and_answer_catch_and_pack(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    hints = folder / "hints.json"
    questions = {"add": [["Who asks?", "Nobody."], ["And who answers?", "You do."]]}
    hints.write_text(json.dumps({**json.loads(hints.read_text("utf-8")), "questions": questions}))
    write(folder, SUBTRACTS)
    session = Session(folder)
    session.step()
    assert "shown once its visible tests pass." in session.step("a")
    write(folder, RIGHT)
    session.step()
    asked = [session.step("a") for _ in range(5)]
    assert ["Nobody." in screen for screen in asked] == [False, True, False, False, False]
    assert ["You do." in screen for screen in asked] == [False, False, False, True, False]
    assert ["Who asks?" in screen for screen in asked] == [True, True, False, False, True]
    assert "has no mistakes to catch." in session.step("c")
    assert "Hand in 01_adding.zip." in session.step("s") and (folder / "01_adding.zip").is_file()
    assert "your file has not changed since" in session.step("s")


@pytest.mark.slow
def test_watch_continues_after_a_loop_and_a_crash(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autograder.walls.outside.deadline.CLOCK_FACTOR", HANGS)
    session = Session(folder, seconds=1.0)
    write(folder, "while True:\n    pass\n")
    assert "used more than 1 seconds of processor time" in session.step()
    session.watch.seconds = HANGS
    write(folder, "import os\nos._exit(9)\n")
    assert "Your code ended the process that ran it (exit code 9)." in session.step()
    write(folder, "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n")
    assert "(signal 15)" in session.step()
    (folder / "adding.py").write_bytes(b"\xff")
    assert "adding.py is not UTF-8 text" in session.step()
    write(folder, RIGHT)
    assert "Well done!" in session.step()


SAVES_ANOTHER = """\
from pathlib import Path

Path({new!r}).write_text({text!r}, "utf-8")
Path({new!r}).replace({file!r})
while True:
    pass
"""


def test_saving_during_a_check_restarts_it(folder: Path) -> None:
    """The file itself saves another one in its place while it is checked, and would never end."""
    session = Session(folder)
    places = {"new": str(folder / "adding.py.new"), "file": str(folder / "adding.py")}
    write(folder, SAVES_ANOTHER.format(**places, text=RIGHT))
    assert session.step() == "Checking …\n"
    assert "Well done!" in session.step()


def test_watch_waits_for_a_file_that_is_briefly_missing(folder: Path) -> None:
    session = Session(folder)
    session.step()
    (folder / "adding.py").rename(folder / "elsewhere")
    assert session.step() == ""
    (folder / "elsewhere").rename(folder / "adding.py")
    session.step()
    write(folder, RIGHT)
    assert "Well done!" in session.step()


def test_change_of_the_tests_starts_a_check(folder: Path) -> None:
    write(folder, SUBTRACTS)
    session = Session(folder)
    assert "1 of 2 tests pass" in session.step()
    tests = folder / "test_adding.py"
    tests.write_text(tests.read_text().replace("5,", "-1,"))
    assert "Well done!" in session.step()


def test_watch_shows_only_the_first_failures_in_full(folder: Path) -> None:
    tests = folder / "test_adding.py"
    text = tests.read_text()
    more = text[text.index("@pytest.mark.part") : text.index('@pytest.mark.part("total")')]
    tests.write_text(
        text + "".join("\n\n" + more.replace("test_two", f"test_{n}_two") for n in range(3))
    )
    write(folder, "nothing = None\n")
    assert "✗ 2 more do not pass yet" in Session(folder).step()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="Nothing can be forked here.")
def test_watch_keeps_pytorch_loaded(folder: Path) -> None:
    """Each check is forked from this process, where PyTorch is loaded; a new process would load it again."""
    loaded = f"\nimport os, sys\nassert 'torch' in sys.modules and os.getppid() == {os.getpid()}\n"
    session = Session(folder)
    for _ in range(2):
        write(folder, RIGHT + loaded)
        assert "Well done!" in session.step()
        write(folder, SUBTRACTS + loaded)
        assert "Do two heaps become smaller" in session.step()


# -- terminals --------------------------------------------------------------------------------------


def wait_for(look: Callable[[], str], wanted: str) -> str:
    """Return the screen as soon as it contains `wanted`."""
    screen = ""

    def has_come() -> bool:
        nonlocal screen
        screen = look()
        return wanted in screen

    assert wait_until(has_come), f"{wanted!r} never came:\n{screen}"
    return screen


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals.")
def test_watch_works_in_a_pseudo_terminal(folder: Path) -> None:
    import pty
    import termios

    leader, follower = pty.openpty()
    before = termios.tcgetattr(follower)
    child = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "watch"],
        cwd=folder, stdin=follower, stdout=follower, stderr=follower,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "40"},
    )  # fmt: skip
    seen = ""

    def look() -> str:
        nonlocal seen
        while select.select([leader], [], [], 0)[0]:
            seen += os.read(leader, 1 << 16).decode("utf-8", "replace")
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen)

    def after(action: Callable[[], object], wanted: str) -> None:
        nonlocal seen
        seen = ""
        action()
        wait_for(look, wanted)

    try:
        wait_for(look, "q quit")
        after(lambda: write(folder, SUBTRACTS), "Do two heaps become smaller")
        after(lambda: os.write(leader, b"H"), "Hint 1 of 4")
        os.write(leader, b"q")
        assert child.wait(HANGS) == 0
        assert termios.tcgetattr(follower) == before, "the terminal is left as it was found"
    finally:
        child.kill()
        child.wait()
        os.close(leader)
        os.close(follower)
