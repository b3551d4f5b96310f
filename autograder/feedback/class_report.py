"""The class report, `index.html`: one file about a whole class, for screen and print."""

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from heapq import nsmallest
from pathlib import Path
from urllib.parse import quote
from zoneinfo import ZoneInfo

from autograder.course.config import Assignment, Course
from autograder.feedback import statistics as stats
from autograder.feedback.pages import TEMPLATES, feedback_path, write_page
from autograder.feedback.student_page import student_path
from autograder.feedback.titles import parts_in_order, titles_of
from autograder.gradebook.decisions import Decision
from autograder.gradebook.final_scores import Effective, PastAttempt, final_of, number, standing
from autograder.gradebook.lateness import Final, GradeKey
from autograder.gradebook.table import FILE_NAME as GRADEBOOK
from autograder.records import Grade

FILE_NAME = "index.html"
SMALL_CLASS = 20
MOST_HELPED = 10
MOST_SHOWN = 12
# rows of a table; of a larger class, the report links to grades.csv in place of all students
MOST_LISTED = 1000
MOST_DAYS = 28
MARKED = "The course site marks it as late, without a submission time."
LOW = 0.5
LOWEST = 0.25


@dataclass(frozen=True)
class PartSection:
    """The results of the class on one part: its share of the points, and each of its tests."""

    title: str
    share: float
    items: list[stats.Item]


@dataclass(frozen=True)
class Section:
    """The results of the class on one assignment."""

    name: str
    title: str
    points: float
    submissions: int
    graded: int
    suites: int
    numbers: dict[str, float | None]
    bars: list[int]
    days: dict[date, int]
    parts: list[PartSection]

    @property
    def hardest(self) -> stats.Item | None:
        """The test with the fewest passes; None if all students passed all tests."""
        tests = [item for part in self.parts for item in part.items if item.rate < 1]
        return min(tests, key=lambda item: item.rate, default=None)


@dataclass(frozen=True, slots=True)
class TableCell:
    """One student's score for one assignment in the table of all students."""

    title: str
    text: str
    kind: str
    link: str
    lost: float


EXCUSED = TableCell("", "excused", "quiet", "", 0.0)


@dataclass(frozen=True)
class Row:
    """One student in the table of all students; a cell is None without a submission.

    `other` holds refused submissions without an assignment in the course.
    """

    student: str
    cells: list[TableCell | None]
    score: float
    share: float
    other: TableCell | None = None
    link: str = ""

    @property
    def missing(self) -> int:
        return self.cells.count(None)

    @property
    def worth_reading(self) -> list[TableCell]:
        """The cells with lost points, largest loss first."""
        return sorted(
            (cell for cell in self.cells if cell and cell.lost > 1e-9), key=lambda cell: -cell.lost
        )


def write_class_report(
    folder: Path, course: Course, effective: Effective, file_name: str = FILE_NAME
) -> Path:
    """Write `index.html` with the effective grade of each student and assignment, and its final score.

    Statistics of tests and mistakes are calculated from the journal, all others from the scores
    after the decisions. Raises InfrastructureError if jinja2 is missing.
    """
    grades = effective.grades
    finals = effective.finals
    graded = [grade for grade in grades if grade.status == "graded"]
    refused = [grade for grade in grades if grade.status == "refused"]
    late = [grade for grade in grades if final_of(grade, finals).days]
    untimed = [grade for grade in grades if not final_of(grade, finals).known]
    journal = effective.journal
    sections = _sections(course, effective)
    titles = {section.name: section.title for section in sections}
    students = _students(effective)
    rows = _rows(students, sections, effective)
    listed_rows = list(rows) if len(students) <= MOST_LISTED else []
    return write_page(
        folder / file_name,
        "class_report.html.j2",
        course=course.title,
        sections=sections,
        names=effective.names,
        originals=effective.originals,
        points=sum(section.points for section in sections),
        others=any(grade.assignment not in titles for grade in grades),
        script_digest=_script_digest(),
        students=len(students),
        gradebook=GRADEBOOK,
        most_listed=MOST_LISTED,
        refused=refused,
        flagged=_flagged(grades, finals),
        decisions=_decisions(effective),
        unfitting=effective.problems,
        late=late,
        final_of=lambda grade: final_of(grade, finals),
        link=link,
        untimed=len(untimed),
        graded=len(graded),
        isolation=sorted({grade.isolation for grade in graded}),
        seeds=sorted({str(grade.seed) for grade in graded}),
        titles=titles,
        mistakes=stats.mistake_counts(journal),
        title_of=titles_of(course),
        unnamed=stats.unnamed_failures(journal),
        rows=listed_rows,
        lowest=lowest_of(listed_rows or rows, len(students)),
        small=len(students) < SMALL_CLASS,
        bins=stats.BINS,
        most_shown=MOST_SHOWN,
    )


def _script_digest() -> str:
    """Return the digest of the page's script, which its Content-Security-Policy allows."""
    script = (TEMPLATES / "report.js").read_bytes()
    return base64.b64encode(hashlib.sha256(script).digest()).decode()


def worth_a_look(grade: Grade, final: Final) -> list[str]:
    """Return the notes of a grade for the instructor: flags, and a late mark without a time."""
    return [*grade.flags, *([MARKED] if final.marked else [])]


