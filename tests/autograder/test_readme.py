"""The commands in the README and the guides exist, and the shown output is real."""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import typer
import yaml
from typer.testing import CliRunner

from autograder.cli import app
from autograder.course.config import load_course
from autograder.course.mistakes import load_mistakes

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PROGRAM = typer.main.get_command(app)
TOOLS = {"ruff", "mypy"}
OF_OTHERS = {
    "docker",
    "mkdir",
    "podman",
    "dask",
    "openssl",
    "pip",
    "git",
    "sh",
}  # in the guides beside the course


class Line(NamedTuple):
    page: str
    text: str


def read(page: Path) -> str:
    return page.read_text("utf-8")


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", read(page), re.MULTILINE | re.DOTALL)


def typed() -> list[Line]:
    """Return every command in a shell block, and the commands in sentences."""
    lines = []
    for page in PAGES:
        shell = [line for block in blocks(page, "sh") for line in block.splitlines()]
        prompts = [
            line[2:]
            for block in blocks(page, "console")
            for line in block.splitlines()
            if line[:2] == "$ "
        ]
        prose = re.sub(r"^```.*?^```", "", read(page), flags=re.MULTILINE | re.DOTALL)
        spoken = re.findall(r"`((?:autograder|make|source|python|pytest) [^`]+)`", prose)
        lines += [Line(page.name, line) for line in [*shell, *prompts, *spoken] if line.strip()]
    return list(dict.fromkeys(lines))


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", read(ROOT / "Makefile"), re.MULTILINE))


def make_variables() -> set[str]:
    return set(re.findall(r"\$\(([A-Z]+)\)", read(ROOT / "Makefile")))


def test_readme_and_guides_contain_commands():
    assert len(typed()) > 25
    without = {"accessibility.md", "licences.md", "coming-from-nbgrader.md"}
    assert {line.page for line in typed()} >= {page.name for page in PAGES} - without


@pytest.mark.parametrize("line", typed(), ids=lambda line: f"{line.page}: {line.text}")
def test_command_exists(line):
    program, *words = shlex.split(line.text, comments=True)
    if program == "autograder":
        accepted_by_autograder(words)
    elif program == "make":
        accepted_by_make(words)
    elif program == "pytest":
        accepted_by_pytest(words)
    elif program == "python":
        file = words[1].replace(".", "/") + ".py" if words[0] == "-m" else words[0]
        assert (ROOT / file).is_file() or list(ROOT.glob(f"assignments/*/{file}"))
    elif program == "source":
        assert words == [".venv/bin/activate"]
    elif program == "export":
        assert all("=" in word for word in words)
    elif program not in OF_OTHERS:
        assert program in TOOLS, f"{program} is not among what the set-up installs"
        assert shutil.which(
            program, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        )


def accepted_by_autograder(words):
    """Parse the arguments as the command would, without running it; raises for invalid ones."""
    command, *arguments = words
    if command.startswith("-"):
        assert command in {name for option in PROGRAM.params for name in option.opts}
        return
    assert command in PROGRAM.commands
    if arguments:
        PROGRAM.commands[command].make_context(command, arguments)


def accepted_by_make(words):
    for word in words:
        name, is_variable, _ = word.partition("=")
        assert name in (make_variables() if is_variable else make_targets())


def accepted_by_pytest(words):
    paths = [word for word in words if not word.startswith("-")]
    assert all((ROOT / path).exists() for path in paths)
    assert {word for word in words if word.startswith("-")} <= {"--autograder-submission"}


