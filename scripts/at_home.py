"""What the scripts about a student's home share: all known mistakes, tried in several processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple, TypeVar

from autograder.course.mistakes_file import load_mistakes
from autograder.course.reading import load_course
from autograder.walls.outside.trusted_process import spawning

TOGETHER = 25  # mistakes that a process tries before it takes the next ones

Result = TypeVar("Result")


class Options(NamedTuple):
    """The words behind a script's name: assignments, `--jobs=2`, `-v`."""

    names: list[str]
    jobs: int
    verbose: bool


def options() -> Options:
    """Read the options; the processes that are started from now on have one thread each."""
    os.environ["OMP_NUM_THREADS"] = "1"
    words = sys.argv[1:]
    jobs = [int(word.partition("=")[2]) for word in words if word.startswith("--jobs=")]
    names = [word for word in words if not word.startswith("-")]
    return Options(names, (jobs or [os.cpu_count() or 1])[0], "-v" in words)


def try_all(
    given: Options, try_some: Callable[[str, int], list[Result]]
) -> Iterator[tuple[str, list[Result]]]:
    """Yield each assignment's name with the results of all its mistakes.

    `try_some` gets the name and the number of the first mistake, and tries TOGETHER of them.
    """
    course = load_course()
    with ProcessPoolExecutor(given.jobs, spawning()) as pool:
        running = {}
        for assignment in course.select(given.names or None):
            total = len(load_mistakes(course, assignment))
            running[assignment.name] = [
                pool.submit(try_some, assignment.name, start) for start in range(0, total, TOGETHER)
            ]
        for name, futures in running.items():
            results: list[Result] = []
            for future in futures:
                results += future.result()
            yield name, results
