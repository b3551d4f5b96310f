"""What docs/adopting.md and the README promise to an instructor who decides about the course."""

from __future__ import annotations

import ast
import csv
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ADOPTING = ROOT / "docs" / "adopting.md"
PROGRAM = "from autograder.cli import main; main()"
FOUR = ("02_positional_encoding", "03_masked_heads", "05_encoder_block", "07_mini_gpt")


def section(page: Path, heading: str) -> str:
    return page.read_text("utf-8").split(f"## {heading}\n")[1].partition("\n## ")[0]


def recipe(page: Path, heading: str) -> list[str]:
    (block,) = re.findall(r"^```sh\n(.*?)^```", section(page, heading), re.MULTILINE | re.DOTALL)
    return [line.partition("  #")[0] for line in block.splitlines()]


def autograder(
    folder: Path, *words: str, prefix: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*prefix, sys.executable, "-c", PROGRAM, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )


def hand_in_the_solution(folder: Path, assignment: str) -> None:
    solution = ROOT / "solutions" / assignment / f"{assignment.partition('_')[2]}.py"
    (folder / "submitted" / "ada" / assignment).mkdir(parents=True)
    shutil.copy(solution, folder / "submitted" / "ada" / assignment)


# ---------------------------------------------------------------------- the questions


def test_the_readme_links_to_the_answer_of_every_question():
    questions = re.findall(r"^## (.+)$", ADOPTING.read_text("utf-8"), re.MULTILINE)
    assert len(questions) == 11
    table = section(ROOT / "README.md", "Before you adopt the course")
    for question in questions:
        anchor = re.sub(r"[^\w ]", "", question.lower()).replace(" ", "-")
        assert f"(docs/adopting.md#{anchor})" in table, question


def test_every_answer_links_to_a_page_or_a_test():
    for answer in ADOPTING.read_text("utf-8").split("\n## ")[1:]:
        assert re.search(r"\]\([\w/.]+\.(md|py)", answer), answer.partition("\n")[0]


# ---------------------------------------------------------------------- nothing is downloaded

FOR_DOWNLOADS = {
    *("aiohttp", "datasets", "ftplib", "gdown", "http.client", "httpx", "huggingface_hub"),
    *("requests", "torch.hub", "torchtext", "torchvision", "urllib.request", "urllib3", "wget"),
}
DOWNLOADS = {
    *("cached_path", "from_pretrained", "hf_hub_download", "load_dataset", "load_url"),
    *("load_state_dict_from_url", "snapshot_download", "urlopen", "urlretrieve"),
}
LAST_WORDS = {module.rpartition(".")[2] for module in FOR_DOWNLOADS}
SET_UP = "autograder/installation/"  # installs, and runs before anything else does
FOLDERS = ("autograder", "solutions", "assignments", "tests/assignments")


def downloads_in(text: str) -> set[str]:
    """Return the names in a program that belong to packages or functions that download."""
    modules: set[str] = set()
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.name for alias in node.names}
            modules |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
            if node.attr in LAST_WORDS:
                modules.add(ast.unparse(node))
    return (modules & FOR_DOWNLOADS) | (names & DOWNLOADS)


@pytest.mark.parametrize(
    "text",
    [
        "import urllib.request",
        "from urllib import request",
        "from urllib.request import urlopen as get",
        "import torch\nweights = torch.hub.load('a', 'b')",
        "model = GPT2Model.from_pretrained('gpt2')",
        "import requests",
    ],
)
def test_a_download_is_found(text):
    assert downloads_in(text)


