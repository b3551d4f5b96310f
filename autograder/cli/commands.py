"""The typer application with all commands, those of extensions included. A command is imported when it is needed."""

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from autograder.cli.base import Command, PlainHelp, report_errors
from autograder.installation.extensions import extensions, load_extension
from autograder.records import InfrastructureError
from autograder.version import __version__

EXTENSIONS = "autograder.commands"  # the entry points of further commands, all for instructors
STUDENTS = "Students"
INSTRUCTORS = "Instructors"
AUTHORS = "Authors"
NAMES = {
    STUDENTS: ("check", "watch", "hint", "answers", "catch", "progress", "pack"),
    INSTRUCTORS: ("grade", "report", "decide", "compare", "doctor"),
    AUTHORS: ("build", "audit", "new", "release"),
}


class Commands(PlainHelp, TyperGroup):
    """The group of all commands."""

    def __init__(self, **settings: Any) -> None:
        self._made: dict[str, TyperCommand] = {}
        super().__init__(**settings)

    @property  # type: ignore[override]
    def commands(self) -> dict[str, TyperCommand]:
        """All commands, in the order of `--help`."""
        return {name: self._command(name) for name in _panels()}

    @commands.setter
    def commands(self, given: object) -> None:
        """Typer gives the commands that it knows: none."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_panels())

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        is_of_core = any(cmd_name in names for names in NAMES.values())
        is_there = is_of_core or cmd_name in _panels()
        return self._command(cmd_name) if is_there else None

    def _command(self, name: str) -> TyperCommand:
        if name not in self._made:
            self._made[name] = _made(name)
        return self._made[name]


def _panels() -> dict[str, str]:
    """Return the panel of each command; those of extensions follow those of the core."""
    panels: dict[str, str] = {}
    for panel, names in NAMES.items():
        panels |= dict.fromkeys(names, panel)
        if panel == INSTRUCTORS:
            panels |= dict.fromkeys(extensions(EXTENSIONS), panel)
    return panels


def _made(name: str) -> TyperCommand:
    function = _function(name)
    first_paragraph, _, _ = (inspect.getdoc(function) or "").partition("\n\n")
    panel = next((panel for panel, names in NAMES.items() if name in names), INSTRUCTORS)
    alone = typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, context_settings=CONTEXT
    )
    add = alone.command(name, cls=Command, help=first_paragraph, rich_help_panel=panel)
    add(report_errors(function))
    click_command = typer.main.get_command(alone)
    assert isinstance(click_command, TyperCommand)
    return click_command


def _function(name: str) -> Callable[..., int]:
    for panel, names in NAMES.items():
        if name in names:
            function: Callable[..., int] = getattr(
                import_module(f"autograder.cli.{panel.lower()}"), name
            )
            return function
    try:
        extension: Callable[..., int] = load_extension(EXTENSIONS, name)
    except InfrastructureError as error:  # told when it is called; the others work
        return _cannot_be_loaded(error)
    return extension


def _cannot_be_loaded(error: InfrastructureError) -> Callable[[], int]:
    def tell() -> int:
        raise error

    tell.__doc__ = str(error)
    return tell


CONTEXT = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    name="autograder",
    cls=Commands,
    help="Grade programming assignments fairly, kindly, safely and fast.\n\n"
    "Students need the first group of commands only.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=CONTEXT,
)


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
