"""Waiting in tests: for as long as it takes. What hangs ends after ten minutes; nothing else depends on a clock."""

from __future__ import annotations

import time
from collections.abc import Callable

HANGS = 600.0  # seconds after which a test gives up; no machine is so slow


def hang_guard() -> float:
    """The time (time.monotonic) at which whatever has not happened yet will never happen."""
    return time.monotonic() + HANGS


def wait_until(condition: Callable[[], object]) -> bool:
    """Whether `condition` became true; asked again and again."""
    until = hang_guard()
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())
