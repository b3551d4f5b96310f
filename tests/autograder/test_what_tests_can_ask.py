"""What a test can ask of a submission, in this process and in a worker, and the sentences for what it cannot.

`docs/assignment-files.md` lists both.
"""

from __future__ import annotations

import collections
import datetime
import math
import random
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch

from autograder import checks
from autograder.bridge.outside.remote import RemoteStudent
from autograder.bridge.shared.errors import StudentError
from autograder.failures.explain import explain
from autograder.records import SourceFile
from tests.autograder.both_sides import SIDES, connected

HANDED_OVER = "What the test hands over cannot be sent"
STAYS = "stays where the tests run; hand over numbers, texts, lists or a function."
TEXT = """\
import itertools
import random

import numpy
import torch


def itself(value):
    return value


def doubled_in_place(numbers):
    numbers *= 2


def draw_from(dice):
    if isinstance(dice, torch.Generator):
        return torch.rand(1, generator=dice)
    return dice.gauss(0, 1) if isinstance(dice, random.Random) else dice.integers(1 << 40)


def applied(function, value):
    return function(value)


def a_day():
    import datetime
    return datetime.timedelta(1)


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


@pytest.mark.parametrize(
    "value",
    [
        1 + 2j,
        math.factorial(30),
        -(2**4095),
        Fraction(10**30, 7),
        Decimal("0.10"),
        datetime.date(2026, 11, 27),
        datetime.datetime(2026, 11, 27, 8, 30, tzinfo=datetime.timezone.utc),
        {Fraction(1, 2): {1 + 2j}, datetime.date(2026, 1, 1): (Decimal(3),)},
        np.arange(3, dtype="uint16"),
        np.array([2**64 - 1], dtype="uint64"),
        np.array(2.5),
        np.zeros((0, 3)),
        np.array([True, False]),
        np.arange(6.0).reshape(2, 3).T,
    ],
    ids=str,
)
def test_values_that_come_back_as_they_are(student, value):
    returned = student.itself(value)
    assert type(returned) is type(value)
    assert getattr(returned, "dtype", None) == getattr(value, "dtype", None)
    checks.equal(returned, value)
    assert np.array_equal(returned, value)


def test_scalars_of_numpy_come_back_as_numbers_also_in_sets_and_keys(student):
    assert student.itself({np.int64(3)}) == {3}
    checks.equal(student.itself({np.int64(3): np.float32(0.5)}), {3: 0.5})


def test_an_array_is_changed_in_place_if_the_student_does_it(student):
    for numbers in (np.ones(3), np.arange(9, dtype="uint16")[::-3], np.array(1.0)):
        with pytest.raises(checks.CheckFailed, match="changed its input"):
            checks.input_untouched(student.doubled_in_place, numbers)
        assert numbers.sum() in (6, 30, 2)
    checks.input_untouched(student.itself, np.ones(3))


@pytest.mark.parametrize(
    ("dice", "draw"),
    [
        (lambda: np.random.default_rng(3), lambda dice: dice.integers(1 << 40)),
        (lambda: random.Random(3), lambda dice: dice.gauss(0, 1)),
        (lambda: torch.Generator().manual_seed(3), lambda dice: torch.rand(1, generator=dice)),
    ],
    ids=["numpy", "Python", "PyTorch"],
)
def test_a_generator_comes_back_advanced(student, dice, draw):
    """Also with half of a draw put by, as after a 32-bit number of numpy and after `gauss`."""
    ours, theirs = dice(), dice()
    if isinstance(ours, np.random.Generator):
        assert ours.integers(9, dtype="uint32") == theirs.integers(9, dtype="uint32")
    else:
        assert draw(ours) == draw(theirs)
    assert [student.draw_from(ours), student.draw_from(ours)] == [draw(theirs), draw(theirs)]
    assert draw(ours) == draw(theirs)


@pytest.mark.parametrize(
    "function", [str.upper, int, len, np.mean], ids=["upper", "int", "len", "mean"]
)
def test_functions_of_libraries_can_be_handed_over(student, function):
    assert student.applied(function, "12") == function("12") if function is not np.mean else True


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


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ((n for n in range(3)), "a generator"),
        (range(3), "a range"),
        (map(len, ["a"]), "a map"),
        (slice(1, 2), "a slice"),
        (memoryview(b"a"), "a memoryview"),
        (collections.deque([1]), "a deque"),
        (datetime.timedelta(1), "a timedelta"),
        (re.compile("a"), "a Pattern"),
        (np.random.RandomState(3), "a RandomState"),
        (np.random.Generator(np.random.MT19937(3)), "a Generator"),
        (type("Own", (), {}), "an Own"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_handed_over_is_named_and_no_fault_of_the_student(told, value, name):
    """As an argument, and as the answer of a function of the test."""
    sentence = f"{HANDED_OVER}: {name} {STAYS}"
    assert told(lambda student: student.first(value, 2)) == sentence
    assert told(lambda student: student.applied(lambda given: value, 1)) == sentence


def test_what_cannot_come_back_is_named(told):
    expected = datetime.timedelta(1)
    said = told(lambda student: checks.equal(student.a_day(), expected, "a_day()"))
    assert said == (
        "a_day() returned a timedelta, which cannot come back from where the code runs; "
        "ask for its text or numbers."
    )
