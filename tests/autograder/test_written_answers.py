"""Written answers: from the solution to the student's files, and from nbgrader's gradebook to the exports."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import nbformat
import pytest
from typer.testing import CliRunner

from autograder import api
from autograder.authoring.released import released
from autograder.cli import app
from autograder.course.config import Course, CourseError
from autograder.course.document import load_document
from autograder.course.markers import PLACEHOLDER
from autograder.course.notebook import to_notebook
from autograder.course.questions import load_questions
from autograder.course.reading import load_course
from autograder.gradebook import texts
from autograder.gradebook.journal import Journal
from autograder.records import Grade, SourceFile, Submission, TestResult
from tests.autograder.tables import column, rows_of
from tests.autograder.tiny_course import COURSE, SOLUTION, write_tiny_course

NAME = "01_adding"
RUBRIC = "Says that counting on is the same as adding."
HEADER = f'# %% answer="why_one" points=2 rubric="{RUBRIC}"'
TEXT = "Because counting on from a gives a + b."
SIGNED = ("--by", "Grace", "--reason", "It says why.")
ASKED = "# How do two heaps become one?\n#\n# *To think about:* Why does the order not matter?"


def course_with(folder: Path, solution: str, course: str = COURSE) -> Course:
    write_tiny_course(folder)
    (folder / "solutions/01_adding/adding.py").write_text(solution, "utf-8")
    (folder / "course.yml").write_text(course, "utf-8")
    return load_course(folder)


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return course_with(
        tmp_path / "course", SOLUTION.replace('# %% part="add"\n', f'# %% part="add"\n\n{HEADER}\n')
    )


def handed_in(course: Course, text: str) -> SourceFile:
    """The stub as a notebook with this text in the cell of the answer."""
    assignment = course.assignment(NAME)
    notebook = to_notebook(assignment, load_document(course, assignment).stub)
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "why_one":
            cell.source = text
    return SourceFile("adding.ipynb", nbformat.writes(notebook))


def write_grades(folder: Path, *students: tuple[str, SourceFile]) -> None:
    """Write a journal of grades with 4 of 10 points."""
    tests = (TestResult("test_a", "add", "It adds.", "passed", 4, 4),)
    tests += (TestResult("test_t", "total", "It sums.", "failed", 0, 6, "No."),)
    for student, file in students:
        stored = texts.put(folder, [Submission(student, NAME, (file,))])[0]
        with Journal(folder) as journal:
            grade = Grade(
                student, NAME, "graded", 4, 10, tests, submission_sha256=stored.digest,
                suite_sha256="s",
            )  # fmt: skip
            journal.append(grade)


@pytest.fixture
def grades(course: Course, tmp_path: Path) -> Path:
    """Ada has answered, Ben has left the cell as it was."""
    write_grades(
        tmp_path / "grades",
        ("ada", handed_in(course, TEXT)),
        ("ben", handed_in(course, PLACEHOLDER)),
    )
    return tmp_path / "grades"


def run(*words: str, course: Course) -> tuple[int, str]:
    done = CliRunner().invoke(app, [*words, "--course", str(course.root)], env={"COLUMNS": "200"})
    return done.exit_code, done.output


def exported(course: Course, grades: Path) -> tuple[int, str, Path]:
    """Return the exit code of an export to a table, what it says, and the table."""
    table = course.root / "scores.csv"
    words = ("export", "--to", "csv", str(grades), "--output", str(table))
    return *run(*words, course=course), table


def test_students_receive_a_cell_to_write_in_and_never_the_rubric(course):
    assignment = course.assignment(NAME)
    files = {file.name: text for file, text in released(course, assignment).items()}
    assert not any(RUBRIC in text for text in files.values())
    assert f'# %% [markdown] answer="why_one"\n# {PLACEHOLDER}\n' in files["adding.py"]
    cell = next(
        c for c in json.loads(files["adding.ipynb"])["cells"] if PLACEHOLDER in "".join(c["source"])
    )
    facts = cell["metadata"]["nbgrader"]
    assert cell["cell_type"] == "markdown"
    assert (facts["grade"], facts["solution"], facts["locked"], facts["points"]) == (
        True, True, False, 2,
    )  # fmt: skip


def test_grading_ignores_answers_and_its_maximum_is_that_of_the_tests(
    course, tmp_path, grader_at_hand
):
    file = tmp_path / "class" / "ada" / NAME / "adding.ipynb"
    file.parent.mkdir(parents=True)
    file.write_text(handed_in(course, TEXT).text, "utf-8")
    run = api.grade(tmp_path / "class", course, tmp_path / "grades", jobs=1)
    (grade,) = run.grades
    assert (grade.status, grade.max_score) == ("graded", 10)
    assert {test.part for test in grade.tests} == {"add", "total"}
    assert run.notes == ()
    pages = [page.read_text("utf-8") for page in (tmp_path / "grades").rglob("*.html")]
    assert len(pages) == 3 and not any("why_one" in page or "why one" in page for page in pages)
    assert "why_one" not in (tmp_path / "grades" / "grades.csv").read_text("utf-8")


@pytest.fixture(scope="module")
def empty_gradebook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gradebook without students; nbgrader starts a program to make one."""
    api = pytest.importorskip(
        "nbgrader.api", reason="nbgrader is not installed: pip install '.[nbgrader]'"
    )
    file = tmp_path_factory.mktemp("gradebook") / "gradebook.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(
            "PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        )  # for alembic
        api.Gradebook(f"sqlite:///{file}", "a course").close()
    return file


