"""What a student does with a release, from installing to packing, with the Python that runs this.

python scripts/students.py FOLDER       an unpacked release

Each command has to end with the exit code that a wrong answer gets, and `check` in the notebook has
to give a verdict on each part. It runs on Windows and macOS, too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

NAME = "03_masked_heads"
STEM = "masked_heads"
PARTS = 3
FOUND = 1  # the exit code of `check` for a wrong answer
VERDICT = "visible points of this part so far."
SECONDS = 600  # that a cell of the notebook may take


def main(release: Path) -> int:
    """Install the release into a new environment, run the commands in it, and return the exit code."""
    # a blank and an umlaut, as in many names
    with tempfile.TemporaryDirectory(prefix="Größe eins ") as scratch:
        environment = Path(scratch, "environment")
        venv.create(environment, with_pip=True)
        scripts = environment / ("Scripts" if os.name == "nt" else "bin")
        python = str(scripts / "python")
        (wheel,) = Path(release, "kit").glob("*.whl")
        pins = str(release / "constraints.txt")
        # the last two run a notebook as an editor does
        packages = [str(wheel), "nbclient", "ipykernel"]
        run([python, "-m", "pip", "install", "--quiet", "-c", pins, *packages], 0, release)
        work = Path(scratch, "assignments", NAME)
        shutil.copytree(release / "assignments" / NAME, work)
        run([python, __file__, "--notebook", f"{STEM}.ipynb"], 0, work)
        write_wrong_answer(work / f"{STEM}.py")
        for command, exit_code in (("check", FOUND), ("hint", 0), ("progress", 0), ("pack", 0)):
            run([str(scripts / "autograder"), command], exit_code, work)
    return 0


def run(command: list[str], exit_code: int, folder: Path) -> None:
    """Run a command, and end this program if its exit code is another one."""
    print("$", " ".join(command), flush=True)
    variables = {**os.environ, "PYTHONIOENCODING": "cp1252"}  # the console of many a Windows
    done = subprocess.run(command, cwd=folder, env=variables)
    if done.returncode != exit_code:
        sys.exit(f"The exit code is {done.returncode}, not {exit_code}.")


def write_wrong_answer(stub: Path) -> None:
    """Answer the first gap, as nothing is packed before something is written."""
    text = stub.read_text("utf-8")
    answered = text.replace("raise NotImplementedError(", "return print(", 1)
    stub.write_text(answered, "utf-8")


def run_notebook(file: Path) -> int:
    """Run all cells of a notebook, and return 0 if each `check` gave a verdict and no cell ended in an error."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(file, as_version=4)
    NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", allow_errors=True).execute()
    verdicts = 0
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if output.output_type == "error":
                sys.exit(f"This cell ended in {output.ename}: {output.evalue!a}\n{cell.source!a}")
            text = output.get("data", {}).get("text/plain", "")
            if cell.source.startswith("check(") and VERDICT in text:
                verdicts += 1
                print(f"{cell.source}: {text.splitlines()[0]}")
    if verdicts != PARTS:
        sys.exit(f"`check` gave {verdicts} verdicts, not {PARTS}.")
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "--notebook":
        sys.exit(run_notebook(Path(sys.argv[2])))
    sys.exit(main(Path(sys.argv[1]).resolve()))
