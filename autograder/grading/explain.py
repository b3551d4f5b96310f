"""Failures turned into sentences for students: what happened, where in their own text, and nothing hidden.

For a hidden test under `feedback: hints` a sentence holds no inputs, no expected values and no text that the
student's code chose (an exception's message could carry the inputs out); it names the exception and their own line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import FrameType

from autograder.checks import CheckFailed
from autograder.protocol.errors import (
    EXCEPTIONS,
    Frame,
    MissingNameError,
    RemoteException,
    StudentCrashedError,
    StudentRaisedError,
    StudentTimeoutError,
)
from autograder.proxy.local import describe_error
from autograder.records import Outcome, SourceFile
from autograder.suite.alarm import TestAlarm

MAX_MESSAGE = 2000
_FILE = re.compile(r"[\w.-]{1,100}\.py")
_CELL = re.compile(r"[\w.-]{1,100}\.ipynb cell \d{1,4}")
_LINE_END = re.compile(r"\r\n|\r|\n")
_OTHER_COMMAND = re.compile(r"##(?=\w*\[)")  # ##[error], ##vso[…]: heard anywhere in a line


@dataclass(frozen=True)
class Failure:
    """What a test's end means: its outcome and the student's sentence."""

    outcome: Outcome
    message: str


def explain(
    error: BaseException,
    *,
    full: bool,
    own: Callable[[FrameType], bool] | None = None,
    file: SourceFile | None = None,
) -> Failure:
    """The outcome and sentence for the exception that ended a test.

    `full` shows everything, as visible tests do; without it, only what stands in the submitted `file` is quoted.
    `own` tells the student's steps of a traceback when their code ran in this process.
    """
    if isinstance(error, (StudentTimeoutError, TestAlarm)):
        return Failure("timeout", str(error) or "This test took too long.")
    if isinstance(error, StudentCrashedError):
        return Failure("crashed", clean(str(error) if full else _without_details(str(error))))
    if isinstance(error, CheckFailed):
        return Failure("failed", clean(str(error) if full else error.public))
    if isinstance(error, MissingNameError):
        return Failure("failed", clean(str(error)))
    if isinstance(error, StudentRaisedError):
        remote = error.remote if full else as_submitted(error.remote, file or SourceFile("", ""))
        return Failure("failed", clean(_raised(remote, full)))
    told = describe_error(error, own) if own else RemoteException(type(error).__name__)
    if told.frames:
        return Failure("failed", clean(_raised(told, full)))
    return Failure(
        "failed", f"This test could not work with what your code gave back ({type(error).__name__})."
    )


def as_submitted(error: RemoteException, file: SourceFile) -> RemoteException:
    """The exception without anything that code chose while it ran.

    A worker's claims could carry inputs out: in the name of an exception, of a function, in a line that never was.
    """
    names = (name for name in (error.type, *error.bases) if name in EXCEPTIONS or _defines(file, name))
    frames = [step for frame in error.frames[-1:] if (step := _step_of(file, frame)) is not None]
    return replace(error, type=next(names, "Exception"), text="", frames=tuple(frames))


def _step_of(file: SourceFile, frame: Frame) -> Frame | None:
    """The step if it could be one of this file; its line of code is taken from there."""
    if file.is_notebook:
        where, lines = _CELL.fullmatch(frame.file), file.text.count("\\n") + 1
        written = {json.dumps(frame.code, ensure_ascii=ascii)[1:-1] for ascii in (True, False)}
        code = frame.code if any(line in file.text for line in written) else ""
    else:
        where, numbered = _FILE.fullmatch(frame.file), _LINE_END.split(file.text)
        lines = len(numbered)
        code = numbered[frame.line - 1].strip() if 1 <= frame.line <= lines else ""
    if where is None or not 1 <= frame.line <= lines:
        return None
    known = all(_defines(file, name) for name in frame.function.split("."))
    return replace(frame, code=code, function=frame.function if known else "")


def _defines(file: SourceFile, name: str) -> bool:
    return name.isidentifier() and re.search(rf"(?:\b|\\n)(?:class|def)\s+{name}\b", file.text) is not None


def _without_details(sentence: str) -> str:
    """What follows a colon are details of an answer that could not be read, and the student's code chose them."""
    return sentence.partition(":")[0].rstrip(".") + "."


def clean(text: str, limit: int = MAX_MESSAGE) -> str:
    """The text without control characters, and such that no line can command a terminal or a workflow."""
    text = text if len(text) <= limit else text[:limit] + " …"
    text = "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
    return "\n".join(_harmless(line) for line in text.split("\n"))


def _harmless(line: str) -> str:
    line = _OTHER_COMMAND.sub("#\N{ZERO WIDTH SPACE}#", line)
    return line.replace("::", ":\N{ZERO WIDTH SPACE}:") if line.lstrip().startswith("::") else line


def _raised(error: RemoteException, full: bool) -> str:
    where = error.frames[-1] if error.frames else None
    if error.type == "NotImplementedError":
        name = f"`{where.function}`" if where and where.function else "This part"
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
