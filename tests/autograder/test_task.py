"""`task`, the decorator of a suite's tests: the marks it gives, what it refuses, and who reads it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from autograder.authoring.promises import promises
from autograder.course.config import CourseError
from autograder.course.reading import load_course
from autograder.suite.markers import arguments_of
from autograder.suite.session import SuiteSession
from tests.autograder.sampling import thinned
from tests.autograder.tiny_course import write_tiny_course

HIDDEN = "tests/assignments/01_adding/test_hidden.py"
SUITE = '''\
import pytest

from autograder import task


{marks}
def test_sum(student):
    """The sum."""
'''
NAMES = ("part", "points", "needs", "promise", "forbids", "fixed_inputs")


def marks_in(folder: Path, marks: str) -> dict[str, list[str]]:
    """Collect a suite with these decorators and return the arguments of its test's marks."""
    file = folder / "test_hidden.py"
    file.write_text(SUITE.format(marks=marks), "utf-8")
    with closing(SuiteSession([file], folder)) as session:
        (test,) = session.tests()
        return {name: arguments_of(test.item, name) for name in NAMES}


@pytest.mark.parametrize(
    ("decorator", "marks"),
    [
        ('@task("add", 1)', '@pytest.mark.part("add")\n@pytest.mark.points(1)'),
        (
            '@task("add", 0.5, needs="test_a", promise="one.", forbids="math", fixed_inputs="One.")',
            '@pytest.mark.part("add")\n@pytest.mark.points(0.5)\n@pytest.mark.needs("test_a")\n'
            '@pytest.mark.promise("one.")\n@pytest.mark.forbids("math")\n@pytest.mark.fixed_inputs("One.")',
        ),
        (
            '@task("add", 2, needs=("test_a", "test_b"), promise=["one.", "two."], forbids=("math", "cmath"))',
            '@pytest.mark.part("add")\n@pytest.mark.points(2)\n@pytest.mark.needs("test_a", "test_b")\n'
            '@pytest.mark.promise("one.", "two.")\n@pytest.mark.forbids("math", "cmath")',
        ),
    ],
)
def test_task_gives_the_same_marks_as_one_by_one(tmp_path, decorator, marks):
    given = marks_in(tmp_path, decorator)
    assert given == marks_in(tmp_path, marks)
    assert given["part"] == ["add"]


def test_marks_of_its_own_can_stand_beside_a_task(tmp_path):
    given = marks_in(tmp_path, '@pytest.mark.forbids("math")\n@task("add", 1, forbids="cmath")')
    assert given["forbids"] == ["cmath", "math"]


@pytest.mark.parametrize(
    ("decorator", "sentence"),
    thinned(
        [
            ('@task("add", 0)', "0 is not a number of points above 0; write a number,"),
            ('@task("add", -1)', "-1 is not a number of points above 0"),
            ('@task("add", "2")', "'2' is not a number of points above 0"),
            ('@task("add", True)', "True is not a number of points above 0"),
            ('@task("add", float("nan"))', "nan is not a number of points above 0"),
            ('@task("add", float("inf"))', "inf is not a number of points above 0"),
            ('@task(2, "add")', "2 is not the name of a part; write `@task"),
            ('@task("", 2)', "'' is not the name of a part"),
            ('@task("add", 1, needs=3)', "`needs=3` is neither a text nor a tuple of texts"),
            ('@task("add", 1, promise=("one", 2))', "`promise=('one', 2)` is neither a text nor"),
            ('@task("add", 1, forbids=("",))', "`forbids=('',)` is neither a text nor"),
            ('@task("add", 1, fixed_inputs=True)', "`fixed_inputs=True` is neither a text nor"),
        ],
        4,
    ),
)
def test_wrong_argument_is_a_sentence_with_file_and_line(tmp_path, decorator, sentence):
    with pytest.raises(CourseError) as caught:
        marks_in(tmp_path, decorator)
    assert str(caught.value).startswith(f"test_hidden.py, line 6: {sentence}")


@pytest.mark.parametrize(
    ("decorator", "reason"),
    [
        ("@task", "missing 1 required positional argument: 'points'"),
        ('@task("add")', "missing 1 required positional argument: 'points'"),
        ('@task("add", 1, need="test_a")', "unexpected keyword argument 'need'"),
    ],
)
def test_missing_or_unknown_argument_is_reported_with_file_and_line(tmp_path, decorator, reason):
    with pytest.raises(CourseError) as caught:
        marks_in(tmp_path, decorator)
    sentence = str(caught.value)
    assert sentence.startswith("test_hidden.py, line 6 cannot be collected: TypeError: task() ")
    assert reason in sentence


@pytest.mark.parametrize(
    ("decorator", "words"),
    [
        ('@task("add", 3)', ()),
        ('@task("add", 3, needs="test_a", promise="one.")', ("one.",)),
        ('@task("add", 3, promise=("one.", "two."))', ("one.", "two.")),
        ('@task("add", 3, promise="one" " and two.")', ("one and two.",)),
        ('@pytest.mark.promise("one.", "two.")', ("one.", "two.")),
    ],
)
def test_promises_of_a_task_are_read_from_the_suite(tmp_path, decorator, words):
    course = load_course(write_tiny_course(tmp_path))
    (tmp_path / HIDDEN).write_text(SUITE.format(marks=decorator), "utf-8")
    assert promises(course, course.assignment("01_adding")) == {"test_sum": words}
