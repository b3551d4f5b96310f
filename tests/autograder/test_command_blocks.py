"""Every command of the guides runs in a copy of the course with a made-up class, or a table says why not."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^( *)```(?:sh|bash|console)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^`([\w/.]+)`([^\n]*):\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
SOLVED = ("03_masked_heads", "05_encoder_block")
OF_THE_COURSE = (
    "course.yml",
    "solutions",
    "tests/assignments",
    "assignments",
    "constraints.txt",
    "docs",
    "scripts",
)
SITE = "needs a download of a course site; tests/autograder/extras/lms has them"
FORGE = "needs repositories at a forge; tests/autograder/extras/git has them"
SET_UP = "installs into the clone; scripts/everywhere runs it"
LONG = "takes minutes to hours"
OPEN = "stays open"
OWN_TESTS = "runs the tests of this repository"
NOT_RUN = {  # by the beginning of a line; the longest that fits counts
    "autograder collect --from git": FORGE,
    "autograder export grades --to git": FORGE,
    "git ": FORGE,
    "cd ": FORGE,
    "cp ../repositories.csv": FORGE,
    "sh scripts/grade-class": FORGE,
    "autograder collect": SITE,
    "autograder export grades --to canvas": SITE,
    "autograder export grades --to moodle": SITE,
    "rm -rf": SITE,
    "GRADES=": SITE,
    'autograder export "$GRADES"': SITE,
    'autograder grade "$CHECKOUT': SITE,
    "autograder export --to gradescope": "builds the kit's wheel; test_gradescope runs the archive",
    "autograder export grades --to classroom50": "takes the grades of one student; test_exports",
    "autograder export grades --to satisfied": "needs `satisfied_at` in course.yml; test_satisfied",
    "autograder decide ada --assignment 03_masked_heads --part conversation": (
        "needs `conversation` in course.yml; test_decisions"
    ),
    "autograder decide --drop test_mask_of_three_words": "names a test as an example; test_decisions",
    "autograder decide --request": "needs a student's text; test_objections",
    "autograder audit": LONG,
    "python tests/assignments/chance.py": LONG,
    "python -m benchmarks": LONG,
    "autograder release": LONG,
    "autograder build": LONG,
    "python scripts/made_up_class.py": "test_everywhere and `make grade` write larger ones",
    "autograder grade class": "the class of the line above it",
    "make ": SET_UP,
    "source ": SET_UP,
    "pip ": SET_UP,
    "autograder watch": OPEN,
    "autograder grade submitted --watch": OPEN,
    "autograder grade submitted --cluster": "needs a cluster; tests/autograder/extras/cluster",
    "openssl": "test_cluster runs it",
    "export DASK": "test_cluster sets it",
    "dask": OPEN,
    "podman": "test_container runs it with a stand-in",
    "docker": "test_container runs it with a stand-in",
    "pytest": OWN_TESTS,
    "ruff": OWN_TESTS,
    "mypy": OWN_TESTS,
}
RUN_ALL_THE_SAME = {"authoring.md": ("autograder build", "autograder audit 01_median")}
EXPECTED = {
    "autograder check assignments/01_median": 1,
    "autograder check 03_masked_heads/masked_heads.ipynb": 1,
}  # a stub in which nothing is written


class Block(NamedTuple):
    page: str
    number: int
    lines: tuple[str, ...]
    begin: int

    def __str__(self) -> str:
        return f"{self.page}-{self.number}"


def blocks() -> list[Block]:
    found = []
    for page in PAGES:
        matches = BLOCK.finditer(page.read_text("utf-8"))
        for number, match in enumerate(matches):
            lines = tuple(line.strip() for line in match[2].splitlines() if line.strip())
            found.append(Block(page.name, number, lines, match.start()))
    return found


def reason(page: str, line: str) -> str:
    """Return why a line is not run; empty if it is."""
    if page == "authoring.md" and line.startswith(RUN_ALL_THE_SAME[page]):
        return ""
    beginning = max((b for b in NOT_RUN if line.startswith(b)), key=len, default=None)
    return NOT_RUN[beginning] if beginning else ""


def runs(block: Block) -> bool:
    return any(not reason(block.page, line) for line in block.lines)


@pytest.fixture(scope="module")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the course with right answers of a student, a class of three, and its grades."""
    folder = tmp_path_factory.mktemp("made_up") / "course"
    folder.mkdir()
    for name in OF_THE_COURSE:
        place, copy = ROOT / name, folder / name
        copy.parent.mkdir(exist_ok=True)
        if place.is_dir():
            shutil.copytree(
                place, copy, ignore=shutil.ignore_patterns("__pycache__", ".autograder")
            )
        else:
            shutil.copy(place, copy)
    for name in SOLVED:
        stem = name.partition("_")[2]
        shutil.copy(
            folder / f"solutions/{name}/{stem}.py", folder / f"assignments/{name}/{stem}.py"
        )
    answer = (folder / "solutions/03_masked_heads/masked_heads.py").read_text("utf-8")
    for student, text in {
        "ada": answer.replace(".tril()", ".triu(1)"),
        "ben": answer,
        "cy": answer,
    }.items():
        for place in (
            f"submitted/{student}/03_masked_heads/masked_heads.py",
            f"week3/{student}.py",
        ):
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).write_text(text, "utf-8")
    notebook = folder / "submitted/ada/masked_heads.ipynb"
    subprocess.run(
        ["jupytext", "--to", "ipynb", "--output", notebook, "-"],
        input=answer,
        text=True,
        env=surroundings(),
        check=True,
        capture_output=True,
    )
    shutil.move(notebook, folder / "problem1.ipynb")
    (folder / "roster.csv").write_text(
        "student,name,section\nada,Ada Ask,A\nben,Ben Bit,A\ncy,Cy Cos,B\n", "utf-8"
    )
    (folder / "decisions.yml").write_text("# none yet\n", "utf-8")
    assert execute("autograder grade submitted --seed 1234", folder)[0] == 0
    return folder


