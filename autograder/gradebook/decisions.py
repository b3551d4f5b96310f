"""The instructors' decisions, `decisions.yml` beside course.yml, as a typed list laid over the journal."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

import yaml
from filelock import FileLock, Timeout
from pydantic import Field, model_validator

from autograder.course.config import CONVERSATION, Assignment, Course, CourseError, Moment, Text
from autograder.course.yaml_file import MarkedYaml
from autograder.course.yaml_record import YamlRecord
from autograder.records import Grade, RefusedError, TestResult, total
from autograder.text.files import write_whole
from autograder.text.names import graded_name
from autograder.text.spelling import did_you_mean, one_of
from autograder.text.utf8 import read_utf8
from autograder.text.wording import counted_points

FILE_NAME = "decisions.yml"
HEADER = "# Decisions of the instructors over the grades. Remove an entry to undo it.\n"
BEFORE_THE_TERM = timedelta(days=30)  # an excuse can come before the first due date
WAIT = 30  # seconds for another command
# of a test whose code a submission does not have
_ABSENT = re.compile(r"There is no `\w+` in the submission\.$")
_WAITS = re.compile(r"This waits until “(.+)” passes\.$")
KINDS = ("give", "take", "comment", "excuse", "drop", "accept_late")
Points = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Decision(YamlRecord):
    """One entry of the file: one of `KINDS`, for a student or, for `drop`, for everybody.

    `drop` names a test, which then gives its full points or is taken out of the total. `score` is
    the score in the journal at the time of the decision, `request` the objection that it answers.
    """

    assignment: Text
    student: Text | None = None
    give: Points | None = None
    take: Points | None = None
    part: Text | None = None
    comment: Text | None = None
    excuse: Literal[True] | None = None
    drop: Text | None = None
    counts: Literal["full", "out"] | None = None
    accept_late: Literal[True] | None = None
    request: Text | None = None
    reason: Text | None = None
    by: Text
    at: Moment
    score: float | None = None

    @model_validator(mode="after")
    def _says_one_thing(self) -> "Decision":
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            raise ValueError(f"must have exactly one of {one_of(KINDS)}.")
        if not self.drop and self.student is None:
            raise ValueError("must name the `student`.")
        if self.drop and self.student is not None:
            raise ValueError("drops a test for everybody, so it has no `student`.")
        if bool(self.drop) != bool(self.counts):
            raise ValueError("needs `counts: full` or `counts: out` with `drop`, and only there.")
        if self.part and not self.points:
            raise ValueError("can have a `part` only with `give` or `take`.")
        if self.reason is None and self.comment is None:
            raise ValueError("must have a `reason`, which the student reads.")
        return self

    @property
    def points(self) -> float:
        """The points that the student gains, negative for points taken off; else 0."""
        return (self.give or 0) - (self.take or 0)

    @property
    def sentence(self) -> str:
        """The decision as the student reads it: `1 point given back: The test was too strict.`"""
        asked = "On your request: " if self.request and self.student else ""
        return asked + (self.comment or f"{self._effect}: {self.reason}")

    @property
    def _effect(self) -> str:
        if self.give and self.part == CONVERSATION:
            return f"{counted_points(self.give)} for the conversation"
        if self.give:
            return f"{counted_points(self.give)} given back"
        if self.take:
            return f"{counted_points(self.take)} taken off"
        if self.counts == "full":
            return "Counts in full for everybody"
        if self.counts == "out":
            return "Does not count for anybody"
        return "Excused" if self.excuse else "Accepted although late"


@dataclass(frozen=True)
class Entry:
    """A decision, and its place in the file for messages: `decisions.yml, line 7`.

    `outdated` is the sentence about one of an earlier term, which does not count; empty for all others.
    """

    place: str
    decision: Decision
    outdated: str = ""


@dataclass(slots=True)
class Decided:
    """A grade after the decisions about it; `journal` is the grade before."""

    grade: Grade
    journal: Grade
    made: tuple[Decision, ...] = ()
    problems: tuple[str, ...] = ()


def read_decisions(course: Course) -> tuple[Entry, ...]:
    """Return the decisions of a course in the file's order; empty without a file.

    Raises CourseError.
    """
    file = course.root / FILE_NAME
    entries = _parse(read_utf8(file, FILE_NAME, CourseError)) if file.exists() else ()
    return tuple(replace(entry, outdated=outdated(course, entry.decision)) for entry in entries)


def outdated(course: Course, decision: Decision) -> str:
    """Return the sentence about a decision that is older than the term; empty for all others."""
    zone = ZoneInfo(course.timezone)
    dues = [_moment(assignment.due, zone) for assignment in course.assignments if assignment.due]
    if not dues or _moment(decision.at, zone) >= min(dues) - BEFORE_THE_TERM:
        return ""
    first = min(dues).astimezone(zone)
    return (
        f"this was decided on {decision.at:%Y-%m-%d}, long before the first due date of the course, {first:%Y-%m-%d}; "
        "it is of an earlier term, and does not count. Move the file away, or correct the dates."
    )


def _moment(moment: datetime, zone: ZoneInfo) -> datetime:
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(timezone.utc)


@contextmanager
def locked(course: Course) -> Iterator[None]:
    """Keep other `decide` commands from reading and writing the file in the meantime.

    Raises RefusedError.
    """
    try:
        with FileLock(course.root / f".{FILE_NAME}.lock", timeout=WAIT):
            yield
    except Timeout:
        raise RefusedError(
            f"Another `decide` has been writing {FILE_NAME} for {WAIT} seconds; try again."
        ) from None


def add_decision(course: Course, decision: Decision) -> str:
    """Append a decision to the file, whose text stays as it is; return its place.

    Raises CourseError.
    """
    file = course.root / FILE_NAME
    old = read_utf8(file, FILE_NAME, CourseError) if file.exists() else HEADER
    record = {key: _plain(value) for key, value in decision.model_dump(exclude_none=True).items()}
    addition = yaml.safe_dump([record], sort_keys=False, allow_unicode=True, width=1000)
    new = old + ("" if old.endswith("\n") else "\n") + addition
    before = [entry.decision for entry in _parse(old)]
    entries = _parse(new)
    if [entry.decision for entry in entries] != [*before, decision]:
        raise CourseError(
            f"{FILE_NAME} is not a list of lines that begin with `- `; add the decision by hand:\n{addition}"
        )
    write_whole(file, new)
    return entries[-1].place


def _parse(text: str) -> tuple[Entry, ...]:
    if all(not line.strip() or line.lstrip().startswith("#") for line in text.splitlines()):
        return ()
    document = MarkedYaml(FILE_NAME, text, "the list of decisions", item="decision")
    decisions = document.read_list(Decision)
    dropped = [
        (decision.assignment, decision.drop) for decision in decisions or () if decision.drop
    ]
    if len(set(dropped)) < len(dropped):
        document.add((), "a test is dropped twice; remove one of the decisions.")
    if decisions is None or document.problems:
        raise CourseError(document.problems)
    return tuple(
        Entry(f"{FILE_NAME}, line {document.line((number,))}", decision)
        for number, decision in enumerate(decisions)
    )


def lay_over(
    course: Course,
    entries: Sequence[Entry],
    grades: Iterable[Grade],
    groups: Mapping[tuple[str, str], str] | None = None,
) -> Iterator[Decided]:
    """Yield each grade after the decisions about it. A dropped test comes first, then the decisions in their order.

    `groups` names, by student and assignment, the group whose work a grade is of: its decisions
    count, too. `grades` are read twice if a test is dropped.
    """
    entries = [entry for entry in entries if not entry.outdated]
    dropped = {
        (entry.decision.assignment, entry.decision.drop) for entry in entries if entry.decision.drop
    }
    points_of_dropped = _points_of(dropped, grades) if dropped else {}
    ordered = sorted(entries, key=lambda entry: entry.decision.drop is None)
    for grade in grades:
        owners = {grade.student, (groups or {}).get(grade.key)}
        about_it = [entry for entry in ordered if _is_about(entry.decision, grade, owners)]
        was_held = any(entry.decision.part == CONVERSATION for entry in about_it)
        decided = Decided(_with_conversation(course, grade, was_held), grade)
        for entry in about_it:
            if entry.decision.drop:
                _drop_test(decided, entry, points_of_dropped)
            else:
                _apply(course, decided, entry)
        yield decided


def _is_about(decision: Decision, grade: Grade, owners: Collection[str | None]) -> bool:
    """Whether a decision is about this grade: it drops a test, or names one of the grade's owners."""
    if decision.assignment != grade.assignment:
        return False
    return bool(decision.drop) or any(student in owners for student in ids_of(decision))


