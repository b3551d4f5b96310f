"""The made-up class: reproducible by its seed, similar to a real class, and graded as intended."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from made_up_class import ANSWER_KINDS, MadeUpStudent, SampleAnswer, main, write_class

from autograder.course.config import Course, CourseError, load_course
from autograder.grading.grader import Grader
from autograder.records import Grade
from autograder.submissions import find_submissions, safe_name
from autograder.walls.outside.launcher import Sandbox

ROOT = Path(__file__).resolve().parents[2]
TINY = "01_adding"
Graded = list[tuple[SampleAnswer, Grade | None]]  # each answer, with its grade if it was handed in


@pytest.fixture(scope="module")
def tiny(built_course: Path) -> Course:
    return load_course(built_course)


@pytest.fixture(scope="module")
def course() -> Course:
    return load_course(ROOT)


@pytest.fixture(scope="module")
def big_class(course: Course, tmp_path_factory: pytest.TempPathFactory) -> list[MadeUpStudent]:
    return write_class(course, tmp_path_factory.mktemp("big"), students=30, seed=1)


def answers(students: list[MadeUpStudent]) -> list[SampleAnswer]:
    return [answer for student in students for answer in student.answers.values()]


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()
    }


def test_equal_seeds_create_equal_classes(tiny: Course, tmp_path: Path) -> None:
    classes = [
        write_class(tiny, tmp_path / name, 12, seed)
        for name, seed in (("a", 5), ("b", 5), ("c", 6))
    ]
    assert classes[0] == classes[1] != classes[2]
    assert contents(tmp_path / "a") == contents(tmp_path / "b") != contents(tmp_path / "c")


@pytest.mark.parametrize("seed", range(5))
def test_class_of_thirty_contains_every_kind_of_answer(
    tiny: Course, tmp_path: Path, seed: int
) -> None:
    kinds = Counter(answer.kind for answer in answers(write_class(tiny, tmp_path, 30, seed)))
    assert set(kinds) == set(ANSWER_KINDS)
    assert kinds["loop"] == 1


@pytest.mark.slow
def test_most_answers_are_correct(big_class: list[MadeUpStudent]) -> None:
    kinds = Counter(answer.kind for answer in answers(big_class))
    assert set(kinds) == set(ANSWER_KINDS) and kinds["loop"] == 1
    expected = Counter(answer.expected for answer in answers(big_class))
    assert expected["full"] > sum(expected.values()) / 2
    assert expected["none"] < sum(expected.values()) / 4
    mistakes = Counter(mistake for answer in answers(big_class) for mistake in answer.mistakes)
    assert mistakes.most_common(1)[0][1] >= 3, "in a class, some mistakes are made again and again"


def test_higher_ability_gives_more_correct_answers(tiny: Course, tmp_path: Path) -> None:
    students = sorted(write_class(tiny, tmp_path, 400, seed=3), key=lambda student: student.ability)
    right = [answer.expected == "full" for answer in answers(students)]
    assert sum(right[200:]) > 1.3 * sum(right[:200])


@pytest.mark.slow
def test_files_match_their_kinds(big_class: list[MadeUpStudent]) -> None:
    for student in big_class:
        for assignment, answer in student.answers.items():
            check_files(answer, assignment.partition("_")[2])


def check_files(answer: SampleAnswer, stem: str) -> None:
    names = {
        "nothing": [],
        "notebook": [f"{stem}.ipynb"],
        "both_files": [f"{stem}.ipynb", f"{stem}.py"],
    }.get(answer.kind, [f"{stem}.py"])
    assert [name for name, _ in answer.files] == names
    for name, content in answer.files:
        if answer.kind == "latin1":
            with pytest.raises(UnicodeDecodeError):
                content.decode()
        elif name.endswith(".ipynb"):
            cells = json.loads(content)["cells"]
            assert all(not cell["outputs"] for cell in cells if cell["cell_type"] == "code")
        elif answer.kind == "syntax_error":
            with pytest.raises(SyntaxError):
                compile(content, name, "exec")
        else:
            compile(content, name, "exec")
        assert b"SOLUTION" not in content
        unwritten = answer.kind in ("stub", "unfinished") or (answer.kind, name[-3:]) == (
            "both_files",
            ".py",
        )
        assert (b"# TODO:" in content) == unwritten


@pytest.mark.slow
def test_unfinished_answer_lacks_the_named_functions(big_class: list[MadeUpStudent]) -> None:
    unfinished = [answer for answer in answers(big_class) if answer.kind == "unfinished"]
    for answer in unfinished:
        text = answer.files[0][1].decode()
        assert list(answer.unwritten) == re.findall(
            r'NotImplementedError\("(\S+) is not written', text
        )
        assert answer.unwritten


def test_files_differ_in_prose_and_docstrings(course: Course, tmp_path: Path) -> None:
    students = write_class(course, tmp_path, 40, seed=2, assignments=["03_masked_heads"])
    texts = [answer.files[0][1].decode() for answer in answers(students) if answer.kind == "right"]
    prose = {"# ## Part 1" in text for text in texts}
    documented = {
        any(
            ast.get_docstring(node)
            for node in ast.parse(text).body
            if isinstance(node, ast.FunctionDef)
        )
        for text in texts
    }
    assert prose == documented == {True, False}


def test_names_are_unique_and_valid(tiny: Course, tmp_path: Path) -> None:
    students = write_class(tiny, tmp_path, 200)
    names = [student.name for student in students]
    assert names == sorted(set(names)) and len(names) == 200
    assert all(name.isascii() and name.isalnum() and safe_name(name) == name for name in names)


def test_only_named_assignments_are_written(course: Course, tmp_path: Path) -> None:
    students = write_class(course, tmp_path, 8, assignments=["03_masked_heads"])
    assert {assignment for student in students for assignment in student.answers} == {
        "03_masked_heads"
    }
    with pytest.raises(CourseError, match="did you mean `03_masked_heads`"):
        write_class(course, tmp_path / "new", 8, assignments=["03_masked_head"])


def test_existing_class_is_not_overwritten(tiny: Course, tmp_path: Path) -> None:
    write_class(tiny, tmp_path / "class", 2)
    for output in (tmp_path / "class", tmp_path / "class" / "file"):
        (tmp_path / "class" / "file").write_text("x")
        with pytest.raises(CourseError, match="already exists"):
            write_class(tiny, output, 2)


def test_script_names_students_without_a_folder(
    tiny: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--students", "6", "--course", str(tiny.root)]
    for seed in range(20):
        folder = tmp_path / str(seed)
        assert main([*options, "--seed", str(seed), "--output", str(folder)]) == 0
        said = capsys.readouterr().out
        _, _, absent = said.strip().partition("; no submissions from ")
        names = absent.split(", ") if absent else []
        folders = [path.name for path in folder.iterdir() if path.is_dir()]
        assert said.startswith(f"6 students in {folder}")
        assert len(names) + len(folders) == 6 and not set(names) & set(folders)
        if names:
            return
    pytest.fail("no seed has a student without a submission")


def test_script_says_what_is_wrong(
    tiny: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "class")
    assert main(["--output", output, "--course", str(tmp_path / "nope")]) == 2
    assert "There is no folder" in capsys.readouterr().err
    words = ["--output", output, "--course", str(tiny.root), "--assignment", "01_addin"]
    assert main(words) == 2
    assert "did you mean `01_adding`" in capsys.readouterr().err


def test_course_without_solutions_is_refused(tiny: Course, tmp_path: Path) -> None:
    empty = tiny.model_copy(update={"root": tmp_path / "empty"})
    with pytest.raises(CourseError, match="no solutions yet"):
        write_class(empty, tmp_path / "class", 2)


# -- graded -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def graded(tiny: Course, sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Graded:
    """A class of thirty: each answer with its grade, None without a submission."""
    folder = tmp_path_factory.mktemp("class")
    students = write_class(tiny, folder, 30, seed=4)
    grader = Grader(tiny, sandbox, 11, [TINY])
    try:
        grades = {
            submission.student: grader.grade(submission)
            for submission in find_submissions(folder, tiny)
        }
    finally:
        grader.close()
    return [(student.answers[TINY], grades.pop(student.name, None)) for student in students]


def of_kind(graded: Graded, kind: str) -> list[tuple[SampleAnswer, Grade]]:
    found = [
        (answer, grade) for answer, grade in graded if answer.kind == kind and grade is not None
    ]
    assert found
    return found


@pytest.mark.slow
def test_each_answer_gets_its_expected_marks(graded: Graded) -> None:
    for answer, grade in graded:
        assert (grade is None) == (answer.kind == "nothing")
        if grade is not None:
            got = "full" if grade.score == grade.max_score else "part" if grade.score else "none"
            assert got in ((answer.expected,) if answer.expected != "part" else ("part", "none")), (
                answer.kind
            )
            assert (grade.status == "refused") == (answer.kind == "latin1")


def test_mistakes_of_the_class_are_named(graded: Graded) -> None:
    for kind in ("mistake", "two_mistakes"):
        for answer, grade in of_kind(graded, kind):
            assert {test.mistake for test in grade.tests if test.mistake} == set(answer.mistakes)


def test_correct_answers_have_no_mistake(graded: Graded) -> None:
    for kind in ("right", "alternative", "both_files"):
        for _, grade in of_kind(graded, kind):
            assert not any(test.mistake or test.message for test in grade.tests)


def test_unfinished_answer_keeps_points_of_written_functions(graded: Graded) -> None:
    for answer, grade in of_kind(graded, "unfinished"):
        assert answer.unwritten == ("Total.push",)
        assert {test.part for test in grade.tests if test.outcome == "passed"} == {"add"}
