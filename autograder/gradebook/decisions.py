"""The instructors' decisions, `decisions.yml` beside course.yml, as a typed list laid over the
journal.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Literal

import yaml
from filelock import FileLock, Timeout
from pydantic import Field, model_validator

from autograder.course.config import Course, CourseError, Moment, Text
from autograder.course.yaml_file import MarkedYaml, YamlRecord
from autograder.records import Grade, RefusedError, TestResult
from autograder.text.files import read_utf8, write_whole
from autograder.text.names import graded_name
from autograder.text.spelling import did_you_mean, one_of
from autograder.text.wording import counted_points

FILE_NAME = "decisions.yml"
HEADER = "# Decisions of the instructors over the grades. Remove an entry to undo it.\n"
WAIT = 30  # seconds for another command
KINDS = ("give", "take", "comment", "excuse", "drop", "accept_late")
Points = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Decision(YamlRecord):
    """One entry of the file: one of `KINDS`, for a student or, for `drop`, for everybody.

    `drop` names a test, which then gives its full points or is taken out of the total. `score` is
    the score in the journal at the time of the decision.
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
    reason: Text | None = None
    by: Text
    at: Moment
    score: float | None = None

    @model_validator(mode="after")
    def _says_one_thing(self) -> "Decision":
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        wrong = {
            f"must have exactly one of {one_of(KINDS)}.": len(given) != 1,
            "must name the `student`.": not self.drop and self.student is None,
            "drops a test for everybody, so it has no `student`.": self.drop
            and self.student is not None,
            "needs `counts: full` or `counts: out` with `drop`, and only there.": bool(self.counts)
            != bool(self.drop),
            "can have a `part` only with `give` or `take`.": self.part
            and not (self.give or self.take),
            "must have a `reason`, which the student reads.": self.reason is None
            and self.comment is None,
        }
        for sentence in (sentence for sentence, found in wrong.items() if found):
            raise ValueError(sentence)
        return self

    @property
    def sentence(self) -> str:
        """The decision as the student reads it: `1 point given back: The test was too strict.`"""
        if self.comment:
            return self.comment
        if self.give or self.take:
            points = counted_points(self.give or self.take or 0)
            said = f"{points} {'given back' if self.give else 'taken off'}"
        elif self.drop:
            said = (
                "Counts in full for everybody"
                if self.counts == "full"
                else "Does not count for anybody"
            )
        else:
            said = "Excused" if self.excuse else "Accepted although late"
        return f"{said}: {self.reason}"


@dataclass(frozen=True)
class Entry:
    """A decision, and its place in the file for messages: `decisions.yml, line 7`."""

    place: str
    decision: Decision


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
    return _parse(read_utf8(file, FILE_NAME, CourseError)) if file.exists() else ()


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
    entry = yaml.safe_dump([record], sort_keys=False, allow_unicode=True, width=1000)
    new = old + ("" if old.endswith("\n") else "\n") + entry
    known = _parse(old)
    entries = _parse(new)
    if [one.decision for one in entries] != [*(one.decision for one in known), decision]:
        raise CourseError(
            f"{FILE_NAME} is not a list of lines that begin with `- `; add the decision by hand:\n{entry}"
        )
    write_whole(file, new)
    return entries[-1].place


def _parse(text: str) -> tuple[Entry, ...]:
    if all(not line.strip() or line.lstrip().startswith("#") for line in text.splitlines()):
        return ()
    document = MarkedYaml(FILE_NAME, text, "the list of decisions", item="decision")
    found = document.read_list(Decision)
    dropped = [(one.assignment, one.drop) for one in found or () if one.drop]
    if len(set(dropped)) < len(dropped):
        document.add((), "a test is dropped twice; remove one of the decisions.")
    if found is None or document.problems:
        raise CourseError(document.problems)
    return tuple(
        Entry(f"{FILE_NAME}, line {document.line((number,))}", one)
        for number, one in enumerate(found)
    )


def lay_over(
    course: Course,
    entries: Sequence[Entry],
    grades: Iterable[Grade],
    groups: Mapping[tuple[str, str], str] | None = None,
) -> Iterator[Decided]:
    """Yield each grade after the decisions about it. A dropped test comes first, then the decisions
    in their order.

    `groups` names, by student and assignment, the group whose work a grade is of: its decisions
    count, too. `grades` are read twice if a test is dropped.
    """
    dropped = {
        (entry.decision.assignment, entry.decision.drop) for entry in entries if entry.decision.drop
    }
    tests = (
        (grade.assignment, test) for grade in (grades if dropped else ()) for test in grade.tests
    )
    points = {
        (name, test.name): test.max_score for name, test in tests if (name, test.name) in dropped
    }
    ordered = sorted(entries, key=lambda entry: entry.decision.drop is None)
    for grade in grades:
        one = Decided(grade, grade)
        group = (groups or {}).get(grade.key)
        for entry in ordered:
            decision = entry.decision
            is_meant = decision.drop or not {grade.student, group}.isdisjoint(ids_of(decision))
            if is_meant and grade.assignment == decision.assignment:
                _apply(course, entry, one, points.get((grade.assignment, decision.drop or "")))
        yield one


