"""Check a file again after every save: PyTorch stays loaded, and each check runs in a forked child.

On systems without fork (Windows), the file is loaded in this process, and an endless loop in it
needs Ctrl-C.
"""

import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console, Group, RenderableType
from rich.text import Text

from autograder.records import RefusedError
from autograder.selfcheck.answers import unlocked
from autograder.selfcheck.catch.told import catch_with_file, summary
from autograder.selfcheck.check import CheckReport, check_work
from autograder.selfcheck.drawing import draw_all
from autograder.selfcheck.forked import GivenUp, Unfinished, run_in_child
from autograder.selfcheck.hints import next_hint
from autograder.selfcheck.pack import pack
from autograder.selfcheck.screens import (
    answer_screen,
    drawings_screen,
    hint_screen,
    items_screen,
    no_answers_screen,
    packed_screen,
    question_screen,
    watch_screen,
)
from autograder.selfcheck.workspace import Work, find_work
from autograder.source.stub import source_files

POLL = 0.1  # seconds between polls of the file and the keyboard
SETTLE = 0.05  # seconds to wait, as an editor can write in several steps
SECONDS = 30.0
THE_ANSWER = "a shows the answer."
NEXT_QUESTION = "a asks the next question."

Result = TypeVar("Result")
Stamp = tuple[tuple[str, int, int], ...]


class Watch:
    """One watched assignment; `step` polls the file and the keyboard once.

    A check, or drawing all pictures, may use `seconds` of processor time.
    """

    def __init__(
        self,
        target: str | Path,
        console: Console,
        key: Callable[[float], str],
        clock: Callable[[], str] = lambda: time.strftime("%H:%M:%S"),
        seconds: float = SECONDS,
    ) -> None:
        self.work: Work = find_work(target)
        self._target = target
        self._console = console
        self._key = key
        self._clock = clock
        self.seconds = seconds
        self._report: CheckReport | None = None
        self._problem = ""
        self._seen: Stamp = ()
        self._checked = ""
        self._turns = 0  # a question is one, and its answer the next one

    def step(self) -> bool:
        """Check the file if it was saved, and handle one key; return False to stop."""
        if self._changed():
            self._check()
        return self._answer(self._key(POLL))

    def _changed(self) -> bool:
        return bool(now := _stamp(self.work)) and now != self._seen

    def _check(self) -> None:
        time.sleep(SETTLE)
        self._seen = _stamp(self.work)
        self._say("Checking …")
        try:
            if not isinstance(self._target, Path) or self._target.is_dir():
                # the notebook, or else the script, can be the fuller one now
                self.work = find_work(self._target)
            self._report = self._in_child(lambda: check_work(self.work))
            self._problem = ""
        except GivenUp:
            return
        except (RefusedError, Unfinished) as problem:
            self._problem = str(problem)
        self._seen = self._seen or _stamp(self.work)
        self._checked = self._clock()
        self._show()

    def _answer(self, key: str) -> bool:
        screens = {
            "h": self._hint,
            "p": self._pictures,
            "a": self._question,
            "c": self._caught,
            "s": self._packed,
        }
        if key in screens:
            self._show(self._screen(screens[key]))
        return key not in ("q", "\x03", "\x04")

    def _screen(self, make: Callable[[CheckReport], RenderableType]) -> RenderableType:
        """Return what a key shows, or the reason that there is nothing to show."""
        if self._problem or self._report is None:
            return Text(self._problem or "The file was not checked yet.")
        try:
            return make(self._report)
        except (RefusedError, Unfinished) as problem:
            return Text(str(problem), "red")

    def _hint(self, report: CheckReport) -> RenderableType:
        return hint_screen(next_hint(self.work, report), "h")

    def _pictures(self, report: CheckReport) -> RenderableType:
        self._say("Drawing …")
        return drawings_screen(self._in_child(lambda: draw_all(self.work)))

    def _question(self, report: CheckReport) -> RenderableType:
        """Show the next question, or the answer to the one that was asked."""
        cards = unlocked(self.work, report)
        if not cards:
            return no_answers_screen()
        number, is_answer = divmod(self._turns, 2)
        self._turns += 1
        card = cards[number % len(cards)]
        if is_answer:
            return Group(question_screen(card), answer_screen(card), _dim(NEXT_QUESTION))
        return Group(question_screen(card), _dim(THE_ANSWER))

    def _caught(self, report: CheckReport) -> RenderableType:
        self._say("Catching …")
        results = self._in_child(lambda: catch_with_file(self.work, report))
        lines, command = summary(results, f"autograder catch {self.work.name}")
        return items_screen([(result.title, result.items) for result in results], lines, command)

    def _packed(self, report: CheckReport) -> RenderableType:
        return packed_screen(pack(self.work, Path(".")), report)

    def _in_child(self, make: Callable[[], Result]) -> Result:
        result: Result = run_in_child(make, self.seconds, self._changed)
        return result

    def _show(self, extra: RenderableType | None = None) -> None:
        self._console.clear()
        self._console.print(watch_screen(self._report, self._problem, self._checked, extra))

    def _say(self, text: str) -> None:
        self._console.print(Text(text, "dim"))


def watch(target: str | Path, console: Console) -> None:
    """Watch until `q` or Ctrl-C. Raises RefusedError if there is nothing to watch."""
    with _keys() as key:
        watching = Watch(target, console, key)
        console.print(Text(f"Watching {watching.work.file}", "dim"))
        while watching.step():
            pass


def _dim(text: str) -> RenderableType:
    return Text(text, "dim")


def _stamp(work: Work) -> Stamp:
    """Return a value that changes when a file is saved; empty while an editor replaces the file."""
    try:
        status = work.file.stat()  # where case is ignored, its name may be listed in other letters
        stats = [(file.name, file.stat()) for file in source_files(work.folder) if file.exists()]
    except FileNotFoundError:
        return ()
    others = [(name, stat.st_mtime_ns, stat.st_size) for name, stat in stats]
    return (work.file.name, status.st_mtime_ns, status.st_size), *others


@contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """Yield a function that waits that many seconds for a key; without a terminal, it only waits."""
    if not sys.stdin.isatty():
        yield _no_keys
    elif os.name == "nt":
        yield _windows_key
    else:
        import termios
        import tty

        before = termios.tcgetattr(0)
        tty.setcbreak(0)
        try:
            yield _unix_key
        finally:
            termios.tcsetattr(0, termios.TCSADRAIN, before)


def _no_keys(seconds: float) -> str:
    time.sleep(seconds)
    return ""


def _unix_key(seconds: float) -> str:
    if not select.select([0], [], [], seconds)[0]:
        return ""
    data = os.read(0, 1)
    return data.decode("ascii", "replace").lower() if data else "q"  # the terminal was closed


def _windows_key(seconds: float) -> str:
    import msvcrt

    console: Any = msvcrt
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if console.kbhit():
            return str(console.getwch()).lower()
        time.sleep(0.02)
    return ""
