"""Whether changes of inputs by a student's code are applied to the test's own tensors, too; by default they are not."""

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
