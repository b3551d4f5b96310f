"""Code that all commands share: exit codes, common options and error handling."""

import inspect
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import nullcontext, redirect_stdout
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from autograder.cli.interrupts import STOPPED, exit_code, raised_as_exceptions
from autograder.installation.distribution import warning_about_namesake
from autograder.records import MACHINE, CourseError, InfrastructureError, RefusedError
from autograder.text.consoles import encoding_of
from autograder.text.tables import read_table
from autograder.version import __version__

DONE = 0
FOUND = 1
USAGE = 2
INFRASTRUCTURE = 3

_OPTIONS: dict[str, dict[str, Any]] = read_table(__file__, "options.yml")
QUIET: ContextVar[bool] = ContextVar("quiet", default=False)
VERBOSE: ContextVar[bool] = ContextVar("verbose", default=False)


def say(*sentences: str) -> None:
    """Print messages to stderr, each in a line of its own."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for sentence in sentences:
        console.print(sentence, markup=False)


def show(as_json: bool, record: Callable[[], Any], screen: Callable[[], object]) -> None:
    """Print a record as JSON for machines, or show a screen to people; only what is needed is
    called.
    """
    if as_json:
        print(json.dumps(record(), ensure_ascii=encoding_of(sys.stdout).lower() != "utf-8"))
    else:
        screen()


def report_errors(command: Callable[..., int | None]) -> Callable[..., None]:
    """Decorate a command so that errors a user can fix print a message and set an exit code.

    CourseError and RefusedError exit with 2; InfrastructureError, MemoryError and an OSError of the
    machine with 3; an interruption with 130 or 143. All others are defects with a traceback. The
    options --quiet and --verbose are added.
    """

    @wraps(command)
    def wrapped(*args: Any, quiet: bool = False, verbose: bool = False, **kwargs: Any) -> None:
        QUIET.set(quiet)
        VERBOSE.set(verbose)
        begun = time.monotonic()
        if warning := warning_about_namesake():
            say(warning)
        try:
            silent = quiet and not kwargs.get("as_json")
            with (
                raised_as_exceptions(),
                open(os.devnull, "w") as nowhere,
                redirect_stdout(nowhere) if silent else nullcontext(),
            ):
                code = command(*args, **kwargs)
        except (CourseError, RefusedError, InfrastructureError) as error:
            say(str(error))
            code = INFRASTRUCTURE if isinstance(error, InfrastructureError) else USAGE
            if verbose:
                traceback.print_exc()
        except OSError as error:
            if error.filename is None and error.errno not in MACHINE:
                raise  # a defect of the program
            say(f"{error.filename or 'Writing failed'}: {error.strerror}.")
            code = INFRASTRUCTURE
        except MemoryError:
            say(
                "There is not enough memory on this machine. Free some, or use fewer graders with --jobs 1."
            )
            code = INFRASTRUCTURE
        except KeyboardInterrupt as stopped:
            say(" ".join((STOPPED, *map(str, stopped.args))))
            code = exit_code()
        if verbose:
            say(
                f"autograder {__version__}, Python {platform.python_version()}: {time.monotonic() - begun:.1f} s"
            )
        raise typer.Exit(code or DONE)

    signature = inspect.signature(command, eval_str=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    further = [
        inspect.Parameter(name, kind, default=False, annotation=bool)
        for name in ("quiet", "verbose")
    ]
    table = {**_OPTIONS["shared"], **_OPTIONS.get(command.__name__, {})}
    parameters = [
        _described(each, table[each.name]) for each in (*signature.parameters.values(), *further)
    ]
    wrapped.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return wrapped


def _place(text: str | Path) -> Path:
    """Convert a path of the command line; an empty one is often a variable of a script that is not
    set.
    """
    if text == "":
        raise typer.BadParameter("The path is empty.")
    return Path(text)


def _described(parameter: inspect.Parameter, facts: Mapping[str, Any]) -> inspect.Parameter:
    """Give typer the help and the flags of a parameter, as `options.yml` has them."""
    words = {name: value for name, value in facts.items() if name not in ("argument", "flags")}
    if parameter.annotation in (Path, Path | None, list[Path]):
        words = {"metavar": "PATH", **words, "parser": _place}
    info = (
        typer.Argument(**words)
        if "argument" in facts
        else typer.Option(*facts.get("flags", ()), **words)
    )
    return parameter.replace(annotation=Annotated[parameter.annotation, info])
