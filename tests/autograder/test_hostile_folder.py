"""Every command of an instructor meets the folders of hostile students: it ends, in sentences, and honest grades stay.

Nothing that a student placed is opened other than through `source.gate`, which a second test reads in the code.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import autograder
from autograder.cli import app
from autograder.course.config import load_course
from autograder.extras.lms.exports import gradescope_run
from autograder.gradebook.journal import FILE_NAME, Reading
from tests.autograder.hostile_folder import SECRET, make_hostile
from tests.autograder.student_folder import RIGHT, SUBTRACTS
from tests.autograder.tiny_course import write_files, write_tiny_course
from tests.autograder.waiting import HANGS

NAME = "01_adding"
HONEST = {"ada": RIGHT, "ben": SUBTRACTS}
ENGINE = Path(autograder.__file__).parent


class Room:
    """A course, a class of which most are hostile, and the commands that meet it."""

    def __init__(self, root: Path) -> None:
        self.root = write_tiny_course(root)
        self.submitted = root / "class"
        class_files = {f"{student}/{NAME}/adding.py": text for student, text in HONEST.items()}
        write_files(self.submitted, class_files)
        self.hostile = make_hostile(self.submitted, NAME, "adding.py")

    def run(self, *words: object, codes: tuple[int, ...] = (0,)) -> str:
        """What the command says. It must end by itself, in sentences, and say nothing of what lies outside."""
        done = CliRunner(env={"COLUMNS": "200"}).invoke(app, [*map(str, words)])
        return self._harmless(done.exit_code, done.output, codes)

    def grade(self) -> None:
        """Grade the class as an instructor does, in a process of its own."""
        words = (
            "grade", self.submitted, "--output", "grades", "--seed", 3, "--jobs", 1, "--trust-timestamps",
        )  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", "from autograder.cli import main; main()", *map(str, words)],
            cwd=self.root,
            env={**os.environ, "COLUMNS": "200"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=HANGS,
        )
        self._harmless(
            done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace"), (0,)
        )

    @staticmethod
    def _harmless(code: int, said: str, codes: tuple[int, ...]) -> str:
        assert code in codes, said
        assert "Traceback" not in said and SECRET not in said
        assert "\x1b[2J" not in said
        return said

    def scores(self, folder: str) -> dict[str, float]:
        return {grade.student: grade.score for grade in Reading(self.root / folder / FILE_NAME)}

    def assert_nothing_leaked(self, folder: str) -> None:
        for file in (self.root / folder).rglob("*"):
            assert not file.is_symlink() and (file.is_dir() or file.is_file()), file
            assert file.is_dir() or SECRET.encode() not in file.read_bytes(), file


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    room = Room(tmp_path_factory.mktemp("hostile") / "course")
    room.grade()
    yield room
    subprocess.run(
        ["rm", "-rf", str(room.submitted)], check=True
    )  # deeper than Python's own way goes


@pytest.fixture(autouse=True)
def in_the_course(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "room" in request.fixturenames:
        monkeypatch.chdir(request.getfixturevalue("room").root)


@pytest.mark.slow
def test_grade(room: Room) -> None:
    scores = room.scores("grades")
    assert (scores["ada"], 0 < scores["ben"] < 10) == (10.0, True)
    got_in = {student for student in room.hostile if student.startswith(("stamp_", "beside"))}
    refused = {student for student, score in scores.items() if score == 0}
    assert {
        "pipe", "zero", "linked", "socket", "huge", "hard", "tree", "away", "moved", "bytes",
    } <= refused  # fmt: skip
    assert all(scores[student] == 4.0 for student in got_in), "their own `add` is right"
    assert "forged" not in json.dumps(
        list((room.root / "grades").rglob("names.json")), default=Path.read_text
    )
    room.assert_nothing_leaked("grades")


@pytest.mark.slow
def test_compare_and_export(room: Room) -> None:
    room.run("compare", "grades", "grades")
    for tool, file in (("csv", "grades.csv"), ("junit", "grades.xml")):
        room.run("export", "--to", tool, "grades", "--output", file, codes=(0, 1))
        assert SECRET not in (room.root / file).read_text("utf-8")


@pytest.mark.slow
def test_similar(room: Room) -> None:
    room.run("similar", room.submitted, "--assignment", NAME, "--output", "alike.html")
    assert SECRET not in (room.root / "alike.html").read_text("utf-8")


@pytest.mark.slow
def test_collect(room: Room) -> None:
    """Also into a folder that holds such things already."""
    said = room.run(
        "collect", room.submitted, "--from", "folders", "--output", "submitted", codes=(0, 1)
    )
    assert "pipe" in said
    room.assert_nothing_leaked("submitted")
    assert (room.root / "submitted" / "ada" / NAME / "adding.py").read_text("utf-8") == RIGHT
    work = room.root / "handed_in"
    for student in room.hostile:
        if student != "tree":
            (work / student / NAME).mkdir(parents=True)
            (work / student / NAME / "adding.py").write_text(SUBTRACTS, "utf-8")
    for replace in ((), ("--replace",)):
        room.run(
            "collect", work, "--from", "folders", "--output", room.submitted, *replace, codes=(0, 1)
        )
    outside = room.root / "outside" / NAME
    assert [file.name for file in outside.iterdir()] == ["adding.py"], (
        "nothing is written through a link"
    )
    assert SECRET in (outside / "adding.py").read_text("utf-8")


@pytest.mark.slow
def test_report_with_pictures(room: Room) -> None:
    shutil.copytree(room.root / "grades", room.root / "again")
    room.run("report", "again", "--pictures", "--jobs", 1)
    room.assert_nothing_leaked("again")


@pytest.mark.slow
@pytest.mark.parametrize(
    "student", ["pipe", "zero", "linked", "socket", "huge", "hard", "tree", "beside", "away"]
)
def test_an_upload_to_gradescope(student: str, tmp_path: Path) -> None:
    """What `run_autograder` reads of the folder in which Gradescope puts a student's files."""
    course = load_course(write_tiny_course(tmp_path / "course"))
    make_hostile(tmp_path / "class", NAME, "adding.py")
    submission = gradescope_run.submission_in(
        tmp_path / "class" / student, course, course.assignment(NAME)
    )
    assert SECRET not in str(submission)
    assert bool(submission.problem) == (student != "beside")
    subprocess.run(["rm", "-rf", str(tmp_path / "class")], check=True)


