"""Grades for other people's tools: each exporter turns the grades of a class into what one tool reads.

An exporter is a module with one function, `export(request)`; `EXPORTERS` lists them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.gradebook.differing import differing
from autograder.gradebook.final_scores import harmless, what_counts
from autograder.gradebook.journal import grades_at
from autograder.gradebook.times import read_names
from autograder.lms.roster import Roster, graded_name
from autograder.records import Grade, RefusedError
from autograder.submissions.collected import Collected, read_collected

if TYPE_CHECKING:
    from autograder.course.config import Assignment, Course

EXPORTERS = {
    "csv": "autograder.lms.exports.table",
    "canvas": "autograder.lms.exports.canvas",
    "moodle": "autograder.lms.exports.moodle",
    "moodle-feedback": "autograder.lms.exports.moodle_feedback",
    "gradescope": "autograder.lms.exports.gradescope",
    "classroom50": "autograder.lms.exports.classroom50",
    "junit": "autograder.lms.exports.junit",
    "nbgrader": "autograder.lms.nbgrader.export",
}
WITHOUT_GRADES = ("gradescope",)
WITH_THE_LAST_TEXT = ("nbgrader",)
WITH_HAND_GRADING = ("csv", "canvas", "moodle")
SUBMITTED = Path("submitted")


class ExportError(RefusedError):
    """An export that cannot be made as it was asked for; its `str` is a sentence for the instructor."""


@dataclass(frozen=True)
class ExportRequest:
    """What to export: the grades of a class that count, and what a tool needs besides.

    `submissions` is where they were collected. `sheet` is the table that the instructor downloaded, `column` its
    column when the title does not tell, `output` where the result goes. `hidden` is when Gradescope shows the results
    of hidden tests. `folder` is where the grades and their pages are, `names` what was noted there of the students,
    `comments` what people wrote about a submission.
    """

    course: Course
    grades: tuple[Grade, ...]
    submissions: Path | None = None
    assignment: str | None = None
    sheet: Path | None = None
    column: str | None = None
    roster: Roster = field(default_factory=Roster)
    output: Path | None = None
    hidden: str = "after_published"
    scores: Mapping[tuple[str, str], float] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    comments: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def score(self, grade: Grade) -> float:
        """What a grade counts: `scores` says it where it is not simply what was reached."""
        return self.scores.get((grade.student, grade.assignment), grade.score)

    @property
    def assignments(self) -> tuple[Assignment, ...]:
        """The one that is asked for, or those that there are grades of; raises CourseError for an unknown one."""
        if self.assignment is not None:
            return (self.course.assignment(self.assignment),)
        graded = {grade.assignment for grade in self.grades}
        return tuple(a for a in self.course.assignments if a.name in graded)

    @property
    def differences(self) -> list[str]:
        """A sentence for each of the assignments of which course.yml says other points than the grades."""
        names = {assignment.name for assignment in self.assignments} if self.grades else set()
        return differing(self.course, (grade for grade in self.grades if grade.assignment in names))

    @property
    def left_out(self) -> list[str]:
        """A sentence for each assignment that there are grades of, and that the course does not have."""
        lost = {grade.assignment for grade in self.grades if self.course.find(grade.assignment) is None}
        return [
            f"{harmless(name)} is no assignment of this course; its grades are left out."
            for name in sorted(lost)
            if self.assignment is None
        ]

    def grades_of(self, assignment: Assignment) -> list[Grade]:
        return [grade for grade in self.grades if grade.assignment == assignment.name]

    @cached_property
    def collected(self) -> Mapping[tuple[str, str], Collected]:
        """What is known of where the submissions came from; nothing when they were not collected."""
        return read_collected(self.submissions or SUBMITTED)

    @cached_property
    def _told(self) -> Mapping[str, Collected]:
        return {student: one for (student, _), one in self.collected.items() if one.name or one.key}

    def _known_name(self, student: str) -> str:
        told = self._told.get(student)
        return told.name if told and told.name else self.names.get(student, "")

    def name(self, student: str) -> str:
        """A student's name for people, as far as the roster or the source told it."""
        known = self._known_name(student)
        person = self.roster.graded(student, known)
        return person.name if person and person.name else known

    def absent(self, students: Iterable[str]) -> dict[str, str]:
        """The names of the people of the roster who are none of these students, by what grades would call them."""
        known = {student: self._known_name(student) for student in students}
        present = {self.roster.graded(student, name) for student, name in known.items()}
        names = {name.casefold() for name in known.values() if name}
        return {
            graded_name(person.id): person.name
            for person in self.roster.people
            if person not in present and person.name.casefold() not in names
        }

    def known_names(self, grade: Grade) -> tuple[str, ...]:
        """What a student was called where the work was collected; nothing where that is not known."""
        told = self.collected.get((grade.student, grade.assignment)) or self._told.get(grade.student)
        names = (told.name, told.called) if told else ()
        return tuple(filter(None, (*names, self.names.get(grade.student, ""))))

    def keys(self, student: str) -> tuple[str, ...]:
        """Everything by which another tool may know a student, the id first."""
        person = self.roster.graded(student, self._known_name(student))
        listed = (person.id, *person.aliases) if person else ()
        told = self._told.get(student)
        return (student, *listed, told.key if told else "", self.name(student))


@dataclass
class Exported:
    """What became of an export: a sentence about what is there now, and one about each thing that is not."""

    summary: str
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Counted:
    """The grades of a class that count, and what each of them counts; `problems` are lines that cannot be read.

    `comments` are those that people wrote about a submission, `remark` is a sentence for the summary.
    """

    grades: tuple[Grade, ...] = ()
    scores: Mapping[tuple[str, str], float] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    comments: Mapping[tuple[str, str], str] = field(default_factory=dict)
    remark: str = ""


def read_grades(path: Path, course: Course, tool: str) -> Counted:
    """What a journal, or the folder that it is in, holds for a tool; raises Refused when there is none,
    and when there is no grade in it.

    The course says which attempt counts, and how much when it came late; nbgrader has a policy of its own.
    """
    found = grades_at(path)
    grades = list(found)
    problems = (found.problem,) if found.problem else ()
    if tool in WITH_THE_LAST_TEXT:
        latest = {(grade.student, grade.assignment): grade for grade in grades}
        return Counted(tuple(latest.values()), problems=problems)
    folder = found.path.parent
    counted, count = what_counts(folder, course, grades)
    scores = {place: final.score for place, final in count.items()}
    return Counted(tuple(counted), scores, problems, read_names(folder), folder)


def export(tool: str, request: ExportRequest) -> Exported:
    """Export to a tool of `EXPORTERS`; raises ExportError, and InfrastructureError when something is not installed."""
    if request.output and not request.output.absolute().parent.is_dir():
        raise ExportError(
            f"There is no folder {request.output.parent}; make it, or name another place with --output."
        )
    exported: Exported = import_module(EXPORTERS[tool]).export(request)
    return replace(exported, problems=[*request.differences, *exported.problems])
