"""What pyproject.toml says about the project."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

# Python 3.10 has no reader of TOML.
_SOURCE = re.compile(
    r'^\[project\.urls\]\n(?:[^\[\n].*\n|\n)*?Source *= *"([^"\n]*)"', re.MULTILINE
)


@lru_cache
def home(root: Path) -> str:
    """Return the address of the repository, `Source` in `[project.urls]`; empty while it has none."""
    source = _SOURCE.search((root / "pyproject.toml").read_text("utf-8"))
    return source[1].rstrip("/") if source else ""
