"""The autograder that Gradescope runs: what the zip holds, what `run_autograder` makes of a submission."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from autograder.course.reading import load_course
from autograder.extras.lms.exports import ExportRequest, export, gradescope_run
from autograder.extras.lms.exports.container_memory import ContainerMemory
from autograder.extras.lms.exports.gradescope import files
from autograder.extras.lms.exports.gradescope_run import results
from autograder.records import InfrastructureError, RefusedError
from tests.autograder.extras.lms.exporting.exported_class import (
    NAME,
    ada,
    course_built,
    eve,
    golden,
    grace,
)
from tests.autograder.tiny_course import FILES


def test_gradescope_results_match_the_golden_file(course):
    record = results(
        course, course.assignment(NAME), ada(), {"adds_any_numbers"}, "after_published"
    )
    assert record == json.loads(golden("gradescope-results.json"))


def test_gradescope_text_does_not_depend_on_hidden_tests(course):
    """The text above the tests is the same whether hidden tests pass or fail."""
    assignment, hidden = course.assignment(NAME), {"adds_any_numbers"}
    worse, better = (
        results(course, assignment, grade, hidden, "hidden") for grade in (ada(), grace())
    )
    assert worse["output"] == better["output"]
    shown = results(course, assignment, ada(), hidden, "visible")
    assert {test["visibility"] for test in shown["tests"]} == {"visible"}
    assert shown["output"] != worse["output"]


def test_gradescope_refused_submission_has_no_points_and_a_reason(course):
    record = results(course, course.assignment(NAME), eve(), (), "hidden")
    assert (record["score"], record["tests"]) == (0, [])
    assert "not UTF-8" in record["output"]


@pytest.fixture(scope="module")
def archive(built_course, tmp_path_factory) -> Path:
    """The zip for Gradescope; the course from which it was made is removed."""
    folder = tmp_path_factory.mktemp("gradescope")
    course = load_course(shutil.copytree(built_course, folder / "course"))
    export(
        "gradescope", ExportRequest(course, (), assignment=NAME, output=folder / "autograder.zip")
    )
    shutil.rmtree(course.root)
    return folder / "autograder.zip"


@pytest.fixture
def gradescope(archive: Path, tmp_path: Path):
    """A small model of Gradescope's machine: the zip is unpacked under a root, and `run_autograder` runs there."""
    root = tmp_path / "autograder"
    (root / "submission").mkdir(parents=True)
    (root / "results").mkdir()
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(root / "source")
        (root / "run_autograder").write_bytes(packed.read("run_autograder"))
    (root / "run_autograder").chmod(0o755)

    def run(**texts: str) -> subprocess.CompletedProcess[str]:
        for name, text in texts.items():
            (root / "submission" / f"{name}.py").write_text(text, "utf-8")
        variables = {"AUTOGRADER_ROOT": str(root), "AUTOGRADER_PYTHON": sys.executable}
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return subprocess.run(
            [root / "run_autograder"], cwd=root, env={**environment, **variables},
            capture_output=True, text=True,
        )  # fmt: skip

    run.root = root  # type: ignore[attr-defined]
    return run


def read_results(root: Path) -> dict:
    return json.loads((root / "results" / "results.json").read_text("utf-8"))


def test_gradescope_zip_has_its_programs_at_the_root(archive):
    with zipfile.ZipFile(archive) as packed:
        names = packed.namelist()
        modes = {name: packed.getinfo(name).external_attr >> 16 & 0o777 for name in names}
        programs = {name: packed.read(name) for name in ("setup.sh", "run_autograder")}
    assert {name for name, mode in modes.items() if mode == 0o755} == {"setup.sh", "run_autograder"}
    assert all(text.startswith(b"#!") and b"\r" not in text for text in programs.values())
    assert "kit/autograder/grading/grader.py" in names
    assert not [name for name in names if "__pycache__" in name or "alternatives" in name]
    for name in ("setup.sh", "run_autograder"):
        assert subprocess.run(["bash", "-n"], input=programs[name], check=False).returncode == 0


