"""“Is this wrong?”: the text with which a student objects to a grade, and an instructor's look at one.

The text names the submission by its digest, and tests by their titles. What else it says is a claim
of its author; what came back is read from the journal.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from autograder.feedback.pages import printable
from autograder.records import Grade, RefusedError, TestResult
from autograder.source.gate import read_text
from autograder.text.names import shown
from autograder.text.wording import LISTED, joined

HEADING = "Is this wrong?"
HOW_TO_OBJECT = (
    "Copy this text, keep the tests that you mean, and say why. A small example, with what it should "
    "give, says most."
)
PASTE = f"Copy the text below “{HEADING}” here.\n\n"
LIMIT = 1 << 16  # bytes of a text
SHORT = 12  # letters of a digest where people read it
WHOLE = f"Ask for the text below “{HEADING}” on the feedback page, as it is there."
_QUOTE = re.compile(r"^(?:> ?)+", re.MULTILINE)  # of a mail that was answered
_ASSIGNMENT = re.compile(r"\bAssignment: (\S+)")
_DIGEST = re.compile(r"\bSubmission: ([0-9a-f]{64})\b")
_REASON = re.compile(r"\bMy reason:")


def text_to_copy(grade: Grade) -> str:
    """Return the text for a grade as its student sees it; empty if none of its code fails a test."""
    failing = [test for test in grade.tests if test.fails and not test.is_unwritten]
    if not failing or not grade.submission_sha256:
        return ""
    head = f"Assignment: {grade.assignment}\nSubmission: {grade.submission_sha256}"
    tests = [f"Test: {test.title}\nCame back: {test.sentence or test.outcome}" for test in failing]
    text: str = printable("\n\n".join([head, *tests, "My reason:\n"]))
    return text


@dataclass(frozen=True)
class Request:
    """A text that came back: what it is about, by test what it says came back, and the reason.

    `student` is the one whose submission it is, found in the journal.
    """

    student: str
    assignment: str
    digest: str
    tests: Mapping[str, str]
    reason: str

    @property
    def reference(self) -> str:
        """What a decision says of the request."""
        return f"{self.digest[:SHORT]}: {' / '.join(self.tests)}"


@dataclass(frozen=True)
class Answer:
    """What a disputed test said in the journal, and what it says now; `claimed` is what else the text says."""

    test: str
    title: str
    before: str
    now: str
    claimed: str


@dataclass(frozen=True)
class Objection:
    """A request, and what its tests answer when the submission is graded once more with its seed."""

    request: Request
    answers: tuple[Answer, ...]
    other_suite: bool

    def as_record(self) -> dict[str, Any]:
        """Return the objection as a JSON-serializable dict."""
        return asdict(self)


def read_request(
    file: Path, journal: Iterable[Grade], student: str | None = None
) -> tuple[Request, Grade]:
    """Return the request of a file, and the grade that it is about.

    Raises RefusedError if no grade, or one of several students, can be meant; a `student` says whose.
    """
    name = shown(file.name)
    lines = _QUOTE.sub("", read_text(file, LIMIT))
    words = " ".join(lines.split())
    assignment = _ASSIGNMENT.search(words)
    digest = _DIGEST.search(words)
    if assignment is None or digest is None:
        missing = "assignment" if assignment is None else "digest of a submission"
        raise RefusedError(f"{name} names no {missing}. {WHOLE}")
    graded = [
        grade
        for grade in journal
        if grade.status == "graded" and grade.submission_sha256 == digest[1]
    ]
    grade = _one_of(name, graded, assignment[1], student)
    before_reason, *after = _REASON.split(lines, maxsplit=1)
    tests = _tests(" ".join(before_reason.split()))
    failing = {_title(test) for test in grade.tests if test.fails}
    unknown = [title for title in tests if title not in failing]
    if unknown or not tests:
        about = f"a test that did not fail, “{shown(unknown[0])}”" if unknown else "no test"
        raise RefusedError(f"{name} names {about}. {WHOLE}")
    reason = printable("".join(after).strip())
    return Request(grade.student, grade.assignment, grade.submission_sha256, tests, reason), grade


def _tests(words: str) -> dict[str, str]:
    """Return what the words say came back, by the titles of tests."""
    tests = {}
    for entry in words.split("Test: ")[1:]:
        title, _, came_back = entry.partition("Came back: ")
        tests[title.strip()] = came_back.strip()
    return tests


def _one_of(name: str, graded: list[Grade], assignment: str, student: str | None) -> Grade:
    """Return the last grade of this assignment, and of the student if one is given; raises RefusedError."""
    if not graded:
        raise RefusedError(f"The submission that {name} names is not in the journal. {WHOLE}")
    latest = {grade.student: grade for grade in graded if grade.assignment == assignment}
    if not latest:
        raise RefusedError(
            f"The submission that {name} names is of {graded[-1].assignment}, not of {shown(assignment)}."
        )
    students = sorted(latest)
    if student is not None and student not in latest:
        raise RefusedError(
            f"The submission that {name} names is not of {student}, but of {joined(students, LISTED)}."
        )
    if student is None and len(students) > 1:
        raise RefusedError(
            f"The submission that {name} names is of {joined(students, LISTED)}: their work is equal. "
            "Say who asks: `autograder decide STUDENT --request FILE`. Nothing was written."
        )
    return latest[student or students[0]]


def looked_at(request: Request, before: Grade, now: Grade) -> Objection:
    """Return the objection with what its tests answered in the journal, and when graded again."""
    answers = tuple(_answers(request, before, now))
    return Objection(request, answers, before.suite_sha256 != now.suite_sha256)


def _answers(request: Request, before: Grade, now: Grade) -> Iterator[Answer]:
    of_now = {test.name: test for test in now.tests}
    for test in before.tests:
        if test.fails and (claimed := request.tests.get(_title(test))) is not None:
            again = of_now.get(test.name)
            said = (test.sentence, (test.full_message or "").split("\n")[0], test.outcome)
            is_true = claimed in [" ".join(printable(text).split()) for text in said]
            yield Answer(
                test.name,
                test.title,
                _told(test),
                _told(again) if again else "The suite has no such test any more.",
                "" if is_true else claimed,
            )


def _title(test: TestResult) -> str:
    return " ".join(str(printable(test.title)).split())


def _told(test: TestResult) -> str:
    message = test.full_message or test.message
    return f"{test.outcome}: {message}" if message else test.outcome
