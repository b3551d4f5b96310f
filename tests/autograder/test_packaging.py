"""The wheel and `assignments/`, which students receive, contain no solutions; and the package is complete."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import HeaderParser
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from typer.testing import CliRunner

import autograder
from autograder.cli import app
from autograder.course.config import Assignment
from autograder.course.document import load_document
from autograder.course.markers import BEGIN, END
from autograder.course.mistakes_file import load_mistakes
from autograder.course.reading import load_course
from tests.autograder.sampling import thinned

ROOT = Path(__file__).parents[2]
COURSE = load_course(ROOT)
ABOUT = f"attention_by_hand-{autograder.__version__}.dist-info/"
NOT_OF_THE_SOURCE = (
    ".*", "__pycache__", "*.egg-info", "build", "dist", "grades", "grades-*", "examples",
)  # fmt: skip

SHORTEST_ANSWER = 12  # without spaces: what is shorter stands anywhere
EVERYDAY = 50  # what is shorter may be everyday Python elsewhere: model.eval(), a layer, a loop
ANYWHERE = {
    "withtorch.no_grad():", "model.eval()", "returncounts", "returnoutput",
    "self.block_size=block_size",
}  # fmt: skip
GIVEN_LATER = {  # the layers of a head: from 04 on they are given, under the names that the course promises
    f"self.{layer}=nn.Linear(embed_size,head_size,bias=False)"
    for layer in ("query", "key", "value")
}

each_assignment = pytest.mark.parametrize(
    "assignment", thinned(COURSE.assignments, 9), ids=lambda a: a.name
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel: `scripts/release` names one, else one is built from a copy of the whole repository."""
    if named := os.environ.get("AUTOGRADER_WHEEL"):
        return Path(named)
    source, folder = tmp_path_factory.mktemp("source") / "kit", tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*NOT_OF_THE_SOURCE))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(folder)]
    done = subprocess.run([*pip, *options, str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def in_the_wheel(wheel) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name).decode("utf-8") for name in archive.namelist()}


@cache
def released() -> dict[str, str]:
    """The released files of the course; of a notebook, the sources of its cells."""
    folder = ROOT / "assignments"
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and file.suffix != ".pyc"]
    texts = {str(file.relative_to(ROOT)): file.read_text("utf-8") for file in files}
    return {name: cells(text) if name.endswith(".ipynb") else text for name, text in texts.items()}


def cells(notebook: str) -> str:
    return "\n".join("".join(cell["source"]) for cell in json.loads(notebook)["cells"])


def squeezed(line: str) -> str:
    """Return a line without spaces and without the comment on its right margin."""
    return "".join(re.split(r"\s+#", line)[0].split())


@cache
def squeezed_lines(text: str) -> str:
    return "\n".join(map(squeezed, text.splitlines()))


@cache
def answers(assignment: Assignment) -> frozenset[str]:
    """Return the lines between the markers, except common ones and those that also occur outside."""
    document = load_document(COURSE, assignment)
    lines = document.text.splitlines()
    inside = {number for gap in document.gaps for number in range(gap.begin, gap.end + 1)}
    given = "\n".join(
        squeezed(line) for number, line in enumerate(lines, start=1) if number not in inside
    )
    found = {squeezed(line) for gap in document.gaps for line in gap.lines}
    return frozenset(a for a in found - ANYWHERE if len(a) >= SHORTEST_ANSWER and a not in given)


def hidden_tests(assignment: Assignment) -> set[str]:
    tree = ast.parse(COURSE.hidden_test_file(assignment).read_text("utf-8"))
    return {
        n.name
        for n in ast.walk(tree)
        if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")
    }


def holding_answers(texts: dict[str, str], assignment: Assignment) -> list[str]:
    found = []
    for name, text in texts.items():
        others = name.startswith(("assignments/", "autograder/")) and not name.startswith(
            f"assignments/{assignment.name}/"
        )
        looked_for = answers(assignment)
        if others:
            looked_for = {answer for answer in looked_for - GIVEN_LATER if len(answer) >= EVERYDAY}
        found += [
            f"{name}: {answer}" for answer in sorted(looked_for) if answer in squeezed_lines(text)
        ]
    return found


def naming(texts: dict[str, str], names: set[str]) -> list[str]:
    return [
        f"{file}: {name}" for file, text in texts.items() for name in sorted(names & words(text))
    ]


@cache
def words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text))


def test_planted_leak_is_found():
    assignment = COURSE.assignment("03_masked_heads")
    leaky = {"notes.py": COURSE.solution_file(assignment).read_text("utf-8")}
    assert len(holding_answers(leaky, assignment)) == len(answers(assignment))
    hidden = {"tests.py": COURSE.hidden_test_file(assignment).read_text("utf-8")}
    assert len(naming(hidden, hidden_tests(assignment))) == len(hidden_tests(assignment))


@each_assignment
def test_wheel_holds_no_answer(in_the_wheel, assignment):
    assert holding_answers(in_the_wheel, assignment) == []
    assert naming(in_the_wheel, hidden_tests(assignment)) == []
    mistakes = {mistake.id for mistake in load_mistakes(COURSE, assignment)}
    assert naming(in_the_wheel, {name for name in mistakes if "_" in name}) == []


@each_assignment
def test_assignments_hold_no_answer(assignment):
    assert any(name.startswith(f"assignments/{assignment.name}/") for name in released())
    assert holding_answers(released(), assignment) == []
    assert naming(released(), hidden_tests(assignment)) == []
    own = {
        name: text
        for name, text in released().items()
        if name.startswith(f"assignments/{assignment.name}/")
    }
    assert naming(own, {mistake.id for mistake in load_mistakes(COURSE, assignment)}) == []


def test_no_file_for_students_has_the_markers():
    assert not [name for name, text in released().items() if BEGIN in text or END in text]


def test_wheel_holds_the_package_and_nothing_else(in_the_wheel):
    assert [name for name in in_the_wheel if not name.startswith(("autograder/", ABOUT))] == []
    package = ROOT / "autograder"
    files = [
        file for file in package.rglob("*") if file.is_file() and "__pycache__" not in file.parts
    ]
    missing = {str(file.relative_to(ROOT)) for file in files} - set(in_the_wheel)
    assert missing == set(), "add them to [tool.setuptools.package-data]"


def about(in_the_wheel: dict[str, str]) -> Message:
    return HeaderParser().parsestr(in_the_wheel[f"{ABOUT}METADATA"])


def test_version_is_the_same_everywhere(in_the_wheel):
    assert (
        about(in_the_wheel)["Version"]
        == metadata.version("attention-by-hand")
        == autograder.__version__
    )
    assert f"\n## {autograder.__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pinned = [
        re.fullmatch(r"([\w.-]+)==(\d[\w.]*)( ;.*)?", line)
        for line in lines
        if line[:1] not in ("", "#")
    ]
    assert all(pinned), "each line of constraints.txt is name==version"
    return {plain(match[1]): match[2] for match in pinned}


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_all_installed_packages_are_pinned(in_the_wheel):
    for requirement in map(Requirement, about(in_the_wheel).get_all("Requires-Dist")):
        if wanted_by_the_setup(requirement):
            version = pins().get(plain(requirement.name))
            assert version, f"{requirement.name} is not in constraints.txt"
            assert requirement.specifier.contains(version), (
                f"{requirement} does not allow {version}"
            )


def wanted_by_the_setup(requirement: Requirement) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in ("report", "dev"))


def run(*words: str) -> None:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
