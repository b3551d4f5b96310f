"""No command takes a hand-in without an answer for an answer: states × commands × assignments.

`make test` runs two assignments, `make test-all` every one. nbgrader's command is tried in `nbgrader/test_no_green.py`.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console
from typer.testing import CliRunner

from autograder import notebook
from autograder.bridge.inside.shell import Shell
from autograder.cli import app
from autograder.cli.console import console
from autograder.course.reading import load_course
from autograder.extras.lms.exports import ExportRequest, export, gradescope_run
from autograder.selfcheck.kernel import this_kernel
from autograder.selfcheck.watch import Watch
from autograder.source.text import cells
from tests.autograder.sampling import sampled
from tests.autograder.unfinished_states import (
    NOT_TO_PACK,
    STATES,
    Material,
    renamed_copy,
    solved_on_the_path,
    write_state,
)  # fmt: skip

ROOT = Path(__file__).resolve().parents[2]
COURSE = load_course(ROOT)
NAMES = [assignment.name for assignment in COURSE.assignments]
QUICK = ("12_rotary_positions",)
GRADED = {"grade": (), "grade --cluster": ("--cluster", "local:1")}
FULL = "renamed copy"


@dataclass(frozen=True)
class Seen:
    """What a command did with a hand-in: its exit code, what it printed, and whether it gave points or praise."""

    green: bool
    code: int
    said: str


def material_of(name: str) -> Material:
    return Material(COURSE, COURSE.assignment(name))


@contextmanager
def students_folder(material: Material, files: dict[str, str], place: Path) -> Iterator[Path]:
    """The working directory of a student: the released files, with their own in place of stub and notebook."""
    folder = place / "course" / "assignments" / material.assignment.name
    shutil.copytree(COURSE.release_folder(material.assignment), folder)
    for name in (material.script, material.notebook):
        (folder / name).unlink()
    write_state(folder, files)
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield folder
    finally:
        os.chdir(before)


def command(*words: str) -> tuple[int, str]:
    console.width = 200
    done = CliRunner().invoke(app, words)
    return done.exit_code, done.output


# -- the commands of students -------------------------------------------------------------------------


def by_check(material: Material, folder: Path) -> Seen:
    code, said = command("check")
    record = json.loads(command("check", "--json")[1])
    return Seen(code == 0 or "Well done" in said or record["score"] > 0, code, said)


def by_watch(material: Material, folder: Path) -> Seen:
    screen = io.StringIO()
    watching = Watch(
        folder, Console(file=screen, width=200), lambda seconds: "", lambda: "10:31:07"
    )
    watching.step()
    said = screen.getvalue()
    return Seen("Well done" in said or "checked at" not in said, 1, said)


def by_notebook(material: Material, folder: Path) -> Seen:
    """Run the cells as a kernel does, and `check` for each part."""
    file = folder / (
        material.notebook if (folder / material.notebook).exists() else material.script
    )
    main = ModuleType("__main__")
    space = vars(main)
    space.update({"In": [], "get_ipython": lambda: Shell(space)})
    for name, code in cells(file.read_text("utf-8"), file.name):
        if "autograder.notebook" not in code:
            run_cell(code, name, space)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "__main__", main)
        patch.setattr(this_kernel, "folder", folder)
        shown = [notebook.check(part.name) for part in material.assignment.parts]
    said = "\n".join(message.heading for message in shown)
    tested = [message for message in shown if message.results]
    green = any(result.score for message in tested for result in message.results)
    return Seen(green or not tested, 1, said)


def run_cell(code: str, name: str, space: dict[str, object]) -> None:
    try:
        exec(compile(code, name, "exec"), space)
    except Exception as error:  # a kernel shows it and goes on
        space["_error"] = error


def by_pack(material: Material, folder: Path) -> Seen:
    """Green is an archive without a warning."""
    code, said = command("pack")
    return Seen(code == 0 and "not pass yet" not in said, code, said)


STUDENTS: dict[str, Callable[[Material, Path], Seen]] = {
    "check": by_check, "watch": by_watch, "notebook": by_notebook, "pack": by_pack,
}  # fmt: skip


def try_student(door: str, state: str, name: str, place: Path) -> Seen:
    material = material_of(name)
    files = STATES[state](material)
    with students_folder(material, files, place) as folder:
        if state != "solved elsewhere":
            return STUDENTS[door](material, folder)
        with solved_on_the_path(material, place / "site-packages"):
            return STUDENTS[door](material, folder)


# -- the commands of instructors ----------------------------------------------------------------------


def grade_states(
    names: tuple[str, ...], place: Path, options: tuple[str, ...] = ()
) -> dict[tuple[str, str], Seen]:
    """Grade a class in which every state is a student; return what happened by assignment and state."""
    students = {f"s{number}": state for number, state in enumerate([*STATES, FULL])}
    for name in names:
        material = material_of(name)
        for student, state in students.items():
            make = STATES.get(state, renamed_copy)
            write_state(place / "class" / student / name, make(material))
    folders = place / "class", place / "site-packages"
    with solved_on_the_path(material_of(names[0]), *folders):
        for name in names:
            for folder in folders[1:]:
                (folder / material_of(name).script).write_text(material_of(name).solved, "utf-8")
        (
            folders[0] / material_of(names[0]).script
        ).unlink()  # a file beside the students would be one of them
        words = (
            "grade", str(place / "class"), "--course", str(ROOT), "--output", str(place / "grades"),
        )  # fmt: skip
        code, said = command(*words, "--jobs", "2", *options)
    lines = [
        json.loads(line)
        for line in (place / "grades" / "grades.jsonl").read_text("utf-8").splitlines()
    ]
    full = {(one["assignment"], students[one["student"]]): one for one in lines}
    return {
        key: Seen(
            one["score"] > 0 or one["status"] != "graded",
            code,
            json.dumps([one["score"], one["flags"], said]),
        )
        for key, one in full.items()
    }


class OneGrader:
    """A grader for several runs of Gradescope's script, which make one each."""

    def __init__(self, grader: object) -> None:
        self._grader = grader

    def __getattr__(self, name: str) -> object:
        return getattr(self._grader, name)

    def close(self) -> None:
        """It is closed with the test."""


