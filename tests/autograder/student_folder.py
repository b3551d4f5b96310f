"""The files of a student of the tiny course, and golden terminal sessions."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from autograder.course.reading import load_course
from tests.autograder.at_hand import build_at_hand
from tests.autograder.tiny_course import SOLUTION, write_tiny_course

GOLDENS = Path(__file__).parent / "goldens"
PICTURES = '''\
from matplotlib.figure import Figure

from autograder.checks import pictured


def a_row_of_sums(student):
    """The sums climb like a staircase."""
    figure = Figure(figsize=(2, 2))
    sums = [student.add(n, 1) for n in range(3)]
    figure.subplots().plot(sums)
    return figure, f"The sums are {pictured.listed(sums)}."


def pushes(student):
    """The total only grows."""
    figure = Figure(figsize=(2, 2))
    total = student.Total()
    totals = [total.push(n) for n in range(3)]
    figure.subplots().plot(totals)
    return figure, f"The totals are {pictured.listed(totals)}."


PICTURES = {"add": [a_row_of_sums], "total": [pushes]}
'''

RIGHT = re.sub(r" *### (BEGIN|END) SOLUTION\n", "", SOLUTION)
SUBTRACTS = RIGHT.replace("a + b", "a - b")
FORGETS = RIGHT.replace("self.value = self.value + number", "self.value = number")


def release(folder: Path) -> Path:
    """Build the tiny course in `folder`; return the released files."""
    course = load_course(write_tiny_course(folder))
    (course.root / "tests/assignments/01_adding/pictures.py").write_text(PICTURES)
    build_at_hand(course)
    return course.root / "assignments"


def copy_of(released: Path, folder: Path) -> Path:
    """Return a student's own copy of the assignment 01_adding, inside `folder/assignments`."""
    return Path(shutil.copytree(released, folder / "assignments")) / "01_adding"


def write_answer(folder: Path, text: str) -> None:
    (folder / "adding.py").write_text(text, "utf-8")


def same_as_golden(name: str, screen: str) -> None:
    """Compare with the golden session; `AUTOGRADER_GOLDENS=write` replaces it."""
    golden = GOLDENS / f"{name}.txt"
    screen = "\n".join(line.rstrip() for line in screen.splitlines()).strip() + "\n"
    if os.environ.get("AUTOGRADER_GOLDENS") == "write":
        golden.write_text(screen, "utf-8")
    assert screen == golden.read_text("utf-8"), f"{name} looks different; see {golden}"