def _with_conversation(course: Course, grade: Grade, was_held: bool) -> Grade:
    """Return the grade with the part of the conversation, if its assignment has points for one."""
    assignment = course.find(grade.assignment)
    points = assignment.conversation if assignment else None
    if points is None:
        return grade
    result = TestResult(
        CONVERSATION,
        CONVERSATION,
        "What you say about your work",
        "decided",
        0.0,
        points,
        None if was_held else "The conversation has not been held yet.",
        hidden=False,
    )
    return replace(grade, max_score=grade.max_score + points, tests=(*grade.tests, result))


def _points_of(
    tests: Collection[tuple[str, str]], grades: Iterable[Grade]
) -> dict[tuple[str, str], float]:
    """Return the points of these tests of assignments, as the last grade has them."""
    points = {}
    for grade in grades:
        for test in grade.tests:
            if (grade.assignment, test.name) in tests:
                points[grade.assignment, test.name] = test.max_score
    return points


def ids_of(decision: Decision) -> tuple[str, ...]:
    """Return the ids in the grades that the student of a decision can have: of `A/42`, also that of its folder."""
    return () if decision.student is None else (decision.student, graded_name(decision.student))


def unfitting(
    course: Course, entries: Sequence[Entry], decided: Sequence[Decided], students: Iterable[str]
) -> list[str]:
    """Return a message for each decision that does not fit the course or the grades.

    `students` are further students and groups of the class. Decisions about assignments without grades
    are not mentioned.
    """
    problems: list[str] = []
    with_effect: set[Decision] = set()
    tests: dict[str, set[str]] = {}  # their names in each assignment
    people = set(students)
    for after in decided:
        problems += after.problems
        with_effect.update(after.made)
        people.add(after.grade.student)
        names = tests.setdefault(after.journal.assignment, set())
        if entries:
            names.update(test.name for test in after.journal.tests)
    for entry in entries:
        decision = entry.decision
        name = decision.assignment
        assignment = course.find(name)
        sentence = entry.outdated
        if assignment is None:
            close = _close(name, (assignment.name for assignment in course.assignments))
            sentence = f"the course has no assignment `{name}`{close}"
        elif not sentence and name in tests and decision not in with_effect:
            sentence = _without_effect(decision, assignment, tests[name], people)
        if sentence:
            problems.append(f"{entry.place}: {sentence}")
    return problems