def grade_on_gradescope(name: str, place: Path) -> dict[str, Seen]:
    """Run the script of Gradescope's archive for each state, with one grader for all."""
    from autograder.grading import preparation
    from autograder.grading.grader import Grader

    material = material_of(name)
    export("gradescope", ExportRequest(COURSE, assignment=name, output=place / "autograder.zip"))
    root = place / "autograder"
    with zipfile.ZipFile(place / "autograder.zip") as archive:
        archive.extractall(root / "source")
    made: list[Grader] = []
    real = preparation.open_grader

    def once(*arguments: object) -> OneGrader:
        if not made:
            made.append(real(*arguments))
        return OneGrader(made[0])

    preparation.open_grader = once
    try:
        return {state: _uploaded(root, material, state) for state in (*STATES, FULL)}
    finally:
        preparation.open_grader = real
        for grader in made:
            grader.close()


def _uploaded(root: Path, material: Material, state: str) -> Seen:
    shutil.rmtree(root / "submission", ignore_errors=True)
    write_state(root / "submission", STATES.get(state, renamed_copy)(material))
    elsewhere = [root / "site-packages"] if state == "solved elsewhere" else []
    with solved_on_the_path(material, *elsewhere):
        code = gradescope_run.main([str(root), str(root / "no control group")])
    record = json.loads((root / "results" / "results.json").read_text("utf-8"))
    passed = [test["name"] for test in record["tests"] if test["status"] == "passed"]
    return Seen(
        record["score"] > 0 or bool(passed), code, json.dumps([record["score"], record["output"]])
    )


# -- the matrix ---------------------------------------------------------------------------------------


def in_sample(case: tuple[str, ...]) -> bool:
    """Each command meets another third of the states."""
    door, state, name = case
    numbers = list(STUDENTS).index(door), list(STATES).index(state)
    return name in QUICK and sum(numbers) % 3 == 0


def cases(*axes: object) -> list:
    if len(axes) == 1:
        return [(value,) for value in axes[0]]
    return [(value, *rest) for value in axes[0] for rest in cases(*axes[1:])]


