"""A small course with an assignment that reads and writes files, and one that does not."""

from __future__ import annotations

from pathlib import Path

from tests.autograder.tiny_course import write_files

FILES_NAME, PLAIN_NAME = "01_table", "02_adding"

COURSE = """\
title: Files
limits: {call_seconds: 2, load_seconds: 5}
assignments:
  - name: 01_table
    title: A table
    minutes: 10
    parts:
      - {name: write, title: Writing, points: 4}
      - {name: read, title: Reading, points: 2}
  - name: 02_adding
    title: Adding
    minutes: 10
    parts:
      - {name: add, title: Adding, points: 2}
"""

SOLUTION = '''\
# %% [markdown]
# # A table
# Write a table to a file, and read it again.

# %%
from pathlib import Path


def write(numbers: list[int], file: Path) -> None:
    """Write each number with its square, one row for each: 3,9."""
    # TODO: write the rows
    ### BEGIN SOLUTION
    file.write_text("".join(f"{number},{number**2}\\n" for number in numbers))
    ### END SOLUTION


# %% part="write"


# %%
def total(file: Path) -> Path:
    """Add the squares of a table; write the sum to `total.txt` beside it, and return the path of that file."""
    # TODO: read the table, write the sum
    ### BEGIN SOLUTION
    write([], file.with_name("empty.csv"))
    rows = [line.split(",") for line in file.read_text().splitlines()]
    target = file.with_name("total.txt")
    target.write_text(str(sum(int(square) for _, square in rows)))
    return target
    ### END SOLUTION


# %% part="read"
'''

VISIBLE = '''\
"""Tables in files."""

import pytest

from autograder import checks


@pytest.mark.part("write")
@pytest.mark.points(1)
def test_two_rows(student, tmp_path):
    """Two numbers are two rows."""
    student.write([2, 3], tmp_path / "rows.csv")
    checks.equal((tmp_path / "rows.csv").read_text(), "2,4\\n3,9\\n", "the written text")


@pytest.mark.part("read")
@pytest.mark.points(1)
def test_total(student, tmp_path):
    """The sum of the squares is written beside the table."""
    (tmp_path / "rows.csv").write_text("1,1\\n5,25\\n")
    file = student.total(tmp_path / "rows.csv")
    checks.equal(file, tmp_path / "total.txt", "the path")
    checks.equal(file.read_text(), "26", "the sum")
'''

HIDDEN = '''\
"""Other tables in files."""

import random

import pytest

from autograder import checks


@pytest.mark.part("write")
@pytest.mark.points(3)
def test_other_rows(student, reference, tmp_path):
    """Any numbers are written with their squares."""
    numbers = [random.randint(4, 99) for _ in range(3)]
    student.write(numbers, tmp_path / "rows.csv")
    reference.write(numbers, tmp_path / "right.csv")
    checks.equal((tmp_path / "rows.csv").read_text(), (tmp_path / "right.csv").read_text(), "the written text")


@pytest.mark.part("read")
@pytest.mark.points(1)
def test_other_total(student, tmp_path):
    """The table is kept, and the total of an empty one is 0."""
    square = random.randint(4, 99) ** 2
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "rows.csv").write_text(f"1,1\\n7,{square}\\n")
    checks.equal(student.total(tmp_path / "deep" / "rows.csv").read_text(), str(1 + square), "the sum")
    names = sorted(file.name for file in (tmp_path / "deep").iterdir())
    checks.equal(names, ["empty.csv", "rows.csv", "total.txt"], "the names of the files")
'''

MISTAKES = """\
- id: doubles
  in: write
  replace: number**2
  with: number * 2
  hint: How much is 3 times 3?

- id: counts
  in: total
  replace: sum(int(square) for _, square in rows)
  with: len(rows)
  hint: Is this the sum of the squares, or the number of rows?
"""

PLAIN_SOLUTION = '''\
# %%
def add(a: int, b: int) -> int:
    """The sum."""
    # TODO: add
    ### BEGIN SOLUTION
    return a + b
    ### END SOLUTION


# %% part="add"
'''

PLAIN_VISIBLE = '''\
"""Sums."""

import pytest

from autograder import checks


@pytest.mark.part("add")
@pytest.mark.points(1)
def test_two(student):
    """Two and three are five."""
    checks.equal(student.add(2, 3), 5)
'''

FILES = {
    "course.yml": COURSE,
    "solutions/01_table/table.py": SOLUTION,
    "tests/assignments/01_table/test_visible.py": VISIBLE,
    "tests/assignments/01_table/test_hidden.py": HIDDEN,
    "tests/assignments/01_table/mistakes.yml": MISTAKES,
    "solutions/02_adding/adding.py": PLAIN_SOLUTION,
    "tests/assignments/02_adding/test_visible.py": PLAIN_VISIBLE,
    "tests/assignments/02_adding/test_hidden.py": PLAIN_VISIBLE.replace("test_two", "test_more").replace(
        "2, 3", "1, 4"
    ),
}


def write_sharing_course(folder: Path) -> Path:
    """Write the course to `folder`; return `folder`."""
    return write_files(folder, FILES)