def ids_of(decision: Decision) -> tuple[str, ...]:
    """Return the ids in the grades that the student of a decision can have: of `A/42`, also that of
    its folder.
    """
    return () if decision.student is None else (decision.student, graded_name(decision.student))


def unfitting(
    course: Course, entries: Sequence[Entry], decided: Sequence[Decided], known: Iterable[str]
) -> list[str]:
    """Return a message for each decision that does not fit the course or the grades.

    `known` are further students and groups of the class. Decisions about assignments without grades
    are not mentioned.
    """
    graded = {one.grade.assignment for one in decided}
    tests = {
        (one.journal.assignment, test.name)
        for one in decided
        if entries
        for test in one.journal.tests
    }
    people = {one.grade.student for one in decided} | set(known)
    made = {decision for one in decided for decision in one.made}
    problems = [problem for one in decided for problem in one.problems]
    for entry in entries:
        decision = entry.decision
        assignment = course.find(entry.decision.assignment)
        name = decision.assignment
        if assignment is None:
            sentence = f"the course has no assignment `{name}`{_close(name, (a.name for a in course.assignments))}"
        elif name not in graded or decision in made:
            continue
        elif decision.drop:
            close = _close(decision.drop, (test for one, test in tests if one == name))
            sentence = f"{name} has no test `{decision.drop}`{close}"
        elif people.isdisjoint(ids_of(decision)):
            sentence = f"no student in these grades has the name {decision.student}{_close(decision.student, people)}"
        elif decision.part and decision.part not in (
            parts := [part.name for part in assignment.parts]
        ):
            sentence = f"{name} has no part `{decision.part}`{_close(decision.part, parts)}"
        elif decision.excuse:
            continue
        else:
            sentence = f"nothing of {decision.student} was graded for {name}, so only `excuse` has an effect."
        problems.append(f"{entry.place}: {sentence}")
    return problems


def _close(word: str | None, known: Iterable[str]) -> str:
    return did_you_mean(word, sorted(known)) or "."


def _apply(course: Course, entry: Entry, one: Decided, dropped: float | None) -> None:
    decision = entry.decision
    before = one.grade
    if decision.drop:
        if dropped is None:
            return
        one.grade = _without(before, decision, dropped)
    elif decision.give or decision.take:
        borders = _borders(course, before, decision.part)
        if borders is None:
            return
        wanted = (decision.give or 0) - (decision.take or 0)
        points = round(min(max(wanted, -borders[0]), borders[1]), 6)
        if points != wanted:
            where = (
                f"the part {decision.part} of {before.assignment}"
                if decision.part
                else before.assignment
            )
            verb = "gain" if wanted > 0 else "lose"
            one.problems += (
                f"{entry.place}: {before.student} can {verb} only {counted_points(abs(points))} in {where}, "
                f"not {abs(wanted):g}.",
            )
        result = TestResult(
            "decision", decision.part or "", decision.sentence, "decided", points, 0.0, hidden=False
        )
        one.grade = replace(
            before, score=round(before.score + points, 6), tests=(*before.tests, result)
        )
    if decision.score is not None and abs(decision.score - one.journal.score) > 1e-6:
        one.problems += (
            f"{entry.place}: {before.student} had {counted_points(decision.score)} in {before.assignment} when this was "
            f"decided, and has {one.journal.score:g} now. If the decision is still right, remove its line `score`.",
        )
    one.made += (decision,)


def _borders(course: Course, grade: Grade, part: str | None) -> tuple[float, float] | None:
    """Return the points that a part, or the whole grade, can lose and gain; None if there is no
    such part.
    """
    room = grade.max_score - grade.score
    if part is None:
        return grade.score, room
    assignment = course.find(grade.assignment)
    points = {one.name: one.points for one in assignment.parts} if assignment else {}
    if part not in points:
        return None
    tests = [test for test in grade.tests if test.part == part]
    score = sum(test.score for test in tests)
    most = sum(test.max_score for test in tests) if tests else points[part]
    return score, min(most - score, room)


def _without(grade: Grade, decision: Decision, points: float) -> Grade:
    """Return the grade with full points for the dropped test, or with neither its points nor its
    maximum.
    """
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
    most = grade.max_score - (0 if full else points)
    return replace(
        grade, tests=tuple(tests), score=round(grade.score + gained, 6), max_score=round(most, 6)
    )


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
