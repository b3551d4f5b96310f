"""The errors of the student's side, distinguished for the feedback."""

import builtins
import re
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from autograder.bridge.shared import claims
from autograder.source import text as source

MAX_FRAMES = 6
MAX_ERROR_TEXT = 2000
MAX_FRAME_TEXT = 300
LOADING_STOPPED = "LoadingTimeoutError"
TAKES_TOO_LONG = "was stopped when the file was loaded: it takes too long. What stands below it had a short time."
READ_ON = "everything below was read all the same."
BELOW_MAIN = 'Put what takes long, such as training, below `if __name__ == "__main__":`.'
ENDING = (SystemExit, KeyboardInterrupt)  # end a text; all others stop one statement
EXCEPTIONS = {
    name
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, BaseException)
}  # built-in exceptions by name


class StudentError(Exception):
    """Base class of errors in the student's code; `str(error)` is a sentence."""


class MissingNameError(StudentError, AttributeError):
    """The submission does not define a `name` that the suite asks for; `stopped` is what went wrong before it."""

    def __init__(
        self, sentence: str, stopped: "RemoteException | None" = None, *, name: str = ""
    ) -> None:
        super().__init__(sentence)
        self.stopped = stopped
        self.name = name


class StudentTimeoutError(StudentError):
    """No answer within the time limit; `starved` if the machine was too busy to run the student's code."""

    def __init__(self, sentence: str, starved: bool = False) -> None:
        super().__init__(sentence)
        self.starved = starved


class StudentCrashedError(StudentError):
    """The worker's process ended, or sent an invalid answer."""


@dataclass(frozen=True)
class Frame:
    """One traceback frame in the student's own text: its line of code, and the line of code or comment `before` it.

    `shapes` describes the tensors that the line names; `below` is the next statement of its block.
    `column` is where Python could not read the code, counted from 1.
    """

    file: str
    line: int
    function: str
    code: str
    before: str = ""
    shapes: str = ""
    below: str = ""
    column: int = field(default=0, kw_only=True)

    @property
    def pointed(self) -> str:
        """The line of code, with a caret below its column if that is known."""
        line = self.code.partition("\n")[0].replace("\t", " ")
        is_known = 0 < self.column <= len(line) + 1
        return f"{line}\n{'^':>{self.column}}" if is_known else line

    @property
    def place(self) -> str:
        """`line 3`, or `line 3 of cell 5` in a notebook."""
        within = self.file.partition(" ")[2] if " cell " in self.file else ""
        return f"line {self.line} of {within}" if within else f"line {self.line}"


@dataclass(frozen=True)
class RemoteException:
    """An exception as reported by the worker: untrusted, and bounded in size."""

    type: str
    bases: tuple[str, ...] = ()
    text: str = ""
    frames: tuple[Frame, ...] = ()

    @property
    def stops_the_rest(self) -> bool:
        """Whether a script, or a notebook's cell, was not read on: it is no Python, or ended itself."""
        is_no_python = "SyntaxError" in self.bases and not any(
            frame.function for frame in self.frames
        )
        return is_no_python or any(kind.__name__ in self.bases for kind in ENDING)

    @property
    def says_unwritten(self) -> bool:
        """Whether the student's own line says that something is not written yet.

        PyTorch raises NotImplementedError as well, for numbers of a type that an operator does not take.
        """
        is_own = not self.frames or "NotImplementedError" in self.frames[-1].code
        return self.type == "NotImplementedError" and is_own

    @property
    def took_too_long(self) -> bool:
        """Whether a statement at the top of the file was stopped by the limit of loading."""
        return self.type == LOADING_STOPPED

    @property
    def statement(self) -> Frame | None:
        """The frame at the top of the file: which of its statements failed."""
        return next((frame for frame in self.frames if frame.function == "<module>"), None)


class StudentRaisedError(StudentError):
    """The student's code raised.

    Also an instance of the built-in type raised, so `raises(ValueError)` works.
    """

    def __init__(self, remote: RemoteException) -> None:
        super().__init__(remote.text)
        self.remote = remote

    def __str__(self) -> str:
        return self.remote.text


def describe_error(error: BaseException, is_own: Callable[[FrameType], bool]) -> RemoteException:
    """Describe an error on the side where it was raised; `is_own` decides which frames are the student's."""
    frames = []
    for step, line in traceback.walk_tb(kept_by(error, BaseException, "__traceback__")):
        texts = source.frame_texts(step, line, error) if is_own(step) else None
        if texts:
            short = [text[:MAX_FRAME_TEXT] for text in texts]
            frames.append(Frame(Path(step.f_code.co_filename).name, line, *short))
    if not frames and issubclass(type(error), SyntaxError):
        file, line, text, column = (
            kept_by(error, SyntaxError, name) for name in ("filename", "lineno", "text", "offset")
        )
        if type(file) is str and type(line) is int:
            text = text if type(text) is str else ""
            column = column if type(column) is int else 0
            column -= len(text) - len(text.lstrip())
            code = text.strip()[:MAX_FRAME_TEXT]
            frames.append(Frame(Path(file).name, line, "", code, column=max(column, 0)))
    bases = tuple(base.__name__ for base in type(error).__mro__ if base is not object)
    return RemoteException(type(error).__name__, bases, _text(error), tuple(frames[-MAX_FRAMES:]))


