"""Which known mistakes a submission's failing tests are named after: one rule, for a graded page and for `check`.

The rule does not know how answers are compared. A grader runs a mistake when the rule asks for it;
at home, the answer is looked up.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from typing import Generic, Protocol, TypeVar

ENOUGH = 0.75  # the share of a part's failing tests that a mistake has to explain


class KnownMistake(Protocol):
    """What the rule knows of a mistake; `fails` are the tests that it is recorded to fail, None without a record."""

    @property
    def title(self) -> str: ...

    @property
    def fails(self) -> Collection[str] | None: ...


M = TypeVar("M", bound=KnownMistake)
Explains = Callable[[M, str], bool]


def names(
    mistakes: Sequence[M],
    parts: Mapping[str, Sequence[str]],
    missed: Collection[str],
    explains: Explains[M],
) -> dict[str, tuple[M, ...]]:
    """Return the mistakes that explain each failing test, by the test's name; unexplained tests are left out.

    Several mistakes for one test cannot be told apart: they give equal answers in all tests that
    the first one explains. `mistakes` are in the author's order, `parts` holds the failing tests of
    each part, `missed` all tests that were not passed, failing or not, and `explains` says whether
    a mistake gives the submission's answers in a test. One mistake that explains several failures
    is preferred to several mistakes that explain one each.
    """
    return _Naming(mistakes, missed, explains).names(parts)


def keep_one_name(named: dict[str, tuple[M, ...]], tests: Sequence[str]) -> None:
    """Remove all but the most frequent mistake from the failing tests of one part.

    Two mistakes stay if they explain all of these tests together; otherwise a second name is mostly
    a wrong one.
    """
    frequency = Counter(named[test] for test in tests if test in named)
    if len(frequency) < 2 or all(test in named for test in tests):
        return
    (first, _), *_ = frequency.most_common(1)
    for test in tests:
        if named.get(test) != first:
            named.pop(test, None)


class _Naming(Generic[M]):
    def __init__(
        self, mistakes: Sequence[M], missed: Collection[str], explains: Explains[M]
    ) -> None:
        self._mistakes = mistakes
        self._missed = set(missed)
        self._explains = explains

    def names(self, parts: Mapping[str, Sequence[str]]) -> dict[str, tuple[M, ...]]:
        explained: dict[M, set[str]] = {}
        for failed in parts.values():
            for mistake, tests in self._explanations(list(explained), failed).items():
                explained.setdefault(mistake, set()).update(tests)
        if len(explained) > 1:
            for mistake, tests_explained in explained.items():
                for failed in parts.values():
                    tests_explained.update(self._explained(mistake, failed))

        def most_tests_first(mistake: M) -> tuple[int, int]:
            return -len(explained[mistake]), self._mistakes.index(mistake)

        in_order = [*chain.from_iterable(parts.values())]
        named: dict[str, tuple[M, ...]] = {}
        for mistake in sorted(explained, key=most_tests_first):
            tests = [test for test in in_order if test in explained[mistake]]
            alike = (mistake, *self._equals(mistake, tests))
            named |= {test: alike for test in tests if test not in named}
        for failed in parts.values():
            keep_one_name(named, failed)
        return named

    def _equals(self, mistake: M, tests: Sequence[str]) -> list[M]:
        """Return the mistakes with another title that explain the same tests as well."""
        alike = [
            other
            for other in self._mistakes
            if other.title != mistake.title
            and other.fails
            and set(other.fails) == set(mistake.fails or ())
        ]
        return [other for other in alike if all(self._explains(other, test) for test in tests)]

    def _explanations(self, named: list[M], failed: Sequence[str]) -> dict[M, list[str]]:
        """Return mistakes that explain failing tests of one part: one for all of them, or two, or several for some."""
        tests_of_part = set(failed)

        def unlikeliness(mistake: M) -> tuple[int, int]:
            """First, failing tests of this part that the mistake is not known to fail; then, all
            tests in which it differs from the submission. Where both are equal, the author's order
            stays.
            """
            fails = set(mistake.fails or ())
            unknown = len(tests_of_part - fails)
            return unknown, len(self._missed ^ fails)

        others = [mistake for mistake in self._mistakes if mistake not in named]
        mistakes = [*named, *sorted(others, key=unlikeliness)]
        partly: dict[M, list[str]] = {}
        for mistake in mistakes:
            tests = self._explained(mistake, failed)
            if len(tests) == len(failed) and (mistake in named or mistake.fails):
                return {mistake: tests}  # most students make one mistake, and none fits better
            if tests:
                partly[mistake] = tests
        one_is_enough = len(failed) in map(len, partly.values())
        return partly if one_is_enough else partly | self._two_mistakes(mistakes, failed)

    def _explained(self, mistake: M, failed: Sequence[str]) -> list[str]:
        """Return the failing tests of one part that a mistake explains; none if these are not enough.

        Of four failing tests, at most one may be unexplained ((1 - 0.75) * 4). Other random inputs
        can make a mistake fail more tests than recorded: from half of them on, all are compared.
        """
        unrecorded = set() if mistake.fails is None else set(failed).difference(mistake.fails)
        if 2 * len(unrecorded) > len(failed):
            return []
        most_unexplained = (1 - ENOUGH) * len(failed)
        unexplained = 0
        explained = []
        for test in sorted(failed, key=unrecorded.__contains__):
            if self._explains(mistake, test):
                explained.append(test)
                continue
            unexplained += 1
            if unexplained > most_unexplained:
                return []
        return explained

    def _two_mistakes(self, mistakes: Sequence[M], failed: Sequence[str]) -> dict[M, list[str]]:
        """Return two mistakes that together explain all failing tests of one part, the second one all of the rest."""
        for mistake in mistakes:
            if not self._explained(mistake, failed[:1]):
                continue
            rest = [test for test in failed if not self._explained(mistake, [test])]
            for other in mistakes:
                if self._explained(other, rest) == rest:
                    return {mistake: [test for test in failed if test not in rest], other: rest}
        return {}
