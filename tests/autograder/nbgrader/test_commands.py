"""nbgrader's commands with this course's settings: released files, refusals, and required settings."""

from __future__ import annotations

import filecmp
import os
import re
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("nbgrader", reason="nbgrader is not installed: pip install '.[nbgrader]'")

from tests.autograder.nbgrader.classroom import (
    TINY,
    Classroom,
    edited,
    generated_classroom,
    real_classroom,
)

FULL = {"add": 4.0, "total": 6.0}
SECRET = "together = a + b"


@pytest.fixture
def room(tmp_path: Path) -> Classroom:
    """Return a course whose gradebook contains its assignment."""
    return generated_classroom(tmp_path)


def files(folder: Path) -> set[str]:
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.slow
def test_generate_assignment_creates_the_same_files_as_build(tmp_path):
    """With a real assignment: pictures, several parts, several gaps in a cell."""
    room = real_classroom(tmp_path, "03_masked_heads")
    released = room.course.release_folder(room.assignment)
    built = released.rename(tmp_path / "built")
    room.nbgrader("generate_assignment", room.name)
    assert files(released) == files(built)
    assert all(filecmp.cmp(released / name, built / name, shallow=False) for name in files(built))
    assert "masked_heads.ipynb" in files(released)


@pytest.mark.slow
def test_autograde_before_generate_assignment_names_the_missing_step(room):
    (room.folder / "gradebook.db").unlink()
    room.hand_in("ada", room.solution())
    output = room.nbgrader("autograde", TINY, fails=True)
    assert "First: nbgrader generate_assignment 01_adding" in output
    assert "Traceback" not in output


@pytest.mark.slow
def test_autograde_refuses_points_that_differ_from_the_gradebook(room):
    room.hand_in("ada", room.solution())
    for name, old, new in (
        ("course.yml", "points: 4", "points: 5"),
        (f"tests/assignments/{TINY}/test_visible.py", "points(1)", "points(2)"),
    ):
        file = room.folder / name
        file.write_text(file.read_text().replace(old, new, 1))
    output = room.nbgrader("autograde", TINY, fails=True)
    assert "parts and points of course.yml" in output
    assert "Traceback" not in output
    room.nbgrader("generate_assignment", TINY)
    room.nbgrader("autograde", TINY)
    assert room.gradebook_scores() == {"ada": {"add": 5.0, "total": 6.0}}


def test_commands_stop_when_the_settings_cannot_be_loaded(room):
    """Jupyter ignores a settings file that fails; nbgrader must not continue with its own kernels."""
    room.hand_in(
        "ada",
        edited(room.stub(), lambda notebook: notebook.cells[1].update(source="open('ran', 'w')")),
    )
    poisoned = room.folder / "broken"
    (poisoned / "autograder").mkdir(parents=True)
    (poisoned / "autograder" / "__init__.py").write_text("raise ImportError('not here')")
    room.nbgrader("autograde", TINY, fails=True, PYTHONPATH=str(poisoned))
    assert not list(room.folder.rglob("ran"))


def test_settings_that_would_release_solutions_are_refused(room):
    config = room.folder / "nbgrader_config.py"
    config.write_text(re.sub(r"(?m)^c\.CourseDirectory\.ignore = .*$", "", config.read_text()))
    output = room.nbgrader("generate_assignment", TINY, fails=True)
    assert "would copy" in output
    released = files(room.folder / "assignments")
    assert not any(SECRET in (room.folder / "assignments" / name).read_text() for name in released)


