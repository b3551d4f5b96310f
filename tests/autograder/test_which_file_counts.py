"""An untouched stub never counts in place of work: the same rule for grading, `check` and `pack`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder import cli
from autograder.course.config import Course, load_course
from autograder.records import RefusedError, SourceFile, Submission
from autograder.selfcheck.check import check_target
from autograder.selfcheck.pack import pack
from autograder.selfcheck.workspace import find_work
from autograder.source.stub import UNKNOWN, ReleasedStub, released_stub
from autograder.submissions import find_submissions
from tests.autograder.sampling import thinned
from tests.autograder.student_folder import RIGHT, SUBTRACTS
from tests.autograder.tiny_course import write_files

NAME = "01_adding"
COPIES = [
    "adding copy.py", "adding - Copy.py", "adding_final.py", "final.py", "adding_v2.py", "Kopie von adding.py",
    "Adding.py", "ADDING.PY", "adding-Copy1.py", "adding (1).py", "untitled.py", "draft/adding.py", "draft/mine.py",
]  # fmt: skip


@pytest.fixture
def course(built_course: Path) -> Course:
    return load_course(built_course)


@pytest.fixture
def stub(course: Course) -> str:
    return course.stub_file(course.assignments[0]).read_text("utf-8")


@pytest.fixture
def stub_notebook(course: Course) -> str:
    return course.notebook_file(course.assignments[0]).read_text("utf-8")


def notebook(*cells: str) -> str:
    code = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": text} for text in cells]
    return json.dumps({"cells": code, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def handed_in(
    course: Course, folder: Path, files: dict[str, str], place: str = f"ada/{NAME}"
) -> Submission:
    write_files(folder / "class", {f"{place}/{name}": text for name, text in files.items()})
    (submission,) = find_submissions(folder / "class", course, NAME)
    return submission


def texts(submission: Submission) -> list[str]:
    return [file.text for file in submission.files]


@pytest.mark.parametrize("place", [f"ada/{NAME}", "ada"])
@pytest.mark.parametrize("name", COPIES)
def test_a_changed_copy_beside_the_stub_counts(
    course: Course, stub: str, tmp_path: Path, name: str, place: str
) -> None:
    found = handed_in(course, tmp_path, {"adding.py": stub, name: RIGHT}, place)
    assert (found.problem, texts(found)) == (None, [RIGHT])
    if name not in ("adding (1).py", "draft/adding.py"):
        called = name.replace(".PY", ".py")
        assert found.notes == (f"{called} was graded: there is no answer in adding.py.",)


@pytest.mark.parametrize(
    "name", ["Copy of adding.ipynb", "Untitled.ipynb", "adding (2).ipynb", "mine.py"]
)
def test_a_changed_copy_of_another_kind_counts(
    course: Course, stub: str, stub_notebook: str, tmp_path: Path, name: str
) -> None:
    work = notebook("# my way", RIGHT) if name.endswith(".ipynb") else RIGHT
    found = handed_in(
        course, tmp_path, {"adding.py": stub, "adding.ipynb": stub_notebook, name: work}
    )
    assert work in texts(found) and found.problem is None


UNTOUCHED = {
    "another comment": lambda stub: stub.replace("# TODO: both", "# ToDo: BOTH"),
    "line ends of Windows": lambda stub: stub.replace("\n", "\r\n"),
    "a name above": lambda stub: "# my name\n" + stub,
    "other quotes": lambda stub: stub.replace('"', "'"),
    "more imports": lambda stub: (
        "import math\nfrom torch import (\n    nn,\n    Tensor,\n)\n" + stub
    ),
    "a longer raise": lambda stub: re.sub(
        r"(NotImplementedError\()(.*)\)", r"\1\n            \2,\n        )", stub
    ),
    "longer signatures": lambda stub: re.sub(r"def (\w+)\(", r"def \1(\n    ", stub),
}


@pytest.mark.parametrize("changed", UNTOUCHED.values(), ids=UNTOUCHED)
def test_a_stub_without_a_change_of_its_code_is_untouched(
    course: Course, stub: str, tmp_path: Path, changed
) -> None:
    """Its comments may differ, or a formatter may have laid it out."""
    text = changed(stub)
    assert text != stub
    assert texts(handed_in(course, tmp_path, {"adding.py": text, "final.py": RIGHT})) == [RIGHT]


@pytest.mark.parametrize("name", ["adding.py.txt", "adding.py.bak", "my_adding.txt", "Adding.docx"])
def test_a_stub_beside_a_file_that_is_not_read_is_noted(
    course: Course, stub: str, tmp_path: Path, name: str
) -> None:
    found = handed_in(course, tmp_path, {"adding.py": stub, name: RIGHT, "notes.txt": ""})
    sentence = f"There is no answer in adding.py. {name} beside it was not read: only .py and .ipynb files are."
    assert found.notes == (sentence,)
    again = handed_in(course, tmp_path / "again", {"adding.py": RIGHT, name: RIGHT})
    assert again.notes == ()


@pytest.mark.parametrize(
    "text", ["", "\n", "# nothing yet\n", "import torch\n", "from final import *\n"]
)
def test_a_file_without_an_answer_does_not_count_beside_one(
    course: Course, tmp_path: Path, text: str
) -> None:
    assert texts(handed_in(course, tmp_path, {"adding.py": text, "final.py": RIGHT})) == [RIGHT]


@pytest.mark.parametrize("second", ["adding_old.py", "adding (1).py", "old/adding.py"])
def test_several_different_answers_are_refused_by_name(
    course: Course, stub: str, tmp_path: Path, second: str
) -> None:
    files = {
        "adding.py": stub,
        "adding_final.py": RIGHT,
        "adding_other.py": SUBTRACTS,
        second: SUBTRACTS,
    }
    if second != "adding_old.py":  # called like the module, so it counts before the others
        found = handed_in(course, tmp_path, files)
        assert texts(found) == [SUBTRACTS]
        assert found.notes == (f"{second} was graded. There is another answer in adding_final.py.",)
        return
    problem = handed_in(course, tmp_path, files).problem
    assert problem is not None and "with different contents; hand in only one of them." in problem
    assert all(name in problem for name in ("adding_final.py", "adding_other.py", "adding_old.py"))
    assert not re.search(r"\badding\.py", problem), "the stub is no attempt"


def test_equal_copies_beside_the_stub_count_once(course: Course, stub: str, tmp_path: Path) -> None:
    assert texts(
        handed_in(course, tmp_path, {"adding.py": stub, "a.py": RIGHT, "b.py": RIGHT})
    ) == [RIGHT]


def test_a_stub_below_does_not_stand_in_the_way_of_work(
    course: Course, stub: str, tmp_path: Path
) -> None:
    found = handed_in(course, tmp_path, {"adding.py": RIGHT, "original/adding.py": stub})
    assert (found.problem, texts(found), found.notes) == (None, [RIGHT], ())


def test_a_second_answer_is_said_and_the_named_file_counts(course: Course, tmp_path: Path) -> None:
    found = handed_in(
        course, tmp_path, {"adding.py": SUBTRACTS, "adding_final.py": RIGHT, "notes.py": "x = 1\n"}
    )
    assert texts(found) == [SUBTRACTS]
    assert found.notes == ("adding.py was graded. There is another answer in adding_final.py.",)


def test_helpers_and_given_files_are_no_answers(course: Course, stub: str, tmp_path: Path) -> None:
    files = {
        "adding.py": stub,
        "helper.py": "x = 1\n",
        "pictures.py": RIGHT,
        "test_adding.py": RIGHT,
    }
    found = handed_in(course, tmp_path, files)
    assert (found.problem, texts(found)) == (None, [stub])
    assert found.notes == ("There is no answer in adding.py and helper.py.",)


def test_a_stub_alone_is_graded(
    course: Course, stub: str, stub_notebook: str, tmp_path: Path
) -> None:
    found = handed_in(course, tmp_path, {"adding.py": stub, "adding.ipynb": stub_notebook})
    assert (found.problem, found.notes, texts(found)) == (None, (), [stub, stub_notebook])


@pytest.mark.parametrize(
    "files",
    [
        {"a/b/c/d/e/f/adding.py": RIGHT},
        {"hw/adding.py": RIGHT, "data/x.csv": "1"},
        {"hw/adding.py": RIGHT, "backup/adding.py": RIGHT},
        {"pkg/adding.py": RIGHT, "tests/test_x.py": "x = 1\n"},
    ],
)
def test_every_folder_of_a_hand_in_is_searched(
    course: Course, tmp_path: Path, files: dict[str, str]
) -> None:
    assert texts(handed_in(course, tmp_path, files)) == [RIGHT]


def test_names_are_matched_as_whole_words() -> None:
    stub = ReleasedStub.of(
        "adding",
        {"adding.py": 'def add():\n    raise NotImplementedError("add is not written yet.")\n'},
    )
    for text in (
        "def add(a):\n",
        "async def add():\n",
        "class add:\n",
        "add = sum\n",
        "add: Adder = sum\n",
        "  def add(\n",
    ):
        assert stub.is_answer(SourceFile("x.py", text)), text
    for text in ("def added(a):\n", "print(add)\n", "add == 3\n", "# def add(a)\n", "import add\n"):
        assert not stub.is_answer(SourceFile("x.py", text)), text
    assert not UNKNOWN.is_answer(SourceFile("x.py", "def add(a): pass\n"))


def test_earlier_work_beside_the_stub_is_no_answer(
    course: Course, stub: str, tmp_path: Path
) -> None:
    """Assignments share names: `causal_mask` of one is asked for again in another."""
    first = course.assignments[0]
    two = course.model_copy(
        update={"assignments": (first, first.model_copy(update={"name": "02_totals"}))}
    )
    found = handed_in(two, tmp_path, {"adding.py": stub, "totals.py": RIGHT})
    assert (texts(found), found.notes) == ([stub], ())
    assert handed_in(two, tmp_path / "alone", {"totals.py": RIGHT}).problem is not None


def test_written_answers_are_work() -> None:
    placeholder = (
        "*Write your answer here, in place of this line. A person reads it and gives the points.*"
    )
    script = 'def add():\n    raise NotImplementedError("add is not written yet.")\n'
    stub = ReleasedStub.of("adding", {"adding.py": f"{script}# {placeholder}\n"})
    assert stub.is_untouched(SourceFile("adding.py", f"{script}# {placeholder}\n"))
    assert not stub.is_untouched(SourceFile("adding.py", f"{script}# Because of the sum.\n"))


def test_hostile_notebooks_are_no_answers(course: Course) -> None:
    stub = released_stub(course, course.assignments[0])
    deep = '{"cells": [{"cell_type": "code", "source": ' + "[" * 900 + "]" * 900 + "}]}"
    for text in (
        "{",
        "[]",
        '{"cells": [1, null]}',
        '{"cells": [{"cell_type": "code", "source": 3}]}',
        deep,
    ):
        assert not stub.is_answer(SourceFile("x.ipynb", text))


# -- a student's own folder ---------------------------------------------------------------------------


def run(*words: str) -> tuple[int, str]:
    done = CliRunner(env={"COLUMNS": "200"}).invoke(cli.app, [*words])
    return done.exit_code, done.output


@pytest.mark.parametrize(
    "name", thinned(["adding copy.py", "Adding.py", "untitled.py", "Copy of adding.ipynb"], 4)
)
def test_check_and_pack_take_the_changed_copy(folder: Path, name: str) -> None:
    text = notebook(RIGHT) if name.endswith(".ipynb") else RIGHT
    (folder / name).write_text(text, "utf-8")
    report = check_target(".")
    assert (report.file, report.all_passed) == (name, True)
    assert (
        report.note == f"There is no answer in adding.py and adding.ipynb; your work is in {name}."
    )
    packed = pack(find_work("."), folder)
    assert packed.file.text == text and Path(packed.file.name).stem == "adding"
    assert f"{name} is in it as {packed.file.name}." in run("pack")[1]


@pytest.mark.slow
def test_check_and_pack_refuse_several_answers_by_name(folder: Path) -> None:
    (folder / "one.py").write_text(RIGHT, "utf-8")
    (folder / "two.py").write_text(SUBTRACTS, "utf-8")
    for command in ("check", "hint", "pack"):
        code, shown = run(command)
        assert code == 2 and "one.py and two.py have different contents" in shown, command
    assert not list(folder.glob("*.zip"))
    assert run("check", "two.py")[0] == 1
    assert run("pack", "one.py")[0] == 0


def test_an_untouched_stub_is_not_packed(folder: Path) -> None:
    for target in (".", "adding.py", "adding.ipynb"):
        code, shown = run("pack", target)
        assert code == 2 and "holds no answer of yours, so there is nothing to hand in." in shown
    (folder / "mine.py").write_text(RIGHT, "utf-8")
    code, shown = run("pack", "adding.py")
    assert code == 2 and "your work is in mine.py" in shown
    assert not list(folder.glob("*.zip"))


def test_check_of_the_stub_names_the_file_that_holds_the_work(folder: Path) -> None:
    (folder / "mine.py").write_text(RIGHT, "utf-8")
    code, shown = run("check", "adding.py")
    assert code == 1 and "There is no answer in adding.py; your work is in mine.py." in shown


def test_a_second_answer_is_named(folder: Path) -> None:
    (folder / "adding.py").write_text(RIGHT, "utf-8")
    (folder / "mine.py").write_text(SUBTRACTS, "utf-8")
    report = check_target(".")
    assert report.file == "adding.py"
    assert report.note == "There is another answer in mine.py. To check that one, name it."


def test_without_hints_the_usual_files_count(folder: Path) -> None:
    (folder / "hints.json").unlink()
    (folder / "mine.py").write_text(RIGHT, "utf-8")
    assert check_target(".").file == "adding.py"
    with pytest.raises(RefusedError, match="There is no assignment in"):
        (folder / "adding.py").unlink()
        (folder / "adding.ipynb").unlink()
        find_work(".")


def test_a_renamed_answer_is_found_without_the_stub(folder: Path) -> None:
    (folder / "adding.ipynb").unlink()
    (folder / "adding.py").rename(folder / "mine.py")
    (folder / "mine.py").write_text(RIGHT, "utf-8")
    assert check_target(".").file == "mine.py"


def test_earlier_work_is_no_answer_for_check(folder: Path) -> None:
    (folder.parent / "02_totals").mkdir()
    (folder.parent / "02_totals" / "test_totals.py").touch()
    (folder / "totals.py").write_text(RIGHT, "utf-8")
    report = check_target(".")
    assert (report.file, report.score, report.note) == ("adding.py", 0, "")
