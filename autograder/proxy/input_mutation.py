"""Whether what a student's code does to its inputs is done to the test's own tensors, too.

Usually not: a test that asks the student first and the reference afterwards must ask both the same. Only a check
that inputs keep their values wants to see a change.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_brought_home: ContextVar[bool] = ContextVar("changed inputs are brought home", default=False)


def inputs_are_mirrored() -> bool:
    """Whether a call's changes of its inputs are to be repeated on this side."""
    return _brought_home.get()


@contextmanager
def mirror_input_mutation() -> Iterator[None]:
    """Inside, an input that a student's code changes is changed here, as it would be without a wall."""
    token = _brought_home.set(True)
    try:
        yield
    finally:
        _brought_home.reset(token)