@pytest.mark.slow
def test_export_to_nbgrader_after_autograder_grade(room):
    """Export gradebook, notebooks and feedback after `autograder grade`, and again after a new submission."""
    place = room.folder / "class"
    for student, work in {"ada": room.solution(), "bob": room.stub(), "eva": "no notebook"}.items():
        room.hand_in(student, work)
    (room.folder / "submitted").rename(place)
    solution = (room.folder / "solutions" / TINY / "adding.py").read_text()
    (place / "cleo").mkdir()
    (place / "cleo" / "adding.py").write_text(solution)
    room.autograder("grade", str(place))
    assert "4 of 4 grades" in room.autograder(
        "export", "grades", "--to", "nbgrader", "--submissions", "class"
    )
    assert room.gradebook_scores() == room.journal_scores()
    assert room.gradebook_scores()["cleo"] == FULL
    assert "not written yet" in room.feedback_text("bob")
    assert "return together" in str(room.autograded("cleo"))

    room.nbgrader("generate_feedback", TINY)
    assert "add is not written yet" in (
        room.folder / "feedback/bob" / TINY / "adding.html"
    ).read_text().replace("`", "")
    room.nbgrader("export")
    assert "01_adding,,,cleo,,,,10.0,0.0,10.0,10.0" in (room.folder / "grades.csv").read_text()

    (place / "bob" / TINY / "adding.ipynb").write_text(
        (place / "ada" / TINY / "adding.ipynb").read_text()
    )
    output = room.autograder(
        "export", "grades", "--to", "nbgrader", "--submissions", "class", fails=True
    )
    assert "bob, 01_adding: the submission is not the one that was graded" in output
    room.autograder("grade", str(place))
    room.autograder("export", "grades", "--to", "nbgrader", "--submissions", "class")
    assert room.gradebook_scores()["bob"] == FULL


def test_autograde_finds_submissions_without_notebooks(room):
    """nbgrader searches for notebooks, and here there are none. `--student` selects only that student."""
    solution = (room.folder / "solutions" / TINY / "adding.py").read_text()
    for student in ("ada", "bob"):
        room.hand_in(student, solution, "adding.py")
    room.nbgrader(
        "autograde", TINY, "--student", "ada", "--KernelManager.transport=ipc"
    )  # starts no kernel
    assert room.gradebook_scores() == {"ada": FULL}
    output = room.nbgrader("autograde", TINY, "--student", "nobody", fails=True)
    assert "No notebooks were matched" in output
    assert "Traceback" not in output


@pytest.mark.slow
def test_manual_grades_and_comments_are_kept(room):
    from nbgrader.api import Gradebook

    room.hand_in("ada", room.stub())
    room.nbgrader("autograde", TINY)
    with Gradebook(f"sqlite:///{room.folder / 'gradebook.db'}", "attention-by-hand") as gradebook:
        gradebook.find_grade("add", "adding", TINY, "ada").manual_score = 3.5
        gradebook.find_comment("write-add", "adding", TINY, "ada").manual_comment = "Almost."
        gradebook.db.commit()
        assert (
            gradebook.find_comment("write-add", "adding", TINY, "ada").auto_comment
            == "No response."
        )
    room.nbgrader("autograde", TINY, "--force")
    assert room.gradebook_scores()["ada"]["add"] == 3.5
    room.nbgrader("generate_feedback", TINY)
    assert "Almost." in (room.folder / "feedback/ada" / TINY / "adding.html").read_text()


def test_release_assignment_copies_to_the_exchange_without_solutions(room):
    room.nbgrader("release_assignment", TINY)
    released = room.folder / "exchange" / "attention-by-hand" / "outbound" / TINY
    assert {"adding.ipynb", "adding.py", "test_adding.py"} <= files(released)
    assert not any(SECRET in file.read_text() for file in released.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_exchange_in_a_folder_that_others_can_read_is_refused(room):
    from autograder.nbgrader.exchange import exchange_problem

    with tempfile.TemporaryDirectory() as place:  # not in tmp_path, which nobody else can enter
        course = Path(place)
        for mode, problem in ((0o755, True), (0o711, True), (0o750, False), (0o700, False)):
            course.chmod(mode)
            assert bool(exchange_problem(course, course / "exchange")) == problem
            assert exchange_problem(course, course.parent / "exchange") is None
        course.chmod(0o755)
        sentence = exchange_problem(course, course / "exchange") or ""
        assert "c.Exchange.root" in sentence and f"chmod o-rwx {course}" in sentence
    config = (room.folder / "nbgrader_config.py").read_text("utf-8")
    assert (
        'c.ExchangeFactory.release_assignment = "autograder.nbgrader.exchange.ReleaseAssignment"'
        in config
    )
