"""What students see of hidden tests, by `feedback` in course.yml and the date."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

from autograder.course.config import Assignment, Course
from autograder.gradebook.lateness import Final, due_for
from autograder.records import HIDDEN_TESTS, Grade, TestResult
from autograder.text.wording import counted

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
    shown_tests = list[tuple[TestResult, float]]()
    for part in dict.fromkeys(test.part for test in grade.tests):
        of_part = [timed for timed in grade.timed_tests if timed[0].part == part]
        shown_tests += [(test, seconds) for test, seconds in of_part if not test.hidden]
        hidden = [test for test, _ in of_part if test.hidden]
        if hidden:
            score, most = (
                (sum(t.score for t in hidden), sum(t.max_score for t in hidden))
                if counts
                else (0.0, 0.0)
            )
            title = counted(len(hidden), "hidden test")
            result = TestResult(HIDDEN_TESTS, part, title, "skipped", score, most, sentence)
            shown_tests.append(
                (result, round(sum(seconds for test, seconds in of_part if test.hidden), 3))
            )
    tests = [test for test, _ in shown_tests]
    times = [seconds for _, seconds in shown_tests]
    shown = replace(
        grade, tests=tuple(tests), test_seconds=tuple(times) if grade.test_seconds else ()
    )
    if counts or not tests:
        return shown
    most = sum(test.max_score for test in tests)
    return replace(shown, score=min(most, sum(test.score for test in tests)), max_score=most)


def final_as_shown(final: Final, grade: Grade, shown: Grade) -> Final:
    """Return the final score of a grade that is `shown`: without lateness, if the points of hidden
    tests are missing.
    """
    return (
        final
        if shown.max_score == grade.max_score
        else replace(final, raw=shown.score, minus=0.0, days=0)
    )


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
    return course.feedback.before_due, None if course.feedback.after_due in (
        "visible",
        "parts",
    ) else last


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
