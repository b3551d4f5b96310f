"""Functions for `nbgrader_config.py`: the gradebook's URL, and the notebooks that nbgrader searches for."""

import os
import re
import sys
from contextlib import suppress
from pathlib import Path

import nbformat

from autograder.course.config import Assignment, Course, CourseError
from autograder.course.reading import load_course
from autograder.text.files import write_whole

VARIABLE = "NBGRADER_DB_URL"


def database_url(root: Path) -> str:
    """Return the gradebook's URL: from the environment, from course.yml, or a file in the course.

    If course.yml cannot be read, the file is used; every grading command reports the error.
    """
    url = os.environ.get(VARIABLE)
    with suppress(CourseError):
        url = url or load_course(root).database
    url = url or f"sqlite:///{root / 'gradebook.db'}"
    for short in ("postgresql://", "postgres://"):
        if url.startswith(short):
            return "postgresql+psycopg://" + url.removeprefix(short)
    return url


def upgrade_hint(error: Exception) -> str:
    """Return what to do if this error of the database is about what an older nbgrader's gradebook lacks, else nothing."""
    text = str(error).casefold()
    if re.search(r"no such (?:column|table)|(?:column|relation) \S+ does not exist", text) is None:
        return ""
    return " It was made by an older nbgrader: run `nbgrader db upgrade`."


def find_own_tools() -> None:
    """Add the folder of this Python's scripts to PATH: nbgrader calls `alembic` to create a gradebook."""
    folder = str(Path(sys.executable).parent)
    if folder not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([folder, os.environ.get("PATH", os.defpath)])


def write_sources(root: Path) -> None:
    """Write the missing notebooks of solutions: nbgrader finds assignments by their notebooks."""
    with suppress(CourseError):  # the command that needs the course reports the error
        course = load_course(root)
        for assignment in course.assignments:
            if not source_notebook(course, assignment).is_file():
                with suppress(CourseError):
                    write_source(course, assignment)


def source_notebook(course: Course, assignment: Assignment) -> Path:
    """Return the path of the solution's notebook for nbgrader, built from the `.py` beside it."""
    return course.solution_folder(assignment) / f"{assignment.stem}.ipynb"


def write_source(course: Course, assignment: Assignment) -> None:
    """Write that notebook; raises CourseError if the solution cannot be built."""
    from autograder.course.document import load_document
    from autograder.course.notebook import to_notebook

    notebook = to_notebook(assignment, load_document(course, assignment).text)
    write_whole(source_notebook(course, assignment), nbformat.writes(notebook).rstrip() + "\n")