@pytest.mark.slow
def test_nothing_is_downloaded_at_run_time():
    """No program of the engine or of the course downloads, but for the set-up, and GPT-2 if the student asks for it."""
    programs = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    assert len(programs) > 300
    found = {}
    for file in programs:
        name = file.relative_to(ROOT).as_posix()
        downloads = downloads_in(file.read_text("utf-8"))
        if downloads and not name.startswith(SET_UP):
            found[name] = downloads
    by_choice = [f"{folder}/10_ready_made/ready_made.py" for folder in ("assignments", "solutions")]
    assert found == dict.fromkeys(by_choice, {"from_pretrained"})
    for name in by_choice:
        before, switch, after = (
            (ROOT / name)
            .read_text("utf-8")
            .partition('DOWNLOAD_GPT2 = False\n\nif __name__ == "__main__" and DOWNLOAD_GPT2:\n')
        )
        block = after.partition("\n# %%")[0]
        assert switch and not downloads_in(before)
        assert after.count("from_pretrained(") == block.count("from_pretrained(")


def without_network() -> tuple[str, ...]:
    """Return the words that start a command without a network; no words where that is impossible."""
    become = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    prefix = ("unshare", *become, "--net")
    if not shutil.which("unshare"):
        return ()
    done = subprocess.run([*prefix, "true"], capture_output=True)
    return prefix if done.returncode == 0 else ()


@pytest.mark.slow
def test_grading_needs_no_network(tmp_path):
    prefix = without_network()
    if not prefix:
        pytest.skip("network namespaces cannot be made here")
    hand_in_the_solution(tmp_path, "03_masked_heads")
    words = ("grade", "submitted", "--course", str(ROOT), "--output", "grades")
    done = autograder(tmp_path, *words, prefix=prefix)
    assert done.returncode == 0, done.stderr
    (row,) = csv.DictReader((tmp_path / "grades" / "grades.csv").read_text("utf-8").splitlines())
    assert (row["status"], row["score"]) == ("graded", "15")


# ---------------------------------------------------------------------- four of the nineteen


def test_the_readme_and_the_page_have_the_same_recipe():
    lines = recipe(ROOT / "README.md", "Before you adopt the course")
    assert lines == recipe(ADOPTING, "Can I teach four of the nineteen assignments?")
    assert shlex.split(lines[0])[2:6] == list(FOUR)
    assert len(lines) == 3


@pytest.mark.slow
def test_four_assignments_are_taught_with_other_dates_and_points(tmp_path):
    """Run the three lines of the README in a copy of the course with four due dates, for one student."""
    course = tmp_path / "course"
    for folder in ("assignments", "solutions", "tests/assignments"):
        shutil.copytree(
            ROOT / folder, course / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    text = (ROOT / "course.yml").read_text("utf-8")
    for day, name in enumerate(FOUR, start=10):
        text = text.replace(
            f"  - name: {name}\n", f"  - name: {name}\n    due: 2099-11-{day} 23:59\n"
        )
        hand_in_the_solution(course, name)
    (course / "course.yml").write_text(text, "utf-8")
    titles = "Positional encoding (1),Masked heads (2),Encoder block (3),Mini GPT (4)"
    sheet = [
        f"Student,ID,SIS User ID,SIS Login ID,Section,{titles}",
        "    Points Possible,,,,,10,30,100,20",
        "Ada,1,ada,ada,A,,,,",
    ]
    (course / "gradebook.csv").write_text("\n".join(sheet) + "\n", "utf-8")

    for line in recipe(ROOT / "README.md", "Before you adopt the course"):
        program, *words = shlex.split(line)
        assert program == "autograder"
        done = autograder(course, *words)
        assert done.returncode == 0, done.stderr

    with zipfile.ZipFile(course / "students.zip") as archive:
        released = {
            name.split("/")[2]
            for name in archive.namelist()
            if name.startswith("students/assignments/")
        }
        page = archive.read("students/README.md").decode()
    assert released == set(FOUR)
    assert re.findall(r"2099-11-(\d\d)", page) == ["10", "11", "12", "13"]
    filled = (course / "gradebook-filled.csv").read_text("utf-8").splitlines()
    assert filled[-1] == "Ada,1,ada,ada,A,10,30,100,20"
    assert "Masked heads (2) is out of 30 there: scores out of 15 are scaled." in done.stdout
