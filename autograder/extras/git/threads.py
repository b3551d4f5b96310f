"""Several repositories at once: most of the time, each waits for its forge."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

from autograder.extras.git.limits import Limits

OnProgress = Callable[[int, int], None]  # called with the number of repositories done and of all


@contextmanager
def repository_threads(limits: Limits) -> Iterator[tuple[ThreadPoolExecutor, Event]]:
    """Yield threads for repositories, and an event that ends their processes if the command ends
    early.
    """
    stopped = Event()
    pool = ThreadPoolExecutor(limits.at_once, thread_name_prefix="repository")
    try:
        yield pool, stopped
    finally:
        stopped.set()
        pool.shutdown(cancel_futures=True)
