"""A folder full of names that Python and its packages would rather find first, and a record of what opens them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

PACKAGES = (
    "numpy", "torch", "pytest", "_pytest", "pluggy", "yaml", "jinja2", "markupsafe", "pydantic",
    "typer", "rich",
)  # fmt: skip
PACKAGES += (
    "click", "filelock", "nbformat", "jupytext", "IPython", "matplotlib", "PIL", "distributed",
    "dask",
)  # fmt: skip
PACKAGES += (
    "nbgrader", "nbconvert", "traitlets", "sqlalchemy", "alembic", "rapidfuzz", "pygments",
    "psycopg",
)  # fmt: skip
PACKAGES += (
    "sympy", "networkx", "setuptools", "pip", "sitecustomize", "usercustomize", "conftest",
    "autograder", "watchfiles",
)  # fmt: skip
NAMES = sorted({*sys.stdlib_module_names, *PACKAGES})
SETTINGS = {
    "matplotlibrc": "figure.facecolor: red\ntext.usetex: True\n",
    "pytest.ini": "[pytest]\naddopts = --no-such-option\n",
    "tox.ini": "[pytest]\naddopts = --no-such-option\n",
    "setup.cfg": "[tool:pytest]\naddopts = --no-such-option\n",
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--no-such-option'\n",
    "jupytext.toml": "formats = 'md'\n",
    "course.yml": "title: not the course\nassignments: []\n",
    "decisions.yml": "[]\n",
    "roster.csv": "id,name\nmallory,Mallory\n",
    ".gitconfig": "[core]\nfsmonitor = false\n",
    **{
        name: "raise SystemExit(9)\n"
        for name in ("jupyter_config.py", "nbgrader_config.py", "ipython_config.py")
    },
    **dict.fromkeys(
        (".coveragerc", ".env", ".netrc", "pip.conf", "alembic.ini", "dask.yaml"), "not = read\n"
    ),
}
# In the place of a `sitecustomize` of the test's own: every process that reads it notes what it opens.
WITNESS = """\
import os, sys

FOLDER, RECORD = os.environ["POISONED_FOLDER"], os.environ["POISONED_RECORD"]

def note(event, arguments):
    if event != "open" or not isinstance(arguments[0], (str, bytes)):
        return
    path = os.path.join(os.getcwd(), os.fsdecode(arguments[0]))
    if os.path.dirname(path) == FOLDER and os.path.lexists(path):
        descriptor = os.open(RECORD, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(descriptor, f"{os.path.basename(path)}: {sys.orig_argv}\\n".encode())
        os.close(descriptor)

sys.addaudithook(note)
"""


class PoisonedFolder:
    """The folder, and the environment in which processes note what they open in it; `root` is a new folder."""

    def __init__(self, root: Path, path: Path | None = None) -> None:
        self.path = (path or root / "poisoned").resolve()
        self._record = root / "record.txt"
        self.path.mkdir(parents=True, exist_ok=True)
        (root / "witness").mkdir(parents=True)
        (root / "witness" / "sitecustomize.py").write_text(WITNESS)
        for name in NAMES:
            (self.path / f"{name}.py").write_text(f"raise SystemExit('{name} was imported')\n")
        for name, text in SETTINGS.items():
            (self.path / name).write_text(text)
        path_of_python = [str(root / "witness"), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path_of_python),
            "COLUMNS": "200",
        }
        self.environment |= {
            "POISONED_FOLDER": str(self.path),
            "POISONED_RECORD": str(self._record),
        }

    def opened(self) -> list[str]:
        """Return what was opened since the last call, each with the command line of the process."""
        lines = self._record.read_text("utf-8").splitlines() if self._record.exists() else []
        self._record.unlink(missing_ok=True)
        poison = {*SETTINGS, *(f"{name}.py" for name in NAMES)}
        return [line for line in lines if line.partition(": ")[0] in poison]
