"""The record of a page: all that is shown of one grade, made once from the journal and the decisions.

HTML, Markdown and nbgrader's cells only render it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote, urlencode
from zoneinfo import ZoneInfo

from autograder.bridge.shared.errors import flags_for_student
from autograder.course.config import Assignment, Course
from autograder.feedback.causes import Cause, causes_of
from autograder.feedback.objections import HOW_TO_OBJECT, PASTE, text_to_copy
from autograder.feedback.pictures import Picture, failing_parts, pictures_of
from autograder.feedback.statistics import share
from autograder.feedback.titles import TitleOf, parts_in_order, titles_of, with_titles
from autograder.gradebook.final_scores import Effective, Standing, final_of, standing
from autograder.gradebook.lateness import GradeKey
from autograder.gradebook.texts import files_of
from autograder.gradebook.visibility import as_shown, final_as_shown, when
from autograder.records import Grade, TestResult

WORDS = (
    (1.0, "Complete. All tests pass."),
    (0.8, "Nearly there. Only a little is left."),
    (0.5, "Well on the way. At least half of it works."),
    (0.0, "A start. Some of it works; correct the rest one test at a time."),
)
LONGEST_MAIL = 1_500  # letters of a text in a link
NOTHING_YET = (
    "No test passes yet. Begin with the first one below; many of the others may depend on it."
)


@dataclass(frozen=True)
class PartRecord:
    """What a page shows of one part; a cause stands in the first part in which a test failed for it.

    `tests` are all results of the part, in the order of the suite. `followed` and `waiting` are
    those that a sentence explains, by that sentence.
    """

    name: str
    title: str
    tests: tuple[TestResult, ...] = ()
    causes: tuple[Cause, ...] = ()
    waiting: Mapping[str, Sequence[TestResult]] = field(default_factory=dict)
    followed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    pictures: tuple[Picture, ...] = ()

    @property
    def score(self) -> float:
        return sum(test.score for test in self.tests)

    @property
    def points(self) -> float:
        return sum(test.max_score for test in self.tests)

    @property
    def works(self) -> tuple[str, ...]:
        """The titles of the tests that pass."""
        return tuple(test.title for test in self.tests if test.outcome == "passed")


@dataclass(frozen=True)
class PageRecord:
    """All that a page shows of one grade.

    `student` is the id to show, `name` the display name; the `key` has the names in the grades.
    `problem` is the reason of a refusal, `late` the sentence about lateness, `loading` what happened
    when the file was read, `objection` the text with which the student can object, and `notice` a
    sentence about later work. With `visible_only`, the points are those of the visible tests. A text
    is empty if there is nothing to say.
    """

    key: GradeKey
    title: str
    student: str
    name: str
    contact: str
    files: tuple[str, ...]
    submitted: datetime | None
    handed_in: str
    standing: Standing
    problem: str
    score: float
    max_score: float
    visible_only: bool
    late: str
    decisions: tuple[str, ...]
    word: str
    loading: tuple[str, ...]
    parts: tuple[PartRecord, ...]
    objection: str
    notice: str = ""
    how_to_object: ClassVar[str] = HOW_TO_OBJECT

    @property
    def mail(self) -> str:
        """The link that begins a mail with the objection; empty if the course has no address."""
        if not self.contact:
            return ""
        is_short = len(self.objection) <= LONGEST_MAIL
        body = self.objection if is_short else PASTE
        words = {"subject": f"{self.title}, {self.student}", "body": body}
        return f"mailto:{self.contact}?{urlencode(words, quote_via=quote)}"


class PageRecords:
    """Makes the records of a class: of hidden tests, they hold what students may see at present.

    They hold the pictures that are already drawn into `folder`.
    """

    def __init__(self, folder: Path, course: Course, title_of: TitleOf | None = None) -> None:
        self.title_of = title_of or titles_of(course)
        self._folder = folder
        self._course = course
        self._zone = ZoneInfo(course.timezone)

    def page(self, grade: Grade, effective: Effective, scores: bool = False) -> PageRecord:
        """Return the record of the page of a grade; with `scores`, it has the points of hidden tests."""
        shown = as_shown(self._course, grade, scores=scores)
        final = final_of(grade, effective.finals)
        submitted = final.submitted
        final = final_as_shown(final, grade, shown)
        assignment = self._course.find(grade.assignment)
        drawn = pictures_of(self._folder, self._course, grade)
        kind = standing(grade, final)
        at_tests = {test.message for test in shown.tests if test.outcome == "decided"}
        sentences = [decision.sentence for decision in final.decisions]
        return PageRecord(
            key=grade.key,
            title=assignment.title if assignment else grade.assignment,
            student=effective.originals.get(grade.student, grade.student),
            name=effective.names.get(grade.student, ""),
            contact=self._course.contact or "",
            files=tuple(file.name for file in files_of(self._folder, grade.submission_sha256)),
            submitted=submitted,
            handed_in=when(submitted.astimezone(self._zone)) if submitted else "",
            standing=kind,
            problem=_problem(grade),
            score=final.score,
            max_score=shown.max_score,
            visible_only=shown.max_score != grade.max_score,
            late=final.sentence,
            decisions=tuple(sentence for sentence in sentences if sentence not in at_tests),
            word=word(shown),
            loading=tuple(flags_for_student(grade.flags)),
            parts=_parts(with_titles(shown, self.title_of), assignment, drawn),
            objection=text_to_copy(shown) if kind == "scored" else "",
        )


def word(grade: Grade) -> str:
    """Return the score in words, encouraging but truthful."""
    reached = share(grade.score, grade.max_score)
    if reached <= 0:
        return NOTHING_YET
    if reached >= 1 and not all(test.is_right for test in grade.tests):
        return "All visible tests pass."
    return next(sentence for least, sentence in WORDS if reached >= least - 1e-9)


def _problem(grade: Grade) -> str:
    return grade.problem or "No reason was given." if grade.status == "refused" else ""


def _parts(
    grade: Grade, assignment: Assignment | None, drawn: Collection[Picture]
) -> tuple[PartRecord, ...]:
    in_parts = [test for test in grade.tests if test.part]
    titles = parts_in_order(assignment, dict.fromkeys(test.part for test in in_parts))
    order = list(titles)
    tests = sorted(in_parts, key=lambda test: order.index(test.part))
    causes = causes_of(test for test in tests if test.fails)
    failing = failing_parts(grade)
    pictures = [picture for picture in drawn if picture.part in failing]
    return tuple(_part(name, title, tests, causes, pictures) for name, title in titles.items())


def _part(
    name: str,
    title: str,
    every: Sequence[TestResult],
    causes: Sequence[Cause],
    pictures: Sequence[Picture],
) -> PartRecord:
    tests = tuple(test for test in every if test.part == name)
    begun = tuple(cause for cause in causes if cause.tests[0].part == name)
    waiting: dict[str, list[TestResult]] = {}
    followed: dict[str, list[str]] = {}
    for test in tests:
        if test.outcome == "skipped":
            waiting.setdefault(test.message or "This test was not run.", []).append(test)
        elif test.outcome in ("followed", "decided"):
            if test.message:
                followed.setdefault(test.message, []).append(test.title)
        elif test.fails and not any(test in cause.tests for cause in begun):
            named = f" ({test.mistake})" if test.mistake else ""
            waiting.setdefault(f"These fail for a reason given above{named}.", []).append(test)
    drawn = tuple(picture for picture in pictures if picture.part == name)
    return PartRecord(name, title, tests, begun, waiting, followed, drawn)
