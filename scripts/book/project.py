"""What pyproject.toml says about the project."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import tomllib


@lru_cache
def home(root: Path) -> str:
    """Return the address of the repository, `Source` in `[project.urls]`; empty while it has none."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    address: str = project.get("urls", {}).get("Source", "")
    return address.rstrip("/")
