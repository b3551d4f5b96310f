"""What students see of hidden tests, by `feedback` in course.yml and the date."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone

from autograder.course.config import Assignment, Course
from autograder.gradebook.lateness import Final, due_for
from autograder.records import HIDDEN_TESTS, Grade, TestResult, total
from autograder.text.wording import counted

TimedTest = tuple[TestResult, float]  # with its seconds
NEVER = "The results of hidden tests are not shown."


def as_shown(
    course: Course, grade: Grade, now: datetime | None = None, scores: bool = False
) -> Grade:
    """Return the grade as students may see it at a moment, by default the present one.

    The hidden tests of a part become one result with a sentence. With `visible`, the score is that
    of the visible tests, unless `scores` asks for the points of the hidden ones.
    """
    level, until = visibility(course, grade.assignment, now)
    if level in ("hints", "full"):
        return with_full_messages(grade) if level == "full" else grade
    sentence = f"The results of hidden tests are shown after {when(until)}." if until else NEVER
    counts = scores or level == "parts"
    timed_tests: list[TimedTest] = []
    for part in dict.fromkeys(test.part for test in grade.tests):
        of_part = [timed for timed in grade.timed_tests if timed[0].part == part]
        timed_tests += [(test, seconds) for test, seconds in of_part if not test.hidden]
        hidden = [(test, seconds) for test, seconds in of_part if test.hidden]
        if hidden:
            timed_tests.append(_hidden_tests(part, hidden, sentence, counts))
    tests = tuple(test for test, _ in timed_tests)
    seconds = tuple(seconds for _, seconds in timed_tests) if grade.test_seconds else ()
    shown = replace(grade, tests=tests, test_seconds=seconds)
    if counts or not tests:
        return shown
    maximum = total(test.max_score for test in tests)
    score = total(test.score for test in tests)
    return replace(shown, score=min(maximum, score), max_score=maximum)


def _hidden_tests(part: str, tests: Sequence[TimedTest], sentence: str, counts: bool) -> TimedTest:
    """Return one result, with its seconds, in place of the hidden tests of a part."""
    score = total(test.score for test, _ in tests) if counts else 0.0
    maximum = total(test.max_score for test, _ in tests) if counts else 0.0
    title = counted(len(tests), "hidden test")
    result = TestResult(HIDDEN_TESTS, part, title, "skipped", score, maximum, sentence)
    return result, round(sum(seconds for _, seconds in tests), 3)


def final_as_shown(final: Final, grade: Grade, shown: Grade) -> Final:
    """Return the final score of a grade that is `shown`: without lateness, if the points of hidden tests are missing."""
    if shown.max_score == grade.max_score:
        return final
    return replace(final, raw=shown.score, minus=0.0, days=0, free=0)


def with_full_messages(grade: Grade) -> Grade:
    """Return the grade with the inputs and numbers of hidden tests, where they are stored."""
    tests = (replace(t, message=t.full_message) if t.full_message else t for t in grade.tests)
    return replace(grade, tests=tuple(tests))


def visibility(
    course: Course, name: str, now: datetime | None = None
) -> tuple[str, datetime | None]:
    """Return the level of an assignment at a moment, and when it ends, if it does.

    The due date has passed when it has for every student, extensions and the grace time included.
    """
    assignment = course.find(name)
    last = _last_due(course, assignment) if assignment else None
    if last is None:
        return course.feedback.before_due, None
    if (now or datetime.now(timezone.utc)) > last:
        return course.feedback.after_due, None
    shows_more_later = course.feedback.after_due not in ("visible", "parts")
    return course.feedback.before_due, last if shows_more_later else None


def when(moment: datetime) -> str:
    """Return `27 November 2026, 12:00 CET`."""
    return f"{moment.day} {moment:%B %Y, %H:%M %Z}"


def _last_due(course: Course, assignment: Assignment) -> datetime | None:
    late = course.late
    students = ["", *(extension.student for extension in late.extensions)] if late else [""]
    every_due = [due_for(course, assignment, student) for student in students]
    dues = [due for due in every_due if due]
    grace = timedelta(minutes=late.grace_minutes if late else 0)
    return max(dues, key=lambda due: due.astimezone(timezone.utc)) + grace if dues else None
