"""What counts of a journal: the grades after the decisions, and their final scores."""

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple

from autograder.course.config import Assignment, Course
from autograder.gradebook import lateness
from autograder.gradebook.decisions import (
    Decided,
    Entry,
    ids_of,
    lay_over,
    read_decisions,
    unfitting,
)
from autograder.gradebook.demo_marker import MARK
from autograder.gradebook.lateness import Attempt, Final, GradeKey, counting
from autograder.gradebook.times import read_names, read_originals, read_times
from autograder.records import Grade, RefusedError
from autograder.text.spelling import did_you_mean, one_of


def latest_grades(grades: Iterable[Grade]) -> list[Grade]:
    """Return the last grade of each student and assignment, sorted by both."""
    latest = {grade.key: grade for grade in grades}
    return sorted(latest.values(), key=lambda g: (g.student.casefold(), g.student, g.assignment))


@dataclass(frozen=True)
class ClassList:
    """The students of a roster by their ids in the grades.

    `names` has a display name for each student, empty if unknown; `sections` the students with
    sections. `groups` are the ids under which the work of a group was graded, with the ids of its
    members; `originals` the ids in the roster that no folder can have.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    sections: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    originals: Mapping[str, str] = field(default_factory=dict)


# from the students in the grades and their names
ClassOf = Callable[[Mapping[str, str]], ClassList]


# what counts of a grade: a refused one has a score if an instructor gave points
Standing = Literal["excused", "refused", "scored"]


class PastAttempt(NamedTuple):
    """A submission that was graded: its last result in the journal, and when it was handed in, if known."""

    digest: str
    status: str
    score: float
    max_score: float
    submitted: datetime | None


class Effective(NamedTuple):
    """What counts of a journal: the sorted grades after the decisions, the final scores, and the class.

    `problems` are messages about decisions that do not fit. An excused student without a grade has
    only a final score. `several` are the graded submissions of a student for an assignment, if
    there is more than one. `names` are the display names by the ids in the grades, `originals` the
    ids to show, where they differ; of the roster and of the course site.
    """

    grades: list[Grade]
    finals: dict[GradeKey, Final]
    problems: list[str]
    people: ClassList
    several: Mapping[GradeKey, Sequence[PastAttempt]] = {}
    names: Mapping[str, str] = {}
    originals: Mapping[str, str] = {}

    @property
    def absent(self) -> dict[str, str]:
        """The names of the students of the roster without any grade, by id."""
        graded = {grade.student for grade in self.grades}
        return {
            student: name for student, name in self.people.names.items() if student not in graded
        }

    @property
    def journal(self) -> list[Grade]:
        """The grades before the decisions."""
        return [final_of(grade, self.finals).journal or grade for grade in self.grades]

    def attempts(self, grade: Grade) -> Sequence[PastAttempt]:
        """Return a student's graded submissions for an assignment, in the order in which they were first graded."""
        final = final_of(grade, self.finals)
        return self.several.get(grade.key) or [_past(final.journal or grade, final.submitted)]

    def to_review(self, borders: Sequence[float], within: float) -> list[dict[str, Any]]:
        """Return the submissions that are flagged, or are at most `within` percent below a border."""
        to_review = []
        for grade in self.grades:
            final = final_of(grade, self.finals)
            reached = 100 * final.score / (grade.max_score or 1)
            near = [
                f"{reached:.1f} %, below {least:g} %"
                for least in borders
                if least - within <= reached < least
            ]
            why = [*near, *grade.flags]
            if why and not final.excused:
                to_review.append(
                    {
                        "student": grade.student,
                        "assignment": grade.assignment,
                        "score": final.score,
                        "max_score": grade.max_score,
                        "reasons": why,
                    }
                )
        return to_review

    def by_student(self) -> Iterator["Effective"]:
        """Yield the same for each student with a grade."""
        for _, grades_of_student in groupby(self.grades, key=lambda grade: grade.student):
            grades = list(grades_of_student)
            finals = {grade.key: final_of(grade, self.finals) for grade in grades}
            several = {key: self.several[key] for key in finals if key in self.several}
            yield Effective(grades, finals, [], ClassList(), several, self.names, self.originals)

    def of_section(self, section: str) -> "Effective":
        """Return the same of one section; raises RefusedError if the roster has no such section."""
        sections = sorted(set(chain(*self.people.sections.values())))
        if section not in sections:
            has = f"it has {one_of(sections)}." if sections else "it has no column `section`."
            hint = did_you_mean(section, sections) or f"; {has}"
            raise RefusedError(f"The roster has no section `{section}`{hint}")
        inside = {student for student, names in self.people.sections.items() if section in names}
        names = {student: name for student, name in self.people.names.items() if student in inside}
        return self._replace(
            grades=[grade for grade in self.grades if grade.student in inside],
            finals={place: final for place, final in self.finals.items() if place[0] in inside},
            people=replace(self.people, names=names),
        )


