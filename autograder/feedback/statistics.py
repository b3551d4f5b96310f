"""Statistics of a class's grades: means, pass rates, discrimination, frequent mistakes."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress

from autograder.records import Grade, TestResult
from autograder.text.wording import message_skeleton

BINS = 10


@dataclass(frozen=True)
class Item:
    """The results of a class on one test; `without_zeros` is the discrimination without submissions that earn nothing."""

    name: str
    part: str
    title: str
    passed: int
    taken: int
    discrimination: float | None
    without_zeros: float | None = None

    @property
    def rate(self) -> float:
        return self.passed / self.taken


@dataclass(frozen=True)
class MistakeCount:
    """A known mistake of one assignment, and the students who made it."""

    assignment: str
    mistake: str
    hint: str
    students: tuple[str, ...]
    graded: int


def summary(values: Sequence[float]) -> dict[str, float | None]:
    """Return the mean, minimum, quartiles (linearly interpolated) and maximum of these values by their names."""
    names = ("Mean", "Minimum", "Lower quartile", "Median", "Upper quartile", "Maximum")
    if not values:
        return dict.fromkeys(names)
    quartiles = statistics.quantiles(
        [*values, *values] if len(values) == 1 else values, method="inclusive"
    )
    return dict(
        zip(names, (statistics.fmean(values), min(values), *quartiles, max(values)), strict=True)
    )


def share(score: float, max_score: float) -> float:
    """Return `score / max_score`; 0 if `max_score` is 0."""
    return score / max_score if max_score > 0 else 0.0


def histogram(shares: Iterable[float], bins: int = BINS) -> list[int]:
    """Count the shares in each of `bins` equal intervals from 0 to 1; the last includes 1."""
    counts = Counter(min(max(int(value * bins + 1e-9), 0), bins - 1) for value in shares)
    return [counts[step] for step in range(bins)]


def part_shares(grades: Iterable[Grade]) -> dict[str, float]:
    """Return for each part the points reached divided by the maximum."""
    won = defaultdict[str, float](float)
    possible = defaultdict[str, float](float)
    for grade in grades:
        for test in grade.tests:
            won[test.part] += test.score
            possible[test.part] += test.max_score
    return {part: share(won[part], possible[part]) for part in won}


def items(grades: Sequence[Grade]) -> list[Item]:
    """Return each test of one assignment with its pass rate and discrimination, in the order of the suite."""
    taken: dict[str, tuple[list[TestResult], list[float]]] = {}
    for grade in grades:
        total = sum(test.score for test in grade.tests)
        for test in grade.tests:
            tests, rests = taken.setdefault(test.name, ([], []))
            tests.append(test)
            rests.append(total - test.score)
    return [_item(*results) for results in taken.values()]


def _item(tests: list[TestResult], rests: list[float]) -> Item:
    last = tests[-1]
    right = [test.is_right for test in tests]
    whole = among = discrimination(right, rests)
    earning = [test.score + rest > 0 for test, rest in zip(tests, rests)]
    if not all(earning):
        among = discrimination(list(compress(right, earning)), list(compress(rests, earning)))
    return Item(last.name, last.part, last.title, sum(right), len(tests), whole, among)


def discrimination(passed: Sequence[bool], rest: Sequence[float]) -> float | None:
    """Return the corrected item–total correlation: point-biserial, of passing a test with the score on the others.

    None if all or no students passed, or if all have the same score on the other tests.
    """
    rest = [round(score, 9) for score in rest]
    if len(set(passed)) < 2 or len(set(rest)) < 2:
        return None
    return statistics.correlation([float(value) for value in passed], rest)


def mistake_counts(grades: Sequence[Grade]) -> list[MistakeCount]:
    """Count the students of each named mistake, most frequent first."""
    graded = Counter(grade.assignment for grade in grades if grade.status == "graded")
    mistakes: dict[tuple[str, str], tuple[str, set[str]]] = {}
    for grade in grades:
        for test in grade.tests:
            if test.mistake:
                _, students = mistakes.setdefault(
                    (grade.assignment, test.mistake), (test.hint or "", set())
                )
                students.add(grade.student)
    counts = [
        MistakeCount(assignment, mistake, hint, tuple(sorted(students)), graded[assignment])
        for (assignment, mistake), (hint, students) in mistakes.items()
    ]
    return sorted(counts, key=lambda count: (-len(count.students), count.assignment, count.mistake))


@dataclass(frozen=True)
class Cluster:
    """Students whose failures in one part match no known mistake, and are the same tests with the same messages."""

    assignment: str
    part: str
    tests: tuple[TestResult, ...]
    students: tuple[str, ...]


def unnamed_failures(grades: Iterable[Grade]) -> list[Cluster]:
    """Group the failed tests that match no known mistake, largest group first, by the skeletons of their messages."""
    failures: dict[tuple[object, ...], tuple[list[TestResult], list[str]]] = {}
    for grade in grades:
        failed = [test for test in grade.tests if test.fails and not test.mistake]
        for part in dict.fromkeys(test.part for test in failed):
            tests = [test for test in failed if test.part == part]
            alike = tuple(
                (test.name, test.outcome, message_skeleton(test.message or "")) for test in tests
            )
            failures.setdefault((grade.assignment, part, alike), (tests, []))[1].append(
                grade.student
            )
    clusters = [
        Cluster(str(assignment), str(part), tuple(tests), tuple(sorted(students)))
        for (assignment, part, _), (tests, students) in failures.items()
    ]
    return sorted(
        clusters,
        key=lambda cluster: (
            -len(cluster.students),
            cluster.assignment,
            cluster.part,
            cluster.students,
        ),
    )
