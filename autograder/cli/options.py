"""Options and arguments that several commands have, and how a path on the command line is read."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from autograder.text.names import shown
from autograder.text.numbers import read_number, read_whole

PROCESSORS = os.cpu_count() or 1


def path_option(*flags: str, help: str, metavar: str = "PATH") -> Any:
    """Return the declaration of an option that is a path."""
    return typer.Option(*flags, parser=_path, metavar=metavar, help=help)


def path_argument(*, help: str, metavar: str = "PATH") -> Any:
    """Return the declaration of an argument that is a path."""
    return typer.Argument(parser=_path, metavar=metavar, help=help)


def _path(text: str | Path) -> Path:
    """Convert a path of the command line; an empty one is often a variable of a script that is not set."""
    if text == "":
        raise typer.BadParameter("The path is empty.")
    return Path(text)


def whole_option(*flags: str, help: str, least: int | None = None, metavar: str = "NUMBER") -> Any:
    """Return the declaration of an option that is a whole number, at least `least`."""

    def whole(text: str | int) -> int:
        number = read_whole(f"{text}")
        if number is None:
            raise typer.BadParameter(f"{shown(f'{text}')} must be a whole number, such as 10.")
        if least is not None and number < least:
            raise typer.BadParameter(f"{number} is less than {least}.")
        return number

    return typer.Option(*flags, parser=whole, metavar=metavar, help=help)


def number_option(
    *flags: str,
    help: str,
    least: float | None = None,
    most: float | None = None,
    metavar: str = "NUMBER",
) -> Any:
    """Return the declaration of an option that is a number between `least` and `most`."""

    def number(text: str | float) -> float:
        value = read_number(f"{text}")
        if value is None:
            raise typer.BadParameter(f"{shown(f'{text}')} must be an ordinary number, such as 2.5.")
        if least is not None and value < least:
            raise typer.BadParameter(f"{value:g} is less than {least:g}.")
        if most is not None and value > most:
            raise typer.BadParameter(f"{value:g} is more than {most:g}.")
        return value

    return typer.Option(*flags, parser=number, metavar=metavar, help=help)


Target = Annotated[
    str,
    typer.Argument(
        metavar="[ASSIGNMENT]", help="An assignment's name or folder, or your file in it."
    ),
]
Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ASSIGNMENT]...", help="The assignments; by default all."),
]
OneAssignment = Annotated[
    str | None, typer.Option("--assignment", "-a", help="Only this assignment.")
]
GradesFolder = Annotated[Path, path_argument(help="The folder with grades.jsonl.")]
CoursePath = Annotated[Path, path_option("--course", help="The course's folder or course.yml.")]
RosterFile = Annotated[
    Path | None,
    path_option(help="A CSV file with the students; by default, roster.csv beside course.yml."),
]
Section = Annotated[str | None, typer.Option(help="Only this section of the roster.")]
Pictures = Annotated[
    bool, typer.Option("--pictures", help="Also draw pictures of failing code for the feedback.")
]
Jobs = Annotated[
    int,
    whole_option(
        "--jobs",
        "-j",
        least=1,
        help="Number of parallel graders, at most; few submissions get fewer.",
    ),
]
Unsafe = Annotated[bool, typer.Option("--unsafe", help="Allow grading without a sandbox.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print only problems, and JSON if asked for.")
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Also print details, such as tracebacks and times.")
]
