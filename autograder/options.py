"""Options and arguments of the commands: each is declared once, on the function that a command calls.

A function of the Python API annotates its parameters with these, and `autograder.cli` makes a
command of it.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from autograder.course.config import Course
from autograder.text.names import shown
from autograder.text.numbers import read_number, read_whole

AnyPath = str | os.PathLike[str]
OnProgress = Callable[[int, int], None]  # called with the number done and the total

ADVANCED = "Advanced"  # the panel of `--help` for what few people need


@dataclass(frozen=True)
class Steps:
    """Marks the callback of a long command; a progress bar with this name takes its calls."""

    name: str


def flag(*names: str, help: str, advanced: bool = False) -> Any:
    """Return the declaration of an option without a value."""
    return typer.Option(*names, help=help, rich_help_panel=_panel(advanced))


def value(*names: str, metavar: str, help: str, advanced: bool = False, **further: Any) -> Any:
    """Return the declaration of an option with a value; `further` are arguments of `typer.Option`."""
    panel = _panel(advanced)
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel, **further)


def whole_option(
    *names: str,
    help: str,
    least: int | None = None,
    metavar: str = "NUMBER",
    advanced: bool = False,
) -> Any:
    """Return the declaration of an option that is a whole number, at least `least`."""

    def whole(text: str | int) -> int:
        number = read_whole(f"{text}")
        if number is None:
            raise typer.BadParameter(f"{shown(f'{text}')} must be a whole number, such as 10.")
        if least is not None and number < least:
            raise typer.BadParameter(f"{number} is less than {least}.")
        return number

    return value(*names, metavar=metavar, help=help, advanced=advanced, parser=whole)


def number_option(
    *names: str,
    help: str,
    least: float | None = None,
    most: float | None = None,
    metavar: str = "NUMBER",
) -> Any:
    """Return the declaration of an option that is a number between `least` and `most`."""

    def number(text: str | float) -> float:
        given = read_number(f"{text}")
        if given is None:
            raise typer.BadParameter(f"{shown(f'{text}')} must be an ordinary number, such as 2.5.")
        if least is not None and given < least:
            raise typer.BadParameter(f"{given:g} is less than {least:g}.")
        if most is not None and given > most:
            raise typer.BadParameter(f"{given:g} is more than {most:g}.")
        return given

    return value(*names, metavar=metavar, help=help, parser=number)


def path_option(*names: str, help: str, metavar: str = "PATH", advanced: bool = False) -> Any:
    """Return the declaration of an option that is a path."""
    return value(*names, metavar=metavar, help=help, advanced=advanced, parser=_path)


def argument(*, metavar: str, help: str) -> Any:
    """Return the declaration of an argument."""
    return typer.Argument(metavar=metavar, help=help)


def path_argument(*, help: str, metavar: str = "PATH") -> Any:
    """Return the declaration of an argument that is a path."""
    return typer.Argument(parser=_path, metavar=metavar, help=help)


def _panel(advanced: bool) -> str | None:
    return ADVANCED if advanced else None


def _path(text: str | Path) -> Path:
    """Convert a path of the command line; an empty one is often a variable of a script that is not set."""
    if text == "":
        raise typer.BadParameter("The path is empty.")
    return Path(text)


Target = Annotated[
    str, argument(metavar="ASSIGNMENT", help="An assignment's name or folder, or your file in it.")
]
Names = Annotated[
    list[str] | None, argument(metavar="ASSIGNMENT", help="The assignments; by default all.")
]
Submissions = Annotated[
    AnyPath, path_argument(metavar="SUBMISSIONS", help="A folder, an archive or one file.")
]
OneAssignment = Annotated[
    str | None, value("--assignment", "-a", metavar="NAME", help="Only this assignment.")
]
GradesFolder = Annotated[AnyPath, path_argument(help="The folder with grades.jsonl.")]
GradesOption = Annotated[AnyPath, path_option("--grades", help="The folder with grades.jsonl.")]
OutputFolder = Annotated[
    AnyPath, path_option("--output", "-o", help="The folder for the journal and the reports.")
]
CourseFolder = Annotated[
    AnyPath | Course, path_option("--course", help="The course's folder or course.yml.")
]
RosterFile = Annotated[
    AnyPath | None,
    path_option(
        "--roster", help="A CSV file with the students; by default, roster.csv beside course.yml."
    ),
]
Section = Annotated[
    str | None, value("--section", metavar="NAME", help="Only this section of the roster.")
]
Pictures = Annotated[
    bool, flag("--pictures", help="Also draw pictures of failing code for the feedback.")
]
Jobs = Annotated[
    int | None,
    whole_option(
        "--jobs",
        "-j",
        least=1,
        help="Number of parallel graders, at most; by default, one for each processor.",
    ),
]
Unsafe = Annotated[bool, flag("--unsafe", help="Allow student code to run without a sandbox.")]

# what the commands of several groups share; the command line adds them
AsJson = Annotated[bool, flag("--json", help="Print JSON for machines.")]
Quiet = Annotated[bool, flag("--quiet", "-q", help="Print only problems.")]
QuietBesideJson = Annotated[bool, flag("--quiet", "-q", help="Print only problems, and JSON.")]
Verbose = Annotated[
    bool, flag("--verbose", "-v", help="Also print details, such as tracebacks and times.")
]


def ignore(*_: object) -> None:
    """Do nothing: what a function calls that was given nobody to tell."""
