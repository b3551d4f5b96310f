"""Pictures in the feedback are drawn once, after grading, in the sandbox; a picture that cannot be drawn is explained."""

from __future__ import annotations

import base64
import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image
from typer.testing import CliRunner

from autograder.cli import app
from autograder.course.config import Course
from autograder.course.reading import load_course
from autograder.feedback import painter
from autograder.feedback.painter import draw_pictures
from autograder.feedback.pictures import Picture, picture_file, pictures_of
from autograder.feedback.titles import titles_of
from autograder.gradebook import texts as keeping
from autograder.gradebook.journal import Reading
from autograder.grading.reference import load_reference
from autograder.grading.time_limits import Watch
from autograder.grading.workers import LoadedSubmission, WorkerFactory
from autograder.records import Grade, InfrastructureError, SourceFile, Submission
from autograder.runs.pool import Plan
from autograder.walls.outside.launcher import Sandbox
from tests.autograder.at_hand import graders_at_hand
from tests.autograder.sampling import sampled
from tests.autograder.student_folder import FORGETS, PICTURES, RIGHT, SUBTRACTS
from tests.autograder.tiny_course import write_files

ROOT = Path(__file__).resolve().parents[2]
COURSE = load_course(ROOT)
NAME = "01_adding"
CLASS = {
    "ada": RIGHT,
    "Ada": SUBTRACTS,
    "bo": FORGETS.replace("a + b", "a - b"),
    "cleo": SUBTRACTS.replace("return together", "import os; os._exit(3) if a == 0 else None; return together"),
    "dev": SUBTRACTS.replace("return together", "\n    while a == 0: pass\n    return together"),
    "eve": SUBTRACTS.replace("return together", "return [together] * (a + b)"),
    "kim": RIGHT.replace("together = a + b\n    return together", 'raise NotImplementedError("add is not written yet.")'),
    "lou": "def add(:\n",
}  # fmt: skip
MISTAKES = "- id: subtracts\n  title: the smaller is taken away\n"


@pytest.fixture(scope="module")
def course(released: Path, tmp_path_factory: pytest.TempPathFactory) -> Course:
    folder = shutil.copytree(released.parent, tmp_path_factory.mktemp("pictures") / "course")
    mistakes = folder / "tests/assignments" / NAME / "mistakes.yml"
    mistakes.write_text(mistakes.read_text("utf-8").replace("- id: subtracts\n", MISTAKES), "utf-8")
    return load_course(folder)


