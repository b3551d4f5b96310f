"""nbgrader's commands as an instructor runs them, in a course of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.authoring.build import build
from autograder.course.config import Course
from autograder.course.document import load_document
from autograder.course.notebook import to_notebook
from autograder.course.reading import load_course
from autograder.gradebook.journal import FILE_NAME, Reading
from autograder.nbgrader.decided_points import part_score
from tests.autograder.tiny_course import write_tiny_course

ROOT = Path(__file__).resolve().parents[3]
TINY = "01_adding"
BIN = Path(sys.executable).parent

WHOLE_TRAININGS = os.environ.get("NOTEBOOKS") == "whole"
FEWER_STEPS = {
    "07_mini_gpt": {"range(50, 1001, 50)": "range(50, 101, 50)"},
    "08_encoder_decoder": {"steps, losses, alignments = 600,": "steps, losses, alignments = 160,"},
    "09_masked_language_model": {"steps, losses, exams = 900,": "steps, losses, exams = 100,"},
    "10_ready_made": {"lr=3e-3), 300": "lr=3e-3), 30"},
    "11_spot_the_cheat": {"data, 800, name": "data, 80, name"},
    "14_fine_tuning": {"steps=600": "steps=60", "epochs=12,": "epochs=2,"},
    "15_train_it_well": {
        "STEPS, EVERY = 1500, 250": "STEPS, EVERY = 100, 50",
        "steps: int = 300": "steps: int = 50",
    },
}

Scores = dict[str, dict[str, float]]  # student → part → points


class Classroom:
    """A course folder with nbgrader's settings and the submissions of a class."""

    def __init__(self, folder: Path, assignment: str = TINY) -> None:
        self.folder, self.name = folder, assignment
        self.course: Course = load_course(folder)
        self.assignment = self.course.assignment(assignment)

    def copy(self, folder: Path) -> Classroom:
        """Copy the class to another folder: the settings locate their course by their own path."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return Classroom(folder, self.name)

    @property
    def stem(self) -> str:
        return self.assignment.stem

    def stub(self) -> NotebookNode:
        return to_notebook(self.assignment, load_document(self.course, self.assignment).stub)

    def solution(self) -> NotebookNode:
        """Return the notebook of a student with only correct answers, without the markers."""
        text = load_document(self.course, self.assignment).text
        lines = [
            line for line in text.split("\n") if "### BEGIN" not in line and "### END" not in line
        ]
        return to_notebook(self.assignment, "\n".join(lines))

    def hand_in(
        self, student: str, work: NotebookNode | str | bytes, file: str | None = None
    ) -> Path:
        """Write a notebook, text or bytes to the folder from which nbgrader collects submissions."""
        place = self.folder / "submitted" / student / self.name / (file or f"{self.stem}.ipynb")
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(work, NotebookNode):
            work = json.dumps(work)  # as it is: nbformat would refuse what students manage to do
        place.write_bytes(
            work if isinstance(work, bytes) else work.encode("utf-8", "surrogatepass")
        )
        return place

    def nbgrader(self, *words: str, fails: bool = False, **environment: str) -> str:
        """Return the output of the command; it must succeed, or fail with `fails`."""
        return self._run([str(BIN / "nbgrader"), *words], fails, environment)

    def autograder(self, *words: str, fails: bool = False) -> str:
        return self._run([str(BIN / "autograder"), *words], fails, {})

    def _run(self, command: list[str], fails: bool, environment: dict[str, str]) -> str:
        outside = {
            name: value for name, value in os.environ.items() if not name.startswith("JUPYTER")
        }
        process = subprocess.run(
            command,
            cwd=self.folder,
            env={**outside, "JUPYTER_CONFIG_DIR": str(self.folder / ".jupyter"), **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=3600,
        )
        assert (process.returncode != 0) == fails, process.stdout
        return process.stdout

    def gradebook_scores(self, url: str | None = None) -> Scores:
        """Return the scores of each part from nbgrader's gradebook."""
        from nbgrader.api import Gradebook

        with Gradebook(
            url or f"sqlite:///{self.folder / 'gradebook.db'}", "attention-by-hand"
        ) as gradebook:
            found: Scores = {}
            for submission in gradebook.assignment_submissions(self.name):
                notebook = submission.notebooks[0]
                found[submission.student.id] = {
                    grade.name: grade.score for grade in notebook.grades
                }
            return found

    def journal_scores(self, folder: str = "grades") -> Scores:
        """Return the scores of each part from the journal."""
        latest = {grade.student: grade for grade in Reading(self.folder / folder / FILE_NAME)}
        return {
            student: {part.name: part_score(grade.tests, part) for part in self.assignment.parts}
            for student, grade in latest.items()
            if grade.assignment == self.name
        }

    def autograded(self, student: str) -> NotebookNode:
        return nbformat.read(
            self.folder / "autograded" / student / self.name / f"{self.stem}.ipynb", as_version=4
        )

    def feedback_text(self, student: str) -> str:
        """The text of all feedback in the student's graded notebook."""
        outputs = (
            output for cell in self.autograded(student).cells for output in cell.get("outputs", [])
        )
        return "\n".join(
            output["data"]["text/plain"]
            for output in outputs
            if output.output_type == "display_data"
        )


