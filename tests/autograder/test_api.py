"""The Python API does the same as the commands, is cheap to import, and its guide runs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

import autograder
from tests.autograder.tiny_course import SOLUTION, write_tiny_course

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "python.ipynb"
NAME = "01_adding"


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course with two submissions: Ada's is correct, Ben's forgets the earlier numbers."""
    root = write_tiny_course(tmp_path_factory.mktemp("api") / "course")
    wrong = SOLUTION.replace("self.value = self.value + number", "self.value = number")
    for student, text in (("ada", SOLUTION), ("ben", wrong)):
        folder = root / "submitted" / student / NAME
        folder.mkdir(parents=True)
        (folder / "adding.py").write_text(text, "utf-8")
    return root


@pytest.fixture(scope="module")
def run(course: Path, grader_at_hand: None) -> autograder.Run:
    return autograder.grade(course / "submitted", course=course, output=course / "grades", jobs=1)


def test_grade_writes_the_same_files_as_the_command(run: autograder.Run) -> None:
    assert (run.summary.graded, run.summary.refused, run.summary.failures) == (2, 0, [])
    scores = {grade.student: grade.score for grade in run.grades}
    assert scores["ada"] == 10 > scores["ben"]
    (named,) = {test.mistake for grade in run.grades for test in grade.tests if test.mistake}
    assert named == "forgets_what_came_before"
    written = {path.name for path in run.folder.iterdir()}
    assert {"grades.jsonl", "grades.csv", "index.html", "feedback", "submissions"} <= written
    assert run.messages == ()


def test_second_run_grades_nothing_and_reports_progress(course: Path, run: autograder.Run) -> None:
    steps: list[tuple[int, int]] = []
    again = autograder.grade(
        course / "submitted",
        course,
        course / "grades",
        on_grade=lambda done, total: steps.append((done, total)),
    )
    assert (again.summary.graded, again.summary.unchanged) == (0, 2)
    assert steps == [(0, 2), (1, 2), (2, 2)]


def test_read_grades_report_and_compare_use_the_journal(course: Path, run: autograder.Run) -> None:
    assert sorted(grade.student for grade in autograder.read_grades(run.folder)) == ["ada", "ben"]
    assert autograder.report(run.folder, course).index == run.index
    assert autograder.compare(run.folder, run.folder).counts["unchanged"] == 2


def test_refusal_of_a_misnamed_folder_is_over_once_the_student_has_a_grade(
    tmp_path: Path, grader_at_hand: None
) -> None:
    course = write_tiny_course(tmp_path / "course")
    handed_in, grades = tmp_path / "class", course / "grades"
    for student, name in (("ada", "lecture"), ("ada", "notes"), ("ben", "lecture"), ("cy", "mine")):
        file = handed_in / student / name / ("essay.pdf" if student == "cy" else "mine.py")
        file.parent.mkdir(parents=True)
        file.write_text(SOLUTION, "utf-8")

    def counted() -> set[tuple[str, str]]:
        run = autograder.grade(handed_in, course, grades, jobs=1)
        return {(grade.student, grade.assignment) for grade in run.grades}

    assert counted() == {("ada", "lecture"), ("ada", "notes"), ("ben", "lecture"), ("cy", "cy")}
    (handed_in / "ada/lecture").rename(handed_in / "ada" / NAME)
    (handed_in / "cy/mine/essay.pdf").rename(handed_in / "cy/mine/adding.py")
    assert counted() == {("ada", NAME), ("ben", "lecture"), ("cy", NAME)}
    (handed_in / "ada" / NAME).rename(handed_in / "ada/lecture")
    assert counted() >= {("ada", NAME), ("ada", "lecture")}, "a newer refusal counts"


def test_wrong_arguments_raise_errors_with_a_sentence(course: Path, tmp_path: Path) -> None:
    with pytest.raises(autograder.RefusedError, match="There is no file or folder"):
        autograder.grade(tmp_path / "nothing", course, tmp_path / "grades")
    with pytest.raises(autograder.RefusedError, match="There is no journal"):
        autograder.read_grades(tmp_path)
    with pytest.raises(AttributeError, match="no attribute 'grades'"):
        autograder.grades  # noqa: B018


def test_all_names_can_be_imported_and_are_sorted() -> None:
    assert sorted(autograder.__all__, key=lambda name: (name.islower(), name)) == autograder.__all__
    assert all(getattr(autograder, name) is not None for name in autograder.__all__)


def test_importing_the_package_imports_neither_torch_nor_the_engine() -> None:
    """The modules are checked instead of the time, which depends on the machine."""
    code = "import sys, json, autograder; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = json.loads(done.stdout)
    assert [name for name in modules if name.startswith("autograder")] == [
        "autograder",
        "autograder.version",
    ]
    assert not {"torch", "numpy", "pydantic", "typer", "pytest"} & set(modules)


def test_commands_start_without_torch_and_without_jupyter() -> None:
    code = "import sys, json, autograder.cli.commands, autograder.api; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "numpy", "nbformat", "jupytext", "IPython", "jsonschema"} & set(
        json.loads(done.stdout)
    )


@pytest.mark.extras
def test_notebook_of_the_python_guide_runs(
    course: Path,
    tmp_path: Path,
    grader_at_hand: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(course, tmp_path / "course", ignore=shutil.ignore_patterns("grades"))
    cells = [
        cell.source for cell in nbformat.read(GUIDE, as_version=4).cells if cell.cell_type == "code"
    ]
    assert len(cells) > 5
    monkeypatch.chdir(tmp_path / "course")
    exec("\n".join(cells), {"__name__": "__main__"})
    assert "ada        01_adding       10 of 10" in capsys.readouterr().out
    assert (tmp_path / "course" / "scores.csv").is_file()