def links(page: Path) -> list[tuple[str, str]]:
    """Return the text and the target of each link of a page, outside of its code blocks."""
    prose = re.sub(r"^```.*?^```", "", read(page), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"\[([^]\[]*)\]\(([^)\s]+)\)", prose)


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    prose = re.sub(r"^```.*?^```", "", read(page), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_have_a_target(page):
    for text, target in links(page):
        name, _, anchor = target.partition("#")
        if name.startswith("https://"):
            continue
        file = page.parent / name if name else page
        assert file.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors(file), f"{page.name} links to {target}"
        if text.startswith("`test_") and file.suffix == ".py":
            assert re.search(rf"^def {text.strip('`')}\(", read(file), re.MULTILINE), (
                f"{page.name} names {text}"
            )


def test_links_are_found():
    assert ("here", "#for-students") in links(ROOT / "README.md")
    assert len(links(ROOT / "docs" / "adopting.md")) > 40
    assert {"before-you-adopt-the-course", "for-students"} <= anchors(ROOT / "README.md")


SPEED = re.compile(
    r"\d (?:\w+ )?submissions a second"
    r"|(?<![\d.])\d+ ms of processor time"
    r"|\d times as (?:fast|much)"
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_speeds_are_said_once(page):
    """The speed of grading is said on one page, so that no two pages disagree."""
    speeds = SPEED.findall(" ".join(read(page).split()))
    assert bool(speeds) == (page.name == "performance.md"), speeds


def test_files_in_the_layout_exist():
    (layout,) = re.findall(r"## Where things are\n\n(.*?)\n\n", read(ROOT / "README.md"), re.DOTALL)
    for line in layout.splitlines():
        assert (ROOT / line.split()[0]).exists(), line


def test_table_of_assignments_matches_the_course():
    rows = re.findall(
        r"^\| (\d\d) \| `(\w+)` \|.*\| (\d+) \| (\d+) \|$",
        read(ROOT / "docs/teaching.md"),
        re.MULTILINE,
    )
    course = [
        (a.name[:2], a.name, str(a.minutes), f"{a.points:g}") for a in load_course(ROOT).assignments
    ]
    assert rows == course, "each assignment of course.yml has a row in docs/teaching.md"


@pytest.mark.parametrize("weeks", ["Six", "Twelve"])
def test_minutes_of_a_plan_are_those_of_the_course(weeks: str) -> None:
    minutes = {each.name[:2]: each.minutes for each in load_course(ROOT).assignments}
    (section,) = re.findall(
        rf"^## {weeks} weeks\n(.*?)^##? ", read(ROOT / "docs/teaching.md") + "# ", re.M | re.S
    )
    rows = re.findall(r"^\| (\d+) \| ([\d, ]+) \| (\d+) \|$", section, re.MULTILINE)
    assert len(rows) == {"Six": 6, "Twelve": 12}[weeks]
    for _, assignments, total in rows:
        assert int(total) == sum(minutes[number] or 0 for number in assignments.split(", "))


def test_mistakes_and_pictures_for_the_class_exist() -> None:
    course = load_course(ROOT)
    named = {each.name[:2]: each for each in course.assignments}
    rows = re.findall(
        r"^\| (\d\d) \| .+ \| `(\w+)` \| .+: `(\w+)` \|$",
        read(ROOT / "docs/teaching.md"),
        re.MULTILINE,
    )
    assert [row[0] for row in rows] == list(named)
    for number, part, mistake in rows:
        assert f'"{part}":' in read(course.pictures_file(named[number]))
        assert mistake in {each.id for each in load_mistakes(course, named[number])}


def test_table_of_topics_names_every_part_of_the_course() -> None:
    (section,) = re.findall(
        r"## Topics of the course\n(.*?)\n## ", read(ROOT / "docs/students.md"), re.DOTALL
    )
    rows = re.findall(r"^\| .+ \| (\d\d) (`.+`) \|$", section, re.MULTILINE)
    named = [(number, part) for number, parts in rows for part in re.findall(r"`(\w+)`", parts)]
    assert named == [
        (a.name[:2], part.name) for a in load_course(ROOT).assignments for part in a.parts
    ]


def argument_names(stub: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(read(stub))))
    fields = {
        node.target.id
        for node in nodes
        if isinstance(node, ast.AnnAssign) and hasattr(node.target, "id")
    }
    return fields | {node.arg for node in nodes if isinstance(node, ast.arg)}


def test_table_of_names_lists_the_assignments_that_use_them() -> None:
    course = load_course(ROOT)
    names = {each.name[:2]: argument_names(course.stub_file(each)) for each in course.assignments}
    rows = re.findall(
        r"^\|[^|]*\|[^|]*\| `(\w+)` \| ([^|]*) \|$", read(ROOT / "docs/students.md"), re.MULTILINE
    )
    assert len(rows) > 20
    for name, assignments in rows:
        listed = set(re.findall(r"\d\d\b", assignments.replace("GPT-2", ""))) & set(names)
        assert listed == {number for number, used in names.items() if name in used}, name


def test_example_of_a_failure_matches_the_output(tmp_path, monkeypatch):
    """Every line of the README's excerpt is in the output of `autograder check` for that mistake."""
    course = load_course(ROOT)
    assignment = course.assignment("03_masked_heads")
    (leak,) = [m for m in load_mistakes(course, assignment) if m.id == "head_without_a_mask"]
    folder = tmp_path / "assignments" / assignment.name
    folder.mkdir(parents=True)
    for file in (f"test_{assignment.stem}.py", "hints.json"):
        shutil.copy(course.release_folder(assignment) / file, folder)
    (folder / "masked_heads.py").write_text(leak.source, "utf-8")
    (excerpt,) = blocks(ROOT / "README.md", "console")
    command, *shown = excerpt.splitlines()
    monkeypatch.chdir(tmp_path)
    done = CliRunner(env={"COLUMNS": "80"}).invoke(app, shlex.split(command)[2:])
    assert done.stderr == ""
    output = [line.rstrip() for line in done.stdout.splitlines()]
    assert [line for line in shown if line not in output] == []


needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def make(*words: str) -> subprocess.CompletedProcess[str]:
    """Run make as in a fresh terminal, also when make started these tests."""
    inherited = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", *make_variables()}
    environment = {name: value for name, value in os.environ.items() if name not in inherited}
    return subprocess.run(
        ["make", *words], cwd=ROOT, env=environment, capture_output=True, text=True
    )


@needs_make
def test_make_without_a_target_lists_the_targets():
    output = make().stdout
    assert all(f"make {target}" in output for target in make_targets() - {"help"})


@needs_make
def test_make_grades_a_folder_with_a_space_in_its_name():
    done = make("-n", "grade", "SUBMISSIONS=my class", "ASSIGNMENT=03_masked_heads", "JOBS=3")
    assert (
        'autograder grade "my class" --output "grades" --assignment "03_masked_heads" --jobs 3'
        in done.stdout
    )


@needs_make
@pytest.mark.parametrize(
    ("students", "folder", "options"),
    [
        ((), "examples/class", "--students 12 --assignment"),
        (("STUDENTS=30",), "examples/class-of-30", "--students 30 --output"),
    ],
)
def test_make_grade_without_a_folder_creates_a_made_up_class(students, folder, options):
    done = make("-n", "-B", "grade", "OUTPUT=elsewhere", *students)
    assert f"python scripts/made_up_class.py {options}" in done.stdout
    assert f'autograder grade "{folder}" --output "elsewhere"' in done.stdout


@needs_make
def test_continuous_integration_runs_every_test():
    landing = re.findall(r"^step make ([a-z-]+)", read(ROOT / ".ci" / "run"), re.MULTILINE)
    assert landing == ["test", "jupyter", "audit"]
    jobs = yaml.safe_load(read(ROOT / ".github" / "workflows" / "ci.yml"))["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == ["3.10", "3.12", "3.13", "3.14"]
    nightly = jobs["everything"]["strategy"]["matrix"]
    at_night = {*nightly["targets"], *(each["targets"] for each in nightly["include"])}
    assert (
        at_night == {"test", "test-all", "oldest", "audit", "jupyter", "cluster"} <= make_targets()
    )
    assert jobs["students"]["strategy"]["matrix"]["system"] == ["windows-latest", "macos-latest"]
    quick, every = pytest_options("test"), pytest_options("test-all")
    assert quick == [*every, '-m "not slow"']


def pytest_options(target: str) -> list[str]:
    """Return what a target passes to pytest, but for the way in which tests are distributed among processes."""
    (line,) = [
        line
        for line in make("-n", target).stdout.splitlines()
        if "pytest" in line and "==" not in line
    ]
    options = re.findall(
        r"--?\S+(?: [^-#]\S*(?: slow\")?)?", line.partition("pytest")[2].partition("#")[0]
    )
    return [
        option.strip()
        for option in options
        if not option.startswith(("--dist", "--no-loadscope", "-n"))
    ]


def test_setup_refuses_an_old_python_with_a_message(tmp_path):
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\nexit 1\n", "utf-8")
    old.chmod(0o755)
    done = subprocess.run(
        [ROOT / "scripts" / "setup", "report"],
        env={**os.environ, "PYTHON": str(old)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Python 3.10 or later is needed.")
    assert len(done.stderr.splitlines()) == 1
