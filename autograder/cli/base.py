"""Code that all commands share: exit codes, common options and error handling."""

from __future__ import annotations

import errno
import inspect
import os
import platform
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from autograder import __version__
from autograder.records import CourseError, InfrastructureError, RefusedError

# errors of the machine, which carry no path
MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE)
DONE, FOUND, USAGE, INFRASTRUCTURE, STOPPED, TERMINATED = 0, 1, 2, 3, 130, 143

CourseOption = Annotated[Path, typer.Option("--course", help="The course's folder or course.yml.", metavar="PATH")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print only problems, and JSON if asked for.")]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="Also print details, such as tracebacks and times.")
]
QUIET: ContextVar[bool] = ContextVar("quiet", default=False)
VERBOSE: ContextVar[bool] = ContextVar("verbose", default=False)


def say(*sentences: str) -> None:
    """Print messages to stderr, each in a line of its own."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for sentence in sentences:
        console.print(sentence, markup=False)


def report_errors(command: Callable[..., int | None]) -> Callable[..., None]:
    """Decorate a command so that errors a user can fix print a message and set an exit code.

    CourseError, RefusedError and CommandUsageError exit with 2; InfrastructureError, MemoryError and an OSError of the
    machine with 3; an interruption with 130 or 143. Any other exception is a defect and keeps its traceback.
    The command also gets the options --quiet and --verbose.
    """

    @wraps(command)
    def wrapped(*args: Any, quiet: bool = False, verbose: bool = False, **kwargs: Any) -> None:
        QUIET.set(quiet)
        VERBOSE.set(verbose)
        begun = time.monotonic()
        try:
            with open(os.devnull, "w") as nowhere:
                silent = quiet and not kwargs.get("as_json")
                with redirect_stdout(nowhere) if silent else nullcontext():
                    code = command(*args, **kwargs)
        except (CourseError, RefusedError, CommandUsageError, InfrastructureError) as error:
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
            say("There is not enough memory on this machine. Free some, or use fewer graders with --jobs 1.")
            code = INFRASTRUCTURE
        except KeyboardInterrupt as stopped:
            sentence = "Stopped. Finished work is kept; run the same command again to continue."
            say(" ".join((sentence, *map(str, stopped.args))))
            code = TERMINATED if _terminated else STOPPED
        if verbose:
            say(f"autograder {__version__}, Python {platform.python_version()}: {time.monotonic() - begun:.1f} s")
        raise typer.Exit(code or DONE)

    signature = inspect.signature(command, eval_str=True)
    options = {"quiet": QuietOption, "verbose": VerboseOption}
    further = [
        inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=a) for n, a in options.items()
    ]
    wrapped.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *further])  # type: ignore[attr-defined]
    wrapped.__annotations__ = {**get_type_hints(command, include_extras=True), **options}
    return wrapped


_terminated = list[int]()


def end_on_sigterm() -> None:
    """End a command on SIGTERM as Ctrl-C does: with a sentence, and with its finished work."""
    process = os.getpid()

    def handle(number: int, frame: object) -> None:
        if os.getpid() != process:  # a fork of this one, which has nothing to finish
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
        _terminated.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, handle)


class CommandUsageError(Exception):
    """The arguments of a command contradict each other; `str(error)` is the message."""


def tier_of(unsafe: bool) -> str:
    """Return the sandbox tier to request."""
    return "unsafe" if unsafe else "best"
