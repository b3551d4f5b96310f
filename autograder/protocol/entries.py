"""Which forbidden functions and classes a submission's code enters, whatever road led it there.

They are replaced before the code is loaded, in its worker only, where it can undo that: a record is a hint for a
person and no evidence. Calls below Python, such as those of `torch.ops`, are not recorded.
"""

import sys
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from autograder.source import text as source

Entries = dict[str, tuple[int, int]]  # by name: the line and the cell that entered it first; zeros if unknown


def record_entries(names: Iterable[str]) -> Entries:
    """Return a record that grows while these dotted names are entered; names of what is not imported have none."""
    found: Entries = {}
    for name in names:
        module, _, last = name.rpartition(".")
        owner: Any = sys.modules.get(module)
        thing = getattr(owner, last, None)
        if isinstance(thing, type):
            owner, last = thing, "__init__"
            thing = getattr(owner, last)
        if callable(thing):
            setattr(owner, last, _recorded(thing, name, found))
    return found


def _recorded(function: Callable[..., Any], name: str, found: Entries) -> Callable[..., Any]:
    @wraps(function)
    def entered(*args: Any, **kwargs: Any) -> Any:
        if name not in found:
            found[name] = _place_of_student()
        return function(*args, **kwargs)

    del entered.__wrapped__
    return entered


def _place_of_student() -> tuple[int, int]:
    frame = sys._getframe(2)
    while frame is not None and not source.is_students(frame.f_code.co_filename):
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None:
        return 0, 0
    cell = frame.f_code.co_filename.rpartition(" cell ")[2]
    return frame.f_lineno, int(cell) if cell.isdecimal() else 0
