"""The command-line interface. Each command parses its arguments, calls the engine and prints the result."""

import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from autograder.cli import authors, instructors, students
from autograder.cli.base import end_on_sigterm, report_errors
from autograder.sandbox.trusted_process import forget_current_folder
from autograder.text.consoles import print_replacements
from autograder.version import __version__

app = typer.Typer(
    name="autograder",
    help="Grade programming assignments fairly, kindly, safely and fast.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
PANELS: dict[str, tuple[Callable[..., int], ...]] = {
    "Students": (students.check, students.watch, students.hint, students.answers, students.progress, students.pack),
    "Instructors": (
        *(instructors.collect, instructors.grade, instructors.report, instructors.compare),
        *(instructors.decide, instructors.export, instructors.similar, instructors.doctor),
    ),
    "Authors": (authors.build, authors.audit, authors.new, authors.release, authors.demo),
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
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Grade programming assignments fairly, kindly, safely and fast."""


def main() -> None:
    """Run the `autograder` command."""
    for stream in (sys.stdout, sys.stderr):
        print_replacements(stream)
    forget_current_folder()
    # a process with several threads should not fork, and NumPy's library starts some when it is imported
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    end_on_sigterm()
    app()
