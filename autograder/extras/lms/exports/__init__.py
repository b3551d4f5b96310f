"""Exports of grades: each tool has an `Exporter`, found by its name in the entry-point group `autograder.exports`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from autograder.course.config import Assignment, Course
from autograder.extras.lms.identity import Described, Id, anything
from autograder.extras.lms.roster import TRUSTED_SITE, Roster, is_participant_word
from autograder.gradebook.final_scores import as_record, differing, final_of, what_counts
from autograder.gradebook.journal import grades_at
from autograder.gradebook.lateness import Final, GradeKey
from autograder.gradebook.table import harmless
from autograder.gradebook.times import read_names, read_originals
from autograder.gradebook.visibility import as_shown, final_as_shown
from autograder.installation.extensions import extensions, load_extension
from autograder.records import Grade, RefusedError
from autograder.submissions.collected import Collected, read_collected
from autograder.text.files import check_file, marked, write_whole

GROUP = "autograder.exports"
SUBMITTED = Path("submitted")


@dataclass(frozen=True)
class ExportRequest:
    """The input of an exporter: the effective grades of a class, and the options of a tool.

    `submissions` is the folder of collected submissions. `sheet` is the table that the instructor
    downloaded, `column` its column if the title does not match, `output` the path to write.
    `hidden` is when Gradescope shows the results of hidden tests, by default as the course's
    `feedback` says. `folder` holds the grades and their pages, `names` the display names stored
    there, `stored_originals` the ids that differ in the grades, and `comments` the instructors'
    comments on a submission. `answers` are the points of written answers in nbgrader's gradebook,
    None while they wait for a person. `problems` are unreadable lines of the journal, and decisions
    that do not fit; `remark` is a sentence for the summary. `written` are the files of the export
    so far.

    `repositories` is a table of the students' repositories, or an address with `{student}`;
    `branch` the one to write there, which is replaced with `replace` although the course did not
    write it. `on_step` is called with the number done and the total.
    """

    course: Course
    grades: tuple[Grade, ...] = ()
    submissions: Path | None = None
    assignment: str | None = None
    sheet: Path | None = None
    column: str | None = None
    roster: Roster = field(default_factory=Roster)
    output: Path | None = None
    hidden: str | None = None
    finals: Mapping[GradeKey, Final] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    stored_originals: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    comments: Mapping[GradeKey, str] = field(default_factory=dict)
    answers: Mapping[GradeKey, Mapping[str, float | None]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    remark: str = ""
    repositories: str | None = None
    branch: str = "feedback"
    replace: bool = False
    on_step: Callable[[int, int], None] = lambda done, total: None
    written: list[Path] = field(default_factory=list)

    @property
    def assignments(self) -> tuple[Assignment, ...]:
        """Return the requested assignment, or all with grades; raises CourseError for an unknown one."""
        if self.assignment is not None:
            return (self.course.assignment(self.assignment),)
        graded = {grade.assignment for grade in self.grades}
        return tuple(a for a in self.course.assignments if a.name in graded)

    def write(self, name: str, data: bytes | Iterable[str | bytes], mark: bytes) -> Path:
        """Write to `output`, or else `name`; return the path.

        Raises RefusedError for a file without the `mark`.
        """
        path = self.output or Path(name)
        check_file(path, "`export`", marked(mark))
        write_whole(path, data)
        self.written.append(path)
        return path

    @property
    def wanted(self) -> list[Grade]:
        """Return the grades of these assignments."""
        names = {assignment.name for assignment in self.assignments}
        return [grade for grade in self.grades if grade.assignment in names]

    @property
    def left_out(self) -> list[str]:
        """Return a message for each assignment with grades that is not in the course."""
        lost = {
            grade.assignment for grade in self.grades if self.course.find(grade.assignment) is None
        }
        reason = "is not an assignment of this course; its grades are left out."
        return [f"{harmless(name)} {reason}" for name in sorted(lost) if self.assignment is None]

    def grades_of(self, assignment: Assignment) -> list[Grade]:
        return [grade for grade in self.grades if grade.assignment == assignment.name]

    @cached_property
    def collected(self) -> Mapping[tuple[str, str], Collected]:
        """Return the records of collected submissions; empty if they were not collected."""
        return read_collected(self.submissions or SUBMITTED)

    @cached_property
    def _of_students(self) -> Mapping[str, Collected]:
        """Return a record of each student's collected work, preferably one with a name or a number."""
        of_students: dict[str, Collected] = {}
        for (student, _), collected in self.collected.items():
            if student not in of_students or collected.name or collected.key:
                of_students[student] = collected
        return of_students

    def _known_name(self, student: str) -> str:
        collected = self._of_students.get(student)
        return collected.name if collected and collected.name else self.names.get(student, "")

    def name(self, student: str) -> str:
        """Return a student's display name from the roster or the source."""
        name = self._known_name(student)
        person = self.roster.graded(student, name)
        return person.name if person and person.name else name

    @cached_property
    def originals(self) -> Mapping[str, str]:
        """Return the ids of students that differ from those in the grades, as no folder can have their name."""
        originals = {
            student: collected.original
            for student, collected in self._of_students.items()
            if collected.original
        }
        return {
            **self.roster.class_list(self._names_of_graded).originals,
            **self.stored_originals,
            **originals,
        }

    @property
    def _names_of_graded(self) -> Mapping[str, str]:
        return {grade.student: self._known_name(grade.student) for grade in self.grades}

    def original(self, student: str) -> str:
        """Return the student's id as the roster or the source has it."""
        return self.originals.get(student, student)

    def absent(self, students: Iterable[str]) -> dict[str, str]:
        """Return the names of the people in the roster who are not among these students, by id in the grades."""
        known_names = {student: self._known_name(student) for student in students}
        names = self.roster.class_list(known_names).names
        return {student: name for student, name in names.items() if student not in known_names}

    def known_names(self, grade: Grade) -> tuple[str, ...]:
        """Return a student's names at the source; empty if unknown."""
        collected = self.collected.get(grade.key) or self._of_students.get(grade.student)
        names = (collected.name, collected.called) if collected else ()
        all_names = filter(None, (*names, self.names.get(grade.student, "")))
        return tuple(name for name in all_names if not is_participant_word(name))

    def described(self, grade: Grade) -> Described:
        """Return all by which another tool can identify the student of a grade."""
        student = grade.student
        names = self.known_names(grade)
        person = self.roster.graded(student, self._known_name(student))
        description = Described(self._ids(grade), names)
        if person is not None:
            return description | person.identity
        return (
            description
            if names or self._known_name(student)
            else description | anything(student, self.original(student))
        )

    def _ids(self, grade: Grade) -> tuple[Id, ...]:
        """Return the student's ids; Moodle's numbers are of one assignment."""
        collected = self.collected.get(grade.key) or self._of_students.get(grade.student)
        ids = [Id(self.original(grade.student))]
        if collected is None:
            return tuple(ids)
        is_for_this = collected.assignment == grade.assignment or collected.site == TRUSTED_SITE
        site = collected.site if is_for_this else ""
        if collected.key:
            return (
                (*ids, Id(collected.key, site)) if is_for_this or not collected.site else tuple(ids)
            )
        return (Id(self.original(grade.student), site),)


