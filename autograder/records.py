"""The small typed records that travel between the rooms: results, grades, submissions.

They know nobody; every other module may import them. `Grade` is one line of the journal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Literal

SCHEMA = 1

Outcome = Literal["passed", "failed", "skipped", "timeout", "crashed"]
Status = Literal["graded", "refused"]


class CourseError(Exception):
    """Something that the course's author must mend; its `str` is one readable sentence a problem."""

    def __init__(self, problems: str | Iterable[str]) -> None:
        self.problems: tuple[str, ...] = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))


class RefusedError(Exception):
    """A submission that cannot be graded; its `str` is the sentence that says why."""


class InfrastructureError(Exception):
    """The machine, not a student, failed; never turned into a score. Its `str` says what to do."""


@dataclass(frozen=True)
class SourceFile:
    """The text of one file that a student handed in: `name` ends in `.py` or `.ipynb`."""

    name: str
    text: str

    @property
    def is_notebook(self) -> bool:
        return self.name.endswith(".ipynb")


@dataclass(frozen=True)
class Submission:
    """One student's work for one assignment: its files' texts, or the `problem` that made it refused.

    Usually there is one file; a `.py` and an `.ipynb` of the same assignment may both be there,
    and the grader decides which of the two counts (or refuses when they differ).
    """

    student: str
    assignment: str
    files: tuple[SourceFile, ...] = ()
    problem: str | None = None
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class TestResult:
    """What one test of the suite said about one submission; a class has many thousands of them."""

    __test__: ClassVar[bool] = False  # its name looks like a test's to pytest

    name: str
    part: str
    title: str
    outcome: Outcome
    score: float
    max_score: float
    message: str | None = None
    hint: str | None = None
    mistake: str | None = None


@dataclass(frozen=True)
class Grade:
    """One line of the journal: all that is known of one submission after grading.

    `flags` are sentences for a person to look at; they cost nothing.
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
    schema: int = field(default=SCHEMA)

    def to_json(self) -> str:
        record = asdict(self)
        record = {"schema": record.pop("schema"), **record}
        return json.dumps(record, ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> Grade:
        """The grade that one journal line holds; raises ValueError when the line is not one.

        Texts that many grades have in common, such as titles, are held once.
        """
        try:
            record: dict[str, Any] = json.loads(line)
            tests = tuple(TestResult(**_known(TestResult, test)) for test in record.pop("tests"))
            flags = tuple(map(str, record.pop("flags", ())))
            grade = cls(tests=tests, flags=flags, **_known(cls, record))
        except (TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(f"not a line of a journal: {error}") from None
        texts = (grade.student, grade.assignment, grade.status)
        numbers = (grade.score, grade.max_score, *(t.score for t in tests), *(t.max_score for t in tests))
        if not all(isinstance(t, str) for t in texts) or not all(isinstance(n, int | float) for n in numbers):
            raise ValueError("not a line of a journal: a text or a number is something else")
        return grade


def _known(kind: type, record: dict[str, Any]) -> dict[str, Any]:
    """Only the fields this version knows: a journal written by a newer one can still be read."""
    names = {f.name for f in fields(kind)}
    return {key: _once(value) for key, value in record.items() if key in names}


def _once(value: Any) -> Any:
    return sys.intern(value) if isinstance(value, str) else value
