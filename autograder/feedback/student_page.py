"""The instructors' page about a student, `students/<student>.html`: attempts over time, and code with its failing tests.

Unlike the feedback, it shows all that is known about hidden tests. Students must not receive it.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path, PurePosixPath
from urllib.parse import quote
from zoneinfo import ZoneInfo

from autograder.course.config import Course
from autograder.feedback.pages import feedback_path, write_page
from autograder.feedback.titles import TitleOf, with_titles
from autograder.gradebook.final_scores import Effective, PastAttempt, final_of
from autograder.gradebook.lateness import due_for
from autograder.gradebook.texts import files_of
from autograder.gradebook.visibility import when, with_full_messages
from autograder.records import Grade, SourceFile, TestResult
from autograder.source.text import cell_source, notebook_cells
from autograder.text.names import folder_name

FOLDER = "students"
MOST_LINES = 2_000  # of a cell or file
NEAR = 8  # lines around one that a failing test names
_PLACE = re.compile(r"\bline (\d{1,5})(?: of cell (\d{1,4}))?\b(?! of [\w.]+\.py)")


@dataclass(frozen=True)
class CodeBlock:
    """Numbered lines of a submitted file; one line alone if messages of `failing` tests name it.

    Lines `far` from all of those are left out on paper.
    """

    text: str
    failing: tuple[str, ...] = ()
    far: bool = False


def student_path(student: str) -> PurePosixPath:
    """Return the path of a student's page, relative to the report's folder."""
    return PurePosixPath(FOLDER, f"{folder_name(student)}.html")


def write_student_page(
    folder: Path, course: Course, effective: Effective, title_of: TitleOf
) -> None:
    """Write the page of the student of these grades."""
    grades = effective.grades
    student = grades[0].student
    called = effective.originals.get(student, student)
    timeline = sorted(
        ((attempt, grade) for grade in grades for attempt in effective.attempts(grade)),
        key=lambda pair: (
            pair[0].submitted is not None,
            pair[0].submitted and pair[0].submitted.timestamp(),
        ),
    )
    write_page(
        folder / student_path(student),
        "student.html.j2",
        student=called,
        name=effective.names.get(student, called),
        works=[_work(folder, course, with_titles(grade, title_of), effective) for grade in grades],
        timeline=[_row(course, attempt, grade) for attempt, grade in timeline],
    )


def _work(folder: Path, course: Course, grade: Grade, effective: Effective) -> dict[str, object]:
    grade = with_full_messages(grade)
    assignment = course.find(grade.assignment)
    failing = [test for test in grade.tests if not test.is_right]
    failures: dict[tuple[str, str], list[TestResult]] = {}
    for test in failing:
        said = (test.mistake or "", test.message or test.outcome)
        failures.setdefault(said, []).append(test)
    files = files_of(folder, grade.submission_sha256) if failing else ()
    words = (
        "autograder",
        "decide",
        grade.student,
        "--assignment",
        grade.assignment,
        "--reason",
        "…",
    )
    return {
        "title": assignment.title if assignment else grade.assignment,
        "grade": grade,
        "final": final_of(grade, effective.finals),
        "link": f"../{quote(feedback_path(grade).as_posix())}",
        "failures": failures,
        "files": {file.name: list(_blocks(file, failing)) for file in files},
        "command": shlex.join(words),
    }


def _row(course: Course, attempt: PastAttempt, grade: Grade) -> dict[str, object]:
    assignment = course.find(grade.assignment)
    zone = ZoneInfo(course.timezone)
    due = due_for(course, assignment, grade.student) if assignment else None
    moment = attempt.submitted and attempt.submitted.astimezone(zone)
    return {
        "title": assignment.title if assignment else grade.assignment,
        "when": when(moment) if moment else "–",
        "late": bool(moment and due and moment > due),
        "attempt": attempt,
        "counts": attempt.digest == grade.submission_sha256,
    }


def _blocks(file: SourceFile, failing: list[TestResult]) -> Iterator[CodeBlock]:
    marks: dict[tuple[int, int], list[str]] = {}
    for test in failing:
        for line, cell in set(_PLACE.findall(test.message or "")):
            marks.setdefault((int(cell or 0), int(line)), []).append(test.title)
    lines: list[tuple[str, tuple[str, ...]]] = []
    for cell, code in _cells(file):
        lines += [(f"     cell {cell}\n", ())] if cell else []
        for number, text in enumerate(code.splitlines()[:MOST_LINES], start=1):
            lines.append((f"{number:4d} {text}\n", tuple(marks.get((cell, number), ()))))
    marked = [place for place, (_, titles) in enumerate(lines) if titles]
    near: set[int] = set()
    for mark in marked:
        near.update(range(mark - NEAR, mark + NEAR + 1))
    numbered = enumerate(lines)
    for (titles, far), of_block in groupby(
        numbered, lambda entry: (entry[1][1], bool(marked) and entry[0] not in near)
    ):
        texts = [text for _, (text, _) in of_block]
        # of two neighbours that the same tests name, each is a block
        for text in texts if titles else ["".join(texts)]:
            yield CodeBlock(text, titles, far)


def _cells(file: SourceFile) -> Iterator[tuple[int, str]]:
    if not file.is_notebook:
        yield 0, file.text
        return
    try:
        cells = notebook_cells(file.text)
    except ValueError:
        return
    for number, cell in enumerate(cells, start=1):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            yield number, cell_source(cell)
