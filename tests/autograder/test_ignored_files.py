"""What the commands of the docs write is ignored by git, in this course and in one of `autograder new`."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "autograder/authoring/templates/gitignore.txt"
COMMAND = re.compile(r"^\s*(?:\$ )?autograder .*$", re.MULTILINE)
OUTPUT = re.compile(r"(?:--output|-o|--times) ([\w./-]+\.(?:csv|html|zip|json|xml))\b")
# names of files that the docs' commands read or write and that are no option's value
OTHERS = ("satisfied.html", "gradebook.csv",
          "gradebook-filled.csv", "worksheet.csv", "worksheet-filled.csv", "roster.csv",
          "repositories.csv", "mail.txt", "canvas-download.zip", "moodle-feedback-03_masked_heads.zip")  # fmt: skip


def written() -> list[str]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    commands = [c for page in pages for c in COMMAND.findall(page.read_text("utf-8"))]
    return sorted({name for command in commands for name in OUTPUT.findall(command)} | set(OTHERS))


@pytest.mark.parametrize("ignored", [ROOT / ".gitignore", TEMPLATE], ids=["course", "new"])
def test_files_with_data_of_students_are_ignored(tmp_path, ignored):
    names = written()
    assert {"alike.html", "scores.csv", "students.zip"} <= set(names), "the docs have such commands"
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    shutil.copy(ignored, tmp_path / ".gitignore")
    asked = subprocess.run(
        ["git", "check-ignore", *names], cwd=tmp_path, capture_output=True, text=True
    )
    assert set(asked.stdout.split()) == set(names)
