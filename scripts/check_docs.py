"""Check the README and the guides: their links lead somewhere, their commands exist, their tables fit the course.

`python scripts/check_docs.py` prints each problem on a line, and ends with exit code 1 if there are any.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from autograder.cli import app
from autograder.course.config import Course
from autograder.course.reading import load_course

ROOT = Path(__file__).resolve().parents[1]
# Typer brings a Click of its own, and exports only this class of it.
UsageError: type[Exception] = typer.BadParameter.__base__  # type: ignore[assignment]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
WORDS_OF_THE_README = 900
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
OF_OTHERS = {  # what the set-up does not install
    *(
        "cd",
        "dask",
        "docker",
        "export",
        "git",
        "jupytext",
        "mkdir",
        "mv",
        "mypy",
        "openssl",
        "pip",
        "podman",
        "ruff",
        "sh",
        "source",
    )
}


def main() -> int:
    """Print the problems of all pages; return the exit code."""
    problems = [f"{page.name}: {problem}" for page in PAGES for problem in problems_of(page)]
    problems += tables(load_course(ROOT))
    words = len((ROOT / "README.md").read_text("utf-8").split())
    if words > WORDS_OF_THE_README:
        problems.append(f"README.md: {words} words are too many for a front door.")
    print(*problems, sep="\n", end="\n" if problems else "")
    return int(bool(problems))


def problems_of(page: Path) -> Iterator[str]:
    """Yield what is wrong with the links and the commands of a page."""
    text = page.read_text("utf-8")
    prose = BLOCK.sub("", text)
    for words, target in re.findall(r"\[([^]\[]*)\]\(([^)\s]+)\)", prose):
        if not target.startswith("https://"):
            yield from problem_of_link(page, words, target)
    for command in commands(text, prose):
        try:
            run_dry(shlex.split(command, comments=True))
        except (UsageError, LookupError, ValueError) as error:
            yield f"`{command}`: {error}"


def problem_of_link(page: Path, words: str, target: str) -> Iterator[str]:
    """Yield what is wrong with a link to a file, to a heading, or to a test that is named in it."""
    name, _, anchor = target.partition("#")
    file = page.parent / name if name else page
    if not file.exists():
        yield f"there is nothing at {target}"
    elif anchor and anchor not in anchors(file):
        yield f"{target} is the name of no heading"
    elif words.startswith("`test_") and f"\ndef {words.strip('`')}(" not in file.read_text("utf-8"):
        yield f"{name} has no test {words}"


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", BLOCK.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands(text: str, prose: str) -> Iterator[str]:
    """Yield each line of a shell block, each prompt of a console block, and the commands in sentences."""
    for language, block in BLOCK.findall(text):
        for line in block.splitlines():
            if language == "sh" and line.strip():
                yield line
            elif language == "console" and line.startswith("$ "):
                yield line[2:]
    yield from re.findall(r"`((?:autograder|make|python|pytest) [^`]+)`", prose)


def run_dry(words: list[str]) -> None:
    """Take a command apart as its program would; raises for what it would not accept."""
    if not words:
        return
    program, *arguments = words
    if program == "autograder":
        parse(arguments)
    elif program == "make":
        make(arguments)
    elif program in ("python", "pytest"):
        files(arguments)
    elif program not in OF_OTHERS:
        raise LookupError(f"{program} is not among what the set-up installs")


def parse(words: list[str]) -> None:
    """Parse the arguments of a command of ours without running it."""
    group: Any = typer.main.get_command(app)
    command, *arguments = words
    if command.startswith("-"):
        group.make_context("autograder", [command], resilient_parsing=True)
    elif command not in group.commands:
        raise LookupError("there is no such command")
    elif arguments:
        group.commands[command].make_context(command, arguments)


def make(words: list[str]) -> None:
    """Check that the Makefile has these targets and variables."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    variables = set(re.findall(r"\$\(([A-Z]+)\)", makefile))
    for word in words:
        name, is_variable, _ = word.partition("=")
        if name not in (variables if is_variable else targets):
            raise LookupError(f"the Makefile has no {name}")


def files(words: list[str]) -> None:
    """Check that the first file or module that Python is given is there."""
    names = [word for word in words if not word.startswith("-")]
    if "-m" in words:
        names = [f"{names[0].replace('.', '/')}.py"] if "." in names[0] else []
    for name in names[:1]:
        if not (ROOT / name).exists() and not list(ROOT.glob(f"assignments/*/{name}")):
            raise LookupError(f"there is no {name}")


def tables(course: Course) -> Iterator[str]:
    """Yield what is wrong with the tables of assignments and of parts."""
    row = re.compile(r"^\| (\d\d) \| `(\w+)` \|.*\| (\d+) \| (\d+) \|$", re.MULTILINE)
    teaching = (ROOT / "docs/teaching.md").read_text("utf-8")
    rows = row.findall(teaching)
    if rows != [(a.name[:2], a.name, str(a.minutes), f"{a.points:g}") for a in course.assignments]:
        yield "teaching.md: its table of assignments is not that of course.yml"
    minutes = {a.name[:2]: a.minutes for a in course.assignments}
    for week, numbers, stated in re.findall(
        r"^\| (\d+) \| ([\d, ]+) \| (\d+) \|$", teaching, re.MULTILINE
    ):
        if sum(minutes[number] for number in numbers.split(", ")) != int(stated):
            yield f"teaching.md: week {week} with {numbers} does not take {stated} minutes"
    topics = (ROOT / "docs/students.md").read_text("utf-8")
    named = re.findall(r"^\| .+ \| (\d\d) (`.+`) \|$", topics, re.MULTILINE)
    parts = [(number, part) for number, cell in named for part in re.findall(r"`(\w+)`", cell)]
    if parts != [(a.name[:2], part.name) for a in course.assignments for part in a.parts]:
        yield "docs/students.md: its table of topics does not name every part of course.yml"


if __name__ == "__main__":
    sys.exit(main())
