"""Waiting in tests until a condition holds. A hang ends after ten minutes; nothing else depends on a clock."""

from __future__ import annotations

import time
from collections.abc import Callable

HANGS = 600.0  # seconds after which a test gives up; no machine is so slow


def hang_guard() -> float:
    """Return the time (time.monotonic) after which a test counts as hung."""
    return time.monotonic() + HANGS


def wait_until(condition: Callable[[], object]) -> bool:
    """Poll until the condition is true; return whether it became true before the hang guard."""
    until = hang_guard()
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())