@dataclass
class Exported:
    """The result of an export: a summary, a message about each grade that was not exported, files and grades.

    `students` lists students by what became of their work, where an export tells them apart.
    """

    summary: str
    problems: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    grades: Sequence[Grade] = ()
    finals: Mapping[GradeKey, Final] = field(default_factory=dict)
    students: Mapping[str, list[str]] = field(default_factory=dict)

    @property
    def scores(self) -> list[dict[str, Any]]:
        return [as_record(grade, final_of(grade, self.finals)) for grade in self.grades]

    def as_record(self) -> dict[str, Any]:
        files = [str(file) for file in self.files]
        return {
            "summary": self.summary,
            "problems": self.problems,
            "files": files,
            "scores": self.scores,
            **self.students,
        }


class Exporter(ABC):
    """An export to one tool.

    A package registers its class as `TOOL = "module:Class"` under `autograder.exports`.
    """

    has_grades = True  # else it exports an assignment, not grades
    adds_hand_grading = False  # points entered in nbgrader's formgrader count
    is_for_students = False  # what `feedback` in course.yml hides is left out
    shows_seconds = False
    follows_nbgrader = False  # the last attempt counts, and there are no groups

    @abstractmethod
    def export(self, request: ExportRequest) -> Exported:
        """Write the files with `request.write`.

        Raises RefusedError, or InfrastructureError if a package is missing.
        """


def find_exporter(tool: str) -> Exporter:
    """Return the exporter of a tool; raises RefusedError for an unknown one."""
    exporters = extensions(GROUP)
    if exporters and tool not in exporters:
        named = f"There is no export to `{tool}`" if tool else "Say where to export with --to"
        raise RefusedError(f"{named}; there is: {', '.join(exporters)}.")
    exporter: Exporter = load_extension(GROUP, tool)()
    return exporter


def read_grades(
    request: ExportRequest, path: Path, exporter: Exporter, section: str | None = None
) -> ExportRequest:
    """Return the request with the effective grades for a tool, from a journal or its folder.

    The course determines which attempt counts and the deduction for lateness; nbgrader has its own
    policy, and no groups. Raises RefusedError if there is no journal, no grade in it, or no such
    section.
    """
    journal = grades_at(path)
    folder = journal.path.parent
    course = request.course
    roster = request.roster
    if exporter.follows_nbgrader:
        course = course.model_copy(update={"attempts": "last"})
        roster = Roster()
    effective = what_counts(
        folder, course, journal, roster.class_list, section, seconds=exporter.shows_seconds
    )
    comments = {
        place: "\n".join(final.comments)
        for place, final in effective.finals.items()
        if final.comments
    }
    return replace(
        request,
        grades=tuple(effective.grades),
        finals=effective.finals,
        problems=tuple(filter(None, (journal.problem, *effective.problems))),
        names=read_names(folder),
        stored_originals=read_originals(folder),
        folder=folder,
        comments=comments,
        roster=request.roster.of_section(section) if section else request.roster,
    )


def export(tool: str, request: ExportRequest) -> Exported:
    """Export to a tool; raises RefusedError, and InfrastructureError if a package is missing."""
    if request.output and not request.output.absolute().parent.is_dir():
        raise RefusedError(
            f"There is no folder {request.output.parent}; make it, or name another place with --output."
        )
    exporter = find_exporter(tool)
    if exporter.is_for_students:
        request = _as_shown(request)
    exported = exporter.export(request)
    summary = f"{exported.summary} {request.remark}".rstrip()
    grades = request.wanted
    finals = request.finals
    problems = [*request.problems, *differing(request.course, grades, finals), *exported.problems]
    return Exported(summary, problems, request.written, grades, finals, exported.students)


def _as_shown(request: ExportRequest) -> ExportRequest:
    grades = tuple(as_shown(request.course, grade) for grade in request.grades)
    pairs = ((old, new) for old, new in zip(request.grades, grades, strict=True) if new is not old)
    changed = {
        old.key: final_as_shown(final_of(old, request.finals), old, new) for old, new in pairs
    }
    return replace(
        request, grades=grades, finals={**request.finals, **changed} if changed else request.finals
    )
