"""No command and no child of one imports or reads anything in the current folder, where students' files may lie."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.gradebook.journal import FILE_NAME, Reading
from autograder.walls.outside import trusted_process
from tests.autograder.poisoned_folder import PoisonedFolder
from tests.autograder.student_folder import PICTURES, RIGHT, SUBTRACTS, copy_of
from tests.autograder.student_repositories import NEEDS_GIT
from tests.autograder.tiny_course import write_files, write_tiny_course
from tests.autograder.waiting import HANGS, wait_until

NAME = "01_adding"
COMMAND = Path(sys.executable).parent / "autograder"
CLASS = {"ada": RIGHT, "ben": SUBTRACTS}
pytestmark = pytest.mark.slow


class Room:
    """A course, a class, and the poisoned folder in which an instructor types commands."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.course = write_tiny_course(root / "course")
        (self.course / f"tests/assignments/{NAME}/pictures.py").write_text(PICTURES)
        self.poisoned = PoisonedFolder(root / "current")
        class_files = {f"{student}/{NAME}/adding.py": text for student, text in CLASS.items()}
        write_files(root / "submitted", class_files)
        self.run("build", "--course", self.course)
        self.run("grade", root / "submitted", "--course", self.course, "--output", root / "grades")

    def run(self, *words: object, codes: tuple[int, ...] = (0,), cwd: Path | None = None) -> str:
        """Return the output of a command, which opens nothing in the poisoned folder."""
        done = subprocess.run(
            [str(COMMAND), *map(str, words)], cwd=cwd or self.poisoned.path,
            env=self.poisoned.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=HANGS, text=True,
        )  # fmt: skip
        assert self.poisoned.opened() == []
        assert done.returncode in codes, done.stdout
        return done.stdout


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Room:
    return Room(tmp_path_factory.mktemp("commands"))


def test_the_witness_sees_an_import(room: Room) -> None:
    """Python itself imports from the current folder, and the test notices that."""
    command = [sys.executable, "-c", "import tabnanny"]
    subprocess.run(
        command, cwd=room.poisoned.path, env=room.poisoned.environment, capture_output=True
    )
    assert room.poisoned.opened() != []  # Python 3.13 imports its own `linecache` from there first


