"""The folders of hostile students: what the gate refuses is neither read nor written through.

Nothing that a student placed is opened other than through `source.gate`, which a test reads in the code.
"""

from __future__ import annotations

import ast
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import autograder
from autograder.cli import app
from autograder.course.reading import load_course
from autograder.records import RefusedError
from autograder.source import gate
from autograder.submissions.find import find_submissions
from tests.autograder.hostile_folder import SECRET, huge, link_to, make_hostile, open_socket
from tests.autograder.student_folder import RIGHT, SUBTRACTS
from tests.autograder.tiny_course import write_files, write_tiny_course

NAME = "01_adding"
ENGINE = Path(autograder.__file__).parent


def test_the_search_opens_nothing_that_is_hostile(tmp_path: Path) -> None:
    """Each command that reads the work of a class begins with it."""
    course = load_course(write_tiny_course(tmp_path / "course"))
    folder = tmp_path / "class"
    write_files(folder, {f"ada/{NAME}/adding.py": RIGHT})
    hostile = make_hostile(folder, NAME, "adding.py")
    try:
        found = {one.student: one for one in find_submissions(folder, course)}
        assert SECRET not in str(found)
        assert found["ada"].files[0].text == RIGHT
        refused = {student for student, one in found.items() if one.problem}
        right = {name for name in hostile if name.startswith(("stamp_", "beside"))}
        assert {
            *("pipe", "zero", "linked", "socket", "huge", "hard", "tree", "away", "moved")
        } <= refused
        assert not refused & right
    finally:  # deeper than Python's own way goes
        subprocess.run(["rm", "-rf", str(folder)], check=True)


def linked(path: Path) -> None:
    path.with_name("other").write_text(RIGHT)
    os.link(path.with_name("other"), path)


@pytest.mark.parametrize(
    "make", [os.mkfifo, open_socket, huge, linked, Path.mkdir, link_to("/dev/zero")]
)
def test_the_gate_opens_plain_files_alone(tmp_path: Path, make: Callable[[Path], object]) -> None:
    """Whoever asks it, and whatever was looked up before."""
    make(tmp_path / "adding.py")
    for path in (tmp_path / "adding.py", Path("/dev/zero")):
        with pytest.raises(RefusedError):
            gate.read_text(path)


def test_collecting_writes_through_no_link(tmp_path: Path) -> None:
    """A folder of the class may hold links that were there before."""
    course = write_tiny_course(tmp_path / "course")
    hostile = make_hostile(tmp_path / "class", NAME, "adding.py")
    work = {f"{student}/{NAME}/adding.py": SUBTRACTS for student in hostile if student != "tree"}
    write_files(tmp_path / "handed_in", work)
    words = ["collect", tmp_path / "handed_in", "--from", "folders", "--output", tmp_path / "class"]
    try:
        for replace in ((), ("--replace",)):
            done = CliRunner().invoke(app, [*map(str, words), *replace, "--course", str(course)])
            assert done.exit_code in (0, 1) and SECRET not in done.output, done.output
        outside = tmp_path / "outside" / NAME
        assert [file.name for file in outside.iterdir()] == ["adding.py"]
        assert SECRET in (outside / "adding.py").read_text("utf-8")
    finally:
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
    "grading/reference.py load_reference": "the course's own solution",
    "runs/private_folder.py": "a folder of ours, opened as a lock",
    "runs/replies.py record": "the name of a parameter that makes a record",
    "source/text.py frame_texts": "reads from a cache that the worker filled",
    "extras/cluster/bundle.py": "the course's own files, packed for a cluster",
    "grading/preparation.py": "the course's stub",
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
