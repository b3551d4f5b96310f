"""Write the gradebook, the class report and the students' feedback pages.

A student's page lists passed and failed tests and asks a question for each failure. It shows only the contents of its
grade, and needs no script, network or other file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from autograder.course.config import Assignment, Course
from autograder.feedback.class_report import write_class_report
from autograder.feedback.pages import feedback_path, render
from autograder.feedback.pictures import Picture, failing_parts, pictures_of
from autograder.feedback.statistics import share
from autograder.feedback.student_page import write_student_pages
from autograder.feedback.titles import TitleOf, parts_in_order, titles_of, with_titles
from autograder.gradebook.final_scores import Effective, final_of, is_answer, write_gradebook
from autograder.gradebook.lateness import Final
from autograder.gradebook.texts import files_of
from autograder.gradebook.times import read_names
from autograder.gradebook.visibility import as_shown, final_as_shown, when
from autograder.records import Grade, TestResult
from autograder.text.files import write_whole
from autograder.text.names import safe_name

WORDS = (
    (1.0, "Complete. All tests pass."),
    (0.8, "Nearly there. Only a little is left."),
    (0.5, "Well on the way. At least half of it works."),
    (0.0, "A start. Some of it works; correct the rest one test at a time."),
)
NOTHING_YET = "No test passes yet. Begin with the first one below; many of the others may depend on it."
STATES = {"failed": "not yet", "timeout": "took too long", "crashed": "crashed"}


@dataclass(frozen=True)
class HandedIn:
    """The files of a page, their submission time, the student's display name, and where to write; empty if unknown.

    `visible_only` says that the page does not tell the points of hidden tests.
    """

    files: tuple[str, ...] = ()
    at: datetime | None = None
    name: str = ""
    contact: str = ""
    visible_only: bool = False

    @property
    def when(self) -> str:
        """`27 November 2026, 12:00 CET`, in the time zone of `at`."""
        return when(self.at) if self.at else ""


@dataclass
class FailureView:
    """Tests that failed with the same message."""

    state: str
    message: str
    tests: list[TestResult] = field(default_factory=list)


@dataclass
class CauseView:
    """What made tests fail, in one part or in several: a known mistake and its question, or an unknown cause."""

    mistake: str | None
    hint: str | None
    failures: list[FailureView]

    @property
    def tests(self) -> list[TestResult]:
        return [test for failure in self.failures for test in failure.tests]


@dataclass
class PartPage:
    """The section of a page about one part; a cause stands in the first part in which a test failed for it."""

    title: str
    score: float
    max_score: float
    works: list[str]
    causes: list[CauseView]
    waiting: dict[str, list[TestResult]]
    followed: dict[str, list[str]]
    pictures: list[Picture]
    undrawn: dict[str, list[str]]
    answer: TestResult | None = None


def write_what_counts(folder: Path, course: Course, effective: Effective, section: str | None = None) -> Path:
    """Write the gradebook, the pages and the class report, or only the report of a section; return its path.

    The pages contain the pictures already drawn into `folder`, and of hidden tests what students may see at present.
    Raises InfrastructureError if jinja2 is missing; the gradebook is written even then.
    """
    if section is not None:
        return write_class_report(folder, course, effective, file_name=f"index-{safe_name(section)}.html")
    grades, count = effective.grades, effective.finals
    write_gradebook(folder, grades, count)
    title_of = titles_of(course)
    names = read_names(folder)
    for grade in grades:
        shown, final = as_shown(course, grade), final_of(grade, count)
        pictures = [p for p in pictures_of(folder, course, grade) if p.part in failing_parts(shown)]
        came = handed_in(folder, course, grade, final, names.get(grade.student, ""))
        final = final_as_shown(final, grade, shown)
        came = replace(came, visible_only=shown.max_score != grade.max_score)
        write_feedback(folder, shown, course.find(grade.assignment), title_of, pictures, final, came)
    write_student_pages(folder, course, effective, title_of, names | dict(effective.people.names))
    return write_class_report(folder, course, effective, title_of)


def write_feedback(
    folder: Path,
    grade: Grade,
    assignment: Assignment | None,
    title_of: TitleOf | None = None,
    pictures: Sequence[Picture] = (),
    final: Final | None = None,
    came: HandedIn | None = None,
) -> Path:
    """Write the page of one grade to `feedback/<student>/<assignment>.html` in `folder`; return its path.

    `assignment` provides the titles; it is None if the course does not contain the assignment. `title_of` provides the
    titles of mistakes, by default derived from their ids; `came` describes the submission.
    Raises InfrastructureError if jinja2 is missing.
    """
    path = folder / feedback_path(grade)
    page = render(
        "feedback.html.j2",
        grade=grade,
        title=assignment.title if assignment else grade.assignment,
        word=word(grade),
        final=final or Final(grade.score),
        came=came or HandedIn(),
        parts=_parts(with_titles(grade, title_of), assignment, pictures),
    )
    write_whole(path, page)
    return path


def handed_in(folder: Path, course: Course, grade: Grade, final: Final, name: str = "") -> HandedIn:
    """Return the stored submission of a student, with its time in the course's time zone."""
    moment = final.submitted.astimezone(ZoneInfo(course.timezone)) if final.submitted else None
    files = tuple(file.name for file in files_of(folder, grade))
    return HandedIn(files, moment, "" if name == grade.student else name, course.contact or "")


