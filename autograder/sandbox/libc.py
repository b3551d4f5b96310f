"""The C library, for the Linux calls that Python does not offer."""

from __future__ import annotations

import ctypes
import functools
import os


@functools.cache
def libc() -> ctypes.CDLL:
    """The C library of this process, keeping `errno` for `check`."""
    return ctypes.CDLL(None, use_errno=True)


def check(result: int, doing: str) -> int:
    """`result` when it says success; raises OSError with what was being done otherwise."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{doing}: {os.strerror(number)}")
    return result