def _without_effect(
    decision: Decision, assignment: Assignment, tests: Collection[str], people: Collection[str]
) -> str:
    """Return why a decision changed no grade; empty for the excuse of a student without one."""
    name = assignment.name
    parts = [part.name for part in assignment.decided_parts]
    if decision.drop in tests:
        return ""  # nobody has written the code for it
    if decision.drop:
        return f"{name} has no test `{decision.drop}`{_close(decision.drop, tests)}"
    if not any(student in people for student in ids_of(decision)):
        close = _close(decision.student, people)
        return f"no student in these grades has the name {decision.student}{close}"
    if decision.part == CONVERSATION and not assignment.conversation:
        return f"{name} has no points for a conversation. Say how many in course.yml: `conversation: 2`."
    if decision.part and decision.part not in parts:
        return f"{name} has no part `{decision.part}`{_close(decision.part, parts)}"
    if decision.excuse:
        return ""
    return f"nothing of {decision.student} was graded for {name}, so only `excuse` has an effect."


def _close(word: str | None, names: Iterable[str]) -> str:
    return did_you_mean(word, sorted(names)) or "."


def _drop_test(
    decided: Decided, entry: Entry, points_of_dropped: Mapping[tuple[str, str], float]
) -> None:
    decision = entry.decision
    test = (decision.assignment, decision.drop or "")
    if decision.counts == "full" and _is_without_code(decided.grade, decision.drop):
        return
    if test in points_of_dropped:  # no grade has a test of this name otherwise
        decided.grade = _without(decided.grade, decision, points_of_dropped[test])
        _note(decided, entry)