def tiny_classroom(folder: Path) -> Classroom:
    """Return the course about adding, with short limits for endless loops."""
    return Classroom(Path(_tiny_course().name)).copy(folder)


def generated_classroom(folder: Path) -> Classroom:
    """Return the course about adding after `nbgrader generate_assignment`."""
    return Classroom(Path(_generated_course().name)).copy(folder)


@cache
def _tiny_course() -> TemporaryDirectory[str]:
    """Build the course once for all tests of this process."""
    place = TemporaryDirectory()
    course = write_tiny_course(Path(place.name)) / "course.yml"
    course.write_text(
        course.read_text("utf-8").replace("load_seconds: 5", "load_seconds: 3"), "utf-8"
    )
    with_settings(Path(place.name), TINY)
    return place


@cache
def _generated_course() -> TemporaryDirectory[str]:
    place = TemporaryDirectory()
    tiny_classroom(Path(place.name)).nbgrader("generate_assignment", TINY)
    return place


def real_classroom(folder: Path, assignment: str) -> Classroom:
    """Copy the real course to its own folder, with this assignment built: hints that are up to date stay."""
    shutil.copy(ROOT / "course.yml", folder)
    for part in (
        f"solutions/{assignment}",
        f"tests/assignments/{assignment}",
        f"assignments/{assignment}",
    ):
        shutil.copytree(
            ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "*.ipynb")
        )
    return with_settings(folder, assignment)


def with_settings(folder: Path, assignment: str) -> Classroom:
    """Return the course in `folder` with nbgrader's settings, and this assignment built."""
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    room = Classroom(folder, assignment)
    build(room.course, [assignment])
    return room


def edited(notebook: NotebookNode, change: Callable[[NotebookNode], Any]) -> NotebookNode:
    """Return a copy of a notebook with a change."""
    copy = nbformat.from_dict(json.loads(json.dumps(notebook)))
    change(copy)
    return copy


def train_briefly(notebook: NotebookNode, assignment: str) -> None:
    """Let long trainings take fewer steps, unless NOTEBOOKS=whole is in the environment."""
    for old, new in () if WHOLE_TRAININGS else FEWER_STEPS.get(assignment, {}).items():
        (cell,) = (
            cell for cell in notebook.cells if cell.cell_type == "code" and old in cell.source
        )
        cell.source = cell.source.replace(old, new)


def test_cells(notebook: NotebookNode) -> Iterable[NotebookNode]:
    return [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")]


test_cells.__test__ = False  # type: ignore[attr-defined]
