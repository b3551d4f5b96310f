"""One command at a time works with a folder of stores, on several repositories at once: most of the
time, each waits for its forge.
"""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from autograder.extras.git.command import Limits
from autograder.records import RefusedError
from autograder.text.files import check_folder, make_folder

LOCK = ".lock"
SECONDS = 20.0  # in which the processes of a killed command end
_LOOK_EVERY = 0.05

OnProgress = Callable[[int, int], None]  # called with the number of repositories done and of all


@contextmanager
def held(folder: Path, what: str) -> Iterator[int]:
    """Hold the lock of a folder, which is created; yield its file, through which other processes
    hold it as well: what a killed command left running counts, too.

    Raises RefusedError if another command holds it for long; `what` says what that does.
    """
    import fcntl  # not on Windows, where nothing is graded

    check_folder(folder)
    make_folder(folder)
    descriptor = os.open(
        folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
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


@contextmanager
def repository_threads(limits: Limits) -> Iterator[tuple[ThreadPoolExecutor, Event]]:
    """Yield threads for repositories, and an event that ends their processes if the command ends early."""
    stopped = Event()
    pool = ThreadPoolExecutor(limits.at_once, thread_name_prefix="repository")
    try:
        yield pool, stopped
    finally:
        stopped.set()
        pool.shutdown(cancel_futures=True)
