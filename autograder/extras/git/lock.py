"""One command at a time works with a folder of stores, and what a killed one left running counts as
well.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from autograder.records import RefusedError
from autograder.text.files import check_folder

NAME = ".lock"
SECONDS = 20.0  # in which the processes of a killed command end
_LOOK_EVERY = 0.05


@contextmanager
def held(folder: Path, what: str) -> Iterator[int]:
    """Hold the lock of a folder, which is created; yield its file, through which other processes
    hold it as well.

    Raises RefusedError if another command holds it for long; `what` says what that does.
    """
    import fcntl  # not on Windows, where nothing is graded

    check_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(
        folder / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
    )
    until = time.monotonic() + SECONDS
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise RefusedError(
                        f"{folder} is in use: another command {what}. Wait until it ends."
                    ) from None
                time.sleep(_LOOK_EVERY)
        yield descriptor
    finally:
        os.close(descriptor)
