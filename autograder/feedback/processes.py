"""Processes that write the pages of a large class."""

from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import Any

from autograder.grading.pool import end_with_parent
from autograder.records import InfrastructureError
from autograder.sandbox.trusted_process import spawning

AHEAD, CHUNK = 1_000, 10  # students whose grades wait in memory, and that are sent together

_write: Callable[[Any], object]


def write_in_processes(begin: Callable[[], Callable[[Any], object]], students: Iterable[Any], jobs: int) -> None:
    """Call the function that `begin` returns in each process for all students; raises what a call raises."""
    pool = ProcessPoolExecutor(jobs, spawning(), initializer=_prepare, initargs=(begin,))
    rest = iter(students)
    try:
        while some := list(islice(rest, AHEAD)):
            list(pool.map(_write_one, some, chunksize=CHUNK))
    except BrokenProcessPool:
        raise InfrastructureError(
            "A process that wrote pages was ended from outside, perhaps because memory was short. "
            "`autograder report --jobs 1` writes them without further processes."
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare(begin: Callable[[], Callable[[Any], object]]) -> None:
    global _write
    end_with_parent()
    _write = begin()


def _write_one(student: Any) -> None:
    _write(student)