@pytest.mark.parametrize(
    ("door", "state", "name"), sampled(cases(STUDENTS, STATES, NAMES), in_sample)
)
def test_no_command_of_students_is_green(door: str, state: str, name: str, tmp_path: Path) -> None:
    seen = try_student(door, state, name, tmp_path)
    assert not seen.green, seen.said
    if door == "pack":
        assert seen.code == (2 if state in NOT_TO_PACK else 0), seen.said
    else:
        assert seen.code == 1


@pytest.fixture(scope="module")
def graded(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str, tuple[str, ...]], dict[tuple[str, str], Seen]]:
    """The states, graded by a command once for each set of assignments."""
    known: dict[tuple[str, tuple[str, ...]], dict[tuple[str, str], Seen]] = {}

    def grade(door: str, names: tuple[str, ...]) -> dict[tuple[str, str], Seen]:
        if (door, names) not in known:
            known[door, names] = grade_states(
                names, tmp_path_factory.mktemp("graded"), GRADED[door]
            )
        return known[door, names]

    return grade


REST = tuple(name for name in NAMES if name not in QUICK)
RUNS = [
    pytest.param("grade", QUICK, id="grade-quick"),
    pytest.param("grade", REST, id="grade-rest"),
    pytest.param("grade --cluster", QUICK, id="cluster-quick"),
    pytest.param("grade --cluster", REST, id="cluster-rest"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("door", "names"), RUNS)
def test_no_hand_in_without_an_answer_gets_points(
    graded: Callable, door: str, names: tuple[str, ...]
) -> None:
    seen = graded(door, names)
    assert set(seen) == set(cases(names, (*STATES, FULL)))
    green = {key: one.said for key, one in seen.items() if one.green and key[1] != FULL}
    assert green == {}
    assert {one.code for one in seen.values()} == {0}
    for name in names:
        score, flags, said = json.loads(seen[name, FULL].said)
        note = f"{COURSE.assignment(name).stem} copy.py counts: there is no answer in {material_of(name).script}"
        assert score == COURSE.assignment(name).points, name
        assert any(flag.startswith(note) for flag in flags) and note in said


@pytest.mark.parametrize("name", sampled(NAMES, lambda name: False))
def test_gradescope_gives_no_points(name: str, tmp_path: Path) -> None:
    seen = grade_on_gradescope(name, tmp_path)
    assert {state: one.said for state, one in seen.items() if one.green and state != FULL} == {}
    assert {one.code for one in seen.values()} == {0}
    assert json.loads(seen[FULL].said)[0] == COURSE.assignment(name).points


# -- a package that is missing or broken --------------------------------------------------------------

BROKEN = {
    "missing": "raise ModuleNotFoundError(\"No module named 'transformers'\", name='transformers')\n",
    "broken": "raise RuntimeError('made for another numpy')\n",
    "library": "raise OSError('libcudart.so: cannot open shared object file')\n",
    "incomplete": "",
}


@pytest.fixture
def without_transformers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], None]]:
    def hide(kind: str) -> None:
        package = tmp_path / "path" / "transformers"
        for name in ("", "models", "models/gpt2"):
            (package / name).mkdir(parents=True, exist_ok=True)
            (package / name / "__init__.py").touch()
        (package / "models/gpt2/modeling_gpt2.py").touch()
        (package / "__init__.py").write_text(BROKEN[kind], "utf-8")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path"))
        monkeypatch.syspath_prepend(str(tmp_path / "path"))
        for name in _modules_of_transformers():
            monkeypatch.delitem(sys.modules, name)

    yield hide
    for name in _modules_of_transformers():  # monkeypatch puts the right ones back
        del sys.modules[name]


def _modules_of_transformers() -> list[str]:
    return [name for name in sys.modules if name.partition(".")[0] == "transformers"]


@pytest.mark.parametrize("kind", sampled(BROKEN, lambda kind: kind == "missing"))
def test_check_says_that_transformers_is_missing(
    kind: str, tmp_path: Path, without_transformers: Callable[[str], None]
) -> None:
    material = material_of("10_ready_made")
    with students_folder(material, {material.script: material.solved}, tmp_path):
        without_transformers(kind)
        code, shown = command("check")
    said = " ".join(shown.split())
    assert (
        code == 1
        and "This test needs the package transformers, which cannot be imported here" in said
    ), said
    assert "pip install transformers" in said and "This looks familiar" not in said
