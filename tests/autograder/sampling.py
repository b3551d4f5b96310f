"""Select the parameters of a test that `make test` runs, the others are marked slow; and mistakes not to compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

# Keys and values of these mistakes of 08 differ in length. PyTorch's attention for processors does not check that, and
# reads beyond the end of one of them: the answers differ each time.
UNSTEADY = {"keys_from_the_writer", "values_from_the_writer"}


def sampled(
    cases: Iterable[Any], chosen: Callable[[Any], bool], ids: Callable[[Any], str] | None = None
) -> list:
    """Parameters for `parametrize`, in which every case that is not `chosen` is marked slow."""
    marked = []
    for case in cases:
        values = case if isinstance(case, tuple) else (case,)
        marks = () if chosen(case) else (pytest.mark.slow,)
        marked.append(pytest.param(*values, marks=marks, id=ids(case) if ids else None))
    return marked


def thinned(cases: Iterable[Any], step: int) -> list:
    """Parameters for `parametrize`, of which every `step`-th stays; the others are marked slow.

    For cases of one kind, such as lies of a worker: the code that meets them is the same.
    """
    marked = []
    for number, case in enumerate(cases):
        values = case if isinstance(case, tuple) else (case,)
        marked.append(
            pytest.param(*values, marks=() if number % step == 0 else (pytest.mark.slow,))
        )
    return marked
