"""Stored pictures for the feedback, which show the behaviour of a student's code in failing parts."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from autograder.course.config import Course
from autograder.records import Grade
from autograder.text.files import write_whole
from autograder.version import __version__

FOLDER = "pictures"


@dataclass(frozen=True)
class Picture:
    """One picture of one part: a base64 PNG, its sentence, and what to look for; or the reason that there is none."""

    part: str
    title: str
    look_for: str
    image: str = ""
    words: str = ""
    problem: str = ""


def failing_parts(grade: Grade) -> tuple[str, ...]:
    """Return the parts with failures, in the order of the suite."""
    return tuple(dict.fromkeys(test.part for test in grade.tests if test.fails))


def picture_file(folder: Path, course: Course, grade: Grade) -> Path | None:
    """Return the path of a grade's pictures, which need not exist; None if there is nothing to draw."""
    assignment = course.find(grade.assignment)
    parts = failing_parts(grade)
    if assignment is None or not parts:
        return None
    source = course.pictures_file(assignment)
    if not source.is_file():
        return None
    drawn_with = (
        f"{__version__}\0{grade.assignment}\0{' '.join(parts)}\0".encode() + source.read_bytes()
    )
    return (
        folder
        / FOLDER
        / f"{grade.submission_sha256[:32]}-{hashlib.sha256(drawn_with).hexdigest()[:16]}.json"
    )


def pictures_of(folder: Path, course: Course, grade: Grade) -> list[Picture]:
    """Return the stored pictures of a grade; empty before they are drawn."""
    file = picture_file(folder, course, grade) if (folder / FOLDER).is_dir() else None
    if file is None:
        return []
    try:
        return [Picture(**record) for record in json.loads(file.read_text("utf-8"))]
    except (OSError, ValueError, TypeError):
        return []


def keep_pictures(file: Path, pictures: Sequence[Picture]) -> None:
    """Write the pictures of one grade to the path of `picture_file`."""
    write_whole(file, json.dumps([asdict(picture) for picture in pictures], ensure_ascii=False))
