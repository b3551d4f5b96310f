"""The output folder of a run never lies in a folder that a student writes."""

import os
from pathlib import Path

from autograder.records import RefusedError, Submission
from autograder.submissions.entries import holds_work
from autograder.submissions.files import SOURCES, DiskFolder, suffix
from autograder.text.names import student_name


def check_output(output: Path, submissions: Path, first: Submission) -> None:
    """Raise RefusedError if `output` lies in a student's folder, where grades can be planted.

    In the folder of a class, it may lie beside the students' files and folders. `first` is the
    first submission there.
    """
    place = Path(os.path.realpath(output))
    source = submissions.resolve()
    if source.is_file() and suffix(source.name) not in SOURCES:
        return  # an archive lies where the instructor put it
    if place == source:
        raise RefusedError(
            f"{output} is the folder of the submissions. Name another folder for the grades."
        )
    class_folder = source if source.is_dir() else source.parent
    if not place.is_relative_to(class_folder):
        return
    if (
        len(place.relative_to(class_folder).parts) != 1
        or source.is_file()
        or (place.is_dir() and holds_work(DiskFolder(place)))
        or _is_of_one_student(class_folder, first)
    ):
        raise RefusedError(
            f"The output folder {output} would lie among the files of a student, who could plant grades there. "
            "Name a folder outside with --output."
        )


def _is_of_one_student(folder: Path, first: Submission) -> bool:
    """Whether the folder itself is a student's: submissions in the folder of a class have other names."""
    return first.student in {student_name(folder.name), student_name(folder.parent.name)}
