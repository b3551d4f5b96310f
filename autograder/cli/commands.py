"""The typer application with all commands."""

from collections.abc import Callable
from typing import Annotated

import typer

from autograder.cli import authors, instructors, students
from autograder.cli.base import report_errors
from autograder.version import __version__

app = typer.Typer(
    name="autograder",
    help="Grade programming assignments fairly, kindly, safely and fast.\n\n"
    "Students need the first group of commands only.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
PANELS: dict[str, tuple[Callable[..., int], ...]] = {
    "Students": (
        students.check,
        students.watch,
        students.hint,
        students.answers,
        students.catch,
        students.progress,
        students.pack,
    ),
    "Instructors": (
        *(instructors.collect, instructors.grade, instructors.report, instructors.compare),
        *(instructors.decide, instructors.export, instructors.similar, instructors.sheet),
        instructors.doctor,
    ),
    "Authors": (authors.build, authors.audit, authors.new, authors.release),
}
for panel, commands in PANELS.items():
    for command in commands:
        app.command(rich_help_panel=panel)(report_errors(command))


def _version(wanted: bool) -> None:
    if wanted:
        print(f"autograder {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", "-V", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Grade programming assignments fairly, kindly, safely and fast."""
