"""A notebook opened alone, without the kit: its first cell says what to do, and after that it works.

The environment is a new one without the kit. The other packages are linked from this one, so that nothing is downloaded.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("nbconvert", reason="Jupyter is not installed: pip install '.[nbgrader]'")

from autograder.cli import app
from tests.autograder.student_folder import release
from tests.autograder.waiting import HANGS

NAME = "01_adding"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with all packages but the kit."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder / "env", with_pip=True)
    packages = folder / "packages"
    packages.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not re.search("autograder|attention_by_hand", entry.name) and entry.suffix != ".pth":
            (packages / entry.name).symlink_to(entry)
    (site,) = (folder / "env").glob("lib/python*/site-packages")
    (site / "linked.pth").write_text(f"{packages}\n")
    for older in site.glob("setuptools*"):  # would hide the linked one
        shutil.rmtree(older)
    return folder / "env" / "bin" / "python"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked archive that students of the tiny course receive."""
    folder = tmp_path_factory.mktemp("course")
    release(folder)
    output = tmp_path_factory.mktemp("release") / "tiny-course"
    done = CliRunner().invoke(app, ["release", "--course", str(folder), "-o", str(output)])
    assert done.exit_code == 0, done.output
    return output


def executed(python: Path, notebook: Path) -> list[str]:
    """Run all cells in a kernel of that environment; return the outputs of each code cell as text."""
    command = [
        python, "-m", "nbconvert", "--to", "notebook", "--stdout", "--allow-errors", "--execute",
        notebook.name,
    ]  # fmt: skip
    settings = {"IPYTHONDIR": str(notebook.parent / ".ipython"), "JUPYTER_NO_CONFIG": "1"}
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "JUPYTER"))
    }
    done = subprocess.run(
        command, cwd=notebook.parent, env={**environment, **settings}, capture_output=True,
        text=True, timeout=HANGS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    cells = [cell for cell in json.loads(done.stdout)["cells"] if cell["cell_type"] == "code"]
    return ["".join(map(text_of, cell["outputs"])) for cell in cells]


def text_of(output: dict) -> str:
    text = (
        output.get("text") or output.get("data", {}).get("text/plain") or output.get("evalue", "")
    )
    return "".join(text)


@pytest.mark.slow
def test_the_first_cell_says_what_to_do_and_then_the_notebook_works(
    python: Path, archive: Path, tmp_path: Path
) -> None:
    alone = tmp_path / "notebooks" / "adding.ipynb"
    alone.parent.mkdir()
    shutil.copy(archive / "assignments" / NAME / alone.name, alone)

    first = executed(python, alone)[0]
    assert "its kernel cannot import autograder" in first and "where requirements.txt is" in first
    told = next(line.strip() for line in first.splitlines() if "install.py" in line)
    install = [str(python), *shlex.split(told)[1:], "--no-index", "--disable-pip-version-check"]
    done = subprocess.run(install, cwd=archive, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stdout + done.stderr

    first = executed(python, alone)[0]
    assert (
        f"The tests of {NAME} are not in {alone.parent}. Unpack the archive of the course there"
        in first
    )

    shutil.copytree(archive, alone.parent / archive.name)
    first, *others = executed(python, alone)
    assert first == ""
    assert any("`add` is not written yet" in text for text in others)
    assert not any("NameError" in text or "name 'check'" in text for text in others)
