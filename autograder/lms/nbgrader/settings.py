"""What `nbgrader_config.py` asks the course for: where its gradebook is, and the notebooks nbgrader looks for."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

import nbformat

from autograder.course.config import Assignment, Course, CourseError, load_course
from autograder.text.files import write_whole

VARIABLE = "NBGRADER_DB_URL"


def database_url(root: Path) -> str:
    """The gradebook's address: from the environment, else from course.yml, else a file in the course.

    A course.yml that cannot be read gives the file; every command that grades says what is wrong with it.
    """
    url = os.environ.get(VARIABLE) or _from_course(root) or f"sqlite:///{root / 'gradebook.db'}"
    for short in ("postgresql://", "postgres://"):
        if url.startswith(short):
            return "postgresql+psycopg://" + url.removeprefix(short)
    return url


def find_own_tools() -> None:
    """Put the folder of this Python's commands on the path: nbgrader calls `alembic` to make a gradebook."""
    folder = str(Path(sys.executable).parent)
    if folder not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([folder, os.environ.get("PATH", os.defpath)])


def write_sources(root: Path) -> None:
    """Write the notebook of each solution that has none yet: nbgrader looks for assignments by their notebooks."""
    with suppress(CourseError):  # the command that needs the course says what is wrong with it
        course = load_course(root)
        for assignment in course.assignments:
            if not source_notebook(course, assignment).is_file():
                with suppress(CourseError):
                    write_source(course, assignment)


def source_notebook(course: Course, assignment: Assignment) -> Path:
    """Where nbgrader finds the notebook with the solution; made from the `.py` beside it."""
    return course.solution_folder(assignment) / f"{assignment.stem}.ipynb"


def write_source(course: Course, assignment: Assignment) -> None:
    """Write that notebook; raises DocumentError when the solution cannot be built."""
    from autograder.course.document import load_document
    from autograder.course.notebook import to_notebook

    notebook = to_notebook(assignment, load_document(course, assignment).text)
    write_whole(source_notebook(course, assignment), nbformat.writes(notebook).rstrip() + "\n")


def _from_course(root: Path) -> str | None:
    try:
        return load_course(root).database
    except CourseError:
        return None
