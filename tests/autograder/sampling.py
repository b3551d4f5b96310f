"""Select the parameters of a test that `make test` runs; the others are marked slow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def sampled(cases: Iterable[Any], chosen: Callable[[Any], bool], ids: Callable[[Any], str] | None = None) -> list:
    """Parameters for `parametrize`, in which every case that is not `chosen` is marked slow."""
    marked = []
    for case in cases:
        values = case if isinstance(case, tuple) else (case,)
        marks = () if chosen(case) else (pytest.mark.slow,)
        marked.append(pytest.param(*values, marks=marks, id=ids(case) if ids else None))
    return marked
