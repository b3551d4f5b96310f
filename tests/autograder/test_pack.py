"""The grader can read the archive that `pack` creates."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder import cli
from autograder.course.reading import load_course
from autograder.records import RefusedError
from autograder.selfcheck.pack import pack
from autograder.selfcheck.workspace import find_work
from autograder.submissions.find import find_submissions
from tests.autograder.student_folder import RIGHT, SUBTRACTS, same_as_golden, write_answer
from tests.autograder.tiny_course import write_tiny_course


def test_packed_archive_is_read_by_the_grader(folder: Path, tmp_path: Path) -> None:
    write_answer(folder, RIGHT)
    packed = pack(find_work("."), tmp_path)
    course = load_course(write_tiny_course(tmp_path / "instructor"))
    handed_in = tmp_path / "class" / "ada" / packed.archive.name
    handed_in.parent.mkdir(parents=True)
    packed.archive.rename(handed_in)
    (submission,) = find_submissions(handed_in.parent.parent, course)
    assert (submission.student, submission.assignment, submission.problem) == (
        "ada",
        "01_adding",
        None,
    )
    assert [(file.name, file.text) for file in submission.files] == [("adding.py", RIGHT)]


def test_pack_prints_its_result_and_does_not_overwrite(folder: Path) -> None:
    screens = []
    for text in (SUBTRACTS, SUBTRACTS, RIGHT):
        write_answer(folder, text)
        result = CliRunner(env={"COLUMNS": "80"}).invoke(cli.app, ["pack"])
        assert result.exit_code == 0
        screens.append(result.output)
    same_as_golden("pack", "\n$\n".join(screens))
    archives = sorted(folder.glob("*.zip"))
    assert [archive.name for archive in archives] == ["01_adding-2.zip", "01_adding.zip"]
    for archive, text in zip(archives, (SUBTRACTS, RIGHT)):
        with zipfile.ZipFile(archive) as opened:
            assert {name: opened.read(name).decode() for name in opened.namelist()} == {
                "01_adding/adding.py": text
            }


def test_pack_names_what_was_passed_over(folder: Path) -> None:
    (folder / "adding copy.py").write_text(RIGHT, "utf-8")
    result = CliRunner(env={"COLUMNS": "200"}).invoke(cli.app, ["pack"])
    assert "adding copy.py counts: there is no answer in adding.py and" in result.output


def test_an_empty_file_is_not_packed(folder: Path) -> None:
    write_answer(folder, " \n")
    with pytest.raises(RefusedError, match="adding.py is empty"):
        pack(find_work("."), folder)
    assert not list(folder.glob("*.zip"))


def test_second_archive_is_read_by_the_grader(folder: Path, tmp_path: Path) -> None:
    course = load_course(write_tiny_course(tmp_path / "instructor"))
    for text in (SUBTRACTS, RIGHT):
        write_answer(folder, text)
        packed = pack(find_work("."), folder)
    assert (packed.archive.name, packed.older) == ("01_adding.zip", "01_adding-2.zip")
    (submission,) = find_submissions(packed.archive, course)
    assert (submission.assignment, submission.problem) == ("01_adding", None)


def test_copied_file_and_renamed_folder_get_the_expected_names(
    folder: Path, tmp_path: Path
) -> None:
    write_answer(folder, RIGHT)
    (folder / "adding.py").rename(folder / "adding (1).py")
    folder = folder.rename(folder.with_name("homework"))
    packed = pack(find_work(folder / "adding (1).py"), tmp_path)
    assert (packed.archive.name, packed.file.name) == ("01_adding.zip", "adding.py")


def test_notebook_is_packed_as_a_notebook(folder: Path) -> None:
    notebook = folder / "adding.ipynb"
    notebook.write_text(
        notebook.read_text("utf-8").replace("raise NotImplementedError", "return"), "utf-8"
    )
    packed = pack(find_work("adding.ipynb"), folder)
    assert packed.file.name == "adding.ipynb"


def test_pack_refuses_a_file_that_the_grader_would_refuse(folder: Path) -> None:
    write_answer(folder, RIGHT + "#" * (5 << 20))
    with pytest.raises(RefusedError, match="adding.py is larger than 4 MB"):
        pack(find_work("adding.py"), folder)
    assert list(folder.glob("*.zip")) == []


def test_folder_name_without_an_assignment_is_refused(folder: Path) -> None:
    (folder / "hints.json").unlink()
    folder = folder.rename(folder.with_name("homework"))
    with pytest.raises(RefusedError, match="homework should have the assignment's name"):
        pack(find_work(folder), folder)
    folder = folder.rename(folder.with_name("x_adding"))
    with pytest.raises(
        RefusedError, match="x_adding should have the assignment's name, for example 03_adding"
    ):
        pack(find_work(folder), folder)
