"""docs/architecture.md names only modules, files and rooms that exist, and every room of the engine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "autograder"
TEXT = (ROOT / "docs/architecture.md").read_text("utf-8")
ROOMS = {path.name for path in ENGINE.iterdir() if (path / "__init__.py").is_file()} | {
    path.stem for path in ENGINE.glob("*.py") if path.stem != "__init__"
}


def rows() -> list[tuple[list[str], list[str]]]:
    """Return the rooms and the modules in each row of the table of rooms."""
    table = TEXT.partition("| room | contents | main modules |")[2].partition("\n\n")[0]
    cells = [line.strip("|").split("|") for line in table.strip().splitlines()[1:]]
    return [(re.findall(r"`(\w+)(?:/|\.py)`", room), re.findall(r"`(\w+)`", modules)) for room, _, modules in cells]


def exists(dotted: str) -> bool:
    path = ENGINE / dotted.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


def test_table_contains_every_room_of_the_engine() -> None:
    assert sorted(room for rooms, _ in rows() for room in rooms) == sorted(ROOMS)


def test_picture_contains_every_room_in_the_order_of_the_import_contract() -> None:
    picture = TEXT.partition("```text\n")[2].partition("```")[0]
    layers = (ROOT / "pyproject.toml").read_text("utf-8").partition("layers = [")[2].partition("]")[0]
    order = re.findall(r"\w+", layers)
    assert sorted(order) == sorted(ROOMS)
    drawn = " ".join(re.split(r" {2,}", line.strip())[0] for line in picture.splitlines())
    assert [word for word in re.findall(r"\w+", drawn) if word in ROOMS] == order


def test_modules_of_the_table_exist() -> None:
    for rooms, modules in rows():
        for module in modules:
            assert any(exists(f"{room}.{module}") for room in rooms), module


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([a-z_]+\.[a-z_]+)`", TEXT))))
def test_dotted_module_exists(name: str) -> None:
    assert exists(name) or any((root / name).is_file() for root in (ENGINE, ROOT)) or name == "grades.jsonl"


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:[\w.]+/)+[\w.]*)", TEXT))))
def test_path_exists(path: str) -> None:
    if path.startswith(("grades/", "solutions/NAME")):
        return
    assert (ENGINE / path).exists() or (ROOT / path).exists()
