"""The files of an assignment that students receive, with their texts."""

import ast
import re
from collections.abc import Collection
from pathlib import Path, PurePath

import nbformat

from autograder.course.config import Assignment, Course, CourseError
from autograder.course.document import load_document
from autograder.course.notebook import to_notebook

# `hint` writes to .autograder
CACHES = ("__pycache__", ".ipynb_checkpoints", ".pytest_cache", ".autograder")
_ARCHIVE = re.compile(r"(.+?)(-\d+)?\.zip")


def released(course: Course, assignment: Assignment) -> dict[Path, str]:
    """Return every file of an assignment that students receive, with its text; raises CourseError like `build`."""
    document = load_document(course, assignment)
    folder = course.release_folder(assignment)
    texts = {
        course.stub_file(assignment): document.stub,
        course.notebook_file(assignment): nbformat.writes(
            to_notebook(assignment, document.stub)
        ).rstrip()
        + "\n",
        folder / f"test_{assignment.stem}.py": suite_text(
            course, course.visible_test_file(assignment)
        ),
    }
    for file in course.given_files(assignment):
        texts[folder / file.name] = suite_text(course, file)
    if course.pictures_file(assignment).exists():
        texts[folder / "pictures.py"] = suite_text(course, course.pictures_file(assignment))
    elif any(cell.kind == "picture" for cell in document.cells):
        missing = course.label(course.pictures_file(assignment))
        raise CourseError(f"{document.label} has a cell for a picture, but there is no {missing}.")
    return texts


def suite_text(course: Course, file: Path) -> str:
    label = course.label(file)
    text = course.read(file, CourseError, f"{label} is missing; students receive it.")
    try:
        ast.parse(text)
    except SyntaxError as error:
        raise CourseError(
            f"{label}, line {error.lineno}: this is not Python: {error.msg}."
        ) from None
    return text.rstrip() + "\n"


def files_below(folder: Path) -> list[Path]:
    """Return the files in an assignment's folder but those that no release contains: see `is_by_the_way`."""
    files = (file for file in folder.rglob("*") if file.is_file() or file.is_symlink())
    return sorted(
        file for file in files if not is_by_the_way(file.relative_to(folder), [folder.name])
    )


def is_by_the_way(path: PurePath, assignments: Collection[str]) -> bool:
    """Whether a relative path is a cache, or what students' commands write: hints, pictures and archives."""
    if set(CACHES) & set(path.parts):
        return True
    if path.match("pictures/*.png"):
        return True
    archive = _ARCHIVE.fullmatch(path.as_posix())
    return archive is not None and archive[1] in assignments
