"""The command `sheet`: pages to print about the graded work on an assignment."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from autograder.api import effective_of, load_course, plan_of
from autograder.cli.base import DONE, Call, command_of, say
from autograder.gradebook.journal import grades_at
from autograder.gradebook.people import people_of
from autograder.gradebook.seals import refuse_links
from autograder.options import (
    AnyPath,
    CourseFolder,
    GradesOption,
    OnProgress,
    Section,
    Steps,
    Unsafe,
    argument,
    flag,
    ignore,
    path_option,
    value,
    whole_option,
)
from autograder.records import RefusedError

if TYPE_CHECKING:
    from autograder.extras.sheets.sheets import Sheets


def sheet(
    assignment: Annotated[
        str, argument(metavar="ASSIGNMENT", help="The assignment, such as 03_masked_heads.")
    ],
    grades: GradesOption = "grades",
    course: CourseFolder = ".",
    *,
    student: Annotated[
        str | None,
        value(
            "--student",
            "-s",
            metavar="STUDENT",
            help="For a conversation with this student: an id, name or login.",
        ),
    ] = None,
    everybody: Annotated[
        bool, flag("--all", help="For a conversation with each student, in one file.")
    ] = False,
    section: Section = None,
    seed: Annotated[
        int,
        whole_option(
            "--seed", help="Equal submissions and seeds give equal questions.", advanced=True
        ),
    ] = 0,
    page: Annotated[
        AnyPath | None,
        path_option(
            "--output",
            "-o",
            help="The HTML file; by default, in `sheets/` in the folder of grades.",
        ),
    ] = None,
    jobs: int | None = None,
    unsafe: Unsafe = False,
    on_sheet: Annotated[OnProgress | None, Steps("Preparing")] = None,
) -> "Sheets":
    """Write a page to print: for teaching assistants, or questions about a student's own code.

    A sheet is paper for people: it gives no points and judges nobody. It is for teaching
    assistants, about the class; with `student` or `everybody`, for a conversation of five minutes
    about a student's own code. Equal submissions and seeds give equal sheets.
    """
    from autograder.extras.sheets import sheets
    from autograder.extras.sheets.conversation import SheetJob

    if student is not None and everybody:
        raise RefusedError("--student and --all do not go together; leave one of them out.")

    loaded = load_course(course)
    chosen = loaded.assignment(assignment)
    reading = grades_at(Path(grades))
    folder = reading.path.parent
    refuse_links(folder)
    effective = effective_of(reading, loaded, section)
    names = effective.names
    plan = plan_of(loaded, seed, unsafe, jobs, (chosen.name,))
    of_assignment = [grade for grade in effective.grades if grade.assignment == chosen.name]
    if student is not None:
        students = dict.fromkeys((grade.student for grade in effective.grades), "") | dict(names)
        named = people_of(loaded, folder).student_id(student, students, effective.originals)
        of_assignment = [grade for grade in of_assignment if grade.student == named]
    if not of_assignment:
        who = f"{student} has" if student else "There is"
        raise RefusedError(f"{who} no graded work on {chosen.name} in {folder}.")
    if student is None and not everybody:
        file = (Path(page) if page else None) or sheets.class_file(folder, chosen)
        return sheets.write_class_page(
            plan, folder, chosen, of_assignment, names, file, on_sheet or ignore
        )
    file = (Path(page) if page else None) or sheets.conversations_file(
        folder, chosen, of_assignment[0].student if student else None
    )
    sheet_jobs = [SheetJob(folder.absolute(), grade, seed) for grade in of_assignment]
    return sheets.write_conversations(plan, chosen, sheet_jobs, names, file, on_sheet or ignore)


@command_of(sheet)
def sheet_command(call: Call) -> int:
    sheets = call(sheet)
    say(*sheets.problems)
    call.show(sheets.as_record, lambda: print(sheets.path))
    return DONE
