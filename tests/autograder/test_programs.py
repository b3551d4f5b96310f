"""Every program in benchmarks/ and scripts/ runs, on as little as it takes."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEADS = "03_masked_heads"
# what each benchmark is given; {tmp} is a folder of the test
BENCHMARKS = {
    "cluster_load": "--grades 10 --graders 2 --processes 1",
    "compare": "--students 4 --peers 3",
    "course": f"{HEADS} --submissions 10 --peers 2 --json {{tmp}}/bench.json",
    "follow_through": f"{HEADS} --submissions 10 --jobs 1",
    "hostile_third": "--only mixed",
    "large_class": "--grades 100 --output {tmp}/large --commands report",
    "milliseconds": f"{HEADS} --submissions 1",
    "nbgrader_speed": "--students 2",
    "plain_suite": f"solutions/{HEADS}/masked_heads.py",
    "profile": f"{HEADS} --submissions 1",
    "ratios": f"{HEADS} --pairs 1 --record {{tmp}}/ratios.json",
    "watch": f"{HEADS} --hand-ins 4 --idle 1",
}
QUICK = {"plain_suite", "made_up_class"}
NEED_NBGRADER = {"compare", "course", "follow_through", "nbgrader_speed", "profile"}
NEED_EXTRAS = {"gradescope_rehearsal", "questions_for_conversations"}
# what each script is given in the folder of the tiny course
SCRIPTS = {
    "caught_at_home": "--jobs=1",
    "gradescope_rehearsal": "01_adding",
    "lost_points": "--every=2 --parity",
    "made_up_class": "--students 4 --output {tmp}/class",
    "names_at_home": "--jobs=1",
    "questions_for_conversations": "",
    "second_order": "--pairs=1",
    "time_left": "",
    "watch_picture": "{tmp}",
}
# those that a check runs from end to end, with the file that starts them
STARTED_BY = {
    "check_docs": "Makefile",
    "core_without_extras": ".ci/run",
    "make_site": "Makefile",
    "students": ".github/workflows/ci.yml",
}


def programs(folder: str) -> set[str]:
    files = (ROOT / folder).glob("*.py")
    return {file.stem for file in files if 'if __name__ == "__main__":' in file.read_text("utf-8")}


def run(command: list[str], folder: Path) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def slow_unless_quick(names: dict[str, str]) -> list[object]:
    return [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in names]


@pytest.mark.parametrize("name", slow_unless_quick(BENCHMARKS))
def test_benchmark_runs_on_a_tiny_class(tmp_path, name):
    if name in NEED_NBGRADER:
        pytest.importorskip("nbgrader")
    if name == "cluster_load":
        pytest.importorskip("distributed")
    words = shlex.split(BENCHMARKS[name].format(tmp=tmp_path))
    assert run([sys.executable, "-m", f"benchmarks.{name}", *words], ROOT)


@pytest.mark.parametrize("name", slow_unless_quick(SCRIPTS))
def test_script_runs_on_the_tiny_course(tmp_path, built_course, name):
    if name in NEED_EXTRAS and find_spec("autograder.extras") is None:
        pytest.skip("needs autograder/extras")
    words = shlex.split(SCRIPTS[name].format(tmp=tmp_path))
    assert run([sys.executable, str(ROOT / "scripts" / f"{name}.py"), *words], built_course)


def test_no_program_is_left_out():
    assert programs("benchmarks") == BENCHMARKS.keys()
    assert programs("scripts") == SCRIPTS.keys() | STARTED_BY.keys()
    for name, file in STARTED_BY.items():
        assert name in (ROOT / file).read_text("utf-8"), f"{file} does not start {name}"
