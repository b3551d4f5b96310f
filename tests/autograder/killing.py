"""Work that is killed at a point that a test chooses."""

from __future__ import annotations

import itertools
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable

CHANGES = frozenset(
    {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.utime"}
    | {"os.truncate", "os.fork", "os.posix_spawn", "subprocess.Popen", "fcntl.flock"}
)
_WRITES = os.O_WRONLY | os.O_RDWR


def killed_at(point: int, work: Callable[[], object]) -> tuple[bool, int]:
    """Do the work in a fork that is killed before its change with this number; 0 kills it never.

    Changes are files that are opened to be written, renamed or removed, and processes that are
    started. Return whether it was killed, and else how many changes there were.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        with open(reading, "rb") as told:
            count = told.read()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, -signal.SIGKILL)
        return code != 0, int(count or 0)
    code = 1
    try:
        numbers = itertools.count(1)
        own = os.getpid()

        def see(event: str, arguments: tuple[object, ...]) -> None:
            if os.getpid() == own and _is_change(event, arguments) and next(numbers) == point:
                os.kill(own, signal.SIGKILL)

        sys.addaudithook(see)
        work()
        os.write(writing, str(next(numbers) - 1).encode())
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)  # never back into the tests


def random_points(count: int, most: int, seed: str) -> list[int]:
    """Return so many different points of work with at most `most` changes."""
    return sorted(random.Random(seed).sample(range(1, most + 1), count))


def _is_change(event: str, arguments: tuple[object, ...]) -> bool:
    if event == "open":
        flags = arguments[2]
        return isinstance(flags, int) and bool(flags & _WRITES)
    return event in CHANGES
