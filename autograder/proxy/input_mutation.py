"""Controls whether changes of inputs by a student's code are applied to the test's own tensors.

By default they are not: a test that calls the student and then the reference must pass equal inputs to both. Only a
check that inputs are unchanged needs to see the changes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_brought_home: ContextVar[bool] = ContextVar("changed inputs are brought home", default=False)


def inputs_are_mirrored() -> bool:
    """Whether changes of a call's inputs are applied on this side."""
    return _brought_home.get()


@contextmanager
def mirror_input_mutation() -> Iterator[None]:
    """Within this context, inputs changed by a student's code are also changed on this side."""
    token = _brought_home.set(True)
    try:
        yield
    finally:
        _brought_home.reset(token)
