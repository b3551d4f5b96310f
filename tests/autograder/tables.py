"""Tables that the commands write, as a spreadsheet reads them."""

from __future__ import annotations

import csv
from pathlib import Path


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def column(path: Path, name: str, by: str = "student") -> dict[str, str]:
    """Return the cells of a column by those of another one."""
    return {row[by]: row[name] for row in rows_of(path)}
