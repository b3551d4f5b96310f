"""What can go wrong on the student's side, told apart so that feedback can say what happened."""

from __future__ import annotations

import builtins
from dataclasses import dataclass, field
from functools import cache

EXCEPTIONS = {
    name
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, BaseException)
}  # Python's own, by name


class StudentError(Exception):
    """Something about the student's code; `str` is a sentence."""


class MissingNameError(StudentError, AttributeError):
    """The submission does not define a name that the suite asks for."""


class StudentTimeoutError(StudentError):
    """No answer within the time limit. `starved`: the machine was too busy to let the student's code run."""

    def __init__(self, sentence: str, starved: bool = False) -> None:
        super().__init__(sentence)
        self.starved = starved


class StudentCrashedError(StudentError):
    """The worker's process ended, or answered in a way that cannot be read."""


@dataclass(frozen=True)
class Frame:
    """One step of a traceback inside the student's own text."""

    file: str
    line: int
    function: str
    code: str


@dataclass(frozen=True)
class RemoteException:
    """An exception as the worker described it: claims of the student's side, bounded in size."""

    type: str
    bases: tuple[str, ...] = ()
    text: str = ""
    frames: tuple[Frame, ...] = field(default=())


class StudentRaisedError(StudentError):
    """The student's code raised. Also an instance of the built-in type it raised, so `raises(ValueError)` works."""

    def __init__(self, remote: RemoteException) -> None:
        super().__init__(remote.text)
        self.remote = remote

    def __str__(self) -> str:
        return self.remote.text


# Those that a plain message builds; no outcome of pytest, no exit.
MIRRORED = frozenset(
    [
        "ArithmeticError",
        "AssertionError",
        "AttributeError",
        "BufferError",
        "EOFError",
        "FloatingPointError",
        "IndexError",
        "KeyError",
        "LookupError",
        "MemoryError",
        "NameError",
        "NotImplementedError",
        "OverflowError",
        "RecursionError",
        "ReferenceError",
        "RuntimeError",
        "SystemError",
        "TypeError",
        "UnboundLocalError",
        "ValueError",
        "ZeroDivisionError",
    ]
)


def student_raised(remote: RemoteException) -> StudentRaisedError:
    """The exception to raise here for one that was raised there."""
    base = next((name for name in remote.bases if name in MIRRORED), "Exception")
    return _mirror(base)(remote)


def mirrored_name(error: BaseException) -> str:
    """The built-in type by which the other side shall know an error of ours."""
    names = [base.__name__ for base in type(error).__mro__]
    return next((name for name in names if name in MIRRORED), "RuntimeError")


@cache
def _mirror(base: str) -> type[StudentRaisedError]:
    if base == "Exception":
        return StudentRaisedError
    return type(f"StudentRaised{base}", (StudentRaisedError, getattr(builtins, base)), {})