@pytest.mark.slow
def test_gradescope_neither_imports_nor_believes_planted_files(gradescope, tmp_path):
    stolen, submission = tmp_path / "stolen.txt", gradescope.root / "submission"
    theft = f"open({str(stolen)!r}, 'a').write(__name__)\n"
    planted = dict.fromkeys(
        ("multiprocessing", "signal", "torch", "autograder", "sitecustomize", "conftest"), theft
    )
    (submission / "grades").mkdir()
    (submission / "grades" / "run.json").write_text('{"schema": 1, "seed": 42}\n')
    (submission / "course.yml").write_text("title: Mine\nassignments: []\n")
    wrong = FILES[f"solutions/{NAME}/adding.py"].replace("a + b", "a - b")
    done = gradescope(adding=wrong, **planted)
    assert done.returncode == 0, done.stdout + done.stderr
    record = read_results(gradescope.root)
    assert 0 < record["score"] < 10 and record["extra_data"]["seed"] != 42
    assert not stolen.exists()


@pytest.mark.parametrize("missing", ["settings.json", "course/course.yml"])
def test_gradescope_without_settings_or_a_course_has_no_results(gradescope, capsys, missing):
    (gradescope.root / "source" / missing).unlink()
    assert gradescope_run.main([str(gradescope.root), str(gradescope.root / "no group")]) == 3
    assert Path(missing).name in capsys.readouterr().out
    assert not (gradescope.root / "results" / "results.json").exists()


@pytest.mark.parametrize("name", ["memory.max", "memory/memory.limit_in_bytes"])
def test_gradescope_names_the_setting_when_memory_is_short(gradescope, capsys, tmp_path, name):
    limit = tmp_path / "control_group" / name
    limit.parent.mkdir(parents=True)
    limit.write_text(f"{512 << 20}\n")
    (gradescope.root / "submission" / "adding.py").write_text(
        FILES[f"solutions/{NAME}/adding.py"], "utf-8"
    )
    assert gradescope_run.main([str(gradescope.root), str(tmp_path / "control_group")]) == 3
    said = capsys.readouterr().out
    assert "512 MB" in said and "Container Specifications" in said
    assert not (gradescope.root / "results" / "results.json").exists()


def test_gradescope_names_the_setting_when_the_grader_is_killed(gradescope, tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nkill -9 $$\n")
    python.chmod(0o755)
    places = {"AUTOGRADER_ROOT": str(gradescope.root), "AUTOGRADER_PYTHON": str(python)}
    program = gradescope.root / "run_autograder"
    done = subprocess.run([program], env={**os.environ, **places}, capture_output=True, text=True)
    assert done.returncode == 137
    assert "Container Specifications" in done.stdout


@pytest.mark.parametrize("name", ["memory.events", "memory/memory.oom_control"])
def test_gradescope_gives_no_score_when_the_system_killed_a_process(tmp_path, name):
    events = tmp_path / name
    events.parent.mkdir(exist_ok=True)
    events.write_text("oom 0\noom_kill 1\n")
    memory = ContainerMemory(tmp_path)
    memory.require_no_kill_since(1)
    with pytest.raises(InfrastructureError, match="Container Specifications"):
        memory.require_no_kill_since(0)


def test_gradescope_installs_the_packages_of_the_assignment(course):
    assignment = course.assignment(NAME)
    plain = files(course_built(course), assignment, "hidden")["requirements.txt"].decode().split()
    more = assignment.model_copy(
        update={"preload": ("transformers.models.gpt2", "torch.nn", "tokenizers")}
    )
    grown = files(course, more, "hidden")["requirements.txt"].decode().split()
    assert any(line.startswith("torch>=") for line in plain)
    assert not any("extra" in line for line in plain)
    assert len(grown) == len(plain) + 2
    assert grown[-2].startswith("tokenizers") and grown[-1].startswith("transformers>=")


def test_gradescope_export_requires_a_built_assignment(course, tmp_path):
    with pytest.raises(RefusedError, match="--assignment"):
        export("gradescope", ExportRequest(course, ()))
    with pytest.raises(RefusedError, match="autograder build"):
        export("gradescope", ExportRequest(course, (), assignment=NAME, output=tmp_path / "x.zip"))
    with pytest.raises(RefusedError, match="`hidden` is one of"):
        export("gradescope", ExportRequest(course, (), assignment=NAME, hidden="never"))
