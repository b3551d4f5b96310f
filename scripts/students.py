"""What a student does with a release, from installing to packing, with the Python that runs this.

python scripts/students.py FOLDER       an unpacked release

Each command has to end with the exit code that an untouched stub gets. It runs on Windows and macOS, too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ASSIGNMENT = "03_masked_heads"
UNFINISHED = 1  # the exit code of `check` for a stub


def main(release: Path) -> int:
    """Install the release into a new environment, run the commands in it, and return the exit code."""
    with tempfile.TemporaryDirectory(prefix="Größe eins ") as scratch:  # a blank and an umlaut, as in many names
        environment = Path(scratch, "environment")
        venv.create(environment, with_pip=True)
        scripts = environment / ("Scripts" if os.name == "nt" else "bin")
        (wheel,) = Path(release, "kit").glob("*.whl")
        pins = release / "constraints.txt"
        run([str(scripts / "python"), "-m", "pip", "install", "--quiet", "-c", str(pins), str(wheel)], 0, release)
        work = release / "assignments" / ASSIGNMENT
        for command, exit_code in (("check", UNFINISHED), ("hint", 0), ("progress", 0), ("pack", 0)):
            run([str(scripts / "autograder"), command], exit_code, work)
    return 0


def run(command: list[str], exit_code: int, folder: Path) -> None:
    """Run a command, and end this program if its exit code is another one."""
    print("$", " ".join(command), flush=True)
    variables = {**os.environ, "PYTHONIOENCODING": "cp1252"}  # the console of many a Windows
    done = subprocess.run(command, cwd=folder, env=variables)
    if done.returncode != exit_code:
        sys.exit(f"The exit code is {done.returncode}, not {exit_code}.")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
