"""Compare two gradings of a class: the scores that went up or down, and the tests that changed them.

Pure functions of grades. Messages are not compared, because the inputs, and so the numbers in
messages, differ between runs.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from autograder.records import Grade, Outcome, TestResult

ChangeKind = Literal["down", "up", "same", "added", "removed"]
CHANGE_KINDS: tuple[ChangeKind, ...] = ("down", "removed", "up", "added", "same")
TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class TestChange:
    """A test with a different result; `before` or `after` is None if the suite did not contain it.

    `message` explains the missing points: the new message, or the old one for a test that passes
    now.
    """

    __test__ = False  # not a test class, despite its name

    name: str
    title: str
    before: Outcome | None
    after: Outcome | None
    score_before: float | None
    score_after: float | None
    message: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """A submission with a different grade; `same` means an equal score from different test results."""

    student: str
    assignment: str
    kind: ChangeKind
    before: Grade | None
    after: Grade | None
    tests: tuple[TestChange, ...]

    @property
    def difference(self) -> float:
        return (self.after.score if self.after else 0.0) - (
            self.before.score if self.before else 0.0
        )

    @property
    def other_submission(self) -> bool:
        """Whether the two grades are of different texts, so the suite need not be the cause."""
        return len({grade.submission_sha256 for grade in (self.before, self.after) if grade}) == 2

    @property
    def reasons(self) -> list[str]:
        """A sentence for each part that is right now, and whose follow-through marks are gone."""
        if self.before is None or self.after is None:
            return []
        followed = {test.name for test in self.before.tests if test.outcome == "followed"}
        gone = [t.part for t in self.after.tests if t.name in followed and not t.is_right]
        before = _right_parts(self.before)
        now = _right_parts(self.after)
        order = list(now)
        return [
            f"The earlier part `{part}` passes now, so its follow-through is gone: "
            "later tests count with the student's own code."
            for part in order
            if now[part] and not before.get(part, True)
            if any(order.index(later) > order.index(part) for later in gone)
        ]

    def as_record(self) -> dict[str, Any]:
        """Return the change as a JSON-serializable dict."""
        return {
            "student": self.student,
            "assignment": self.assignment,
            "kind": self.kind,
            "before": _facts(self.before),
            "after": _facts(self.after),
            "other_submission": self.other_submission,
            "reasons": self.reasons,
            "tests": [asdict(test) for test in self.tests],
        }


@dataclass(frozen=True)
class Comparison:
    """The changes between two gradings of a class; `notes` list the lines of a journal that cannot be read."""

    changes: tuple[Change, ...]
    unchanged: int
    seeds_before: tuple[int, ...]
    seeds_after: tuple[int, ...]
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """The number of changes of each kind, and of unchanged submissions."""
        kinds = Counter(change.kind for change in self.changes)
        return {**{kind: kinds[kind] for kind in CHANGE_KINDS}, "unchanged": self.unchanged}

    @property
    def other_seeds(self) -> bool:
        """Whether the runs drew different inputs, which alone can change a result."""
        return (
            bool(self.seeds_before and self.seeds_after) and self.seeds_before != self.seeds_after
        )

    def as_record(self) -> dict[str, Any]:
        """Return the comparison as a JSON-serializable dict."""
        return {
            "schema": 1,
            "counts": self.counts,
            "seeds": {"before": self.seeds_before, "after": self.seeds_after},
            "changes": [change.as_record() for change in self.changes],
        }


def compare(before: Iterable[Grade], after: Iterable[Grade]) -> Comparison:
    """Compare two gradings by the last grade of each student and assignment; lower scores come first.

    `before` is read lazily, and only the grades in it that have changed are kept.
    """
    new = {grade.key: grade for grade in after}
    changes: dict[tuple[str, str], Change] = {}
    seeds: dict[tuple[str, str], int | None] = {}
    for grade in before:
        place = grade.key
        seeds[place] = grade.seed if grade.status == "graded" else None
        changes.pop(place, None)
        if change := _change(*place, grade, new.get(place)):
            changes[place] = change
    unchanged = len(seeds) - len(changes)
    changes |= {
        place: Change(*place, "added", None, grade, ())
        for place, grade in new.items()
        if place not in seeds
    }
    in_order = (changes[place] for place in sorted(changes))
    order = sorted(
        in_order, key=lambda change: (CHANGE_KINDS.index(change.kind), -abs(change.difference))
    )
    graded = (grade.seed for grade in new.values() if grade.status == "graded")
    return Comparison(tuple(order), unchanged, _distinct(seeds.values()), _distinct(graded))


def _right_parts(grade: Grade) -> dict[str, bool]:
    """Return for each part, in the order of the suite, whether all its tests are right."""
    parts: dict[str, bool] = {}
    for test in grade.tests:
        parts[test.part] = parts.get(test.part, True) and test.is_right
    return parts


def _distinct(seeds: Iterable[int | None]) -> tuple[int, ...]:
    return tuple(sorted(seed for seed in set(seeds) if seed is not None))


def _change(student: str, assignment: str, before: Grade, after: Grade | None) -> Change | None:
    if after is None:
        return Change(student, assignment, "removed", before, None, ())
    tests = tuple(_test_changes(before.tests, after.tests))
    facts = [(grade.status, grade.problem, grade.max_score) for grade in (before, after)]
    difference = after.score - before.score
    if not tests and facts[0] == facts[1] and abs(difference) <= TOLERANCE:
        return None
    kind: ChangeKind = "up" if difference > 0 else "down"
    if abs(difference) <= TOLERANCE:
        kind = "same"
    return Change(student, assignment, kind, before, after, tests)


def _test_changes(
    before: Iterable[TestResult], after: Iterable[TestResult]
) -> Iterable[TestChange]:
    old, new = ({test.name: test for test in tests} for tests in (before, after))
    for name in {**new, **old}:
        old_test = old.get(name)
        other = new.get(name)
        results = [
            test and (test.outcome, test.score, test.max_score) for test in (old_test, other)
        ]
        if results[0] != results[1]:
            yield _test_change(name, old_test, other)


def _test_change(name: str, before: TestResult | None, after: TestResult | None) -> TestChange:
    tests = [test for test in (after, before) if test is not None]
    outcomes = before.outcome if before else None, after.outcome if after else None
    scores = before.score if before else None, after.score if after else None
    message = next((test.message for test in tests if test.message), None)
    return TestChange(name, tests[0].title, *outcomes, *scores, message)


def _facts(grade: Grade | None) -> dict[str, Any] | None:
    if grade is None:
        return None
    names = ("status", "score", "max_score", "problem", "seed", "suite_sha256")
    return {name: getattr(grade, name) for name in names}
