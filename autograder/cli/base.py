"""Code that all commands share: exit codes, common options and error handling."""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from autograder.records import CourseError, InfrastructureError, RefusedError

# errors of the machine, which carry no path
MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE)
DONE, FOUND, USAGE, INFRASTRUCTURE, STOPPED = 0, 1, 2, 3, 130

CourseOption = Annotated[Path, typer.Option("--course", help="The course's folder or course.yml.", metavar="PATH")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def say(*sentences: str) -> None:
    """Print messages to stderr, each in a line of its own."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for sentence in sentences:
        console.print(sentence, markup=False)


def report_errors(command: Callable[..., int | None]) -> Callable[..., None]:
    """Decorate a command so that errors a user can fix print a message and set an exit code.

    CourseError, RefusedError and CommandUsageError exit with 2; InfrastructureError, MemoryError and an OSError of the
    machine with 3; an interruption with 130. Any other exception is a defect and keeps its traceback.
    """

    @wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            code = command(*args, **kwargs)
        except (CourseError, RefusedError, CommandUsageError, InfrastructureError) as error:
            say(str(error))
            code = INFRASTRUCTURE if isinstance(error, InfrastructureError) else USAGE
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
            code = STOPPED
        raise typer.Exit(code or DONE)

    return wrapped


class CommandUsageError(Exception):
    """The arguments of a command contradict each other; `str(error)` is the message."""


def tier_of(unsafe: bool) -> str:
    """Return the sandbox tier to request."""
    return "unsafe" if unsafe else "best"