def word(grade: Grade) -> str:
    """Return the score in words, encouraging but truthful."""
    reached = share(grade.score, grade.max_score - sum(test.max_score for test in grade.waiting))
    if reached <= 0:
        return NOTHING_YET
    if reached >= 1 and not all(test.is_right for test in grade.tests):
        return "All visible tests pass."
    return next(sentence for least, sentence in WORDS if reached >= least - 1e-9)


def _parts(grade: Grade, assignment: Assignment | None, pictures: Sequence[Picture]) -> list[PartPage]:
    titles = parts_in_order(assignment, dict.fromkeys(test.part for test in grade.tests if test.part))
    order = list(titles)
    tests = sorted((test for test in grade.tests if test.part), key=lambda test: order.index(test.part))
    causes = _causes(tests)
    return [
        _part(
            title,
            [test for test in tests if test.part == name],
            causes,
            [picture for picture in pictures if picture.part == name],
        )
        for name, title in titles.items()
    ]


def _causes(tests: list[TestResult]) -> dict[object, CauseView]:
    """Group failed tests by their causes, and those of one cause by their messages."""
    causes: dict[object, dict[tuple[str, str | None], FailureView]] = {}
    for test in tests:
        if test.outcome in STATES:
            failure = FailureView(STATES[test.outcome], test.message or "")
            failures = causes.setdefault(test.cause, {})
            failures.setdefault((test.outcome, test.message), failure).tests.append(test)
    views = {}
    for cause, failures in causes.items():
        first = next(iter(failures.values())).tests[0]
        views[cause] = CauseView(first.mistake, first.hint, list(failures.values()))
    return views


def _part(title: str, tests: list[TestResult], causes: Mapping[object, CauseView], pictures: list[Picture]) -> PartPage:
    waiting: dict[str, list[TestResult]] = {}
    followed: dict[str, list[str]] = {}
    answers = [test for test in tests if is_answer(test) and test.outcome in ("decided", "waiting")]
    for test in tests:
        if test in answers:
            continue
        if test.outcome == "skipped":
            waiting.setdefault(test.message or "This test was not run.", []).append(test)
        elif test.outcome in ("followed", "decided"):
            if test.message:
                followed.setdefault(test.message, []).append(test.title)
        elif test.outcome != "passed" and causes[test.cause].tests[0].part != test.part:
            named = f" ({test.mistake})" if test.mistake else ""
            waiting.setdefault(f"These fail for a reason given above{named}.", []).append(test)
    return PartPage(
        title=title,
        score=sum(test.score for test in tests),
        max_score=sum(test.max_score for test in tests),
        works=[test.title for test in tests if test.outcome == "passed"],
        causes=[cause for cause in causes.values() if cause.tests[0] in tests],
        waiting=waiting,
        followed=followed,
        pictures=[picture for picture in pictures if picture.image],
        undrawn=_undrawn(pictures),
        answer=next(iter(answers), None),
    )


def _undrawn(pictures: list[Picture]) -> dict[str, list[str]]:
    """Group the titles of pictures that cannot be drawn by the reason."""
    reasons: dict[str, list[str]] = {}
    for picture in pictures:
        if picture.problem:
            reasons.setdefault(picture.problem, []).append(picture.title)
    return reasons
