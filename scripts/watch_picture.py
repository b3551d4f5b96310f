"""Draw docs/images/watch.svg: `autograder watch` in a terminal, from a real run in which a student mends a mistake.

`python scripts/watch_picture.py` runs the command on a copy of an assignment, once with a known mistake and once with the
right answer, and writes the moving picture and, for print, its last screen.
"""

from __future__ import annotations

import contextlib
import html
import os
import pty
import select
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rich.color import Color
from rich.style import Style
from rich.terminal_theme import MONOKAI
from rich.text import Text

from autograder.course.mistakes_file import mistakes_by_id
from autograder.course.reading import load_course

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
ASSIGNMENT, MISTAKE = "03_masked_heads", "scaled_without_the_root"
COLUMNS, ROWS = 88, 60
LETTER, LINE, MARGIN = 8.4, 19, 16  # pixels
SECONDS = (1.0, 6.0, 5.0)  # how long the reader sees each screen
CLEARED = b"\x1b[2J"
SHOWN = b"q quit"  # the end of each result
PATIENCE = 300.0  # seconds to wait for a screen


def main(folder: Path = IMAGES) -> None:
    """Run `watch`, and write both pictures into a folder."""
    screens = list(recorded())
    pictures = {"watch.svg": moving(screens), "watch-still.svg": still(screens[-1])}
    for name, picture in pictures.items():
        (folder / name).write_text(picture, "utf-8")
        print(folder / name)


def recorded() -> Iterator[str]:
    """Yield the screens of a run: the command, the named mistake, and the mended answer."""
    course = load_course(ROOT)
    assignment = course.assignment(ASSIGNMENT)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / ASSIGNMENT
        shutil.copytree(course.release_folder(assignment), folder)
        file = folder / f"{assignment.stem}.py"
        file.write_text(mistakes_by_id(course, assignment)[MISTAKE].source, "utf-8")
        process, terminal = started(folder)
        yield f"$ autograder watch {ASSIGNMENT}"
        yield screen(terminal)
        shutil.copy(course.solution_file(assignment), file)
        yield screen(terminal)
        os.write(terminal, b"q")
        os.waitpid(process, 0)
        os.close(terminal)


def started(folder: Path) -> tuple[int, int]:
    """Start the command in a terminal; return its process and the terminal."""
    process, terminal = pty.fork()
    if process == 0:
        environment = {**os.environ, "COLUMNS": str(COLUMNS), "LINES": str(ROWS)}
        environment |= {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
        program = Path(sys.executable).with_name("autograder")
        os.chdir(folder.parent)
        os.execve(program, [program.name, "watch", folder.name], environment)
    return process, terminal


def screen(terminal: int) -> str:
    """Return the next result that the terminal shows, with its colours; raises TimeoutError if none comes."""
    shown = b""
    until = time.monotonic() + PATIENCE
    while SHOWN not in shown.rpartition(CLEARED)[2]:
        if time.monotonic() > until:
            raise TimeoutError(f"watch showed no result: {shown!r}")
        if select.select([terminal], [], [], 1)[0]:
            with contextlib.suppress(BlockingIOError):
                shown += os.read(terminal, 65536)
    return shown.rpartition(CLEARED)[2].decode("utf-8").replace("\x1b[H", "").replace("\r", "")


def moving(screens: list[str]) -> str:
    """Return the screens as a picture that shows one after another, and only the last one if motion is unwanted."""
    total = sum(SECONDS)
    rules, groups, begin = [], [], 0.0
    for number, (text, seconds) in enumerate(zip(screens, SECONDS, strict=True)):
        first, last = 100 * begin / total, 100 * (begin + seconds) / total
        hidden = "" if number == 0 else "0%{visibility:hidden}"
        after = "" if number == len(screens) - 1 else f"{last:.2f}%,100%{{visibility:hidden}}"
        rules.append(f"@keyframes k{number}{{{hidden}{first:.2f}%{{visibility:visible}}{after}}}")
        rules.append(f".k{number}{{animation:k{number} {total:g}s step-end infinite}}")
        groups.append(f'<g class="k{number}">{lines(text)}</g>')
        begin += seconds
    others = ",".join(f".k{number}" for number in range(len(screens) - 1))
    rules.append(
        "@media (prefers-reduced-motion:reduce),print{g{animation:none!important}"
        f"{others}{{visibility:hidden}}}}"
    )
    height = max(text.rstrip().count("\n") for text in screens) + 1
    return drawing(height, f"<style>{''.join(rules)}</style>{''.join(groups)}")


def still(text: str) -> str:
    """Return one screen as a picture."""
    return drawing(text.rstrip().count("\n") + 1, lines(text))


def drawing(height: int, inside: str) -> str:
    """Return a picture of a terminal with so many lines."""
    size = f"{COLUMNS * LETTER + 2 * MARGIN:.0f} {height * LINE + 2 * MARGIN}"
    background = hexadecimal(MONOKAI.background_color)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" font-family="monospace" '
        f'font-size="14" fill="{hexadecimal(MONOKAI.foreground_color)}">'
        f'<rect width="100%" height="100%" rx="8" fill="{background}"/>{inside}</svg>\n'
    )


def lines(text: str) -> str:
    """Return the lines of a screen as text of SVG, every piece in its column."""
    pieces = []
    for row, line in enumerate(Text.from_ansi(text.rstrip()).split(allow_blank=True)):
        column, y = 0, MARGIN + (row + 1) * LINE - 5
        for part in line.divide(
            sorted({end for span in line.spans for end in (span.start, span.end)})
        ):
            style = Style.combine(
                [Style(), *(s.style for s in part.spans if isinstance(s.style, Style))]
            )
            if words := html.escape(part.plain):
                x = MARGIN + column * LETTER
                width = f'textLength="{len(part.plain) * LETTER:.1f}" xml:space="preserve"'
                pieces.append(f'<text x="{x:.1f}" y="{y}" {width}{look(style)}>{words}</text>')
            column += len(part.plain)
    return "".join(pieces)


def look(style: Style) -> str:
    """Return the attributes of a style."""
    attributes = ' font-weight="bold"' if style.bold else ""
    attributes += ' opacity="0.7"' if style.dim else ""
    return attributes + (f' fill="{colour_of(style.color)}"' if style.color else "")


def colour_of(colour: Color) -> str:
    return hexadecimal(colour.get_truecolor(MONOKAI))


def hexadecimal(colour: tuple[int, int, int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
