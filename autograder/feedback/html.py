"""All that is written about grades, and the pages for students in it.

A student's page tells what works, what does not yet, and asks one question that points the way. It
shows nothing that its grade does not hold, and needs no script, no network and no other file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from autograder.course import Assignment, Course
from autograder.feedback.class_report import write_class_report
from autograder.feedback.gradebook import latest_grades, write_gradebook
from autograder.feedback.pages import feedback_path, mistake_title, render
from autograder.feedback.statistics import share
from autograder.records import Grade, TestResult

WORDS = (
    (1.0, "Complete. Everything that was tested works."),
    (0.8, "Nearly there. Only a little is left."),
    (0.5, "Well on the way. At least half of it works."),
    (0.0, "A start. Some of it works; take what is left one thing at a time."),
)
NOTHING_YET = "Nothing passes yet. Begin with the first thing below; much of the rest may wait for it."
STATES = {"failed": "not yet", "timeout": "took too long", "crashed": "crashed"}


@dataclass
class Failure:
    """Tests of one part that ended in the same way: told once."""

    state: str
    message: str
    mistake: str | None
    hint: str | None
    titles: list[str] = field(default_factory=list)
    hint_is_new: bool = False


@dataclass
class PartPage:
    """What a page says of one part."""

    title: str
    score: float
    max_score: float
    works: list[str]
    failures: list[Failure]
    waiting: dict[str, list[str]]


def write_all(folder: Path, course: Course, grades: Iterable[Grade]) -> Path:
    """Write the gradebook, a page for each grade and the class report; returns the report's path.

    Raises InfrastructureError when jinja2 is missing; the gradebook is written even then.
    """
    grades = latest_grades(grades)
    write_gradebook(folder, grades)
    known = {assignment.name: assignment for assignment in course.assignments}
    for grade in grades:
        write_feedback(folder, grade, known.get(grade.assignment))
    return write_class_report(folder, course, grades)


def write_feedback(folder: Path, grade: Grade, assignment: Assignment | None) -> Path:
    """Write the page of one grade and return its path: `feedback/<student>/<assignment>.html` in `folder`.

    `assignment` gives the titles; it is None for a submission to an assignment that the course does not have.
    Raises InfrastructureError when jinja2 is missing.
    """
    path = folder / feedback_path(grade)
    path.parent.mkdir(parents=True, exist_ok=True)
    page = render(
        "feedback.html.j2",
        grade=grade,
        title=assignment.title if assignment else grade.assignment,
        word=word(grade),
        parts=_parts(grade, assignment),
    )
    path.write_text(page, encoding="utf-8", errors="replace")
    return path


def word(grade: Grade) -> str:
    """The score in words: warm, and not warmer than the truth."""
    reached = share(grade.score, grade.max_score)
    if reached <= 0:
        return NOTHING_YET
    return next(sentence for least, sentence in WORDS if reached >= least - 1e-9)


def _parts(grade: Grade, assignment: Assignment | None) -> list[PartPage]:
    titles = {part.name: part.title for part in assignment.parts} if assignment else {}
    found = {test.part: mistake_title(test.part) for test in grade.tests}
    order = [name for name in titles if name in found] + [name for name in found if name not in titles]
    parts, asked = [], set[str]()
    for name in order:
        tests = [test for test in grade.tests if test.part == name]
        parts.append(_part(titles.get(name, found[name]), tests, asked))
    return parts


def _part(title: str, tests: list[TestResult], asked: set[str]) -> PartPage:
    waiting: dict[str, list[str]] = {}
    failures: dict[tuple[str | None, ...], Failure] = {}
    for test in tests:
        if test.outcome == "skipped":
            waiting.setdefault(test.message or "This was not tested.", []).append(test.title)
        elif test.outcome != "passed":
            failure = Failure(STATES[test.outcome], test.message or "", test.mistake, test.hint)
            key = (test.outcome, test.message, test.mistake, test.hint)
            failures.setdefault(key, failure).titles.append(test.title)
    for failure in failures.values():
        failure.hint_is_new = bool(failure.hint) and failure.hint not in asked
        asked.add(failure.hint or "")
    return PartPage(
        title=title,
        score=sum(test.score for test in tests),
        max_score=sum(test.max_score for test in tests),
        works=[test.title for test in tests if test.outcome == "passed"],
        failures=list(failures.values()),
        waiting=waiting,
    )