OPENING = {
    "open", "fdopen", "read_text", "read_bytes", "readlink", "ZipFile", "TarFile", "memmap", "fromfile",
}  # fmt: skip
OPENING |= {
    "copy", "copy2", "copyfile", "copyfileobj", "copytree", "getline", "getlines", "loadtxt",
}  # fmt: skip
ROOMS = (
    "submissions", "gradebook", "grading", "runs", "feedback", "source", "nbgrader", "extras", "api.py",
)  # fmt: skip
OTHERS_FILES = {
    "extras/git/concurrency.py": "written by a command, in the folder of the stores",
    "extras/git/seen.py": "written by `collect`: when a commit was first seen",
    "extras/git/store.py _algorithm_in": "the settings of a store, written by `collect`",
    "submissions/hand_in.py released_contents": "the files that students received",
    "extras/lms/collecting/submission_folder.py _begin": "what `collect` is about to write",
    "source/gate.py": "the gate itself",
    "submissions/archives.py _fill": "reads from a stream of the gate",
    "submissions/archives.py _load": "reads from a stream of the gate",
    "submissions/archives.py _entry": "the name of a function that reads from a stream of the gate",
    "submissions/tarballs.py": "reads from a stream of the gate",
    "source/stub.py released_stub": "the course's own files, as students receive them",
    "extras/lms/exports/gradescope.py files": "the course's own files, packed for Gradescope",
    "extras/lms/exports/gradescope_run.py _settings": "written by the export",
    "extras/lms/exports/container_memory.py _read": "the kernel's own, about the container",
    "extras/lms/exports/moodle_feedback.py export": "a page that we wrote",
    "extras/lms/exports/filling.py write_beside": "the instructor's own table",
    "gradebook/run_state.py": "written by a run",
    "gradebook/seals.py": "written by a run, or refused; links in it are refused before",
    "gradebook/owner_key.py": "the instructor's own key",
    "gradebook/times.py _reading": "written by a run",
    "gradebook/texts.py _stored_files": "written by a run",
    "gradebook/journal.py": "written by a run",
    "gradebook/suites.py": "written by a run",
    "nbgrader/inbound.py publish": "the exchange's folder of feedback, where students cannot write",
    "extras/sheets/questions.py example_files": "our templates of a new assignment",
    "runs/private_folder.py": "a folder of ours, opened as a lock",
    "runs/replies.py record": "the name of a parameter that makes a record",
    "source/text.py frame_texts": "reads from a cache that the worker filled",
    "extras/cluster/bundle.py": "the course's own files, packed for a cluster",
    "grading/prepared.py": "the course's stub",
    "source/text.py line_of": "reads from a cache that the worker filled",
    "source/text.py qualified_name": "reads from a cache that the worker filled",
    "feedback": "our templates and pictures",
}


def openings(file: Path) -> Iterator[tuple[str, int]]:
    """The functions of a module that name something which opens files, and the line."""
    tree = ast.parse(file.read_text("utf-8"))
    inside: dict[ast.AST, str] = {}
    for node in ast.walk(tree):
        name = inside.get(node, "")
        if isinstance(node, ast.FunctionDef):
            name = node.name
        for child in ast.iter_child_nodes(node):
            inside[child] = name
        of_gate = isinstance(node, ast.Attribute) and ast.unparse(node.value) == "gate"
        found = (
            node.attr
            if isinstance(node, ast.Attribute)
            else node.id
            if isinstance(node, ast.Name)
            else ""
        )
        if found in OPENING and not of_gate:
            yield f"{file.relative_to(ENGINE).as_posix()} {name}".strip(), node.lineno


def test_only_the_gate_opens_what_a_student_placed() -> None:
    files = [
        f
        for room in ROOMS
        for f in ([ENGINE / room] if room.endswith(".py") else (ENGINE / room).rglob("*.py"))
    ]
    found = [opening for file in sorted(files) for opening in openings(file)]
    strange = [
        f"{where}, line {line}"
        for where, line in found
        if not any(map(where.startswith, OTHERS_FILES))
    ]
    assert strange == [], "opened without `source.gate`; or say here why it is no student's file"
    stale = [
        known for known in OTHERS_FILES if not any(where.startswith(known) for where, _ in found)
    ]
    assert stale == []
