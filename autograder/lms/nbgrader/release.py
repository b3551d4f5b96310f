"""`nbgrader generate_assignment` for this course: what students receive, the same as `autograder build` makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbgrader.converters.base import NbGraderException
from nbgrader.utils import find_all_files

from autograder.authoring.build import build
from autograder.course.config import Assignment, Course, CourseError, load_course
from autograder.lms.nbgrader.settings import write_source


class ReleaseExporter(NotebookExporter):
    """Gives nbgrader the student's notebook as the build makes it, and the files that belong to it.

    The solution's `.py` is the only source: changes to the notebook beside it are overwritten. What is built here is
    kept in memory, because nbgrader empties the released folder before it writes.
    """

    def __init__(self, config: Any = None, **kwargs: Any) -> None:
        super().__init__(config=config, **kwargs)
        converter: Any = kwargs.get("parent")
        course, assignment = open_course(converter)
        try:
            write_source(course, assignment)
            self.files = {file.name: file.read_bytes() for file in build(course, [assignment.name])}
        except CourseError as error:
            raise refusal(converter, str(error)) from None

    def from_filename(self, filename: str, resources: Any = None, **kwargs: Any) -> Any:
        """The released notebook, whatever the file holds; the other files go with it as `outputs`."""
        others = dict(self.files)
        notebook = nbformat.reads(others.pop(Path(filename).name).decode("utf-8"), as_version=4)
        output, resources = self.from_notebook_node(notebook, resources, **kwargs)
        resources["outputs"] = others
        return output, resources


def open_course(converter: Any) -> tuple[Course, Assignment]:
    """The course in nbgrader's folder and the assignment that it works on; raises NbGraderException with a sentence."""
    folder = converter.coursedir
    try:
        course = load_course(folder.root)
        assignment = course.assignment(folder.assignment_id)
    except CourseError as error:
        raise refusal(converter, str(error)) from None
    source = folder.format_path(folder.source_directory, ".", assignment.name)
    copied = find_all_files(source, [*folder.ignore, "*.ipynb"])
    if copied:
        raise refusal(
            converter,
            f"nbgrader would copy {copied[0]} to students. Use this course's own nbgrader_config.py, "
            "whose CourseDirectory.ignore keeps solutions where they are.",
        )
    return course, assignment


def refusal(converter: Any, sentence: str) -> NbGraderException:
    """The exception that ends a command of nbgrader without a traceback; its sentence is in the log."""
    converter.log.error(sentence)
    return NbGraderException(sentence)