def surroundings() -> dict[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {
        **os.environ,
        "PATH": path,
        "AUTOGRADER_KEY": "0123456789abcdef" * 4,
        "AUTOGRADER_BY": "Grace",
    }


def execute(line: str, folder: Path) -> tuple[int, str]:
    done = subprocess.run(
        ["sh", "-c", line],
        cwd=folder,
        env=surroundings(),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    return done.returncode, done.stdout + done.stderr


def write_files_of_the_page(folder: Path, text: str) -> None:
    """Write the files that authoring.md shows in this text, as it says."""
    for name, how, contents in FILE.findall(text):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if "at its end" in how:
            contents = file.read_text("utf-8") + contents
        elif file.exists():
            part = contents.partition("points")[0]
            before, _, rest = file.read_text("utf-8").partition(part)
            contents = f"{before}{contents}{rest.partition(chr(10))[2]}"
        file.write_text(contents, "utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("block", [block for block in blocks() if runs(block)], ids=str)
def test_commands_of_a_block_run(block: Block, made_up: Path, tmp_path: Path) -> None:
    folder = tmp_path / "course"
    if block.page == "authoring.md":
        folder.mkdir()
        write_files_of_the_page(
            folder, (ROOT / "docs/authoring.md").read_text("utf-8")[: block.begin]
        )
    else:
        shutil.copytree(made_up, folder)
    if "submitted/ada/masked_heads.ipynb" in " ".join(block.lines):
        shutil.copy(folder / "problem1.ipynb", folder / "submitted/ada/masked_heads.ipynb")
    if "cp -r terms/2026/submitted both" in block.lines:
        shutil.copytree(folder / "submitted", folder / "terms/2026/submitted")
    here = folder / "assignments" if block.page == "students.md" else folder
    for line in block.lines:
        if not reason(block.page, line):
            code, output = execute(line, here)
            command = " ".join(shlex.split(line, comments=True))
            assert code == EXPECTED.get(command, 0), f"{line}\n{output}"


def test_every_reason_is_that_of_a_line() -> None:
    lines = [line for block in blocks() for line in block.lines]
    assert [
        beginning
        for beginning in NOT_RUN
        if not any(map(str.startswith, lines, [beginning] * len(lines)))
    ] == []
