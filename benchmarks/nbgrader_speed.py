"""The same notebooks through `nbgrader autograde` twice: with nbgrader's own executor, and with ours.

    python -m benchmarks.nbgrader_speed [--students 30]

For nbgrader's own, each test cell runs the part's visible tests in the student's kernel,
unprotected; ours runs visible and hidden tests in the sandbox. Both begin with nothing graded.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from autograder.course.mistakes_file import load_mistakes
from benchmarks.contestants import hand_in_unprotected, use_own_executor
from benchmarks.plain_suite import NAME
from tests.autograder.nbgrader.classroom import Classroom, real_classroom


def seconds(room: Classroom, *options: str) -> float:
    """How long `nbgrader autograde` takes for the class."""
    started = time.monotonic()
    room.nbgrader("autograde", NAME, *options)
    return time.monotonic() - started


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--students", type=int, default=30)
    students = options.parse_args().students
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "ours").mkdir()
        room = real_classroom(Path(folder) / "ours", NAME)
        room.nbgrader("generate_assignment", NAME)
        mistakes = load_mistakes(room.course, room.assignment)
        for number in range(students):
            hand_in_unprotected(
                room, f"student{number:03}", mistakes[number % len(mistakes)].source
            )
        own = room.copy(Path(folder) / "own")
        use_own_executor(own)
        load = os.getloadavg()[0]
        ours, theirs = seconds(room), seconds(own)
        again = seconds(room, "--force")
    print(f"{students} notebooks, {os.cpu_count()} processors, load {load:.1f} before")
    print(
        f"nbgrader's own executor {theirs:.1f} s, ours {ours:.1f} s: {theirs / ours:.1f} times as fast"
    )
    print(f"once more with --force, from the journal: {again:.1f} s")


if __name__ == "__main__":
    main()