def kept_by(error: BaseException, kind: type[BaseException], name: str) -> Any:
    """Return what a built-in kind of error keeps under a name, without running code of the error's own class."""
    return vars(kind)[name].__get__(error)


def told_exception(claim: dict[str, Any]) -> RemoteException:
    """Parse an exception from the other side, bounded in size; an invalid one raises any exception."""
    claims.table(claim)
    return RemoteException(
        type=claims.text(claim["type"])[:80],
        bases=tuple(claims.text(base)[:80] for base in claims.items(claim["bases"])[:20]),
        text=claims.text(claim["text"])[:MAX_ERROR_TEXT],
        frames=tuple(
            _told_frame(*claims.items(frame)) for frame in claims.items(claim["frames"])[:8]
        ),
    )


def _told_frame(file: Any, line: Any, function: Any, *others: Any) -> Frame:
    texts = (claims.text(text)[:MAX_FRAME_TEXT] for text in others[:4])
    column = claims.integer(others[4]) if others[4:] else 0
    place = (claims.text(file)[:200], claims.integer(line), claims.text(function)[:100])
    return Frame(*place, *texts, column=column)


def _text(error: BaseException) -> str:
    try:
        return str(str(error)[:MAX_ERROR_TEXT])
    except BaseException:  # the student's own __str__ may fail, or leave, too
        return ""


def missing_name(name: str, failures: Sequence[RemoteException] = ()) -> MissingNameError:
    """Return the error for a name that is not defined; `failures` occurred while the file was loaded."""
    cause = cause_of_missing(name, failures)
    return MissingNameError(_why_missing(name, cause), cause, name=name)


def _why_missing(name: str, cause: RemoteException | None) -> str:
    if cause is None:
        return f"There is no `{name}` in the submission."
    where = f" in {cause.frames[-1].place}" if cause.frames else ""
    if cause.took_too_long:
        therefore = ":" if _names(cause, name) else ", and"
        return (
            f"There is no `{name}`{therefore} loading the file took too long{where}. {BELOW_MAIN}"
        )
    if cause.stops_the_rest:
        return f"There is no `{name}`: the file stopped{where} with {cause.type}."
    if _names(cause, name):
        return f"There is no `{name}`: {_failed(cause)}."
    return f"There is no `{name}` in the submission. {failed_statement(replace(cause, text=''))}"


def cause_of_missing(name: str, failures: Sequence[RemoteException]) -> RemoteException | None:
    """Return the failure that explains why a name is not defined: what stopped the file, or the failed statement
    that names it; another failed statement if there is nothing better.
    """
    return min(
        failures,
        key=lambda failure: (
            not _names(failure, name),
            not failure.stops_the_rest,
            not failure.took_too_long,
        ),
        default=None,
    )


def _names(failure: RemoteException, name: str) -> bool:
    code = " ".join(f"{frame.function} {frame.code}" for frame in failure.frames)
    return re.search(rf"\b{re.escape(name)}\b", code) is not None


def failed_statement(failure: RemoteException) -> str:
    """Return the sentence about a statement that failed while the file was loaded, which stopped only itself."""
    sentence = _failed(failure)
    why = f": {failure.text}" if failure.text else ""
    return f"{sentence[:1].upper()}{sentence[1:]}{why.rstrip('.')}; {READ_ON}"


def flags_for_student(flags: Iterable[str]) -> list[str]:
    """Return those flags of a grade that a student sees, too: what happened when the file was loaded."""
    return [flag for flag in flags if flag.endswith((TAKES_TOO_LONG, READ_ON))]


def _failed(failure: RemoteException) -> str:
    statement = failure.statement
    if statement is None:
        return f"a line failed with {failure.type}"
    if failure.type == "AssertionError":
        return f"the check in {statement.place} failed"
    return f"{statement.place} failed with {failure.type}"


# errors that take a single message, by name; no outcomes of pytest, no SystemExit
_OTHERS = (
    ImportError,
    OSError,
    StopAsyncIteration,
    StopIteration,
    SyntaxError,
    UnicodeError,
    Warning,
)
MIRRORED = frozenset(
    name
    for name in EXCEPTIONS - {"Exception", "ExceptionGroup"}
    if issubclass(getattr(builtins, name), Exception)
    and not issubclass(getattr(builtins, name), _OTHERS)
)


def student_raised(remote: RemoteException) -> StudentRaisedError:
    """Return the exception to raise in the grader for an exception in the worker."""
    base = next((name for name in remote.bases if name in MIRRORED), "Exception")
    return _mirror(base)(remote)


def mirrored_name(error: BaseException) -> str:
    """Return the built-in type that represents one of the test's errors in the worker."""
    names = [base.__name__ for base in type(error).__mro__]
    return next((name for name in names if name in MIRRORED), "RuntimeError")


@cache
def _mirror(base: str) -> type[StudentRaisedError]:
    if base == "Exception":
        return StudentRaisedError
    return type(f"StudentRaised{base}", (StudentRaisedError, getattr(builtins, base)), {})
