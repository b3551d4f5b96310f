"""Write the gradebook, the class report and the students' feedback pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

from autograder.bridge.shared.errors import flags_for_student
from autograder.course.config import Assignment, Course
from autograder.feedback.class_report import write_class_report
from autograder.feedback.pages import feedback_path, write_page
from autograder.feedback.pictures import Picture, failing_parts, pictures_of
from autograder.feedback.statistics import share
from autograder.feedback.student_page import write_student_page
from autograder.feedback.titles import TitleOf, parts_in_order, titles_of, with_titles
from autograder.gradebook.final_scores import Effective, final_of, write_gradebook
from autograder.gradebook.lateness import Final, GradeKey
from autograder.gradebook.texts import files_of
from autograder.gradebook.times import read_names, read_originals
from autograder.gradebook.visibility import as_shown, final_as_shown, when
from autograder.records import Grade, InfrastructureError, TestResult
from autograder.runs.fence import may_pass, sentence_of
from autograder.text.names import safe_name

TEMPLATE = "feedback.html.j2"
WORDS = (
    (1.0, "Complete. All tests pass."),
    (0.8, "Nearly there. Only a little is left."),
    (0.5, "Well on the way. At least half of it works."),
    (0.0, "A start. Some of it works; correct the rest one test at a time."),
)
NOTHING_YET = (
    "No test passes yet. Begin with the first one below; many of the others may depend on it."
)
STATES = {"failed": "not yet", "timeout": "took too long", "crashed": "crashed"}
# the failures with one cause: for each message, the tests that failed with it
Cause = list[list[TestResult]]


@dataclass
class PartPage:
    """The section of a page about one part; a cause stands in the first part in which a test failed for it."""

    title: str
    score: float
    points: float
    works: tuple[str, ...]
    causes: list[Cause]
    waiting: dict[str, list[TestResult]]
    followed: dict[str, list[str]]
    pictures: list[Picture]


def write_what_counts(
    folder: Path, course: Course, effective: Effective, section: str | None = None
) -> Path:
    """Write the gradebook, the pages and the class report, or only the report of a section; return its path.

    The pages contain the pictures already drawn into `folder`, and of hidden tests what students
    may see at present. Raises InfrastructureError if jinja2 is missing; the gradebook is written
    even then. It is also raised in the end for students whose pages have a fault.
    """
    if section is not None:
        return write_class_report(
            folder, course, effective, file_name=f"index-{safe_name(section)}.html"
        )
    write_gradebook(folder, effective.grades, effective.finals)
    faults = _write_pages(folder, course, effective)
    report = write_class_report(folder, course, effective)
    if faults:
        raise InfrastructureError("\n".join(faults))
    return report


def _write_pages(folder: Path, course: Course, effective: Effective) -> list[str]:
    """Write the pages of all students; return sentences about those that meet a fault of this program."""
    pages = StudentPages(folder, course)
    faults = []
    for student in effective.by_student():
        try:
            pages.write(student)
        except Exception as error:
            if may_pass(error):
                raise
            faults.append(f"{student.grades[0].student}: {sentence_of(error)}")
    return faults


class StudentPages:
    """What the pages of a class show of each grade: of hidden tests, what students may see at present.

    The pages contain the pictures already drawn into `folder`.
    """

    def __init__(self, folder: Path, course: Course, title_of: TitleOf | None = None) -> None:
        self.title_of = title_of or titles_of(course)
        self.names = read_names(folder)
        self.originals = read_originals(folder)
        self._folder = folder
        self._course = course
        self._zone = ZoneInfo(course.timezone)

    def write(
        self, student: Effective, notices: Mapping[GradeKey, str] = MappingProxyType({})
    ) -> None:
        """Write the pages of one student: one of each grade, and one for the instructors.

        `notices` are sentences about later work, which the page of a grade shows above it.
        """
        for grade in student.grades:
            values = self.values(grade, student.finals)
            values["notice"] = notices.get(grade.key, "")
            write_page(self._folder / feedback_path(grade), TEMPLATE, **values)
        write_student_page(
            self._folder, self._course, student, self.title_of, self.names, self.originals
        )

    def values(self, grade: Grade, finals: Mapping[GradeKey, Final]) -> dict[str, Any]:
        """Return the values of the template of a grade's page."""
        shown = as_shown(self._course, grade)
        final = final_of(grade, finals)
        pictures = [
            p
            for p in pictures_of(self._folder, self._course, grade)
            if p.part in failing_parts(shown)
        ]
        about: dict[str, str | bool] = {
            "student": self.originals.get(grade.student, grade.student),
            "name": self.names.get(grade.student, ""),
            "contact": self._course.contact or "",
            "handed_in": when(final.submitted.astimezone(self._zone)) if final.submitted else "",
            "visible_only": shown.max_score != grade.max_score,
        }
        final = final_as_shown(final, grade, shown)
        assignment = self._course.find(grade.assignment)
        return page_values(self._folder, shown, assignment, self.title_of, pictures, final, **about)


