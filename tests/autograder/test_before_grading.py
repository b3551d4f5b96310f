"""What is wrong with the arguments or the course's files is told before anything is graded."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from autograder.cli import app
from autograder.gradebook.journal import FILE_NAME as JOURNAL
from autograder.submissions import find
from tests.autograder.student_folder import RIGHT
from tests.autograder.tiny_course import write_files

NAME = "01_adding"


@pytest.fixture
def course(built_course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course with a class of one student, ada."""
    root = Path(shutil.copytree(built_course, tmp_path / "course"))
    write_files(root, {f"class/ada/{NAME}/adding.py": RIGHT})
    monkeypatch.chdir(root)
    return root


def run(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, words)


def refuse(*_: object, **__: object) -> None:
    raise AssertionError("something was graded")


@pytest.fixture
def nothing_is_graded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autograder.api.grade_class", refuse)


WITH_COURSE = [
    ("grade", "class"),
    ("report",),
    ("compare", "grades", "grades"),
    ("decide", "ada", "-a", NAME, "--give", "1", "--reason", "R", "--by", "G"),
    ("build",),
    ("audit",),
    ("release",),
]


@pytest.mark.parametrize("words", WITH_COURSE, ids=lambda words: words[0])
def test_a_course_that_does_not_exist_is_an_error(
    course: Path, nothing_is_graded: None, words: tuple[str, ...]
) -> None:
    """Not even if there is a course above the folder that does not exist."""
    (course / "grades").mkdir()
    (course / "grades" / JOURNAL).touch()
    done = run(*words, "--course", "nope/not/there")
    assert done.exit_code == 2
    assert (
        f"There is no folder nope/not/there, so there is no {course / 'nope/not/there/course.yml'}."
        in done.output
    )


def test_a_new_course_in_a_missing_folder_leaves_the_course_above_alone(course: Path) -> None:
    before = (course / "course.yml").read_bytes()
    assert run("new", "01_first", "--course", "other").exit_code == 0
    assert (course / "course.yml").read_bytes() == before
    assert (course / "other" / "course.yml").is_file()


EMPTY = [
    ("grade", "class", "--output", ""),
    ("grade", "", "-a", NAME),
    ("grade", "class", "--course", ""),
    ("report", ""),
    ("compare", "grades", ""),
    ("pack", "01_adding", "--output", ""),
    ("release", "--output", ""),
    ("audit", "--output", ""),
    ("check", ""),
    ("progress", ""),
]


@pytest.mark.parametrize("words", EMPTY, ids=" ".join)
def test_an_empty_path_is_an_error(
    course: Path, nothing_is_graded: None, words: tuple[str, ...]
) -> None:
    before = sorted(course.rglob("*"))
    done = run(*words)
    assert done.exit_code == 2 and " is empty." in done.output
    assert sorted(course.rglob("*")) == before


BROKEN = {"decisions.yml": ("- {assignment: [\n", "decisions.yml")}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_beside_the_course_are_told_first(
    course: Path, nothing_is_graded: None, name: str
) -> None:
    text, said = BROKEN[name]
    (course / name).write_text(text, "utf-8")
    done = run("grade", "class")
    assert done.exit_code == 2 and said in done.output, done.output
    assert not (course / "grades" / JOURNAL).exists()


def test_grades_are_not_written_among_the_submissions_themselves(
    course: Path, nothing_is_graded: None
) -> None:
    done = run("grade", "class", "--output", "class")
    assert done.exit_code == 2 and "class is the folder of the submissions." in done.output


LAYOUTS = {
    "one folder a student": {"ada/adding.py": RIGHT},
    "one file a student": {"ada.py": RIGHT},
    "one folder an assignment": {f"ada/{NAME}/adding.py": RIGHT},
}


@pytest.mark.parametrize("output", ["grades", "marks-of-march"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_output_of_an_earlier_run_is_no_student(course: Path, layout: str, output: str) -> None:
    from autograder.course.reading import load_course

    write_files(course / "week", LAYOUTS[layout])
    earlier = course / "week" / output
    write_files(
        earlier,
        {JOURNAL: "", "feedback/ada/01_adding.html": "", "submissions/0.json": "[]", ".lock": ""},
    )
    found = list(find.find_submissions(course / "week", load_course(course), NAME))
    assert [(one.student, one.problem) for one in found] == [("ada", None)]


def test_a_student_with_work_beside_a_journal_is_no_output(course: Path) -> None:
    from autograder.course.reading import load_course

    write_files(
        course / "week", {"ada/adding.py": RIGHT, f"ada/{JOURNAL}": "", "ben/adding.py": RIGHT}
    )
    found = list(find.find_submissions(course / "week", load_course(course), NAME))
    assert [one.student for one in found] == ["ada", "ben"]


def test_grading_in_the_students_own_folder_twice_finds_one_student(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from autograder.course.reading import load_course

    write_files(
        course / "ada",
        {f"{NAME}/adding.py": RIGHT, f"grades/{JOURNAL}": "", "grades/index.html": ""},
    )
    found = list(find.find_submissions(course / "ada", load_course(course)))
    assert [(one.student, one.assignment) for one in found] == [("ada", NAME)]
