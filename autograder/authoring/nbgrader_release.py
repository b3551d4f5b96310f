"""`nbgrader generate_assignment` for this course, with the same output as `autograder build`."""

from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbgrader.api import Gradebook

from autograder.authoring.build import build
from autograder.course.config import CourseError
from autograder.nbgrader.converter import enter_due, open_course, refusal
from autograder.nbgrader.settings import write_source


class ReleaseExporter(NotebookExporter):
    """An exporter that gives nbgrader the built notebook and the files that belong to it.

    The solution's `.py` is the only source: changes to the notebook beside it are overwritten. The
    built files are kept in memory, because nbgrader empties the released folder before it writes.
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
        if not converter.no_database:
            with Gradebook(converter.coursedir.db_url, converter.coursedir.course_id) as gradebook:
                enter_due(gradebook, course, assignment)

    def from_filename(self, filename: str, resources: Any = None, **kwargs: Any) -> Any:
        """Return the released notebook, whatever the file contains; the other files are its `outputs`."""
        others = dict(self.files)
        notebook = nbformat.reads(others.pop(Path(filename).name).decode("utf-8"), as_version=4)
        output, resources = self.from_notebook_node(notebook, resources, **kwargs)
        resources["outputs"] = others
        return output, resources
