"""The C library, for Linux system calls without a function in Python."""

import ctypes
import functools
import os


@functools.cache
def libc() -> ctypes.CDLL:
    """Return the C library of this process, which preserves `errno` for `check`."""
    return ctypes.CDLL(None, use_errno=True)


def check(result: int, doing: str) -> int:
    """Return `result` if it reports success; otherwise raise OSError, with `doing` in its message."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{doing}: {os.strerror(number)}")
    return result
