"""Write sheets to print: for teaching assistants about a class, and for conversations with students.

The pages lie in `sheets/` in the folder of grades, which no command hands to students.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autograder.course.config import Assignment, Course
from autograder.extras.sheets.class_page import class_page
from autograder.extras.sheets.conversation import Sheet, SheetJob, prepare_sheet
from autograder.extras.sheets.questions import FILE_NAME, load_question_file, questions_file
from autograder.feedback.pages import write_page
from autograder.feedback.painter import draw_pictures
from autograder.feedback.titles import parts_in_order
from autograder.records import Grade, InfrastructureError, RefusedError
from autograder.runs.pool import Plan, graders
from autograder.text.files import check_file, marked
from autograder.text.names import folder_name

TEMPLATES = Path(__file__).parent / "templates"

FOLDER = "sheets"
MARK = "<title>Sheet · ".encode()  # identifies a page written by an earlier run
WORTH_ANOTHER = 12  # sheets that a further grader prepares in the time that it takes to start
Tell = Callable[[int, int], None]


@dataclass(frozen=True)
class Sheets:
    """A page with sheets, the number of students with questions on it, and messages."""

    path: Path
    students: int
    problems: tuple[str, ...] = ()

    def as_record(self) -> dict[str, Any]:
        """Return the page as a JSON-serializable dict."""
        return {"page": str(self.path), "students": self.students, "problems": list(self.problems)}


def class_file(folder: Path, assignment: Assignment) -> Path:
    """Return the default path of the page for teaching assistants."""
    return folder / FOLDER / f"{assignment.name}.html"


def conversations_file(folder: Path, assignment: Assignment, student: str | None) -> Path:
    """Return the default path of one student's sheet, or of those of a class."""
    name = "all-conversations" if student is None else folder_name(student)
    return folder / FOLDER / assignment.name / f"{name}.html"


def check_room(file: Path) -> None:
    """Raise RefusedError if the path holds a file that is not such a page, or cannot be written."""
    check_file(file, "`sheet`", marked(MARK))


def require_questions(course: Course, assignment: Assignment) -> None:
    """Raise RefusedError for an assignment without questions, CourseError for errors in them."""
    if load_question_file(course, assignment) is None:
        raise RefusedError(
            f"{assignment.name} has no questions for conversations yet: write "
            f"{course.label(questions_file(course, assignment))} (docs/conversations.md says how). "
            f"Without {FILE_NAME}, `autograder sheet {assignment.name}` gives the page for teaching assistants."
        )


def write_class_page(
    plan: Plan,
    folder: Path,
    assignment: Assignment,
    grades: Sequence[Grade],
    names: Mapping[str, str],
    file: Path,
    tell: Tell,
) -> Sheets:
    """Write the page for teaching assistants about the grades of one assignment."""
    check_room(file)
    page = class_page(plan.course, assignment, grades)
    problems = draw_pictures(plan, folder, page.representatives, tell)
    pictured = page.with_pictures(folder, plan.course)
    write_page(file, "class_sheet.html.j2", TEMPLATES, page=pictured, names=names)
    return Sheets(file, len(grades), tuple(problems))


def write_conversations(
    plan: Plan,
    assignment: Assignment,
    jobs: Sequence[SheetJob],
    names: Mapping[str, str],
    file: Path,
    tell: Tell,
) -> Sheets:
    """Write the sheets of these jobs into one file, one after another."""
    check_room(file)
    require_questions(plan.course, assignment)
    sheets = prepare_all(plan, assignment, jobs, tell)
    parts = parts_in_order(assignment, [part.name for part in assignment.parts])
    write_page(
        file,
        "sheet.html.j2",
        TEMPLATES,
        title=assignment.title,
        sheets=sheets,
        names=names,
        parts=parts,
    )
    problems = tuple(f"{sheet.student}: {sheet.problem}" for sheet in sheets if sheet.problem)
    return Sheets(file, sum(not sheet.problem for sheet in sheets), problems)


def prepare_all(
    plan: Plan, assignment: Assignment, jobs: Sequence[SheetJob], tell: Tell
) -> list[Sheet]:
    """Prepare the sheets in graders' processes, in the order of the jobs; raises InfrastructureError."""
    refused = [job.grade for job in jobs if job.grade.status != "graded"]
    graded = [job for job in jobs if job.grade.status == "graded"]
    sheets = {grade.key: Sheet(grade.student, problem=grade.problem or "") for grade in refused}
    fewer = min(plan.jobs, 1 + len(graded) // WORTH_ANOTHER)
    plan = replace(plan, jobs=fewer, names=(assignment.name,))
    tell(0, len(graded))
    pool = graders(plan) if graded else None
    try:
        waiting = [pool.submit(prepare_sheet, job) for job in graded] if pool else []
        for number, (job, future) in enumerate(zip(graded, waiting), start=1):
            sheets[job.grade.key] = future.result()
            tell(number, len(graded))
    except BrokenProcessPool:
        raise InfrastructureError(
            "A process that prepared the sheets was ended from outside, perhaps because memory was "
            "short. `autograder sheet --jobs 1` prepares them one after another."
        ) from None
    finally:
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)
    return [sheets[job.grade.key] for job in jobs]