def what_counts(
    folder: Path,
    course: Course,
    grades: Iterable[Grade],
    class_of: ClassOf | None = None,
    section: str | None = None,
    seconds: bool = False,
) -> Effective:
    """Return the effective grades of the journal in `folder`, and their final scores after the decisions.

    The work of a group counts for each member without own work. `class_of` reads the roster. The
    grades have the seconds of their tests only with `seconds`. Raises InfrastructureError if the
    file of submission times exists but cannot be read, CourseError for an invalid decisions.yml and
    RefusedError for an unknown section.
    """
    times, late = read_times(folder)
    names = read_names(folder)
    several: dict[GradeKey, dict[str, PastAttempt]] = {}
    over: set[GradeKey] = set()
    counted = counting(course, _noting(course, grades, several, over, times, seconds), times)
    counted = [grade for grade in counted if grade.key not in over]
    people = ClassList()
    if class_of:
        people = class_of({grade.student: names.get(grade.student, "") for grade in counted})
    counted, groups = _of_members(counted, people)
    entries = read_decisions(course)
    decided = list(lay_over(course, entries, latest_grades(counted), groups))
    finals = {}
    for after in decided:
        attempts = _attempts_of(after.grade, groups)
        finals[after.grade.key] = _final(course, after, attempts, times, late)
    finals = lateness.with_late_days(course, finals)
    everybody = {*people.names, *people.groups, *names}
    _add_excused(finals, entries, everybody)
    problems = [] if (folder / MARK).exists() else unfitting(course, entries, decided, everybody)
    effective_grades = [after.grade for after in decided]
    past = _past_attempts(effective_grades, groups, several)
    known_names = names | {student: name for student, name in people.names.items() if name}
    originals = {**people.originals, **read_originals(folder)}
    effective = Effective(effective_grades, finals, problems, people, past, known_names, originals)
    return effective.of_section(section) if section else effective


def _attempts_of(grade: Grade, groups: Mapping[GradeKey, str]) -> list[Attempt]:
    """Return the attempts whose time counts for a grade: of the group whose work it is, then the student's own."""
    attempts = [grade.attempt]
    if grade.key in groups:
        attempts.insert(0, (groups[grade.key], grade.assignment, grade.submission_sha256))
    return attempts


def _final(
    course: Course,
    decided: Decided,
    attempts: Sequence[Attempt],
    times: Mapping[Attempt, datetime],
    late: Collection[Attempt],
) -> Final:
    submitted = next((times[attempt] for attempt in attempts if attempt in times), None)
    final = lateness.final(course, decided.grade, submitted, decided.made)
    is_marked = final.submitted is None and any(attempt in late for attempt in attempts)
    return replace(final, marked=is_marked, journal=decided.journal)


def _add_excused(
    finals: dict[GradeKey, Final], entries: Iterable[Entry], students: Collection[str]
) -> None:
    """Add a final score for each excused student of the class who has no grade."""
    everybody = {*students, *(student for student, _ in finals)}
    counted = [entry.decision for entry in entries if not entry.outdated]
    for decision in [decision for decision in counted if decision.excuse]:
        excused = [student for student in ids_of(decision) if student in everybody]
        if excused:
            finals.setdefault((excused[0], decision.assignment), Final(0.0, decisions=(decision,)))


def _past_attempts(
    grades: Iterable[Grade],
    groups: Mapping[GradeKey, str],
    several: Mapping[GradeKey, Mapping[str, PastAttempt]],
) -> dict[GradeKey, Sequence[PastAttempt]]:
    """Return the submissions of each student who has several, the group's for a member of a group."""
    past: dict[GradeKey, Sequence[PastAttempt]] = {}
    for grade in grades:
        whose = (groups.get(grade.key, grade.student), grade.assignment)
        if whose in several:
            past[grade.key] = tuple(several[whose].values())
    return past


