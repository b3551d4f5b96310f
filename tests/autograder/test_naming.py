"""The rule that names mistakes, which a graded page and `check` share: pure, with answers from a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from autograder.grading.naming import keep_one_name, names


@dataclass(frozen=True)
class Known:
    title: str
    fails: tuple[str, ...] | None = None


ABCD = ("a", "b", "c", "d")
ONE = {"part": ABCD}
TWO = {"first": ("a", "b"), "second": ("c",)}

# the mistakes with the tests that each is recorded to fail; then, for each, the tests that it explains
CASES: dict[str, tuple[Mapping[str, Sequence[str]], dict[Known, str], dict[str, str]]] = {
    "one explains all": (ONE, {Known("x", ABCD): "abcd", Known("y", ABCD): "ab"}, dict.fromkeys(ABCD, "x")),
    "three quarters are enough": (ONE, {Known("x", ABCD): "abc"}, dict.fromkeys("abc", "x")),
    "half is not enough": (ONE, {Known("x", ABCD): "ab"}, {}),
    "recorded with less than half": (ONE, {Known("x", ("a",)): "abcd"}, {}),
    "recorded with half": (ONE, {Known("x", ("a", "b")): "abcd"}, dict.fromkeys(ABCD, "x")),
    "without a record": (ONE, {Known("x"): "abcd"}, dict.fromkeys(ABCD, "x")),
    "two explain all together": (
        ONE, {Known("x", ABCD): "ab", Known("y", ABCD): "cd"}, dict(zip(ABCD, "xxyy")),
    ),
    "equal answers": (ONE, {Known("x", ABCD): "abcd", Known("y", ABCD): "abcd"}, dict.fromkeys(ABCD, "xy")),
    "one title": (ONE, {Known("x", ABCD): "abcd", Known("x", (*ABCD, "e")): "abcd"}, dict.fromkeys(ABCD, "x")),
    "the same tests as were missed": (
        TWO, {Known("x", ("a", "b")): "ab", Known("y", ("a", "b", "c")): "abc"}, dict.fromkeys("abc", "y"),
    ),
    "one that explains both parts": (
        TWO, {Known("x", ("a", "b", "c")): "abc", Known("y", ("c",)): "c"}, dict.fromkeys("abc", "x"),
    ),
    "nobody": (ONE, {Known("x", ABCD): ""}, {}),
}  # fmt: skip


@pytest.mark.parametrize("parts, explained, chosen", CASES.values(), ids=CASES)
def test_mistakes_of_failing_tests(parts, explained, chosen) -> None:
    missed = [test for tests in parts.values() for test in tests]
    found = names(list(explained), parts, missed, lambda known, test: test in explained[known])
    assert {test: "".join(m.title for m in equals) for test, equals in found.items()} == chosen


def test_second_name_in_a_part_stays_only_if_nothing_is_left_unexplained() -> None:
    one, two = (Known("one"),), (Known("two"),)
    tests = ["a", "b", "c"]
    together = {"a": one, "b": one, "c": two, "elsewhere": two}
    keep_one_name(together, tests)
    assert together == {"a": one, "b": one, "c": two, "elsewhere": two}
    keep_one_name(together, [*tests, "unexplained"])
    assert together == {"a": one, "b": one, "elsewhere": two}


def test_a_mistake_that_cannot_fail_the_tests_is_never_compared() -> None:
    """Comparing is what costs: a grader runs the mistake."""
    asked: list[str] = []

    def explains(known: Known, test: str) -> bool:
        asked.append(known.title)
        return True

    mistakes = [Known("elsewhere", ("z",)), Known("here", ABCD)]
    names(mistakes, ONE, ABCD, explains)
    assert set(asked) == {"here"}
