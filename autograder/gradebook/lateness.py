"""What a score counts when work came late: the policy of course.yml, as pure functions.

The score in a journal stays as it was reached. What is taken off is worked out from it whenever pages are made, so a
changed due date or a further extension needs no new grading.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from autograder.course.config import Assignment, Course, LatePolicy
from autograder.course.yaml_file import closest
from autograder.records import Grade

GradeKey = tuple[str, str]  # student and assignment
Attempt = tuple[str, str, str]  # student, assignment and digest of what was handed in
Times = Mapping[Attempt, datetime]

DAY = timedelta(days=1)
_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True)
class Final:
    """What one grade counts, beside its raw score: `minus` points for `days` late.

    `known` is whether the time of submission is known where it matters; `marked`, that the course site called the
    work late and nobody knows the time.
    """

    raw: float
    minus: float = 0.0
    days: int = 0
    due: datetime | None = None
    submitted: datetime | None = None
    known: bool = True
    marked: bool = False

    @property
    def score(self) -> float:
        return round(self.raw - self.minus, 2) if self.minus else self.raw

    @property
    def reason(self) -> str:
        """`two days late`; an empty string for what is in time, has no due date or no known time."""
        if not self.days:
            return ""
        number = _WORDS[self.days] if self.days < len(_WORDS) else f"{self.days}"
        return f"{number} day{'' if self.days == 1 else 's'} late"

    @property
    def sentence(self) -> str:
        """`12 points, minus 2.4 for two days late`, without a full stop; empty where `reason` is."""
        if not self.reason:
            return ""
        reached = f"{round(self.raw, 2):g} point{'' if self.raw == 1 else 's'}"
        return f"{reached}, {f'minus {self.minus:g} for ' if self.minus else ''}{self.reason}"


def due_for(course: Course, assignment: Assignment, student: str) -> datetime | None:
    """When this student's work is due, on the course's clock: of several extensions, the last day counts."""
    if assignment.due is None:
        return None
    zone = ZoneInfo(course.timezone)
    due = on_the_clock(assignment.due, zone)
    found = [due]
    for extension in course.late.extensions if course.late else ():
        if extension.student != student or extension.assignment not in (None, assignment.name):
            continue
        if extension.due is not None:
            found.append(on_the_clock(extension.due, zone))
        else:
            found.append(days_later(due, extension.days or 0))
    return max(found, key=lambda moment: moment.astimezone(timezone.utc))


def on_the_clock(moment: datetime, zone: ZoneInfo) -> datetime:
    """A moment on the clock of a place; one without an offset is read there.

    When summer time ends, a clock shows an hour twice, and when it begins, it leaves one out: the later moment is
    meant, in the student's favour.
    """
    return moment.astimezone(zone) if moment.tzinfo else _readings(moment, zone)[1]


def days_later(moment: datetime, days: int) -> datetime:
    """The same time of day on the clock that many days later, whether or not summer time began in between."""
    assert isinstance(moment.tzinfo, ZoneInfo)
    return on_the_clock((moment + days * DAY).replace(tzinfo=None), moment.tzinfo)


def days_late(due: datetime, submitted: datetime, grace: timedelta) -> int:
    """How many days have begun since the due date and its grace; 0 when it is in time.

    A day ends when the clock shows the time of the due date again, and its grace is over.
    """
    moment = submitted.astimezone(timezone.utc)
    days = max(0, (moment - due.astimezone(timezone.utc)) // DAY - 1)
    while moment > days_later(due, days).astimezone(timezone.utc) + grace:
        days += 1
    return days


def points_off(score: float, days: int, policy: LatePolicy) -> float:
    """What these days cost of a score; two digits, as points are shown."""
    percent = min(days * policy.percent_a_day, policy.most_percent)
    return min(score, round(score * percent / 100, 2))


def final(course: Course, grade: Grade, submitted: datetime | None) -> Final:
    """What a grade counts when its text came at that time; None where nobody knows."""
    assignment = course.find(grade.assignment)
    due = due_for(course, assignment, grade.student) if assignment else None
    if due is None:
        return Final(grade.score, submitted=submitted)
    if submitted is None:
        return Final(grade.score, due=due, known=False)
    submitted = _in_favour(submitted, ZoneInfo(course.timezone))
    policy = course.late
    grace = timedelta(minutes=policy.grace_minutes if policy else 0)
    days = days_late(due, submitted, grace)
    minus = points_off(grade.score, days, policy) if policy else 0.0
    return Final(grade.score, minus, days, due, submitted)


def _in_favour(submitted: datetime, zone: ZoneInfo) -> datetime:
    """A time of submission without an offset is read on the course's clock, the earlier one where there are two."""
    return submitted if submitted.tzinfo else _readings(submitted, zone)[0]


