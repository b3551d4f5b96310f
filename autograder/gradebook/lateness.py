"""Final scores of late work: the policy of course.yml as pure functions."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from autograder.course.config import Assignment, Course, LatePolicy
from autograder.gradebook.decisions import Decision
from autograder.records import Grade
from autograder.text.names import graded_name
from autograder.text.spelling import closest
from autograder.text.wording import counted, counted_points

GradeKey = tuple[str, str]  # student and assignment
Attempt = tuple[str, str, str]  # student, assignment and digest of the submission
Times = Mapping[Attempt, datetime]

DAY = timedelta(days=1)
_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True, slots=True)
class Final:
    """The final score of a grade: its raw score less `minus` points for `days` late.

    `known` is False if the submission time is needed but unknown; `marked` is True if the course
    site marked the work as late without giving a time. The raw score is that after the `decisions`;
    `journal` is the grade before them. Of the days, `free` are late days of the student's own, of
    which `left` of `of` are left; None if the course has none.
    """

    raw: float
    minus: float = 0.0
    days: int = 0
    free: int = 0
    left: int | None = None
    of: int = 0
    due: datetime | None = None
    submitted: datetime | None = None
    known: bool = True
    marked: bool = False
    decisions: tuple[Decision, ...] = ()
    journal: Grade | None = None

    @property
    def excused(self) -> bool:
        """Whether neither the score nor the maximum counts."""
        return any(decision.excuse for decision in self.decisions)

    @property
    def is_accepted(self) -> bool:
        """Whether lateness costs nothing."""
        return any(decision.accept_late for decision in self.decisions)

    @property
    def comments(self) -> list[str]:
        return [decision.comment for decision in self.decisions if decision.comment]

    @property
    def score(self) -> float:
        if self.excused:
            return 0.0
        return round(self.raw - self.minus, 2) if self.minus else self.raw

    @property
    def reason(self) -> str:
        """`two days late`; empty for work in time, without a due date, or without a known time."""
        if not self.days:
            return ""
        number = _WORDS[self.days] if self.days < len(_WORDS) else f"{self.days}"
        return f"{number} day{'' if self.days == 1 else 's'} late"

    @property
    def sentence(self) -> str:
        """`12 points, minus 2.4 for two days late`, and the late days, without a full stop; can be empty."""
        sentences = []
        if self.reason:
            minus = f"minus {self.minus:g} for " if self.minus else ""
            sentences.append(f"{counted_points(self.raw)}, {minus}{self.reason}")
        if self.left is not None:
            taken = f"{counted(self.free, 'late day')} taken, " if self.free else ""
            sentences.append(f"{taken}{self.left} of {self.of} late days left")
        return "; ".join(sentences)


def due_for(course: Course, assignment: Assignment, student: str) -> datetime | None:
    """Return a student's due date in the course's time zone; of several extensions, the latest day applies."""
    if assignment.due is None:
        return None
    zone = ZoneInfo(course.timezone)
    due = on_the_clock(assignment.due, zone)
    dates = [due]
    for extension in course.late.extensions if course.late else ():
        is_for_student = student in (extension.student, graded_name(extension.student))
        if not is_for_student or extension.assignment not in (None, assignment.name):
            continue
        if extension.due is not None:
            dates.append(on_the_clock(extension.due, zone))
        else:
            dates.append(days_later(due, extension.days or 0))
    return max(dates, key=lambda moment: moment.astimezone(timezone.utc))


def on_the_clock(moment: datetime, zone: ZoneInfo) -> datetime:
    """Convert a moment to a time zone; a moment without an offset is interpreted in that zone.

    An hour that a clock shows twice or skips is read as the later moment, in the student's favour.
    """
    return moment.astimezone(zone) if moment.tzinfo else _readings(moment, zone)[1]


def days_later(moment: datetime, days: int) -> datetime:
    """Return the same local time that many days later, across changes of daylight saving time."""
    assert isinstance(moment.tzinfo, ZoneInfo)
    return on_the_clock((moment + days * DAY).replace(tzinfo=None), moment.tzinfo)


def days_late(due: datetime, submitted: datetime, grace: timedelta) -> int:
    """Return the days begun since the due date and its grace period, by the local clock; 0 for work in time."""
    moment = submitted.astimezone(timezone.utc)
    days = max(0, (moment - due.astimezone(timezone.utc)) // DAY - 1)
    while moment > days_later(due, days).astimezone(timezone.utc) + grace:
        days += 1
    return days


def points_off(score: float, days: int, policy: LatePolicy) -> float:
    """Return the deduction from a score for these days, rounded to two digits as points are shown.

    Without a percentage, late work counts nothing.
    """
    if days and policy.percent_a_day is None:
        return score
    percent = min(days * (policy.percent_a_day or 0), policy.most_percent)
    return min(score, round(score * percent / 100, 2))


def final(
    course: Course, grade: Grade, submitted: datetime | None, decisions: Iterable[Decision] = ()
) -> Final:
    """Return the final score of a grade after these decisions; `submitted` is None if the time is unknown."""
    assignment = course.find(grade.assignment)
    due = due_for(course, assignment, grade.student) if assignment else None
    score = Final(grade.score, due=due, submitted=submitted, decisions=tuple(decisions))
    if due is None or submitted is None:
        return replace(score, known=due is None)
    if not submitted.tzinfo:
        # the earlier one, in the student's favour
        submitted = _readings(submitted, ZoneInfo(course.timezone))[0]
    grace = timedelta(minutes=course.late.grace_minutes if course.late else 0)
    score = replace(score, submitted=submitted, days=days_late(due, submitted, grace))
    return rescored(course, score, grade.score)


def _readings(moment: datetime, zone: ZoneInfo) -> list[datetime]:
    both = [moment.replace(tzinfo=zone, fold=fold) for fold in (0, 1)]
    return sorted(both, key=lambda reading: reading.astimezone(timezone.utc))


def rescored(course: Course, final: Final, score: float) -> Final:
    """Return the final score for another raw score, with the same lateness and decisions."""
    policy = None if final.is_accepted else course.late
    charged = final.days - final.free
    return replace(final, raw=score, minus=points_off(score, charged, policy) if policy else 0.0)


def with_late_days(course: Course, finals: Mapping[GradeKey, Final]) -> dict[GradeKey, Final]:
    """Return the final scores after each student's late days, taken in the order of their due dates.

    Excused and accepted work takes none, nor does work that counts nothing all the same.
    """
    free_days = course.late.free_days if course.late else None
    if free_days is None:
        return dict(finals)
    left = dict.fromkeys((student for student, _ in finals), free_days)
    after = dict(finals)
    for key in sorted(finals, key=lambda key: _due_order(course, key)):
        after[key] = taking_days(course, finals[key], left[key[0]])
        left[key[0]] -= after[key].free
    return {key: replace(final, left=left[key[0]], of=free_days) for key, final in after.items()}


def taking_days(course: Course, final: Final, left: int) -> Final:
    """Return the final score with as many late days as are needed and allowed, of those that are `left`."""
    policy = course.late
    is_late = final.days and final.raw and not final.excused and not final.is_accepted
    if policy is None or policy.free_days is None or not is_late:
        return final
    free = min(final.days, left, policy.most_per_assignment or final.days)
    if free < final.days and policy.percent_a_day is None:
        return final
    return rescored(course, replace(final, free=free), final.raw)


def _due_order(course: Course, key: GradeKey) -> tuple[datetime, GradeKey]:
    student, name = key
    assignment = course.find(name)
    due = due_for(course, assignment, student) if assignment else None
    latest = datetime.max.replace(tzinfo=timezone.utc)
    return due.astimezone(timezone.utc) if due else latest, (name, student)


def unknown_students(
    course: Course, grades: Collection[Grade], names: Mapping[str, str] | None = None
) -> list[str]:
    """Return a message for each extension of a student without grades, as the name may be misspelt.

    `names` maps the students in the grades to their display names, which an extension may use
    instead.
    """
    students = sorted({grade.student for grade in grades})
    assignments = {grade.assignment for grade in grades}
    ids = {(names or {}).get(student, student): student for student in students}
    ids |= {student: student for student in students}
    problems = []
    for extension in course.late.extensions if course.late and students else ():
        name = extension.student
        is_known = name in students or graded_name(name) in students
        if not is_known and extension.assignment in (None, *assignments):
            close = closest(name, ids)
            hint = f"; did you mean {ids[close]}?" if close else "."
            problems.append(
                f"late.extensions: no student in these grades has the name {name}{hint}"
            )
    return list(dict.fromkeys(problems))


def counting(course: Course, grades: Iterable[Grade], times: Times) -> list[Grade]:
    """Return the effective grade of each student and assignment, from all lines of a journal in order.

    With `attempts: best`, that is the attempt with the highest score after lateness, the one with
    fewer late days of two equal ones, and then the later. Only attempts graded by the newest suite are compared.
    """
    if course.attempts == "last":
        return list({grade.key: grade for grade in grades}.values())
    attempts: dict[GradeKey, list[Grade]] = {}
    for grade in grades:
        attempts.setdefault(grade.key, []).append(grade)
    free_days = (course.late.free_days if course.late else None) or 0
    left = dict.fromkeys((student for student, _ in attempts), free_days)
    best = {}
    for key in sorted(attempts, key=lambda key: _due_order(course, key)):
        best[key], taken = _best(course, attempts[key], times, left[key[0]])
        left[key[0]] -= taken
    return [best[key] for key in attempts]


def _best(course: Course, grades: list[Grade], times: Times, left: int) -> tuple[Grade, int]:
    """Return the attempt that counts, and the late days that it takes of those that are left."""
    suite = next(
        (grade.suite_sha256 for grade in reversed(grades) if grade.status == "graded"), None
    )
    graded = {
        g.submission_sha256: g for g in grades if g.status == "graded" and g.suite_sha256 == suite
    }
    order = sorted(graded.values(), key=grades.index)
    finals = [
        taking_days(course, final(course, g, times.get(g.attempt)), left) for g in reversed(order)
    ]
    counts = max(
        zip(reversed(order), finals, strict=True),
        key=lambda pair: (pair[1].score, -pair[1].free),
        default=None,
    )
    return (grades[-1], 0) if counts is None else (counts[0], counts[1].free)
