"""Written answers: from the solution to the student's files, to a person's decision, to every export."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import nbformat
import pytest
from typer.testing import CliRunner

from autograder import api
from autograder.authoring.released import released
from autograder.cli import app
from autograder.course.config import Course, CourseError, load_course
from autograder.course.document import load_document
from autograder.course.markers import PLACEHOLDER
from autograder.course.notebook import to_notebook
from autograder.course.questions import load_questions
from autograder.gradebook import texts
from autograder.gradebook.journal import Journal
from autograder.lms.exports.gradescope_run import results
from autograder.records import Grade, SourceFile, Submission, TestResult
from autograder.source.written import written_answers
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
    return course_with(tmp_path / "course", SOLUTION.replace('# %% part="add"\n', f'# %% part="add"\n\n{HEADER}\n'))


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
            grade = Grade(student, NAME, "graded", 4, 10, tests, submission_sha256=stored.digest, suite_sha256="s")
            journal.append(grade)


@pytest.fixture
def grades(course: Course, tmp_path: Path) -> Path:
    """Ada has answered, Ben has left the cell as it was."""
    write_grades(tmp_path / "grades", ("ada", handed_in(course, TEXT)), ("ben", handed_in(course, PLACEHOLDER)))
    return tmp_path / "grades"


def run(*words: str, course: Course) -> tuple[int, str]:
    done = CliRunner().invoke(app, [*words, "--course", str(course.root)], env={"COLUMNS": "200"})
    return done.exit_code, done.output


def test_students_receive_a_cell_to_write_in_and_never_the_rubric(course):
    assignment = course.assignment(NAME)
    files = {file.name: text for file, text in released(course, assignment).items()}
    assert not any(RUBRIC in text for text in files.values())
    assert f'# %% [markdown] answer="why_one"\n# {PLACEHOLDER}\n' in files["adding.py"]
    cell = next(c for c in json.loads(files["adding.ipynb"])["cells"] if PLACEHOLDER in "".join(c["source"]))
    facts = cell["metadata"]["nbgrader"]
    assert cell["cell_type"] == "markdown"
    assert (facts["grade"], facts["solution"], facts["locked"], facts["points"]) == (True, True, False, 2)


def test_answers_are_read_from_notebooks_and_scripts(course):
    assignment = course.assignment(NAME)
    script = load_document(course, assignment).stub
    for file, expected in {
        handed_in(course, TEXT): TEXT,
        handed_in(course, f"{PLACEHOLDER}\n\n{TEXT}"): TEXT,
        handed_in(course, PLACEHOLDER): "",
        SourceFile("adding.py", script): "",
        SourceFile("adding.py", script.replace(PLACEHOLDER, TEXT)): TEXT,
        SourceFile("adding.ipynb", "{"): "",
        SourceFile("adding.ipynb", '{"cells": [3, {"metadata": 5}, {"metadata": {"nbgrader": "why_one"}}]}'): "",
    }.items():
        assert written_answers(assignment, [file]) == {"why_one": expected}


def test_an_answer_waits_and_is_explained_until_it_is_decided(course, grades):
    code, output = run("decide", "--pick", "--grades", str(grades), course=course)
    assert f"`why_one` waits for a person: 0 to 2 points. Rubric: {RUBRIC} Answer: {TEXT}" in output
    assert "ben" not in output.replace("ben, 01_adding: 4 / 12. 33", "")
    report = api.report(grades, course.root)
    assert "1 written answer not graded yet, and counted 0 so far: ada (01_adding)." in " ".join(report.notes)
    page = (grades / "feedback/ada/01_adding.html").read_text("utf-8")
    assert "2 of these points wait for a person" in page and TEXT in page and "4 <small>of 12 points" in page
    assert "Nothing is written." in (grades / "feedback/ben/01_adding.html").read_text("utf-8")
    assert "4 + 1?" in (grades / "index.html").read_text("utf-8")

    decide = ("decide", "ada", "-a", NAME, "--part", "why_one", "--grades", str(grades), *SIGNED)
    assert run(*decide, "--points", "1.5", course=course)[0] == 0
    api.report(grades, course.root)
    page = (grades / "feedback/ada/01_adding.html").read_text("utf-8")
    assert "5.5 <small>of 12 points" in page and "1.5 points for the written answer why_one: It says why." in page
    assert "wait for a person" not in page and RUBRIC not in page
    rows = list(csv.DictReader((grades / "grades.csv").open(encoding="utf-8")))
    assert [(row["student"], row["final_score"], row["why_one"]) for row in rows] == [
        ("ada", "5.5", "1.5"),
        ("ben", "4", "0"),
    ]
    assert api.report(grades, course.root).differences == ()


def test_points_can_be_nothing_and_can_be_decided_again(course, grades):
    decide = ("decide", "ada", "-a", NAME, "--part", "why_one", "--grades", str(grades), *SIGNED)
    for points, score in (("2", 6), ("0", 4)):
        assert run(*decide, "--points", points, course=course)[0] == 0
        effective = api.report(grades, course.root)
        assert [grade.score for grade in effective.grades if grade.student == "ada"] == [score]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--part", "why_two", "--points", "1"), "01_adding has no written answer `why_two`; did you mean `why_one`?"),
        (("--part", "add", "--points", "1"), "01_adding has no written answer `add`"),
        (("--part", "why_one", "--points", "3"), "`why_one` can get at most 2 points."),
        (("--points", "1"), "must name with `part` the written answer"),
    ],
)
def test_points_for_no_written_answer_are_refused(course, grades, words, sentence):
    code, output = run("decide", "ada", "-a", NAME, *words, "--grades", str(grades), *SIGNED, course=course)
    assert code != 0 and sentence in " ".join(output.split())


def test_a_changed_answer_waits_again(course, grades):
    api.decide("ada", NAME, course.root, grades, by="Grace", reason="Right.", points=2, part="why_one")
    write_grades(grades, ("ada", handed_in(course, "Something else.")))
    report = api.report(grades, course.root)
    assert [grade.score for grade in report.grades] == [4, 4]
    assert any("ada has changed the answer `why_one` since; grade it again." in text for text in report.differences)


def test_exports_have_a_column_and_name_what_waits(course, grades, tmp_path):
    export = ("export", "--to", "csv", str(grades), "--output", str(tmp_path / "scores.csv"))
    code, output = run(*export, course=course)
    assert code == 1 and "1 written answer not graded yet, and counted 0 so far: ada (01_adding)." in output
    rows = list(csv.DictReader((tmp_path / "scores.csv").open(encoding="utf-8")))
    assert [row["01_adding: why_one"] for row in rows] == ["2", "waits", "0"]
    assert [row["01_adding"] for row in rows] == ["12", "4", "4"]
    api.decide("ada", NAME, course.root, grades, by="Grace", reason="Right.", points=2, part="why_one")
    code, output = run(*export, course=course)
    rows = list(csv.DictReader((tmp_path / "scores.csv").open(encoding="utf-8")))
    assert code == 0 and (rows[1]["01_adding"], rows[1]["01_adding: why_one"]) == ("6", "2")


def test_gradescope_shows_an_answer_without_a_verdict(course):
    from autograder.gradebook.decisions import with_answers

    assignment = course.assignment(NAME)
    grade = Grade("ada", NAME, "graded", 4, 10, (TestResult("test_a", "add", "It adds.", "passed", 4, 4),))
    grade = with_answers(assignment, grade, [handed_in(course, TEXT)])
    test = results(course, assignment, grade, set(), "visible")["tests"][-1]
    assert "status" not in test and test["max_score"] == 2
    assert test["output"] == f"A person reads this answer and gives the points.\n\n{TEXT}"


def test_a_question_of_the_text_counts_by_a_line_of_course_yml(tmp_path):
    parts = "      - {name: total, title: A running total, points: 6}\n"
    line = "    answers: [{name: order, points: 3, part: add, number: 1, rubric: Names commutativity.}]\n"
    solution = SOLUTION.replace("# How do two heaps become one?", "#").replace("# ## Part 1 · Two numbers", ASKED)
    course = course_with(tmp_path, solution, COURSE.replace(parts, parts + line))
    (tmp_path / "tests/assignments/01_adding/answers.yml").write_text("add: [Addition is commutative.]\n", "utf-8")
    assignment = course.assignment(NAME)
    assert assignment.total == 13
    stub = load_document(course, assignment).stub
    assert stub.index("To think about") < stub.index('answer="order"') < stub.index("def add")
    assert load_questions(course, assignment) == {}  # the answer is no longer released
    assert load_questions(course, assignment.model_copy(update={"answers": ()}))["add"]


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
    course = course_with(tmp_path, SOLUTION.replace('# %% part="add"\n', f'# %% part="add"\n\n{header}\n'))
    with pytest.raises(CourseError, match=sentence):
        load_document(course, course.assignment(NAME))


def test_a_question_that_is_not_there_is_a_sentence(tmp_path):
    parts = "      - {name: total, title: A running total, points: 6}\n"
    line = "    answers: [{name: order, points: 3, part: add, number: 4}]\n"
    course = course_with(tmp_path, SOLUTION, COURSE.replace(parts, parts + line))
    with pytest.raises(CourseError, match="lets question 4 of the part `add` count as `order`, but the text of"):
        load_document(course, course.assignment(NAME))
