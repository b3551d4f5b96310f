"""`autograder new`: a working assignment in an existing course or in an empty folder."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from autograder import __version__
from autograder.authoring.kit import kit
from autograder.authoring.new import new, with_entry
from autograder.authoring.template import filled
from autograder.cli import app
from autograder.course.config import CourseError
from autograder.course.reading import course_schema, load_course
from tests.autograder.tiny_course import write_tiny_course

ROOT = Path(__file__).parents[2]
ENTRY = "- name: 02_new\n  title: New\n"


def autograder(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    program = "from autograder.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "COLUMNS": "120"},
        capture_output=True,
        text=True,
    )


@pytest.fixture(autouse=True)
def wheel_of_the_kit(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file in the place of the wheel; test_packaging.py and test_release.py build one."""
    wheel = tmp_path_factory.mktemp("kit") / f"attention_by_hand-{__version__}-py3-none-any.whl"
    wheel.touch()
    monkeypatch.setattr("autograder.authoring.new.kit", lambda: kit(wheel))


# ---------------------------------------------------------------------- course.yml


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "title: T  # mine\nassignments:\n  - name: 01_old\n    title: Old  # yes\n",
            "title: T  # mine\nassignments:\n  - name: 01_old\n    title: Old  # yes\n"
            "  - name: 02_new\n    title: New\n",
        ),
        ("assignments:\n- name: 01_old\n  title: Old",
         "assignments:\n- name: 01_old\n  title: Old\n- name: 02_new\n  title: New\n"),
        (
            "assignments:\n  # first\n  - name: 01_old\n    # of the first\n\n"
            "  # third\n  # and last\n  - name: 03_old\n",
            "assignments:\n  # first\n  - name: 01_old\n    # of the first\n\n"
            "  - name: 02_new\n    title: New\n  # third\n  # and last\n  - name: 03_old\n",
        ),
        (
            "assignments:\n  - name: 01_old\n    parts:\n      - {name: a, points: 1}\n    # still the first\n# the end\n"
            "feedback: full\n",
            "assignments:\n  - name: 01_old\n    parts:\n      - {name: a, points: 1}\n    # still the first\n"
            "  - name: 02_new\n    title: New\n# the end\nfeedback: full\n",
        ),
        ("assignments: []  # none\n", "assignments:  # none\n  - name: 02_new\n    title: New\n"),
        ("assignments:\ntitle: T\n", "assignments:\n  - name: 02_new\n    title: New\ntitle: T\n"),
        ("assignments:\r\n  - name: 01_old\r\n",
         "assignments:\r\n  - name: 01_old\r\n  - name: 02_new\r\n    title: New\r\n"),
        (
            "assignments:\n  - name: 01_old\n    title: |\n      two\n      lines\n",
            "assignments:\n  - name: 01_old\n    title: |\n      two\n      lines\n  - name: 02_new\n    title: New\n",
        ),
    ],
)  # fmt: skip
def test_entry_is_added_and_all_other_bytes_are_kept(before, after):
    assert with_entry(before, ENTRY) == after


@pytest.mark.parametrize("text", ["assignments: [{name: 01_old}]\n", "title: T\n", "- a\n"])
def test_list_that_cannot_be_extended_is_reported(text):
    with pytest.raises(CourseError, match="assignments"):
        with_entry(text, ENTRY)


# ---------------------------------------------------------------------- files


def test_new_adds_an_assignment_to_a_course(tmp_path):
    root = write_tiny_course(tmp_path)
    before = (root / "course.yml").read_text("utf-8")
    written = new(root / "solutions", "02_beam_search")
    assert written[-1] == root / "course.yml"
    assert (root / "course.yml").read_text("utf-8").startswith(before)
    assignment = load_course(root).assignment("02_beam_search")
    assert (assignment.title, assignment.points) == ("Beam search", 4)
    solution = root / "solutions/02_beam_search/beam_search.py"
    assert "# # Beam search" in solution.read_text("utf-8")


def test_new_course_has_readme_gitignore_and_schema(tmp_path):
    written = new(tmp_path, "01_mean")
    assert {file.relative_to(tmp_path).as_posix() for file in written} >= {
        *("README.md", ".gitignore", "course.schema.json", "docs/students.md"),
        "nbgrader_config.py",
    }
    for file in written:
        assert "torch" not in file.read_text("utf-8"), file
    assert (
        (tmp_path / "course.yml")
        .read_text("utf-8")
        .startswith("# yaml-language-server: $schema=course.schema.json\n")
    )
    assert json.loads((tmp_path / "course.schema.json").read_text("utf-8")) == course_schema()
    readme = (tmp_path / "README.md").read_text("utf-8")
    for command in re.findall(r"^autograder (\w+)", readme, re.MULTILINE):
        assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0, command


def test_nbgraders_settings_of_a_new_course_are_those_of_this_one():
    ours = (ROOT / "nbgrader_config.py").read_text("utf-8")
    assert filled("nbgrader_config.py", {"course_id": "attention-by-hand"}) == ours


@pytest.mark.parametrize(
    ("site", "course", "students"),
    [
        ("github", ".github/workflows/course.yml", ".github/students/check.yml"),
        ("gitlab", ".gitlab-ci.yml", ".gitlab/students/check.yml"),
    ],
)
def test_workflows_for_the_course_and_for_students(tmp_path, site, course, students):
    write_tiny_course(tmp_path)
    done = CliRunner().invoke(app, ["new", "02_mean", "--ci", site, "--course", str(tmp_path)])
    assert done.exit_code == 0, done.output
    for file, expected in ((course, {"build", "audit"}), (students, {"check"})):
        text = (tmp_path / file).read_text("utf-8")
        steps = yaml.safe_load(text)["check"]["script"] if site == "gitlab" else [
            step["run"] for step in yaml.safe_load(text)["jobs"]["check"]["steps"] if "run" in step
        ]  # fmt: skip
        commands = [shlex.split(step) for step in steps if step.startswith("autograder ")]
        assert {command[1] for command in commands} == expected
        for command in commands:
            said = CliRunner().invoke(app, [command[1], "--help"]).stdout
            assert all(word in said for word in command[2:] if word.startswith("--"))
        installs = [shlex.split(step) for step in steps if not step.startswith("autograder ")]
        assert [command[:2] for command in installs] == [["python", "kit/install.py"]]
        assert installs[0][2:] == (["kit/*.whl"] if file == course else ["-r", "requirements.txt"])
    files_of_the_kit = sorted(path.name for path in (tmp_path / "kit").iterdir())
    assert files_of_the_kit == [f"attention_by_hand-{__version__}-py3-none-any.whl", "install.py"]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("01_adding", "course.yml has `01_adding` already."),
        ("Beam search", "lowercase letters, such as `02_beam_search`."),
        ("14", "such as `02_name`."),
        ("02_../../x", "such as `02_x`."),
        ("02_class", "`class` is a word of Python"),
        ("02_random", "`random` is a module of Python's own, which a student's random.py would hide;"),
        ("02_torch", "`torch` is a module that the kit needs"),
        ("02_pictures", "`pictures` is the name of a file of the kit's"),
        ("02_pluggy", "`pluggy` is a module of the package pluggy, which is installed here"),
        ("01_other", "01 is the number of `01_adding`, and tables show only numbers; 02 is free."),
        ("001_other", "001 is the number of `01_adding`"),
    ],
)  # fmt: skip
def test_invalid_names_are_refused(tmp_path, name, sentence):
    root = write_tiny_course(tmp_path)
    before = sorted(root.rglob("*"))
    with pytest.raises(CourseError) as caught:
        new(root, name)
    assert sentence in str(caught.value)
    assert sorted(root.rglob("*")) == before


def test_existing_files_are_not_overwritten(tmp_path):
    root = write_tiny_course(tmp_path)
    mine = root / "solutions" / "02_new" / "new.py"
    mine.parent.mkdir()
    mine.write_text("mine", "utf-8")
    before = (root / "course.yml").read_bytes()
    with pytest.raises(CourseError, match="new.py already exists; nothing was changed."):
        new(root, "02_new")
    assert mine.read_text("utf-8") == "mine"
    assert (root / "course.yml").read_bytes() == before
    assert not (root / "tests" / "assignments" / "02_new").exists()


@pytest.mark.slow
def test_new_assignment_builds_and_passes_the_audit(tmp_path):
    made = autograder(tmp_path, "new", "14_beam_search")
    assert (made.returncode, made.stdout.splitlines()[-1]) == (0, "course.yml")
    assert "autograder audit 14_beam_search" in made.stderr
    for words in (
        ["build"],
        ["build", "--check"],
        ["audit", "14_beam_search", "--seeds", "3", "--jobs", "1"],
    ):
        done = autograder(tmp_path, *words)
        assert done.returncode == 0, done.stdout + done.stderr
    drawn = autograder(tmp_path, "check", "assignments/14_beam_search", "--picture")
    assert "`mean` is not written yet" in drawn.stdout


# ---------------------------------------------------------------------- the guide's first assignment
