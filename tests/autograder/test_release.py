"""`autograder release`: students receive the needed files, and every planted leak is refused and named."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

import autograder
from autograder.authoring.kit import kit
from autograder.authoring.leaks import gives_away
from autograder.authoring.release import PAGES, leaks, release_files
from autograder.authoring.template import FOLDER
from autograder.cli import app
from autograder.course.config import Course
from autograder.course.document import load_document
from autograder.course.mistakes_file import load_mistakes
from autograder.course.reading import load_course
from autograder.source.python_versions import for_students
from tests.autograder.at_hand import build_at_hand
from tests.autograder.sampling import thinned

ROOT = Path(__file__).parents[2]
NAME = "01_adding"
SECRET = "self.value = self.value + number"
KIT = f"attention_by_hand-{autograder.__version__}-py3-none-any.whl"


@pytest.fixture
def root(built_course: Path, tmp_path: Path) -> Path:
    """A built course with pinned versions, for tests that spoil it."""
    root = shutil.copytree(built_course, tmp_path / "course")
    (root / "constraints.txt").write_text("numpy==2.2.6\n", "utf-8")
    return root


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return write_wheel(tmp_path / "dist", {"autograder/__init__.py": '__version__ = "0"\n'})


def write_wheel(folder: Path, members: dict[str, str]) -> Path:
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / KIT, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return folder / KIT


def release(root: Path, wheel: Path, output: Path, *words: str):
    command = [
        "release", *words, "--course", str(root), "--output", str(output), "--wheel", str(wheel),
    ]  # fmt: skip
    return CliRunner().invoke(app, command)


def files(folder: Path) -> set[str]:
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}


EVERYTHING = {
    "AGENTS.md", "README.md", "requirements.txt", "constraints.txt",
    ".devcontainer/devcontainer.json", f"kit/{KIT}", "kit/install.py",
    f"assignments/{NAME}/adding.py", f"assignments/{NAME}/adding.ipynb",
    f"assignments/{NAME}/test_adding.py", f"assignments/{NAME}/hints.json",
}  # fmt: skip


# ---------------------------------------------------------------------- what students get


def test_release_contains_exactly_the_files_for_students(root, wheel, tmp_path):
    done = release(root, wheel, tmp_path / "out" / "students")
    assert done.exit_code == 0
    assert done.stderr.splitlines() == [
        "Checking that 1 assignment is up to date …",
        "Building the kit …",
        "Looking for solutions, hidden tests and mistakes in 11 files …",
    ]
    assert files(tmp_path / "out" / "students") == EVERYTHING
    made = {
        "AGENTS.md", "README.md", "requirements.txt", ".devcontainer/devcontainer.json",
        f"kit/{KIT}", "kit/install.py",
    }  # fmt: skip
    for name in EVERYTHING - made:
        assert (tmp_path / "out" / "students" / name).read_bytes() == (root / name).read_bytes()


def test_readme_has_installation_and_commands_for_students(root, wheel, tmp_path):
    course = root / "course.yml"
    course.write_text(
        course.read_text("utf-8").replace(
            "    minutes: 10\n", "    minutes: 10\n    due: 2026-11-27 23:59\n"
        ),
        "utf-8",
    )
    assert release(root, wheel, tmp_path / "out").exit_code == 0
    readme = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert readme.startswith("# A tiny course\n")
    assert f"You need {for_students()}, as the grader has." in readme
    assert "python kit/install.py -r requirements.txt -c constraints.txt" in readme
    assert f"autograder check assignments/{NAME}" in readme
    assert f"| `assignments/{NAME}` | Adding | 10 | 10 | 2026-11-27 23:59 |" in readme
    assert "Together they take about 0.17 hours." in readme
    assert all(f"| {mark} | " in readme for mark in "✓✗○·")
    assert "docs/students.md" not in readme
    assert "autograder catch" not in readme
    assert "@" not in readme
    container = json.loads(
        (tmp_path / "out" / ".devcontainer" / "devcontainer.json").read_text("utf-8")
    )
    assert container["name"] == "A tiny course"
    assert container["postCreateCommand"].startswith(
        "python kit/install.py -r requirements.txt -c constraints.txt &&"
    )
    assert (tmp_path / "out" / "requirements.txt").read_text("utf-8") == f"./kit/{KIT}\n"


def test_page_for_assistants_names_every_gap_and_contains_no_code(root, wheel, tmp_path):
    assert release(root, wheel, tmp_path / "out").exit_code == 0
    page = (tmp_path / "out" / "AGENTS.md").read_text("utf-8")
    course = load_course(root)
    (document,) = (load_document(course, assignment) for assignment in course.assignments)
    (row,) = [line for line in page.splitlines() if line.startswith(f"| `assignments/{NAME}` |")]
    assert re.findall(r"`([\w.]+)`", row) == list(
        dict.fromkeys(gap.function for gap in document.gaps)
    )
    assert f"autograder check assignments/{NAME}" in page
    assert "```" not in page
    assert "@" not in page


@pytest.mark.parametrize("template", ["assistants.md", "students.md"])
def test_solution_in_a_made_page_is_a_leak(root, wheel, tmp_path, monkeypatch, template):
    shutil.copytree(FOLDER, tmp_path / "templates")
    page = tmp_path / "templates" / f"{template}.txt"
    page.write_text(page.read_text("utf-8") + f"    {SECRET}\n", "utf-8")
    monkeypatch.setattr("autograder.authoring.template.FOLDER", tmp_path / "templates")
    made = next(name for name, used in PAGES.items() if used == template)
    assert made in refused(root, wheel, tmp_path / "out")


def test_guide_may_quote_a_hint_but_no_line_of_a_solution(root, wheel, tmp_path):
    course = load_course(root)
    hint = load_mistakes(course, course.assignments[0])[0].hint
    guide = root / "docs" / "students.md"
    guide.parent.mkdir()
    guide.write_text(f"For example:\n\n    {hint}\n", "utf-8")
    assert release(root, wheel, tmp_path / "quoted").exit_code == 0
    guide.write_text(f"For example:\n\n    {SECRET}\n", "utf-8")
    assert "docs/students.md" in refused(root, wheel, tmp_path / "out")


def test_packages_that_assignments_preload_are_required(root, wheel, tmp_path):
    course = root / "course.yml"
    text = course.read_text("utf-8").replace(
        "    minutes: 10\n",
        "    minutes: 10\n    preload: [yaml.nodes, torch.fx, json, pygments.token, nobody_has.this]\n",
    )
    course.write_text(text, "utf-8")
    assert CliRunner().invoke(app, ["build", "--course", str(root)]).exit_code == 0
    assert release(root, wheel, tmp_path / "out").exit_code == 0
    required = (tmp_path / "out" / "requirements.txt").read_text("utf-8")
    assert required == f"./kit/{KIT}\nnobody-has\npygments\n"


OCCUPIED, FOREIGN = (
    "already exists and is not empty",
    "already exists, and `release` did not write it.",
)
NO_ARCHIVE = "is a folder, or an archive that ends in .zip."
# the output, and why nothing is written there
OUTPUTS = {
    "course": OCCUPIED, "dist": OCCUPIED, "rel.tar.gz": NO_ARCHIVE, "rel.TGZ": NO_ARCHIVE, "rel.7z": NO_ARCHIVE,
    "notes": "is a file; a release", "thesis.zip": FOREIGN, "others.zip": FOREIGN, "empty.zip": FOREIGN,
}  # fmt: skip


@pytest.mark.parametrize("output, said", OUTPUTS.items(), ids=OUTPUTS)
def test_nothing_is_overwritten_and_no_other_archive_written(root, wheel, tmp_path, output, said):
    (tmp_path / "notes").write_text("mine", "utf-8")
    (tmp_path / "thesis.zip").write_text("mine", "utf-8")
    with zipfile.ZipFile(tmp_path / "others.zip", "w") as archive:
        archive.writestr("others/requirements.txt", "numpy\n")
    (tmp_path / "empty.zip").touch()
    before = {name: (tmp_path / name).read_bytes() for name in files(tmp_path)}
    done = release(root, wheel, tmp_path / output)
    assert (done.exit_code, said in done.stderr) == (2, True)
    assert before == {name: (tmp_path / name).read_bytes() for name in files(tmp_path)}


# ---------------------------------------------------------------------- leaks


def refused(root: Path, wheel: Path, output: Path) -> str:
    """Return the messages of a refused release, and check that nothing was written."""
    done = release(root, wheel, output)
    assert done.exit_code == 1
    assert done.stderr.endswith("Nothing was released.\n")
    assert not output.exists()
    return done.stderr


def test_solution_beside_the_stub_is_refused(root, wheel, tmp_path):
    (root / "assignments" / NAME / "notes.txt").write_text(f"    {SECRET}\n", "utf-8")
    said = refused(root, wheel, tmp_path / "out.zip")
    assert f"assignments/{NAME}/notes.txt is not written by the build" in said
    assert f"assignments/{NAME}/notes.txt gives away line" in said


LEAKS = {
    "a line of the solution": (f"    {SECRET}", "gives away line"),
    "a hidden test": ("# test_any_two_numbers", "names the hidden test `test_any_two_numbers`."),
    "a hint": ("# What happens to the numbers of earlier pushes?",
               "the mistake `forgets_what_came_before` of 01_adding"),
    "a marker": ("### BEGIN SOLUTION", "contains a marker of a solution."),
}  # fmt: skip


@pytest.mark.parametrize("text, problem", LEAKS.values(), ids=LEAKS)
def test_leak_in_a_file_or_in_the_wheel_is_named(root, wheel, text, problem):
    course = load_course(root)
    (named,) = leaks(course, course.assignments, {"notes.txt": text.encode()})
    assert named.startswith("notes.txt ") and problem in named
    packed = write_wheel(wheel.parent, {"autograder/notes.py": f"def push():\n{text}\n"})
    found = list(leaks(course, course.assignments, {f"kit/{KIT}": packed.read_bytes()}))
    assert bool(found) == ("marker" not in problem), "the engine itself contains the markers"


def test_line_that_the_engine_has_too_is_a_secret_in_a_page_alone(root, wheel):
    """Its wheel is the same for every course; a file of another text in it is searched."""
    engine = Path(autograder.__file__).parent
    line = "for line in lines:"
    member = next(
        file
        for file in sorted(engine.rglob("*.py"))
        if f"\n    {line}\n" in file.read_text("utf-8")
    )
    solution = root / "solutions/01_adding/adding.py"
    shared = f"    lines = [a]\n    {line}\n        together = line\n"
    text = solution.read_text("utf-8")
    solution.write_text(
        text.replace("    together = a + b\n", f"{shared}    together = a + b\n"), "utf-8"
    )
    course = load_course(root)
    name = f"autograder/{member.relative_to(engine).as_posix()}"
    whole = member.read_text("utf-8")
    packed = write_wheel(wheel.parent, {name: whole})
    assert list(leaks(course, course.assignments, {f"kit/{KIT}": packed.read_bytes()})) == []
    changed = write_wheel(wheel.parent, {name: whole + "#\n"})
    assert list(leaks(course, course.assignments, {f"kit/{KIT}": changed.read_bytes()}))
    assert list(leaks(course, course.assignments, {"docs/students.md": line.encode()}))


def test_line_that_the_installer_has_too_is_no_secret(root):
    line = "parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)"
    solution = root / "solutions/01_adding/adding.py"
    text = solution.read_text("utf-8").replace("    together = a", f"    {line}\n    together = a")
    solution.write_text(text, "utf-8")
    course = load_course(root)
    installer = kit()["install.py"]
    assert f"    {line}\n".encode() in installer
    assert list(leaks(course, course.assignments, {"kit/install.py": installer})) == []
    assert list(leaks(course, course.assignments, {"kit/install.py": installer + b"#"}))


def test_name_of_a_mistake_beside_the_stub_is_refused(root, wheel, tmp_path):
    pictures = root / "tests" / "assignments" / NAME / "pictures.py"
    pictures.write_text('"""Shows whoever forgets_what_came_before."""\n\nPICTURES = {}\n', "utf-8")
    build_at_hand(load_course(root))
    said = refused(root, wheel, tmp_path / "out")
    assert (
        f"assignments/{NAME}/pictures.py gives away the mistake `forgets_what_came_before` of {NAME}."
        in said
    )


# ---------------------------------------------------------------------- what was released before


@pytest.fixture
def made(monkeypatch) -> list[str]:
    """The steps of each release that made its files; none for one whose files were kept."""
    steps: list[str] = []

    def recorded(course: Course, *arguments) -> dict[str, bytes]:
        steps.append(course.title)
        return release_files(course, *arguments)

    monkeypatch.setattr("autograder.authoring.release.release_files", recorded)
    return steps


def test_unchanged_release_is_not_made_again(root, wheel, tmp_path, made):
    outputs = [tmp_path / name for name in ("one", "two")]
    for output in outputs:
        assert release(root, wheel, output).exit_code == 0
    assert made == ["A tiny course"]
    contents = [
        {name: (output / name).read_bytes() for name in files(output)} for output in outputs
    ]
    assert contents[0] == contents[1]
    assert set(contents[0]) == EVERYTHING


@pytest.mark.parametrize(
    "changed", thinned(["engine", "constraints.txt", "docs/students.md", "course.yml", "wheel"], 5)
)
def test_release_is_made_again_when_a_source_changed(
    root, wheel, tmp_path, made, changed, monkeypatch
):
    assert release(root, wheel, tmp_path / "one").exit_code == 0
    if changed == "wheel":
        write_wheel(wheel.parent, {"autograder/__init__.py": '__version__ = "1"\n'})
    elif changed == "engine":
        engine = tmp_path / "engine"
        engine.mkdir()
        monkeypatch.setattr("autograder.authoring.checked.ENGINE", engine)
    else:
        file = root / changed
        file.parent.mkdir(exist_ok=True)
        text = file.read_text("utf-8") if file.is_file() else ""
        file.write_text(
            text.replace("A tiny course", "A small course") + "# a line more\n", "utf-8"
        )
    done = release(root, wheel, tmp_path / "two")
    assert done.exit_code == 0, done.stderr
    assert len(made) == 2


# ---------------------------------------------------------------------- the kit that goes along


def test_no_line_of_the_engine_gives_a_solution_away():
    """The engine's text is in the wheel that every student receives."""
    course = load_course(ROOT)
    engine = [
        (file.relative_to(ROOT).as_posix(), file.read_text("utf-8"))
        for file in sorted((ROOT / "autograder").rglob("*.py"))
    ]
    assert len(engine) > 200
    leaks_of_engine = [gives_away(course, a, engine) for a in course.assignments]
    assert not any(leaks_of_engine), leaks_of_engine


@pytest.mark.slow
def test_wheel_and_pages_of_this_course_contain_no_leaks():
    """Common lines of the engine, and the hint that the README quotes, are not leaks."""
    course = load_course(ROOT)
    kit = release_of_kit(course)
    assert any(name.startswith("kit/") for name in kit)
    assert {name for name in kit if name.endswith(".md")} == {
        "AGENTS.md", "README.md", "docs/glossary.md", "docs/students.md",
    }  # fmt: skip
    assert list(leaks(course, course.assignments, kit)) == []


def release_of_kit(course: Course) -> dict[str, bytes]:
    """Return all files of a release except the assignments, which `build --check` verifies."""
    made = release_files(course, course.assignments, None)
    return {name: content for name, content in made.items() if not name.startswith("assignments/")}