def autograder(*words: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80", "OMP_NUM_THREADS": "1"}
    program = "from autograder.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, words)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def graded(course: Course, sandbox: Sandbox) -> tuple[Path, str]:
    """The folder of a graded class with its pictures, and the output of the command."""
    handed_in, grades = course.root.parent / "class", course.root.parent / "grades"
    class_files = {f"{student}/{NAME}/adding.py": text for student, text in CLASS.items()}
    write_files(handed_in, class_files)
    (handed_in / "zoe" / NAME).mkdir(parents=True)
    (handed_in / "zoe" / NAME / "adding.py").write_bytes(b"# caf\xe9\n")
    words = ["grade", handed_in, "--output", grades, "--pictures"]
    words += ["--course", course.root, "--jobs", 1, "--seed", 3]
    with graders_at_hand(sandbox):
        done = CliRunner(env={"COLUMNS": "80"}).invoke(app, [*map(str, words)])
    assert done.exit_code == 0, done.output
    assert "Traceback" not in done.stderr and "Warning" not in done.stderr
    return grades, done.stdout


@pytest.fixture(scope="module")
def folder(graded: tuple[Path, str]) -> Path:
    return graded[0]


@pytest.fixture(scope="module")
def grades(folder: Path) -> dict[str, Grade]:
    return {grade.student: grade for grade in Reading(folder / "grades.jsonl")}


def pictures(folder: Path, course: Course, grade: Grade) -> dict[str, Picture]:
    return {picture.title: picture for picture in pictures_of(folder, course, grade)}


def page_of(folder: Path, student: str) -> str:
    (page,) = folder.glob(f"feedback/{student}/{NAME}.html")
    return page.read_text("utf-8")


def test_picture_is_drawn_from_the_students_code(
    folder: Path, course: Course, grades: dict
) -> None:
    (picture,) = pictures(folder, course, grades["Ada"]).values()
    assert (picture.part, picture.title, picture.problem) == ("add", "a row of sums", "")
    assert picture.look_for == "The sums climb like a staircase."
    assert picture.words == "The sums are −1, 0, 1."
    with Image.open(io.BytesIO(base64.b64decode(picture.image))) as image:
        assert image.format == "PNG" and image.size == (200, 200)
    others = pictures(folder, course, grades["bo"])
    assert others["a row of sums"].image == picture.image  # it subtracts in the same way
    assert others["pushes"].image not in ("", picture.image)


def test_picture_that_cannot_be_drawn_is_explained(
    folder: Path, course: Course, grades: dict
) -> None:
    def problem(student: str) -> str:
        return pictures(folder, course, grades[student])["a row of sums"].problem

    assert "ended" in problem("cleo")
    assert re.search("2 seconds of processor time|10 seconds on the clock", problem("dev"))
    assert problem("eve") == "The result of your code cannot be drawn (ValueError)."
    assert problem("kim") == "`add` is not written yet (line 18)."
    assert "line 1" in problem("lou")


def test_page_shows_the_picture_with_its_explanation(folder: Path, course: Course) -> None:
    page = page_of(folder, "Ada-*")
    (image,) = re.findall(r"<img [^>]*>", page)
    assert 'src="data:image/png;base64,' in image
    assert 'alt="a row of sums: The sums are −1, 0, 1."' in image
    assert "What to look for:" in page and page.index("What to look for:") < page.index("<img")
    waiting = page_of(folder, "kim")
    assert "<img" not in waiting and "No picture yet of a row of sums" in waiting


@pytest.mark.parametrize(
    "text", ["- id: [", "a: b", "- 3\n- {id: subtracts}\n- {id: subtracts, title: 7}", "\x00"]
)
def test_invalid_mistakes_yml_does_not_stop_a_report(
    course: Course, tmp_path: Path, text: str
) -> None:
    other = course.model_copy(update={"root": tmp_path})
    file = other.mistakes_file(other.assignment(NAME))
    file.parent.mkdir(parents=True)
    file.write_text(text, "utf-8")
    assert titles_of(other)(NAME, "subtracts") == "subtracts"


def test_existing_pictures_are_not_drawn_again(folder: Path, course: Course, grades: dict) -> None:
    steps: list[tuple[int, int]] = []
    assert (
        draw_pictures(
            Plan(course, 0), folder, grades.values(), lambda *how_far: steps.append(how_far)
        )
        == []
    )
    assert steps == [(0, 0)]


def test_changed_pictures_py_draws_the_pictures_again(
    folder: Path, course: Course, grades: dict
) -> None:
    file = picture_file(folder, course, grades["Ada"])
    source = course.pictures_file(course.assignment(NAME))
    source.write_text(PICTURES + "# better\n", "utf-8")
    try:
        assert picture_file(folder, course, grades["Ada"]) != file
        assert pictures_of(folder, course, grades["Ada"]) == []
    finally:
        source.write_text(PICTURES, "utf-8")
    assert len(pictures_of(folder, course, grades["Ada"])) == 1


def test_pictures_are_drawn_from_the_graded_text(
    folder: Path, course: Course, grades: dict, tmp_path: Path
) -> None:
    found = keeping.get(folder, grades["Ada"])
    assert found is not None and [file.text for file in found.files] == [SUBTRACTS]
    another = Submission("Ada", NAME, (SourceFile("adding.py", RIGHT),))
    keeping.put(tmp_path, [another, Submission("zoe", NAME, problem="No.")])
    assert len(list((tmp_path / "submissions").iterdir())) == 1
    assert keeping.get(tmp_path, grades["Ada"]) is None
    forged = next((tmp_path / "submissions").iterdir())
    forged.rename(forged.with_name(f"{grades['Ada'].submission_sha256}.json"))
    assert keeping.get(tmp_path, grades["Ada"]) is None


def test_stored_text_is_graded_as_submitted(tmp_path: Path) -> None:
    texts = Submission(
        "ada", NAME, (SourceFile("adding.py", RIGHT), SourceFile("adding.ipynb", "{}"))
    )
    nothing = Submission("zoe", NAME, problem="No.")
    put_away = keeping.put(tmp_path, [texts, nothing])
    assert [one.submission.files for one in put_away] == [(), ()]
    assert list(keeping.iterate(tmp_path, put_away)) == [texts, nothing]
    file = next((tmp_path / "submissions").iterdir())
    file.write_text(file.read_text("utf-8").replace("+", "-"), "utf-8")
    with pytest.raises(InfrastructureError, match=f"{file.name} was changed or is gone"):
        list(keeping.iterate(tmp_path, put_away))


def test_drawing_process_that_is_ended_from_outside_is_reported(
    course: Course, grades: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Future[None]:
        future = Future[None]()
        future.set_exception(BrokenProcessPool())
        return future

    monkeypatch.setattr(
        painter, "graders", lambda plan: SimpleNamespace(submit=broken, shutdown=lambda **_: None)
    )
    (problem,) = draw_pictures(Plan(course, 0), tmp_path, grades.values(), lambda done, total: None)
    assert problem.startswith(
        "Pictures of 7 submissions are not drawn: a process that drew them was ended from outside"
    )
    assert "`autograder report --pictures --jobs 1`" in problem


@pytest.fixture(scope="module")
def workers() -> Iterator[WorkerFactory]:
    """Sandboxed workers of the course's own assignments, with time limits for a busy machine."""
    references = {each.name: load_reference(COURSE, each) for each in COURSE.assignments}
    workers = WorkerFactory(Sandbox(hidden=COURSE.hidden_folders), references, {})
    yield workers
    workers.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", sampled((a.name for a in COURSE.assignments), "03_masked_heads".__eq__)
)
def test_every_picture_of_the_course_can_be_drawn_in_the_sandbox(
    workers: WorkerFactory, name: str
) -> None:
    assignment = COURSE.assignment(name)
    patient = {"call_seconds": 100.0, "cpu_seconds": 300.0}
    patient |= {"submission_cpu_seconds": 300.0, "submission_seconds": 900.0}
    limits = assignment.limits.model_copy(update=patient)
    assignment = assignment.model_copy(update={"limits": limits})
    file = SourceFile(f"{assignment.stem}.py", COURSE.solution_file(assignment).read_text("utf-8"))
    gallery = painter.pictures_in(COURSE.pictures_file(assignment))
    wanted = [drawing for drawings in gallery.values() for drawing in drawings]
    drawn = painter.drawn_pictures(
        LoadedSubmission(workers, assignment, file), wanted, Watch(), painter.PATIENT
    )
    assert len(drawn) == len(wanted) > 0
    assert {picture.title: picture.problem for picture in drawn if picture.problem} == {}
    assert all(len(picture.image) < 60_000 for picture in drawn), "too large for a page"
    assert all(len(picture.words.split()) > 5 for picture in drawn)
    assert all(len(picture.look_for.split()) > 5 for picture in drawn), "what should one look for?"
