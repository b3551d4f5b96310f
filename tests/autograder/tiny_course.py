"""A complete small course about adding, for tests of the engine that need no Transformer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

COURSE = """\
title: A tiny course
feedback: hints
limits: {call_seconds: 2, load_seconds: 5}
assignments:
  - name: 01_adding
    title: Adding
    minutes: 10
    parts:
      - {name: add, title: Two numbers, points: 4}
      - {name: total, title: A running total, points: 6}
"""

SOLUTION = '''\
# %% [markdown]
# # Adding
# So far we could only count. How do two heaps become one?

# %%
from __future__ import annotations

STEP = 1


# %% [markdown]
# ## Part 1 · Two numbers

# %%
def add(a: int, b: int) -> int:
    """The sum of two whole numbers: add(2, 3) is 5."""
    # TODO: both numbers together
    ### BEGIN SOLUTION
    together = a + b
    return together
    ### END SOLUTION


# %% part="add"

# %% [markdown]
# ## Part 2 · A running total

# %%
class Total:
    """Remembers the sum of everything pushed so far."""

    def __init__(self, start: int = 0) -> None:
        self.value = start

    def push(self, number: int) -> int:
        """Takes one more number and answers the sum so far; below zero is a ValueError."""
        # TODO: refuse a negative number, then remember and return the new sum
        ### BEGIN SOLUTION
        if number < 0:
            raise ValueError(f"number must not be negative, but it is {number}.")
        self.value = self.value + number
        return self.value
        ### END SOLUTION


# %% part="total"
'''

VISIBLE = '''\
"""What a first look at adding should show."""

import pytest

from autograder import checks


@pytest.mark.part("add")
@pytest.mark.points(1)
def test_two_and_three_are_five(student):
    """2 and 3 together are 5."""
    checks.equal(student.add(2, 3), 5, "add(2, 3)")


@pytest.mark.part("total")
@pytest.mark.points(2)
def test_first_push_is_the_sum(student):
    """After one push, the total is that number."""
    checks.equal(student.Total().push(7), 7, "Total().push(7)")
'''

HIDDEN = '''\
"""Adding, on fresh numbers."""

import random

import pytest

from autograder import checks


@pytest.mark.part("add")
@pytest.mark.points(3)
@pytest.mark.needs("test_two_and_three_are_five")
def test_any_two_numbers(student, reference, seed):
    """Any two whole numbers are added."""
    a, b = random.randint(-99, 99), random.randint(100, 199)
    checks.equal(student.add(a, b), reference.add(a, b), f"add({a}, {b})")


@pytest.mark.part("total")
@pytest.mark.points(3)
def test_pushes_add_up(student, reference):
    """Three pushes after a start give the sum of all four numbers."""
    numbers = [random.randint(1, 9) for _ in range(3)]
    mine, theirs = student.Total(5), reference.Total(5)
    for number in numbers:
        checks.equal(mine.push(number), theirs.push(number), f"push({number})")


@pytest.mark.part("total")
@pytest.mark.points(1)
def test_negative_numbers_are_refused(student):
    """A negative number is a ValueError that names it."""
    wrong = -random.randint(1, 999)
    checks.raises(ValueError, student.Total().push, wrong, naming=("number", wrong))
'''

MISTAKES = """\
- id: subtracts
  in: add
  replace: a + b
  with: a - b
  hint: Do two heaps become smaller when they are put together?

- id: forgets_what_came_before
  in: Total.push
  replace: self.value = self.value + number
  with: self.value = number
  hint: What happens to the numbers of earlier pushes?
"""

ALTERNATIVE = '''\
"""The same with Python's own sum."""


def add(a, b):
    return sum((a, b))


class Total:
    def __init__(self, start=0):
        self.numbers = [start]

    def push(self, number):
        if number < 0:
            raise ValueError("number is " + str(number))
        self.numbers.append(number)
        return sum(self.numbers)
'''

FILES = {
    "course.yml": COURSE,
    "solutions/01_adding/adding.py": SOLUTION,
    "tests/assignments/01_adding/test_visible.py": VISIBLE,
    "tests/assignments/01_adding/test_hidden.py": HIDDEN,
    "tests/assignments/01_adding/mistakes.yml": MISTAKES,
    "tests/assignments/01_adding/alternatives/with_sum.py": ALTERNATIVE,
}


def write_tiny_course(folder: Path) -> Path:
    """Write the course to `folder`, which is created if missing; return `folder`."""
    return write_files(folder, FILES)


def write_files(folder: Path, files: Mapping[str, str]) -> Path:
    """Write texts to files by their names below `folder`; return `folder`."""
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder
