"""The grades of a made-up class and those of a real one never share a folder: each gives way to the other."""

from __future__ import annotations

from pathlib import Path

from autograder.gradebook.journal import FILE_NAME

MARK = ".made-up"  # in the folder of a made-up class, and in that of its grades


def mark(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()


def choose_output_folder(grades: Path, submissions: Path) -> tuple[Path, str]:
    """The folder for the grades of these submissions, and a sentence when it, or what was in it, is not where it was.

    A made-up class goes elsewhere when real grades are there; made-up grades that are there are moved.
    """
    made_up, marked = (submissions / MARK).exists(), (grades / MARK).exists()
    if made_up and not marked and (grades / FILE_NAME).exists():
        grades = grades.with_name(f"{grades.name}-made-up")
        mark(grades)
        return grades, f"A made-up class does not go among real grades: it is graded into {grades}."
    if made_up:
        mark(grades)
    elif marked:
        aside = _free(grades.with_name(f"{grades.name}-made-up"))
        grades.rename(aside)
        return grades, f"The grades of the made-up class were moved to {aside}."
    return grades, ""


def _free(folder: Path) -> Path:
    """This name, or the first of `-2`, `-3`, … that nobody uses."""
    free, number = folder, 1
    while free.exists():
        number += 1
        free = folder.with_name(f"{folder.name}-{number}")
    return free
