"""The decorator `task`, with which a test of a suite says what it is about, in pytest's marks."""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest

from autograder.records import CourseError

TestFunction = TypeVar("TestFunction", bound=Callable[..., Any])
Texts = str | Sequence[str]


def task(
    part: str,
    points: float,
    *,
    needs: Texts = (),
    promise: Texts = (),
    forbids: Texts = (),
    fixed_inputs: str = "",
) -> Callable[[TestFunction], TestFunction]:
    """Make a test belong to a part of the assignment and give it its points.

    `needs` names the tests without which this one is skipped, `promise` quotes the words of the
    stub that promise what a hidden test asserts, and `forbids` lists the dotted names that must not
    run in the test's own calls: each is one text or a tuple of them. `fixed_inputs` says why the
    inputs of a hidden test cannot be drawn. Raises CourseError for any other value.

    Example:
        >>> @task("attention", 2, needs="test_attention_shapes")
        ... def test_first_output_is_the_first_value(student, reference, seed): ...
    """
    if not isinstance(part, str) or not part:
        raise CourseError(
            f'{part!r} is not the name of a part; write `@task("mask", 2)`: first the part, then the points.'
        )
    if not _is_above_zero(points):
        raise CourseError(
            f'{points!r} is not a number of points above 0; write a number, as in `@task("{part}", 2)`.'
        )
    marks = {
        "part": (part,),
        "points": (points,),
        "needs": _texts("needs", needs),
        "promise": _texts("promise", promise),
        "forbids": _texts("forbids", forbids),
        "fixed_inputs": _texts("fixed_inputs", fixed_inputs),
    }

    def with_marks(test: TestFunction) -> TestFunction:
        for name, arguments in marks.items():
            if arguments:
                getattr(pytest.mark, name)(*arguments)(test)
        return test

    return with_marks


def _is_above_zero(points: object) -> bool:
    if isinstance(points, bool) or not isinstance(points, int | float):
        return False
    return math.isfinite(points) and points > 0


def _texts(argument: str, given: object) -> tuple[str, ...]:
    """Return one text or several as a tuple, an empty one if there are none."""
    if isinstance(given, str):
        return (given,) if given else ()
    if isinstance(given, list | tuple) and all(isinstance(text, str) and text for text in given):
        return tuple(given)
    raise CourseError(
        f"`{argument}={given!r}` is neither a text nor a tuple of texts; write them in quotes."
    )
