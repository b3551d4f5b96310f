"""Keep the grades of a made-up class and those of a real class in separate folders."""

from pathlib import Path

from autograder.gradebook.journal import FILE_NAME
from autograder.text.files import make_folder, numbered

MARK = ".made-up"  # a file in the folder of a made-up class, and in that of its grades


def mark(folder: Path) -> None:
    make_folder(folder)
    (folder / MARK).touch(folder.stat().st_mode & 0o666)


def choose_output_folder(grades: Path, submissions: Path) -> tuple[Path, str]:
    """Return the output folder for these submissions, and a message if a folder was changed or moved.

    If `grades` holds real grades, a made-up class is graded into another folder. If it holds grades
    of a made-up class, they are moved before a real class is graded.
    """
    made_up = (submissions / MARK).exists()
    marked = (grades / MARK).exists()
    if made_up and not marked and (grades / FILE_NAME).exists():
        grades = grades.with_name(f"{grades.name}-made-up")
        mark(grades)
        return (
            grades,
            f"The made-up class is graded into {grades}, because the output folder contains real grades.",
        )
    if made_up:
        mark(grades)
    elif marked:
        aside = next(
            path
            for path in numbered(grades.with_name(f"{grades.name}-made-up"))
            if not path.exists()
        )
        grades.rename(aside)
        return grades, f"The grades of the made-up class were moved to {aside}."
    return grades, ""
