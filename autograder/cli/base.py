"""Code that all commands share: exit codes, common options and error handling."""

import inspect
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from contextvars import ContextVar
from functools import wraps
from typing import Any

import typer

from autograder.cli.interrupts import STOPPED, exit_code, raised_as_exceptions
from autograder.cli.options import Quiet, Verbose
from autograder.installation.distribution import warning_about_namesake
from autograder.records import MACHINE, CourseError, InfrastructureError, RefusedError
from autograder.text.consoles import encoding_of
from autograder.version import __version__

DONE = 0
FOUND = 1
USAGE = 2
INFRASTRUCTURE = 3

QUIET: ContextVar[bool] = ContextVar("quiet", default=False)
VERBOSE: ContextVar[bool] = ContextVar("verbose", default=False)


class Interrupted(KeyboardInterrupt):
    """An interruption with a sentence of its own, in place of the one about finished work."""


def say(*sentences: str) -> None:
    """Print messages to stderr, each in a line of its own."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for sentence in sentences:
        console.print(sentence, markup=False)


def show(as_json: bool, record: Callable[[], Any], screen: Callable[[], object]) -> None:
    """Print a record as JSON for machines, or show a screen to people; only what is needed is called."""
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
            first = () if isinstance(stopped, Interrupted) else (STOPPED,)
            say(" ".join((*first, *map(str, stopped.args))))
            code = exit_code()
        if verbose:
            say(
                f"autograder {__version__}, Python {platform.python_version()}: {time.monotonic() - begun:.1f} s"
            )
        raise typer.Exit(code or DONE)

    signature = inspect.signature(command, eval_str=True)
    parameters = [
        *signature.parameters.values(),
        _parameter("quiet", Quiet),
        _parameter("verbose", Verbose),
    ]
    wrapped.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return wrapped


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=annotation
    )
