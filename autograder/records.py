"""Typed records shared by all parts of the engine: results, grades, submissions.

They import no other module.
"""

import errno
import json
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

MACHINE = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
)
DIGITS = 6  # of scores
ROUNDING = 10**-DIGITS
# the name of the result that stands for those of a part while they are not shown
HIDDEN_TESTS = "hidden_tests"

_UNWRITTEN = re.compile(r"(`[\w.]+`|This part) is not written yet\b")

Outcome = Literal["passed", "followed", "failed", "skipped", "timeout", "crashed", "decided"]
Status = Literal["graded", "refused"]


class CourseError(Exception):
    """An error in the course that its author must fix; `str(error)` is one sentence per problem."""

    def __init__(self, problems: str | Iterable[str]) -> None:
        self.problems: tuple[str, ...] = (
            (problems,) if isinstance(problems, str) else tuple(problems)
        )
        super().__init__("\n".join(self.problems))


class RefusedError(Exception):
    """A submission or an argument that cannot be used; `str(error)` is the reason as a sentence."""


class InfrastructureError(Exception):
    """A failure of the machine, not of a student; never a score.

    `str(error)` says how to proceed.
    """


def total(points: Iterable[float]) -> float:
    """Return the sum of points, rounded: 0.1 and 0.2 are 0.3, for machines, too."""
    return round(sum(points), DIGITS)


def unusable(what: str, error: OSError) -> RefusedError | InfrastructureError:
    """Return the exception for a file or folder that cannot be used: a refusal, unless the machine failed."""
    return (InfrastructureError if error.errno in MACHINE else RefusedError)(
        f"{what}: {error.strerror}."
    )


@dataclass(frozen=True)
class SourceFile:
    """The text of one submitted file; `name` ends in `.py` or `.ipynb`."""

    name: str
    text: str

    @property
    def is_notebook(self) -> bool:
        return self.name.endswith(".ipynb")


@dataclass(frozen=True)
class Submission:
    """One student's submission for one assignment: the texts of its files, or the `problem` for its refusal.

    Usually there is one file. If there are a `.py` and an `.ipynb`, the grader decides which one
    counts, or refuses the submission if they differ. `notes` are sentences for the instructor about
    the choice among several files.
    """

    student: str
    assignment: str
    files: tuple[SourceFile, ...] = ()
    problem: str | None = None
    path: Path | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TestResult:
    """The result of one test for one submission; a class has many thousands of them.

    "followed": it failed, and passes with the solution in place of an earlier part that failed,
    too. "decided": an instructor's decision about the points, which is never in a journal.
    `full_message` has the inputs and numbers of a hidden test, if they are shown after the due date
    only. `to_try` is a line about the input of a failure that may be shown: the call to paste, or
    where the test stands.
    """

    __test__: ClassVar[bool] = False  # not a test class, despite its name

    name: str
    part: str
    title: str
    outcome: Outcome
    score: float
    max_score: float
    message: str | None = None
    hint: str | None = None
    mistake: str | None = None
    hidden: bool = True
    full_message: str | None = None
    to_try: str | None = None

    @property
    def is_right(self) -> bool:
        return self.outcome in ("passed", "followed", "decided")

    @property
    def fails(self) -> bool:
        """Whether it is neither right nor waiting for another test."""
        return not self.is_right and self.outcome != "skipped"

    @property
    def is_unwritten(self) -> bool:
        """Whether it failed because the student's code for it is still to be written."""
        return self.outcome == "failed" and _UNWRITTEN.match(self.message or "") is not None

    @property
    def lost(self) -> float:
        return self.max_score - self.score

    @property
    def sentence(self) -> str:
        """The first line of the message, empty without one; the lines below it can be code."""
        return (self.message or "").split("\n")[0]

    @property
    def cause(self) -> object:
        """What results of one cause have in common: a known mistake's question, or else the message of a failure.

        A test that is right, and one that waits for another, is alone with its name.
        """
        return (self.hint or (self.outcome, self.message)) if self.fails else self.name


