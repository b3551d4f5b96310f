"""Processes that write the pages of a large class."""

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import Any

from autograder.grading.pool import end_with_parent
from autograder.records import InfrastructureError

CHUNK = 30  # students
AHEAD = 2  # chunks for each process

Writer = Callable[[Any], object]  # called with a student
_write: Writer


def write_in_processes(begin: Callable[[], Writer], students: Iterable[Any], jobs: int) -> None:
    """Call the function that `begin` returns in each process for all students, of whom few are sent at a time.

    Raises what a call raises, and InfrastructureError if a process was ended.
    """
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=_prepare, initargs=(begin,))
    rest, running = iter(students), deque[Future[None]]()
    try:
        while chunk := list(islice(rest, CHUNK)):
            running.append(pool.submit(_write_each, chunk))
            if len(running) > AHEAD * jobs:
                running.popleft().result()
        for future in running:
            future.result()
    except BrokenProcessPool:
        raise InfrastructureError(
            "A process that wrote pages was ended from outside, perhaps because memory was short. "
            "`autograder report --jobs 1` writes them without further processes."
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare(begin: Callable[[], Writer]) -> None:
    global _write
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process decides
    end_with_parent()
    _write = begin()


def _write_each(students: Sequence[Any]) -> None:
    for student in students:
        _write(student)