def _noting(
    course: Course,
    grades: Iterable[Grade],
    several: dict[GradeKey, dict[str, PastAttempt]],
    over: set[GradeKey],
    times: Mapping[Attempt, datetime],
    seconds: bool,
) -> Iterator[Grade]:
    """Yield the grades; what is called like no assignment is refused only until the student has other work."""
    latest: dict[GradeKey, Grade] = {}
    unnamed: dict[str, set[GradeKey]] = {}
    for timed in grades:
        if course.find(timed.assignment):
            over |= unnamed.pop(timed.student, set())
        elif timed.status == "refused":
            unnamed.setdefault(timed.student, set()).add(timed.key)
            over.discard(timed.key)
        grade = replace(timed, test_seconds=array("f", timed.test_seconds) if seconds else ())
        before = latest.get(grade.key, grade)
        if grade.key in several or before.submission_sha256 != grade.submission_sha256:
            first = {before.submission_sha256: _past(before, times.get(before.attempt))}
            several.setdefault(grade.key, first)[grade.submission_sha256] = _past(
                grade, times.get(grade.attempt)
            )
        latest[grade.key] = grade
        yield grade


def _past(grade: Grade, submitted: datetime | None) -> PastAttempt:
    return PastAttempt(
        grade.submission_sha256, grade.status, grade.score, grade.max_score, submitted
    )


def _of_members(grades: list[Grade], people: ClassList) -> tuple[list[Grade], dict[GradeKey, str]]:
    """Return a grade for each member of a group in place of the group's, and the group of each; work
    of one's own comes first.
    """
    with_own_work = {grade.key for grade in grades if grade.student not in people.groups}
    of_students = []
    groups: dict[GradeKey, str] = {}
    for grade in grades:
        for student in people.groups.get(grade.student, (grade.student,)):
            if student == grade.student:
                of_students.append(grade)
            elif (student, grade.assignment) not in with_own_work:
                of_students.append(replace(grade, student=student))
                groups[student, grade.assignment] = grade.student
    return of_students, groups


def final_of(grade: Grade, finals: Mapping[GradeKey, Final] | None) -> Final:
    """Return the final score of a grade; the raw score if `finals` has none."""
    return (finals or {}).get(grade.key) or Final(grade.score)


def standing(grade: Grade, final: Final) -> Standing:
    """Return what is shown in place of a score, or that the score is."""
    if final.excused:
        return "excused"
    return "refused" if grade.status == "refused" and not final.score else "scored"


def points_of(
    assignment: Assignment, grades: Iterable[Grade], finals: Mapping[GradeKey, Final]
) -> float:
    """Return the points of an assignment, without those of dropped tests and with those that nbgrader adds."""
    dropped = []
    for grade in grades:
        if grade.assignment == assignment.name:
            journal = final_of(grade, finals).journal or grade
            dropped.append(journal.max_score - grade.max_score)
    return assignment.points - max(dropped, default=0)


def differing(
    course: Course, grades: Iterable[Grade], finals: Mapping[GradeKey, Final] | None = None
) -> list[str]:
    """Return a message for each assignment whose grades do not match course.yml, as totals would mix both."""
    maxima: dict[str, set[float]] = {}
    for decided in grades:
        grade = final_of(decided, finals).journal or decided
        if course.find(grade.assignment) or grade.status == "graded":
            maxima.setdefault(grade.assignment, set()).add(grade.max_score)
    sentences = [_differs(course.find(name), name, maxima[name]) for name in sorted(maxima)]
    return [sentence for sentence in sentences if sentence]


def _differs(assignment: Assignment | None, name: str, points: set[float]) -> str:
    if assignment is None:
        return (
            f"{name}: there are grades of it, but course.yml has no assignment of that name; they count as they are. "
            "If it has a new name, rename the submissions' folders, too, and grade them again."
        )
    others = " and ".join(map(number, sorted(points - {assignment.points})))
    said = f"{name}: there are grades out of {others} points, but course.yml says {number(assignment.points)}."
    return f"{said} `autograder grade` grades these again." if others else ""


def number(value: float) -> str:
    """Format a score with at most two decimals: 12, 7.5 or 3.33."""
    return f"{round(value, 2):.10g}"


def as_record(grade: Grade, final: Final, page: Path | None = None) -> dict[str, Any]:
    """Return the scores of a grade as a JSON-serializable dict; `final_score` is None if excused."""
    facts = {
        name: getattr(grade, name)
        for name in ("student", "assignment", "status", "max_score", "problem", "seed")
    }
    scores = {
        "score": (final.journal or grade).score,
        "final_score": None if final.excused else final.score,
    }
    days = {"days_late": final.days}
    if final.left is not None:
        days |= {"late_days_taken": final.free, "late_days_left": final.left}
    return {**facts, **scores, **days, **({"page": str(page)} if page else {})}