def lowest_of(rows: Iterable[Row], students: int) -> list[Row]:
    """Return those with the lowest totals first: at most a quarter of all students, none with full marks."""
    most = min(MOST_HELPED, -(-students // 4))
    return nsmallest(most, (row for row in rows if row.share < 1), key=lambda row: row.share)


def link(grade: Grade) -> str:
    """Return the URL of a grade's page relative to the report."""
    return quote(feedback_path(grade).as_posix())


def _decisions(effective: Effective) -> list[tuple[str, Decision]]:
    """Return each decision with the students that it is about, those for everybody last."""
    students_of: dict[Decision, list[str]] = {}
    for student, assignment in sorted(effective.finals):
        for decision in effective.finals[student, assignment].decisions:
            students_of.setdefault(decision, []).append(student)
    about_students = []
    about_everybody = []
    for decision, students in students_of.items():
        if decision.drop:
            about_everybody.append((f"all {len(students)} students", decision))
        else:
            about_students.append((", ".join(students), decision))
    return about_students + about_everybody


def _sections(course: Course, effective: Effective) -> list[Section]:
    """Return a section for each assignment with submissions, in the order of the course.

    An assignment that was removed from the course is kept if it has graded submissions.
    """
    pairs_of: dict[str, list[tuple[Grade, Grade]]] = {
        assignment.name: [] for assignment in course.assignments
    }
    for grade, journal in zip(effective.grades, effective.journal, strict=True):
        if course.find(grade.assignment) or grade.status == "graded":
            pairs_of.setdefault(grade.assignment, []).append((grade, journal))
    return [_section(name, course, pairs, effective) for name, pairs in pairs_of.items() if pairs]


def _days(attempts: Iterable[PastAttempt], zone: ZoneInfo) -> dict[date, int]:
    """Count the attempts of each day from the first to the last; only the last `MOST_DAYS` days."""
    by_day = Counter(
        attempt.submitted.astimezone(zone).date() for attempt in attempts if attempt.submitted
    )
    if not by_day:
        return {}
    last = max(by_day)
    span = min((last - min(by_day)).days, MOST_DAYS - 1)
    days = [last - timedelta(days=back) for back in range(span, -1, -1)]
    return {day: by_day[day] for day in days}


def _section(
    name: str, course: Course, pairs: list[tuple[Grade, Grade]], effective: Effective
) -> Section:
    assignment = course.find(name)
    attempts: list[PastAttempt] = []
    for grade, _ in pairs:
        attempts += effective.attempts(grade)
    graded = [grade for grade, _ in pairs if grade.status == "graded"]
    journal = [before for _, before in pairs if before.status == "graded"]
    shares = [stats.share(grade.score, grade.max_score) for grade in graded]
    return Section(
        name=name,
        title=assignment.title if assignment else name,
        points=max(grade.max_score for grade, _ in pairs),
        submissions=len(pairs),
        graded=len(graded),
        suites=len({grade.suite_sha256 for grade in graded}),
        numbers=stats.summary([grade.score for grade in graded]),
        bars=stats.histogram(shares),
        days=_days(attempts, ZoneInfo(course.timezone)),
        parts=_parts(assignment, journal),
    )


def _parts(assignment: Assignment | None, graded: list[Grade]) -> list[PartSection]:
    tests = stats.items(graded)
    shares = stats.part_shares(graded)
    return [
        PartSection(title, shares[name], [test for test in tests if test.part == name])
        for name, title in parts_in_order(assignment, shares).items()
    ]


def _students(effective: Effective) -> list[tuple[str, list[Grade]]]:
    """Return everybody with their grades, sorted."""
    students: dict[str, list[Grade]] = {}
    for grade in effective.grades:
        students.setdefault(grade.student, []).append(grade)
    excused = [student for (student, _), final in effective.finals.items() if final.excused]
    for student in [*effective.absent, *excused]:
        students.setdefault(student, [])
    return sorted(students.items(), key=lambda item: (item[0].casefold(), item[0]))


def _rows(
    students: Sequence[tuple[str, list[Grade]]], sections: list[Section], effective: Effective
) -> Iterator[Row]:
    names = {section.name for section in sections}
    for student, grades in students:
        grade_of = {grade.assignment: grade for grade in grades}
        cells: list[TableCell | None] = []
        score = points = 0.0
        for section in sections:
            grade = grade_of.get(section.name)
            is_excused = _is_excused(effective, student, section)
            if grade is not None:
                score += final_of(grade, effective.finals).score
            if not is_excused:
                points += section.points
            cells.append(EXCUSED if is_excused else _cell(section, grade, effective))
        others = [grade for grade in grades if grade.assignment not in names]
        other = _refused(others[0]) if others else None
        page = quote(student_path(student).as_posix()) if grades else ""
        yield Row(student, cells, score, stats.share(score, points), other, page)


def _cell(section: Section, grade: Grade | None, effective: Effective) -> TableCell | None:
    if grade is None:
        return None
    final = final_of(grade, effective.finals)
    if standing(grade, final) == "refused":
        return _refused(grade, section.title, section.points)
    reached = stats.share(final.score, grade.max_score)
    kind = "low" if reached < LOW else ""
    if reached < LOWEST:
        kind = "lowest"
    return TableCell(
        section.title, number(final.score), kind, link(grade), grade.max_score - final.score
    )


def _is_excused(effective: Effective, student: str, section: Section) -> bool:
    final = effective.finals.get((student, section.name))
    return final is not None and final.excused


def _flagged(
    grades: Iterable[Grade], finals: Mapping[GradeKey, Final]
) -> list[tuple[Grade, list[str]]]:
    """Return the grades with notes for a person."""
    noted = [(grade, worth_a_look(grade, final_of(grade, finals))) for grade in grades]
    return [(grade, notes) for grade, notes in noted if notes]


def _refused(grade: Grade, title: str = "", lost: float = 0.0) -> TableCell:
    return TableCell(title or grade.assignment, "refused", "refused", link(grade), lost)
