"""The same notebooks through `nbgrader autograde` twice: with nbgrader's own executor, and with ours.

    python benchmarks/nbgrader_speed.py [--students 30]

For nbgrader's own, each test cell runs the part's visible tests in the student's kernel, unprotected; ours runs
visible and hidden tests in the sandbox. Both begin with nothing graded.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import nbformat  # noqa: E402

from autograder.authoring.build import to_notebook  # noqa: E402
from autograder.authoring.mistakes import load_mistakes  # noqa: E402
from tests.autograder.nbgrader.classroom import Classroom, real_classroom  # noqa: E402

NAME = "03_masked_heads"
OWN = """
from nbconvert.exporters import NotebookExporter
c.Autograde.exporter_class = NotebookExporter
c.Autograde.autograde_preprocessors = ["nbgrader.preprocessors.Execute", "nbgrader.preprocessors.SaveAutoGrades"]
"""
UNPROTECTED = "import os\nos.environ.pop('NBGRADER_EXECUTION', None)"


def seconds(room: Classroom, *options: str) -> float:
    """How long `nbgrader autograde` takes for the class."""
    started = time.monotonic()
    room.nbgrader("autograde", NAME, *options)
    return time.monotonic() - started


def hand_in_class(room: Classroom, students: int) -> None:
    mistakes = load_mistakes(room.course, room.assignment)
    for number in range(students):
        notebook = to_notebook(room.assignment, mistakes[number % len(mistakes)].source)
        notebook.cells.insert(0, nbformat.v4.new_code_cell(UNPROTECTED))
        room.hand_in(f"student{number:03}", notebook)
        for file in room.course.release_folder(room.assignment).glob("*.*"):
            if file.suffix != ".ipynb" and file.stem != room.stem:  # the tests, for nbgrader's own kernel
                shutil.copy(file, room.folder / "submitted" / f"student{number:03}" / NAME)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--students", type=int, default=30)
    students = options.parse_args().students
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "ours").mkdir()
        room = real_classroom(Path(folder) / "ours", NAME)
        room.nbgrader("generate_assignment", NAME)
        hand_in_class(room, students)
        own = room.copy(Path(folder) / "own")
        config = own.folder / "nbgrader_config.py"
        config.write_text(config.read_text() + OWN)
        load = os.getloadavg()[0]
        ours, theirs = seconds(room), seconds(own)
        again = seconds(room, "--force")
    print(f"{students} notebooks, {os.cpu_count()} processors, load {load:.1f} before")
    print(f"nbgrader's own executor {theirs:.1f} s, ours {ours:.1f} s: {theirs / ours:.1f} times as fast")
    print(f"once more with --force, from the journal: {again:.1f} s")


if __name__ == "__main__":
    main()