def _is_without_code(grade: Grade, name: str | None) -> bool:
    """Whether the code for a test is not written, or that for the test for which it waits."""
    by_title = {test.title: test for test in grade.tests}
    test = next((test for test in grade.tests if test.name == name), None)
    for _ in grade.tests:  # a test waits for one before it
        waits = _WAITS.match(test.message or "") if test and test.outcome == "skipped" else None
        if waits is None:
            break
        test = by_title.get(waits[1])
    if test is None or not test.fails:
        return False
    return test.is_unwritten or _ABSENT.match(test.message or "") is not None


def _apply(course: Course, decided: Decided, entry: Entry) -> None:
    """Apply a decision about one student."""
    if entry.decision.points:
        borders = _borders(course, decided.grade, entry.decision.part)
        if borders is None:
            return
        _add_points(decided, entry, *borders)
    _note(decided, entry)


def _note(decided: Decided, entry: Entry) -> None:
    """Note that a decision was made, and whether the score has changed since then."""
    decision = entry.decision
    grade = decided.journal
    decided.made += (decision,)
    if decision.score is not None and abs(decision.score - grade.score) > 1e-6:
        decided.problems += (
            f"{entry.place}: {grade.student} had {counted_points(decision.score)} in {grade.assignment} when this was "
            f"decided, and has {grade.score:g} now. If the decision is still right, remove its line `score`.",
        )


def _add_points(decided: Decided, entry: Entry, most_lost: float, most_gained: float) -> None:
    grade = decided.grade
    decision = entry.decision
    part = decision.part or ""
    points = round(min(max(decision.points, -most_lost), most_gained), 6)
    if points != decision.points:
        where = f"the part {part} of {grade.assignment}" if part else grade.assignment
        verb = "gain" if decision.points > 0 else "lose"
        decided.problems += (
            f"{entry.place}: {grade.student} can {verb} only {counted_points(abs(points))} in {where}, "
            f"not {abs(decision.points):g}.",
        )
    result = TestResult("decision", part, decision.sentence, "decided", points, 0.0, hidden=False)
    score = total([grade.score, points])
    decided.grade = replace(grade, score=score, tests=(*grade.tests, result))


def _borders(course: Course, grade: Grade, part: str | None) -> tuple[float, float] | None:
    """Return the points that a part, or the whole grade, can lose and gain; None if there is no such part."""
    room = grade.max_score - grade.score
    if part is None:
        return grade.score, room
    assignment = course.find(grade.assignment)
    parts = assignment.decided_parts if assignment else ()
    points_of = {other.name: other.points for other in parts}
    if part not in points_of:
        return None
    tests = [test for test in grade.tests if test.part == part]
    score = total(test.score for test in tests)
    maximum = total(test.max_score for test in tests) if tests else points_of[part]
    return score, min(maximum - score, room)


def _without(grade: Grade, decision: Decision, points: float) -> Grade:
    """Return the grade with full points for the dropped test, or with neither its points nor its maximum."""
    full = decision.counts == "full"
    gained = 0.0
    tests = []
    for test in grade.tests:
        if test.name == decision.drop:
            most = test.max_score if full else 0.0
            gained += most - test.score
            values = (test.name, test.part, test.title, "decided", most, most, decision.sentence)
            test = TestResult(*values, hidden=test.hidden)  # type: ignore[arg-type]
        tests.append(test)
    score = total([grade.score, gained])
    most = grade.max_score if full else total([grade.max_score, -points])
    return replace(grade, tests=tuple(tests), score=score, max_score=most)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    return int(value) if isinstance(value, float) and value.is_integer() else value


def make_decision(**values: Any) -> Decision:
    """Return a decision of these values. Raises CourseError with a sentence."""
    text = yaml.safe_dump(
        [{key: value for key, value in values.items() if value is not None}], allow_unicode=True
    )
    try:
        return _parse(text)[0].decision
    except CourseError as error:
        raise CourseError(problem.partition(": ")[2] for problem in error.problems) from None
