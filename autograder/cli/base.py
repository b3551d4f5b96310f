"""What all commands share: exit codes, options, and how an error becomes a sentence."""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autograder.records import CourseError, InfrastructureError, RefusedError

if TYPE_CHECKING:
    from autograder.course.config import Course

MACHINE = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
)  # told without a path
DONE, FOUND, USAGE, INFRASTRUCTURE, STOPPED = 0, 1, 2, 3, 130

CourseOption = Annotated[
    Path, typer.Option("--course", help="The course's folder or course.yml.", metavar="PATH")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def load_course(path: Path) -> Course:
    """As `autograder.course.config.load_course`, imported when a command needs it: help is there at once."""
    from autograder.course.config import load_course

    return load_course(path)


def say(sentence: str) -> None:
    """A sentence on stderr, where errors belong."""
    from rich.console import Console

    Console(stderr=True, highlight=False, soft_wrap=True).print(sentence, markup=False)


def report_errors(command: Callable[..., int | None]) -> Callable[..., None]:
    """Turns what people can mend into a sentence and an exit code instead of a traceback."""

    @wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            code = command(*args, **kwargs)
        except (CourseError, RefusedError, CommandUsageError) as error:
            say(str(error))
            code = USAGE
        except InfrastructureError as error:
            say(str(error))
            code = INFRASTRUCTURE
        except OSError as error:
            if error.filename is None and error.errno not in MACHINE:
                raise  # a defect of this program
            say(f"{error.filename or 'Writing failed'}: {error.strerror}.")
            code = INFRASTRUCTURE
        except MemoryError:
            say("There is not enough memory on this machine. Free some, or use fewer graders with --jobs 1.")
            code = INFRASTRUCTURE
        except KeyboardInterrupt as stopped:
            sentence = "Stopped. What was finished is kept; the same command goes on from there."
            say(" ".join((sentence, *map(str, stopped.args))))
            code = STOPPED
        raise typer.Exit(code or DONE)

    return wrapped


class CommandUsageError(Exception):
    """Arguments that make no sense together; its `str` is the sentence."""


def tier_of(unsafe: bool) -> str:
    """Which walls to ask for."""
    return "unsafe" if unsafe else "best"