def write_feedback(
    folder: Path, grade: Grade, assignment: Assignment | None, title_of: TitleOf | None = None
) -> Path:
    """Write the page of one grade to `feedback/<student>/<assignment>.html` in `folder`; return its path.

    The arguments are those of `page_values`. Raises InfrastructureError if jinja2 is missing.
    """
    return write_page(
        folder / feedback_path(grade), TEMPLATE, **page_values(folder, grade, assignment, title_of)
    )


def page_values(
    folder: Path,
    grade: Grade,
    assignment: Assignment | None,
    title_of: TitleOf | None = None,
    pictures: Sequence[Picture] = (),
    final: Final | None = None,
    **about: str | bool,
) -> dict[str, Any]:
    """Return all that the page of one grade shows, in HTML and in Markdown.

    `assignment` provides the titles; it is None if the course does not contain the assignment.
    `title_of` provides the titles of mistakes, by default derived from their ids. `about` are
    further values for the template: the id of the `student` to show, the display `name`, the
    `contact`, the time when it was `handed_in`, and `visible_only` if the page does not tell the
    points of hidden tests, and a `notice` about later work.
    """
    return {
        "grade": grade,
        "title": assignment.title if assignment else grade.assignment,
        "word": word(grade),
        "loading": flags_for_student(grade.flags),
        "final": final or Final(grade.score),
        "files": files_of(folder, grade.submission_sha256),
        "states": STATES,
        "parts": _parts(with_titles(grade, title_of), assignment, pictures),
        **{
            "student": grade.student,
            "name": "",
            "contact": "",
            "handed_in": "",
            "visible_only": False,
            "notice": "",
            **about,
        },
    }


def word(grade: Grade) -> str:
    """Return the score in words, encouraging but truthful."""
    reached = share(grade.score, grade.max_score)
    if reached <= 0:
        return NOTHING_YET
    if reached >= 1 and not all(test.is_right for test in grade.tests):
        return "All visible tests pass."
    return next(sentence for least, sentence in WORDS if reached >= least - 1e-9)


def _parts(
    grade: Grade, assignment: Assignment | None, pictures: Sequence[Picture]
) -> list[PartPage]:
    titles = parts_in_order(
        assignment, dict.fromkeys(test.part for test in grade.tests if test.part)
    )
    order = list(titles)
    tests = sorted(
        (test for test in grade.tests if test.part), key=lambda test: order.index(test.part)
    )
    causes = _causes(tests)
    return [_part(name, title, tests, causes, pictures) for name, title in titles.items()]


def _causes(tests: list[TestResult]) -> dict[object, Cause]:
    causes: dict[object, dict[tuple[str, str | None], list[TestResult]]] = {}
    for test in tests:
        if test.outcome in STATES:
            causes.setdefault(test.cause, {}).setdefault((test.outcome, test.message), []).append(
                test
            )
    return {cause: list(failures.values()) for cause, failures in causes.items()}


def _part(
    name: str,
    title: str,
    every: list[TestResult],
    causes: Mapping[object, Cause],
    pictures: Sequence[Picture],
) -> PartPage:
    tests = [test for test in every if test.part == name]
    waiting: dict[str, list[TestResult]] = {}
    followed: dict[str, list[str]] = {}
    for test in tests:
        if test.outcome == "skipped":
            waiting.setdefault(test.message or "This test was not run.", []).append(test)
        elif test.outcome in ("followed", "decided"):
            if test.message:
                followed.setdefault(test.message, []).append(test.title)
        elif test.outcome != "passed" and causes[test.cause][0][0].part != test.part:
            named = f" ({test.mistake})" if test.mistake else ""
            waiting.setdefault(f"These fail for a reason given above{named}.", []).append(test)
    begun = [cause for cause in causes.values() if cause[0][0] in tests]
    drawn = [picture for picture in pictures if picture.part == name]
    score = sum(test.score for test in tests)
    points = sum(test.max_score for test in tests)
    works = tuple(test.title for test in tests if test.outcome == "passed")
    return PartPage(title, score, points, works, begun, waiting, followed, drawn)
