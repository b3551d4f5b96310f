"""Failures turned into sentences for students: what happened, where in their own text, and nothing hidden.

For a hidden test under `feedback: hints` a sentence holds no inputs, no expected values and no text that the
student's code chose (an exception's message could carry the inputs out); it names the exception and their own line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType

from autograder.checks import CheckFailed
from autograder.records import Outcome
from autograder.session import TestAlarm
from autograder.student.errors import (
    MissingName,
    RemoteException,
    StudentCrashed,
    StudentRaised,
    StudentTimeout,
)
from autograder.student.local import describe_error

MAX_MESSAGE = 2000


@dataclass(frozen=True)
class Failure:
    """What a test's end means: its outcome and the student's sentence."""

    outcome: Outcome
    message: str


def explain(error: BaseException, *, full: bool, own: Callable[[FrameType], bool] | None = None) -> Failure:
    """The outcome and sentence for the exception that ended a test.

    `full` shows everything, as visible tests do; `own` tells the student's steps of a traceback when their code
    ran in this process.
    """
    if isinstance(error, (StudentTimeout, TestAlarm)):
        return Failure("timeout", str(error) or "This test took too long.")
    if isinstance(error, StudentCrashed):
        return Failure("crashed", clean(str(error)))
    if isinstance(error, CheckFailed):
        return Failure("failed", clean(str(error) if full else error.public))
    if isinstance(error, MissingName):
        return Failure("failed", clean(str(error)))
    if isinstance(error, StudentRaised):
        return Failure("failed", clean(_raised(error.remote, full)))
    told = describe_error(error, own) if own else RemoteException(type(error).__name__)
    if told.frames:
        return Failure("failed", clean(_raised(told, full)))
    return Failure(
        "failed", f"This test could not work with what your code gave back ({type(error).__name__})."
    )


def clean(text: str, limit: int = MAX_MESSAGE) -> str:
    """The text without control characters, and such that no line can command a terminal or a workflow."""
    text = text if len(text) <= limit else text[:limit] + " …"
    text = "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
    return "\n".join(_harmless(line) for line in text.split("\n"))


def _harmless(line: str) -> str:
    return line.replace("::", ":\N{ZERO WIDTH SPACE}:") if line.lstrip().startswith("::") else line


def _raised(error: RemoteException, full: bool) -> str:
    where = error.frames[-1] if error.frames else None
    if error.type == "NotImplementedError":
        name = f"`{where.function}`" if where else "This part"
        return f"{name} is not written yet{_at(error)}."
    said = f": {error.text}" if full and error.text else ""
    what = f"Your code raised {_article(error.type)}{said}"
    line = f"\n    {where.code}" if where and where.code else ""
    return f"{what.rstrip('.')}{_at(error)}.{line}"


def _at(error: RemoteException) -> str:
    if not error.frames:
        return ""
    frame = error.frames[-1]
    cell = f" of {frame.file.partition(' ')[2]}" if " cell " in frame.file else ""
    return f" (line {frame.line}{cell})"


def _article(type_name: str) -> str:
    return f"an {type_name}" if type_name[:1] in "AEIOU" else f"a {type_name}"
