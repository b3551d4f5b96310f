"""What the commands of the docs read and write is ignored by git, in this course and in one of `autograder new`."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "autograder/authoring/templates/gitignore.txt"
# tables and archives, wherever a page names them; other files and folders that a command reads or writes
FILE = re.compile(r"(?<![\w./-])[\w-]+\.(?:csv|zip)\b")
OPTION = re.compile(r"(?:--output|-o|--request) (\w[\w-]*(?:\.\w+)?)(?![\w./-])")
WORK = re.compile(r"autograder (?:grade|similar|compare|decide|export) ([a-z][\w-]*)[ /\n]")
LAYOUT = re.compile(r"^    ([\w-]+)/[\w./]+ {2,}one folder", re.MULTILINE)
NOT_A_STUDENTS = {"solutions", "ada"}  # of the author; the name of a student


def written() -> list[str]:
    """Return the names of the files and folders with data of students in the guides."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    text = "\n".join(page.read_text("utf-8") for page in pages)
    found = {name for pattern in (FILE, OPTION, WORK, LAYOUT) for name in pattern.findall(text)}
    found -= NOT_A_STUDENTS
    return sorted(name if "." in name else f"{name}/" for name in found | {"satisfied.html"})


@pytest.mark.parametrize("ignored", [ROOT / ".gitignore", TEMPLATE], ids=["course", "new"])
def test_files_with_data_of_students_are_ignored(tmp_path, ignored):
    names = written()
    assert {"alike.html", "week3.zip", "week3/", "mail.txt", "gradebook.csv"} <= set(names)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    shutil.copy(ignored, tmp_path / ".gitignore")
    asked = subprocess.run(
        ["git", "check-ignore", *names], cwd=tmp_path, capture_output=True, text=True
    )
    assert set(asked.stdout.split()) == set(names)