COMMANDS = {  # `build` and `grade` have made the room
    "grade": "grade {root}/submitted --output {root}/again --regrade --jobs 2",
    "cluster": "grade {root}/submitted --output {root}/local --cluster local:1",
    "pictures": "report {root}/grades --pictures --jobs 1",
    "collect": "collect {root}/submitted --from folders --output {root}/collected",
    "decide": "decide ada -a 01_adding --take 1 --reason late --by me --grades {root}/grades",
    "pick": "decide --pick 50 --grades {root}/grades",
    "compare": "compare {root}/grades {root}/grades",
    "csv": "export {root}/grades --to csv --output {root}/grades.csv",
    "junit": "export {root}/grades --to junit --output {root}/grades.xml",
    "classroom50": "export {root}/grades --to classroom50 --output {root}/classroom50",
    "gradescope": "export --to gradescope -a 01_adding --output {root}/gradescope.zip",
    "similar": "similar {root}/submitted -a 01_adding --output {root}/alike.html",
    "doctor": "doctor",
    "build": "build",
    "audit": "audit --no-mutants --jobs 2",
    "release": "release --output {root}/release.zip",
    "new": "new 02_more",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_of_instructors_and_authors(name: str, room: Room) -> None:
    names = [word.format(root=room.root) for word in COMMANDS[name].split()]
    said = room.run(*names, "--course", str(room.course), codes=(0, 1))
    assert "Traceback" not in said and "was imported" not in said


@NEEDS_GIT
def test_watching_and_what_it_collects_with(room: Room) -> None:
    """The class is watched, and a process beside it collects from a repository that is not there."""
    pytest.importorskip("watchfiles")
    root = room.root
    (root / "repositories.csv").write_text(f"student,url\ncleo,{(root / 'nowhere').as_uri()}\n")
    words = f"grade {root}/watched --watch --jobs 1 --output {root}/live --collect {root}/repositories.csv"
    with (root / "said.txt").open("w+") as said:
        process = subprocess.Popen(
            [str(COMMAND), *words.split(), "--course", str(room.course)],
            cwd=room.poisoned.path,
            env=room.poisoned.environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
        try:
            assert wait_until(lambda: "cleo" in (root / "said.txt").read_text())
        finally:
            process.terminate()
            process.wait()
    assert room.poisoned.opened() == []
    assert "Traceback" not in (root / "said.txt").read_text()


def test_a_hand_in_is_not_imported_as_a_module_of_python(tmp_path: Path) -> None:
    """The documented layout `<student>.py`, graded from within, with hand-ins that have the names of modules."""
    course = write_tiny_course(tmp_path / "course")
    stolen = tmp_path / "stolen.txt"
    (tmp_path / "week3").mkdir()
    for student in ("multiprocessing", "signal", "socket", "torch", "numpy", "matplotlib", "ada"):
        theft = f"\nopen({str(stolen)!r}, 'a').write('{student}')\n" if student != "ada" else ""
        (tmp_path / "week3" / f"{student}.py").write_text(SUBTRACTS + theft)
    command = [
        str(COMMAND), "grade", ".", "-a", NAME, "--course", str(course), "--output",
        str(tmp_path / "grades"),
    ]  # fmt: skip
    done = subprocess.run(
        command, cwd=tmp_path / "week3", capture_output=True, text=True, timeout=HANGS
    )
    assert (done.returncode, stolen.exists()) == (0, False), done.stdout + done.stderr
    scores = {grade.student: grade.score for grade in Reading(tmp_path / "grades" / FILE_NAME)}
    assert len(scores) == 7 and max(scores.values()) < 10.0


def test_pictures_do_not_follow_the_settings_of_the_current_folder(room: Room) -> None:
    """They are the same, to the byte, as those drawn elsewhere."""
    shutil.copytree(room.root / "grades", room.root / "elsewhere")
    (room.root / "empty").mkdir()
    for name, folder in (("grades", room.poisoned.path), ("elsewhere", room.root / "empty")):
        room.run("report", room.root / name, "--pictures", "--course", room.course, cwd=folder)
    drawn, elsewhere = (_pictures(room.root / name) for name in ("grades", "elsewhere"))
    assert drawn == elsewhere and '"image": "iVBOR' in drawn[0]


def _pictures(folder: Path) -> list[str]:
    return [file.read_text() for file in sorted(folder.glob("pictures/*"))]


STUDENTS = ["check .", "hint .", "answers .", "progress .", "pack ."]


NOTEBOOK = trusted_process.python_command("from autograder.cli import main; main()")


@pytest.mark.parametrize("command", [[str(COMMAND)], NOTEBOOK], ids=["command", "notebook"])
@pytest.mark.parametrize("words", STUDENTS)
def test_a_command_of_students_beside_files_with_the_names_of_modules(
    words: str, command: list[str], released: Path, tmp_path: Path
) -> None:
    """Neither the command nor, in a notebook, the process that runs it imports them."""
    folder = copy_of(released, tmp_path / "home")
    (folder / "adding.py").write_text(RIGHT, "utf-8")
    poisoned = PoisonedFolder(tmp_path / "witnesses", folder)
    (folder / "matplotlibrc").unlink()  # a student's own settings
    done = subprocess.run(
        [*command, *words.split()], cwd=folder, env=poisoned.environment, capture_output=True,
        text=True, timeout=HANGS,
    )  # fmt: skip
    said = (
        done.stdout + done.stderr
    )  # their text is read, in search of the student's work; it does not run
    assert "was imported" not in said and "Traceback" not in said, said
    assert done.returncode in (0, 1), said
