"""All that is written about grades, and the pages for students in it.

A student's page tells what works, what does not yet, and asks one question that points the way. It
shows nothing that its grade does not hold, and needs no script, no network and no other file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from autograder.course.config import Assignment, Course
from autograder.feedback.class_report import write_class_report
from autograder.feedback.pages import feedback_path, render
from autograder.feedback.pictures import Picture, pictures_of
from autograder.feedback.statistics import share
from autograder.feedback.titles import TitleOf, in_words, titles_of
from autograder.gradebook.final_scores import final_of, what_counts, write_gradebook
from autograder.gradebook.lateness import Final, GradeKey
from autograder.gradebook.texts import names_of
from autograder.gradebook.times import Times, read_names, read_times
from autograder.records import Grade, TestResult
from autograder.text.files import write_whole

WORDS = (
    (1.0, "Complete. Everything that was tested works."),
    (0.8, "Nearly there. Only a little is left."),
    (0.5, "Well on the way. At least half of it works."),
    (0.0, "A start. Some of it works; take what is left one thing at a time."),
)
NOTHING_YET = "Nothing passes yet. Begin with the first thing below; much of the rest may wait for it."
STATES = {"failed": "not yet", "timeout": "took too long", "crashed": "crashed"}


@dataclass(frozen=True)
class HandedIn:
    """Which files a page is about, when they came and from whom; nothing where that is not known."""

    files: tuple[str, ...] = ()
    at: datetime | None = None
    name: str = ""

    @property
    def when(self) -> str:
        """`27 November 2026, 12:00 CET`, on the clock that `at` is of."""
        return f"{self.at.day} {self.at:%B %Y, %H:%M %Z}" if self.at else ""


@dataclass
class FailureView:
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
    failures: list[FailureView]
    waiting: dict[str, list[str]]
    pictures: list[Picture]
    undrawn: dict[str, list[str]]


def write_all(folder: Path, course: Course, grades: Iterable[Grade]) -> Path:
    """Write the gradebook, a page for each grade and the class report; returns the report's path.

    `grades` are all that a journal holds, in its order; the course says which attempt counts, and how much when it
    came late. The pages hold the pictures that were drawn into `folder` before.
    Raises InfrastructureError when jinja2 is missing; the gradebook is written even then.
    """
    return write_what_counts(folder, course, *what_counts(folder, course, grades))


def write_what_counts(
    folder: Path, course: Course, grades: Sequence[Grade], count: Mapping[GradeKey, Final]
) -> Path:
    """As `write_all`, of the grades that count alone; `count` is what each of them counts."""
    write_gradebook(folder, grades, count)
    title_of = titles_of(course)
    times, names = read_times(folder), read_names(folder)
    for grade in grades:
        pictures = pictures_of(folder, course, grade)
        final = final_of(grade, count)
        came = handed_in(folder, course, grade, times, names.get(grade.student, ""))
        write_feedback(folder, grade, course.find(grade.assignment), title_of, pictures, final, came)
    return write_class_report(folder, course, grades, title_of, count)


def write_feedback(
    folder: Path,
    grade: Grade,
    assignment: Assignment | None,
    title_of: TitleOf | None = None,
    pictures: Sequence[Picture] = (),
    final: Final | None = None,
    came: HandedIn | None = None,
) -> Path:
    """Write the page of one grade and return its path: `feedback/<student>/<assignment>.html` in `folder`.

    `assignment` gives the titles; it is None for a submission to an assignment that the course does not have.
    `title_of` gives those of mistakes, in whose place their ids are read as words; `came` is what was handed in.
    Raises InfrastructureError when jinja2 is missing.
    """
    path = folder / feedback_path(grade)
    page = render(
        "feedback.html.j2",
        grade=grade,
        title=assignment.title if assignment else grade.assignment,
        word=word(grade),
        final=final or Final(grade.score),
        came=came or HandedIn(),
        parts=_parts(grade, assignment, title_of, pictures),
    )
    write_whole(path, page)
    return path


def handed_in(folder: Path, course: Course, grade: Grade, times: Times, name: str = "") -> HandedIn:
    """What a student handed in, as it is kept beside the journal, and when, on the course's clock."""
    at = times.get((grade.student, grade.assignment, grade.submission_sha256))
    moment = at.astimezone(ZoneInfo(course.timezone)) if at else None
    return HandedIn(names_of(folder, grade), moment, "" if name == grade.student else name)


def word(grade: Grade) -> str:
    """The score in words: warm, and not warmer than the truth."""
    reached = share(grade.score, grade.max_score)
    if reached <= 0:
        return NOTHING_YET
    return next(sentence for least, sentence in WORDS if reached >= least - 1e-9)


def _parts(
    grade: Grade, assignment: Assignment | None, title_of: TitleOf | None, pictures: Sequence[Picture]
) -> list[PartPage]:
    titles = {part.name: part.title for part in assignment.parts} if assignment else {}
    found = {test.part: in_words(test.part) for test in grade.tests}
    order = [name for name in titles if name in found] + [name for name in found if name not in titles]
    parts, asked = [], set[str]()
    for name in order:
        tests = [_with_title(test, grade, title_of) for test in grade.tests if test.part == name]
        own = [picture for picture in pictures if picture.part == name]
        parts.append(_part(titles.get(name, found[name]), tests, asked, own))
    return parts


def _with_title(test: TestResult, grade: Grade, title_of: TitleOf | None) -> TestResult:
    """The same result, with its mistake called as people call it."""
    if not test.mistake:
        return test
    title = title_of(grade.assignment, test.mistake) if title_of else in_words(test.mistake)
    return replace(test, mistake=title)


def _part(title: str, tests: list[TestResult], asked: set[str], pictures: list[Picture]) -> PartPage:
    waiting: dict[str, list[str]] = {}
    failures: dict[tuple[str | None, ...], FailureView] = {}
    for test in tests:
        if test.outcome == "skipped":
            waiting.setdefault(test.message or "This was not tested.", []).append(test.title)
        elif test.outcome != "passed":
            failure = FailureView(STATES[test.outcome], test.message or "", test.mistake, test.hint)
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
        pictures=[picture for picture in pictures if picture.image],
        undrawn=_undrawn(pictures),
    )


def _undrawn(pictures: list[Picture]) -> dict[str, list[str]]:
    """The pictures that cannot be drawn, by the sentence that says why."""
    reasons: dict[str, list[str]] = {}
    for picture in pictures:
        if picture.problem:
            reasons.setdefault(picture.problem, []).append(picture.title)
    return reasons
