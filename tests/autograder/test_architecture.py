"""docs/architecture.md names only modules, files and rooms that exist, and every room of the engine."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import pytest

from autograder.bridge.outside.remote import RemoteStudent
from autograder.bridge.outside.worker_connection import WorkerConnection
from autograder.course.config import Limits
from autograder.walls.outside.launcher import Sandbox

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "autograder"
TEXT = (ROOT / "docs/architecture.md").read_text("utf-8")
ROOMS = {path.name for path in ENGINE.iterdir() if (path / "__init__.py").is_file()} | {
    path.stem for path in ENGINE.glob("*.py") if not path.stem.startswith("__")
}


INSIDE = ("bridge.inside", "bridge.shared", "walls.inside")
BELOW = [
    "source",
    "source.magics",
    "source.names_used",
    "source.pieces",
    "source.side_effects",
    "source.text",
    "version",
]  # used there, too


def rows() -> list[tuple[list[str], list[str]]]:
    """Return the rooms and the modules in each row of the table of rooms."""
    table = TEXT.partition("| room | contents | modules |")[2].partition("\n\n")[0]
    cells = [line.strip("|").split("|") for line in table.strip().splitlines()[1:]]
    return [
        (re.findall(r"`([\w/]+?)(?:/|\.py)`", room), re.findall(r"`(\w+)`", modules))
        for room, _, modules in cells
    ]


def exists(dotted: str) -> bool:
    path = ENGINE / dotted.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


def test_table_contains_every_room_of_the_engine() -> None:
    listed = {room.partition("/")[0] for rooms, _ in rows() for room in rooms}
    assert listed == ROOMS


def test_picture_contains_every_room_in_the_order_of_the_import_contract() -> None:
    picture = TEXT.partition("```text\n")[2].partition("```")[0]
    layers = (
        (ROOT / "pyproject.toml").read_text("utf-8").partition("layers = [")[2].partition("]")[0]
    )
    order = re.findall(r"\w+", layers)
    assert sorted(order) == sorted(ROOMS)
    drawn = " ".join(re.split(r" {2,}", line.strip())[0] for line in picture.splitlines())
    assert [word for word in re.findall(r"\w+", drawn) if word in ROOMS] == order


def test_table_contains_every_module() -> None:
    listed = {f"{rooms[-1]}/{module}.py" for rooms, modules in rows() for module in modules}
    there = {
        str(file.relative_to(ENGINE))
        for file in ENGINE.glob("*/**/*.py")
        if file.stem != "__init__"
    }
    assert listed == there


def test_a_worker_imports_only_what_belongs_inside(sandbox: Sandbox) -> None:
    limits = Limits()
    connection = WorkerConnection(sandbox.spawn(limits), limits.call_seconds)
    with closing(connection):
        connection.request(
            "load",
            text="import sys\n\ndef names():\n    return list(sys.modules)\n",
            filename="answer.py",
        )
        connection.start_test(1)
        loaded = {
            name
            for name in RemoteStudent(connection).names()
            if name.partition(".")[0] == "autograder"
        }
    modules = {name.removeprefix("autograder.") for name in loaded} - {
        "autograder",
        "bridge",
        "walls",
    }
    assert "bridge.inside.worker" in modules  # the worker is a real one
    assert sorted(name for name in modules if not name.startswith(INSIDE)) == BELOW


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([a-z_]+\.[a-z_]+)`", TEXT))))
def test_dotted_module_exists(name: str) -> None:
    assert (
        exists(name)
        or any((root / name).is_file() for root in (ENGINE, ROOT))
        or name == "grades.jsonl"
    )


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:[\w.]+/)+[\w.]*)", TEXT))))
def test_path_exists(path: str) -> None:
    if path.startswith(("grades/", "solutions/NAME")):
        return
    assert (ENGINE / path).exists() or (ROOT / path).exists()
