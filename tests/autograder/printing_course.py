"""A small course whose assignment prints, for tests of what tests can read."""

from __future__ import annotations

from pathlib import Path

from tests.autograder.tiny_course import write_files

COURSE = """\
title: Printing
limits: {call_seconds: 2, load_seconds: 5}
assignments:
  - name: 01_table
    title: A table
    minutes: 10
    parts:
      - {name: rows, title: Rows, points: 4}
"""

SOLUTION = '''\
# %% [markdown]
# # A table
# Print one row for each number.

# %%
def show(numbers: list[int]) -> None:
    """Print each number with its square, one row for each: 3 9."""
    # TODO: print the rows
    ### BEGIN SOLUTION
    for number in numbers:
        print(number, number**2)
    ### END SOLUTION


# %% part="rows"
'''

VISIBLE = '''\
"""The rows of a table."""

import pytest

from autograder import checks


@pytest.mark.part("rows")
@pytest.mark.points(1)
def test_two_rows(student, capsys):
    """Two numbers are two rows."""
    student.show([2, 3])
    checks.equal(capsys.readouterr().out, "2 4\\n3 9\\n", "the printed text")
'''

HIDDEN = '''\
"""The rows of other tables."""

import random

import pytest

from autograder import checks


@pytest.mark.part("rows")
@pytest.mark.points(2)
def test_other_rows(student, reference, seed, capsys):
    """Any numbers are printed with their squares."""
    numbers = [random.randint(4, 99) for _ in range(3)]
    student.show(numbers)
    mine = capsys.readouterr().out
    reference.show(numbers)
    checks.equal(mine, capsys.readouterr().out, "the printed text")


@pytest.mark.part("rows")
@pytest.mark.points(1)
def test_returns_nothing(student):
    """The rows are printed, not returned."""
    checks.equal(student.show([1]), None, "the result")
'''

MISTAKES = """\
- id: doubles
  in: show
  replace: number**2
  with: number * 2
  hint: How much is 3 times 3?

- id: in_one_row
  in: show
  replace: print(number, number**2)
  with: print(number, number**2, end=" ")
  hint: Where does a row end?
"""

FILES = {
    "course.yml": COURSE,
    "solutions/01_table/table.py": SOLUTION,
    "tests/assignments/01_table/test_visible.py": VISIBLE,
    "tests/assignments/01_table/test_hidden.py": HIDDEN,
    "tests/assignments/01_table/mistakes.yml": MISTAKES,
}


def write_printing_course(folder: Path) -> Path:
    """Write the course to `folder`; return `folder`."""
    return write_files(folder, FILES)
