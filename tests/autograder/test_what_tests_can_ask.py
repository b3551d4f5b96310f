"""What a test can ask of a submission, in this process and in a worker, and the sentences for what it cannot.

`docs/assignment-files.md` lists both.
"""

from __future__ import annotations

import pytest

from autograder import checks
from autograder.bridge.outside.remote import RemoteStudent
from autograder.bridge.shared.errors import StudentError
from autograder.checks.explain import explain
from autograder.records import SourceFile
from tests.autograder.both_sides import SIDES, connected

TEXT = """\
import itertools
import random

import numpy
import torch


class EmptyError(ValueError):
    pass


class StillEmptierError(EmptyError):
    pass


def mean(numbers):
    if not numbers:
        raise StillEmptierError("numbers is empty")
    return sum(numbers) / len(numbers)


def countdown(start):
    while start:
        yield start
        start -= 1


def broken():
    yield 1
    raise EmptyError("nothing more")


class Walk:
    def __init__(self, steps):
        self.left = steps

    def __iter__(self):
        return self

    def __next__(self):
        if not self.left:
            raise StopIteration
        self.left -= 1
        return self.left


class Bag:
    def __init__(self, *things):
        self.things = things

    def __iter__(self):
        yield from self.things


def first(iterator, count):
    return list(itertools.islice(iterator, count))


def endless():
    return itertools.count()


def squares(numbers):
    return map(lambda number: number * number, numbers)


def distinct(numbers):
    return set(numbers)


def ask():
    return input("name: ")


def save(path):
    with open(path, "w") as file:
        file.write("1, 2")


def saved_and_read():
    save("numbers.csv")
    with open("numbers.csv") as file:
        return file.read()


def load(path):
    with open(path) as file:
        return file.read()


def use_helper():
    import helper
    return helper.value


def draw(library):
    if library == "Python":
        random.random()
    if library == "NumPy":
        numpy.random.seed(3)
    if library == "PyTorch":
        torch.rand(2)


def draw_and_put_back():
    before = random.getstate(), numpy.random.get_state(), torch.get_rng_state()
    for library in ("Python", "NumPy", "PyTorch"):
        draw(library)
    random.setstate(before[0])
    numpy.random.set_state(before[1])
    torch.set_rng_state(before[2])
"""


@pytest.fixture(params=SIDES)
def student(request, sandbox):
    with connected(request.param, sandbox, TEXT, "asked.py") as connection:
        yield RemoteStudent(connection)


# ------------------------------------------------------------------ possible


def test_generators_and_iterators(student):
    assert list(student.countdown(3)) == [3, 2, 1]
    assert [next(student.squares([2, 3])), *student.squares([3])] == [4, 9]
    walk = iter(student.Walk(2))
    assert (next(walk), next(walk), next(walk, "end")) == (1, 0, "end")
    assert list(student.Bag(1, 2)) == [1, 2] and sum(student.Bag(1, 2)) == 3


def test_each_value_of_an_iterator_is_asked_for_alone(student):
    """So an endless one can be tested, too, and handed back to the student's code."""
    numbers = student.endless()
    assert [next(numbers), next(numbers)] == [0, 1]
    assert student.first(numbers, 3) == [2, 3, 4]
    assert next(numbers) == 5


def test_errors_inside_a_generator_are_those_of_the_student(student):
    numbers = student.broken()
    assert next(numbers) == 1
    checks.raises(student.EmptyError, lambda: next(numbers))


def test_exception_classes_of_the_student(student):
    checks.raises(student.EmptyError, student.mean, [], naming="numbers")
    checks.raises(student.StillEmptierError, student.mean, [])
    checks.raises(ValueError, student.mean, [])
    with pytest.raises(
        checks.CheckFailed, match=r"mean\(\[1\]\) returned 1, but an EmptyError was expected"
    ):
        checks.raises(student.EmptyError, student.mean, [1])
    with pytest.raises(
        checks.CheckFailed, match=r"raised a TypeError \(.*\), but an EmptyError was expected"
    ):
        checks.raises(student.EmptyError, student.mean, 3)


@pytest.mark.parametrize("library", ["Python", "NumPy", "PyTorch"])
def test_global_random_states_of_the_students_side(student, library):
    checks.global_randomness_untouched(student.draw, "none")
    checks.global_randomness_untouched(student.draw_and_put_back)
    with pytest.raises(
        checks.CheckFailed, match=rf"^The call changes the global random state of {library}:"
    ):
        checks.global_randomness_untouched(student.draw, library)


def test_files_that_the_submission_itself_writes_and_reads(sandbox):
    """In the worker only; in the folder of this process, the file would stay."""
    with connected("worker", sandbox, TEXT, "asked.py") as connection:
        assert RemoteStudent(connection).saved_and_read() == "1, 2"


# ------------------------------------------------------------------ impossible, with these sentences


@pytest.fixture
def told(sandbox):
    """Return a function that returns the student's sentence for an error that a test meets in a worker."""
    with connected("worker", sandbox, TEXT, "asked.py") as connection:

        def sentence(test) -> str:
            with pytest.raises((StudentError, TypeError, AssertionError)) as caught:
                test(RemoteStudent(connection))
            return explain(caught.value, full=True, file=SourceFile("asked.py", TEXT)).message

        yield sentence


def test_nobody_types_at_a_worker(told):
    said = told(lambda student: student.ask())
    assert said.startswith("Your code raised an EOFError: EOF when reading a line (line")


def test_a_path_as_a_text_leads_nowhere_in_the_worker(told, tmp_path):
    (tmp_path / "numbers.csv").write_text("1", "utf-8")
    assert told(lambda student: student.load(str(tmp_path / "numbers.csv"))).startswith(
        "Your code raised a FileNotFoundError: [Errno 2] No such file or directory:"
    )

    assert "raised a FileNotFoundError" in told(
        lambda student: student.save(str(tmp_path / "numbers.csv"))
    )


def test_generators_of_the_test_cannot_be_handed_in(told):
    said = told(lambda student: student.first((n for n in range(3)), 2))
    assert said.startswith("Your code raised a TypeError: 'Opaque' object is not iterable")