@pytest.fixture
def gradebook(course: Course, empty_gradebook: Path):
    """Return a function that writes nbgrader's gradebook: what Ada's and Ben's cells have, with Ada's manual points."""
    api = pytest.importorskip("nbgrader.api")

    def write(points: float | None, automatic: float = 4, review: bool = False) -> None:
        file = course.root / "gradebook.db"
        shutil.copy(empty_gradebook, file)
        with api.Gradebook(f"sqlite:///{file}", "a course") as book:
            book.add_assignment(NAME)
            book.add_notebook("adding", NAME)
            for part, most in (("add", 4), ("total", 6)):
                book.add_grade_cell(part, "adding", NAME, max_score=most, cell_type="code")
            book.add_grade_cell("why_one", "adding", NAME, max_score=2, cell_type="markdown")
            for student in ("ada", "ben"):
                book.add_student(student)
                book.add_submission(NAME, student)
                book.find_grade("add", "adding", NAME, student).auto_score = automatic
                book.find_grade("total", "adding", NAME, student).auto_score = 0
            nothing_written = book.find_grade("why_one", "adding", NAME, "ben")
            nothing_written.auto_score = 0
            nothing_written.needs_manual_grade = False
            answer = book.find_grade("why_one", "adding", NAME, "ada")
            answer.manual_score = points
            answer.needs_manual_grade = review or points is None
            if automatic != 4:
                book.find_grade("add", "adding", NAME, "ada").manual_score = 3
            book.db.commit()

    return write


@pytest.mark.slow
def test_points_of_formgrader_are_in_the_export_beside_the_maximum(course, grades, gradebook):
    gradebook(1.5)
    code, output, table = exported(course, grades)
    assert code == 0, output
    assert "Points given by hand in nbgrader count for ada." in output
    assert rows_of(table) == [
        {
            "student": "", "name": "points possible", NAME: "12", f"{NAME}: why_one": "2",
            "total": "12",
        },
        {"student": "ada", "name": "", NAME: "5.5", f"{NAME}: why_one": "1.5", "total": "5.5"},
        {"student": "ben", "name": "", NAME: "4", f"{NAME}: why_one": "0", "total": "4"},
    ]  # fmt: skip


def test_answer_that_waits_in_formgrader_is_named(course, grades, gradebook):
    gradebook(None)
    code, output, table = exported(course, grades)
    assert code == 1
    assert (
        "1 written answer not graded yet in formgrader, and counted 0 so far: ada (01_adding)."
        in output
    )
    assert [*column(table, f"{NAME}: why_one").values()] == ["2", "waits", "0"]


def test_points_by_a_decision_are_a_sentence(course, grades):
    facts = f"assignment: {NAME}, student: ada, part: why_one, points: 2, reason: Right., by: Grace, at: 2026-11-30"
    (course.root / "decisions.yml").write_text(f"- {{{facts}}}\n", "utf-8")
    with pytest.raises(CourseError, match=r"^decisions\.yml, line 1: .*`points`") as error:
        api.report(grades, course.root)
    assert len(error.value.problems) == 1
    code, output = run(
        "decide", "ada", "-a", NAME, "--points", "1", "--grades", str(grades), *SIGNED,
        course=course,
    )  # fmt: skip
    assert code == 2 and "--points" in output


@pytest.mark.parametrize("place", [ASKED, '# %% part="add"'])
def test_answer_of_the_last_question_before_a_cell_is_not_released(tmp_path, place):
    asked = SOLUTION.replace("# How do two heaps become one?", "#").replace(
        "# ## Part 1 · Two numbers", ASKED
    )
    course = course_with(tmp_path, asked.replace(place, f"{place}\n\n{HEADER}"))
    (tmp_path / "tests/assignments/01_adding/answers.yml").write_text(
        "add: [Addition is commutative.]\n", "utf-8"
    )
    assignment = course.assignment(NAME)
    assert load_questions(course, assignment) == {}
    (tmp_path / "solutions/01_adding/adding.py").write_text(asked, "utf-8")
    assert list(load_questions(course, assignment)) == ["add"]


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ('# %% answer="why_one"', "write the cell of an answer as"),
        ('# %% answer="why_one" points=0', "write the cell of an answer as"),
        ('# %% answer="add" points=2', "the name `add` is taken"),
        (f"{HEADER}\n\n{HEADER}", "the name `why_one` is taken"),
        (f"{HEADER}\nx = 1", "must be empty"),
    ],
)
def test_errors_in_the_cell_of_an_answer_are_sentences(tmp_path, header, sentence):
    course = course_with(
        tmp_path, SOLUTION.replace('# %% part="add"\n', f'# %% part="add"\n\n{header}\n')
    )
    with pytest.raises(CourseError, match=sentence):
        load_document(course, course.assignment(NAME))
