"""Reading a course.yml. Imports only the YAML reader and the records, and never PyTorch.

All errors in it are raised as one `CourseError` with a sentence for each.
"""

import keyword
import re
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

from autograder.course.config import (
    Assignment,
    Course,
    CourseError,
    CourseFile,
    Limits,
    WrittenAnswer,
)
from autograder.course.markers import ANSWER
from autograder.course.yaml_file import MarkedYaml
from autograder.installation.distribution import requirements
from autograder.text.spelling import did_you_mean
from autograder.text.utf8 import read_utf8

FILE_NAME = "course.yml"
SCHEMA_NAME = "course.schema.json"
_PART_HEADING = re.compile(r"^# ## Part (\d+) · (.+)$", re.MULTILINE)
# other modules in an assignment's folder, or read by pytest
FILES_OF_OURS = ("pictures", "catch", "conftest")


def load_course(path: Path | str = ".") -> Course:
    """Load the course.yml at `path`, or the nearest above it; raises CourseError with a sentence for each error."""
    file = course_file(Path(path))
    if not Path(path).exists() and not _is_yaml(Path(path)):
        raise CourseError(f"There is no folder {path}, so there is no {file}.")
    if not file.is_file():
        there = f"There is no {FILE_NAME} in {file.parent} or in any folder above it."
        raise CourseError(f"There is no file {file}." if _is_yaml(Path(path)) else there)
    document = MarkedYaml(file.name, read_utf8(file, file.name, CourseError), "the course")
    record = document.read(CourseFile)
    _check_names(document)
    _check_extensions(document)
    if record is None or document.problems:
        raise CourseError(document.problems)
    course = Course(root=file.parent, **dict(record))
    assignments = (
        _with_titles(course, _with_answers(course, _with_limits(a, course.limits)))
        for a in course.assignments
    )
    return course.model_copy(update={"assignments": tuple(assignments)})


def course_file(path: Path) -> Path:
    """Return the course.yml that a path names, the nearest one in or above a folder, or where a folder's would be.

    A folder that does not exist has none above it, either: its name is probably misspelt.
    """
    path = path.resolve() if ".." in path.parts else path.absolute()  # as pytest names its files
    above = (folder / FILE_NAME for folder in (path, *path.parents) if path.exists())
    return (
        path
        if _is_yaml(path)
        else next((file for file in above if file.is_file()), path / FILE_NAME)
    )


def _is_yaml(path: Path) -> bool:
    return path.suffix in (".yml", ".yaml")


def course_schema() -> dict[str, Any]:
    """Return the JSON schema of course.yml for editors, generated from the records that parse it."""
    schema = CourseFile.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": FILE_NAME}


def _check_names(document: MarkedYaml) -> None:
    document.check_unique(("assignments",), "name", "assignment")
    for index, assignment in enumerate(document.items(("assignments",))):
        document.check_unique(("assignments", index, "parts"), "name", "part")
        name = assignment.get("name") if isinstance(assignment, dict) else None
        stem = name.partition("_")[2] if isinstance(name, str) else ""
        if sentence := unfit_stem(stem):
            document.add(("assignments", index, "name"), sentence)


def unfit_stem(stem: str) -> str | None:
    """Return the reason that no student's module can have this name; None if it can.

    A student's folder comes first in the import path, so PyTorch would import a `random.py` in it
    in place of Python's.
    """
    if keyword.iskeyword(stem):
        return f"`{stem}` is a word of Python and cannot name a module."
    if stem in sys.stdlib_module_names:
        whose = "a module of Python's own"
    elif stem in _modules_of_the_kit():
        whose = "a module that the kit needs"
    elif stem in FILES_OF_OURS:
        whose = f"the name of a file of the kit's, {stem}.py"
    else:
        return None
    return f"`{stem}` is {whose}, which a student's {stem}.py would hide; choose another name."


@lru_cache(maxsize=1)
def _modules_of_the_kit() -> frozenset[str]:
    """Return the names of the engine's module and of the packages required in its metadata."""
    packages = {requirement.name.replace("-", "_") for requirement in requirements()}
    return frozenset({"autograder", "torch", "numpy", "pytest", "yaml", *packages})


def _check_extensions(document: MarkedYaml) -> None:
    """Report extensions for unknown assignments, which would have no effect."""
    names = [a.get("name") for a in document.items(("assignments",)) if isinstance(a, dict)]
    for index, extension in enumerate(document.items(("late", "extensions"))):
        name = extension.get("assignment") if isinstance(extension, dict) else None
        if isinstance(name, str) and name not in names:
            sentence = f"the course has no assignment `{name}`" + (
                did_you_mean(name, map(str, names)) or "."
            )
            document.add(("late", "extensions", index, "assignment"), sentence)


def _with_answers(course: Course, assignment: Assignment) -> Assignment:
    """Return the assignment with the written answers of its solution; reading the document reports its errors."""
    file = course.solution_file(assignment)
    text = file.read_text("utf-8", "replace") if file.is_file() else ""
    complete = assignment.model_copy()
    complete._answers = tuple(
        WrittenAnswer(match["name"], float(match["points"]), match["rubric"])
        for match in ANSWER.finditer(text)
    )
    return complete


def headings_of_parts(course: Course, assignment: Assignment) -> dict[int, str]:
    """Return the titles in the solution's headings `## Part 1 · Title`, by number; none without a solution."""
    file = course.solution_file(assignment)
    text = file.read_text("utf-8", "replace") if file.is_file() else ""
    return {int(match[1]): match[2].strip() for match in _PART_HEADING.finditer(text)}


def _with_titles(course: Course, assignment: Assignment) -> Assignment:
    """Return the assignment with the title of each part's heading where course.yml has none."""
    if all(part.title for part in assignment.parts):
        return assignment
    headings = headings_of_parts(course, assignment)
    parts = tuple(
        part.model_copy(update={"title": part.title or headings.get(number, part.name)})
        for number, part in enumerate(assignment.parts, start=1)
    )
    complete = assignment.model_copy(update={"parts": parts})
    complete._answers = assignment._answers
    return complete


def _with_limits(assignment: Assignment, limits: Limits) -> Assignment:
    given_limits = {
        name: getattr(assignment.limits, name) for name in assignment.limits.model_fields_set
    }
    return assignment.model_copy(update={"limits": limits.model_copy(update=given_limits)})
