"""A package of somebody else, which adds to the kit what docs/exports.md shows."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs/exports.md"


def example_in_the_docs(line: str) -> str:
    """Return the program in the docs that has this line."""
    programs = re.findall(r"```python\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    (program,) = [program for program in programs if line in program]
    return program


def installed_package(folder: Path, module: str, text: str, entry_points: str) -> None:
    """Write a package as pip leaves it: a module, and the names that it registers."""
    information = folder / f"{module}-1.0.dist-info"
    information.mkdir(parents=True)
    (folder / f"{module}.py").write_text(text)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(entry_points)