@dataclass(frozen=True, slots=True)
class Grade:
    """The grade of one submission, as the journal holds it.

    `flags` are sentences for the instructor to review; they do not affect the score. `test_seconds`
    are the elapsed seconds of each test, in the order of `tests`; empty in older grades.
    `graded_at` is when it was graded automatically, as ISO-8601 in UTC; empty for all others.
    """

    student: str
    assignment: str
    status: Status
    score: float
    max_score: float
    tests: tuple[TestResult, ...] = ()
    problem: str | None = None
    seed: int = 0
    isolation: str = "none"
    seconds: float = 0.0
    submission_sha256: str = ""
    suite_sha256: str = ""
    autograder: str = ""
    flags: tuple[str, ...] = ()
    test_seconds: Sequence[float] = ()
    graded_at: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """The student and the assignment: a later grade with the same key replaces this one."""
        return self.student, self.assignment

    @property
    def attempt(self) -> tuple[str, str, str]:
        """The student, the assignment and the digest of the submission."""
        return (*self.key, self.submission_sha256)

    @property
    def timed_tests(self) -> list[tuple[TestResult, float]]:
        """Each test with its elapsed seconds; 0 if unknown, and for an instructor's decision."""
        return list(zip(self.tests, (*self.test_seconds, *(0.0 for _ in self.tests))))

    def to_json(self) -> str:
        """Return the grade as one line that is complete in itself, as processes send it to each other."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> "Grade":
        """Parse a line written by `to_json`; raises ValueError if it is invalid."""
        try:
            return cls.from_record(json.loads(line))
        except RecursionError as error:
            raise ValueError(f"not a grade: {error}") from None

    @classmethod
    def from_record(
        cls, record: dict[str, Any], tests: tuple[TestResult, ...] | None = None
    ) -> "Grade":
        """Make a grade of a parsed line, with these results of tests if given; raises ValueError if it is invalid.

        Grades share equal texts and numbers.
        """
        try:
            if tests is None:
                tests = tuple(_test_result(*test.items()) for test in record["tests"])
            facts = _known(cls, record)
            flags = map(str, facts.pop("flags", ()))
            seconds = map(float, facts.pop("test_seconds", ()))
            grade = cls(
                **{**facts, "tests": tests},
                flags=tuple(flags),
                test_seconds=tuple(map(_shared, seconds)),
            )
        except (TypeError, KeyError, AttributeError, OverflowError) as error:
            raise ValueError(f"not a line of a journal: {error}") from None
        _check(grade)
        return grade


def _check(grade: Grade) -> None:
    """Raise ValueError unless the fields that are calculated with and shown have usable values."""
    texts = (grade.student, grade.assignment, grade.graded_at)
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("not a line of a journal: a field has the wrong type")
    if grade.status not in get_args(Status) or not all(
        test.outcome in get_args(Outcome) for test in grade.tests
    ):
        raise ValueError("not a line of a journal: an outcome that there is not")
    scored: list[Grade | TestResult] = [grade, *grade.tests]
    if not all(is_score(result.score, result.max_score) for result in scored):
        raise ValueError("not a line of a journal: a score is not between 0 and its maximum")
    if not all(is_amount(seconds) for seconds in (grade.seconds, *grade.test_seconds)):
        raise ValueError("not a line of a journal: a time is not a number of seconds")


def is_score(score: Any, maximum: Any) -> bool:
    """Whether both are finite numbers, and the score, which may be rounded, is between 0 and its maximum."""
    return is_amount(maximum) and is_amount(score) and bool(score <= maximum + ROUNDING)


def is_amount(value: Any) -> bool:
    """Whether this is a number from 0 to the largest finite one; neither NaN nor a truth value is."""
    return type(value) in (int, float) and bool(0 <= value <= sys.float_info.max)


@lru_cache(maxsize=50_000)
def _test_result(*facts: tuple[str, Any]) -> TestResult:
    return TestResult(**_known(TestResult, dict(facts)))


def _known(kind: type, record: dict[str, Any]) -> dict[str, Any]:
    """Drop unknown fields, so that journals of newer versions can be read."""
    names = {f.name for f in fields(kind)}
    values = ((key, value) for key, value in record.items() if key in names)
    return {
        k: v if k == "submission_sha256" or not isinstance(v, str | int | float) else _shared(v)
        for k, v in values
    }


@lru_cache(maxsize=10_000, typed=True)
def _shared(value: Any) -> Any:
    return value