def _readings(moment: datetime, zone: ZoneInfo) -> list[datetime]:
    """What a clock without an offset can mean, the earlier one first; usually both are the same."""
    both = [moment.replace(tzinfo=zone, fold=fold) for fold in (0, 1)]
    return sorted(both, key=lambda one: one.astimezone(timezone.utc))


def finals(
    course: Course, grades: Iterable[Grade], times: Times, late: Container[Attempt] = ()
) -> dict[GradeKey, Final]:
    """What each of these grades counts, by student and assignment; `late` is what the course site called so."""
    found = {}
    for grade in grades:
        submitted = _time(times, grade)
        marked = submitted is None and _attempt(grade) in late
        found[grade.student, grade.assignment] = replace(final(course, grade, submitted), marked=marked)
    return found


def unknown_students(
    course: Course, grades: Iterable[Grade], names: Mapping[str, str] | None = None
) -> list[str]:
    """A sentence about each extension for somebody of whom there are no grades: a name may be misspelt.

    `names` are those for people, by what grades call a student: an extension may have been given to one of these.
    """
    places = {(grade.student, grade.assignment) for grade in grades}
    students = sorted({student for student, _ in places})
    assignments = {assignment for _, assignment in places}
    granted = course.late.extensions if course.late else ()
    missing = [
        extension.student
        for extension in granted
        if extension.student not in students and extension.assignment in (None, *assignments)
    ]
    known = {(names or {}).get(student, student): student for student in students}
    known |= {student: student for student in students}
    return [_nobody(name, known) for name in dict.fromkeys(missing)] if students else []


def _nobody(name: str, known: Mapping[str, str]) -> str:
    """`known` are the students by each of their names."""
    close = closest(name, known)
    hint = f"; did you mean {known[close]}?" if close else "."
    return f"late.extensions: nobody in these grades is called {name}{hint}"


def counting(course: Course, grades: Iterable[Grade], times: Times) -> list[Grade]:
    """The grade that counts of each student and assignment, from all lines of a journal in their order.

    With `attempts: best` that is the one that counts most after what being late costs; the later of two equal ones.
    Only attempts that the newest suite has graded can be compared with it.
    """
    if course.attempts == "last":
        return list({(grade.student, grade.assignment): grade for grade in grades}.values())
    attempts: dict[GradeKey, list[Grade]] = {}
    for grade in grades:
        attempts.setdefault((grade.student, grade.assignment), []).append(grade)
    return [_best(course, several, times) for several in attempts.values()]


def _best(course: Course, grades: list[Grade], times: Times) -> Grade:
    suite = next((grade.suite_sha256 for grade in reversed(grades) if grade.status == "graded"), None)
    graded = {g.submission_sha256: g for g in grades if g.status == "graded" and g.suite_sha256 == suite}
    order = sorted(graded.values(), key=grades.index)
    return max(
        reversed(order), key=lambda grade: final(course, grade, _time(times, grade)).score, default=grades[-1]
    )


def _time(times: Times, grade: Grade) -> datetime | None:
    return times.get(_attempt(grade))


def _attempt(grade: Grade) -> Attempt:
    return grade.student, grade.assignment, grade.submission_sha256
