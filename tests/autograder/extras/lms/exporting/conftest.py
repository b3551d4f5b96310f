"""The course and the collected folder of the exported class, and what is done with them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from autograder.course.config import Course
from autograder.course.reading import load_course
from autograder.extras.lms.exports import Exported, ExportRequest, export
from autograder.records import Grade
from autograder.submissions.collected import Collected, write_collected
from tests.autograder.extras.lms.exporting.exported_class import CLASS, GOLDENS, NAME, ada
from tests.autograder.pages import write_all
from tests.autograder.tiny_course import write_tiny_course


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return load_course(write_tiny_course(tmp_path / "course"))


@pytest.fixture
def submitted(tmp_path: Path) -> Path:
    """A collected folder: the names of three students are known, and the submission time of one."""
    folder = tmp_path / "submitted"
    folder.mkdir()
    known = [
        Collected("1001", NAME, "Ada Lovelace", submitted_at="2026-03-20T23:58:00+01:00"),
        Collected("1002", NAME, "Grace Hopper"),
        Collected("1004", NAME, "=cmd|' /C calc'!A0"),
    ]
    write_collected(folder, known)
    return folder


@pytest.fixture
def ask(course: Course, submitted: Path, tmp_path: Path):
    """Export the class, into a copy of the golden file `like` for a sheet."""

    def exported(
        tool: str, like: str = "", grades: tuple[Grade, ...] = CLASS, **options: object
    ) -> Exported:
        if like:
            options["sheet"] = Path(shutil.copy(GOLDENS / like, tmp_path))
        return export(tool, ExportRequest(course, grades, submitted, **options))  # type: ignore[arg-type]

    return exported


@pytest.fixture
def fill(ask, tmp_path: Path):
    """Export the grade of ada into a sheet with this text; return what was told, and the filled sheet."""

    def filled(tool: str, text: str, **options: object) -> tuple[Exported, str]:
        sheet = tmp_path / "sheet.csv"
        sheet.write_text(text, "utf-8")
        exported = ask(tool, sheet=sheet, **{"grades": (ada(),), **options})
        new = tmp_path / "sheet-filled.csv"
        return exported, new.read_text("utf-8") if new.exists() else ""

    return filled


@pytest.fixture
def give_pages(ask, course: Course, tmp_path: Path):
    """Export the pages of the class for Moodle; return what was told, and the zip."""

    def given() -> tuple[Exported, Path]:
        archive = tmp_path / "f.zip"
        sheet = "moodle-downloaded.csv"
        return ask("moodle-feedback", sheet, folder=tmp_path / "grades", output=archive), archive

    write_all(tmp_path / "grades", course, CLASS)
    return given
