"""What a hostile student can place in a folder: links, pipes, devices, sockets, forged records, odd names, deep trees."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

from autograder.source.gate import FILE_BYTES

SECRET = "CANARY-7f31a9"
STAMP = "2020-01-01 12:00:00 UTC\n"
FORGED = (
    '{"schema": 1, "submissions": [{"student": "STUDENT", "assignment": "01_adding", "name": "<b>forged</b>", '
    '"submitted_at": "2020-01-01T12:00:00+00:00"}]}'
)


def link_to(target: str | Path) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


def text(content: str) -> Callable[[Path], None]:
    return lambda path: path.write_text(content, "utf-8") and None


def open_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(path.parent, os.O_RDONLY)  # the path of a socket has little room
        try:
            server.bind(f"/proc/self/fd/{here}/{path.name}")
        finally:
            os.close(here)


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(50 * FILE_BYTES)


def unreadable(path: Path) -> None:
    path.write_text("def add(a, b):\n    return a + b\n", "utf-8")
    path.chmod(0)


def deep(path: Path) -> None:
    """Folders in folders until the system refuses a longer path, and the file at the end."""
    here = os.open(path.parent, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("down", dir_fd=here)
        inner = os.open("down", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(os.open("adding.py", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)


def secret_of(class_folder: Path) -> Path:
    """A file beside the class, which nobody's command may read."""
    return class_folder.parent / "secret.py"


def make_hostile(class_folder: Path, assignment: str, module: str) -> list[str]:
    """Writes the folders of hostile students, and the secret that some of them point at; returns their names.

    Each does one thing, since a submission is refused at the first.
    """
    secret = secret_of(class_folder)
    secret.write_text(f'SECRET = "{SECRET}"\n', "utf-8")
    outside = class_folder.parent / "outside"
    (outside / assignment).mkdir(parents=True)
    (outside / assignment / module).write_text(
        f"# {SECRET}\ndef add(a, b):\n    return a + b\n", "utf-8"
    )
    made: list[str] = []

    def place(student: str, **files: Callable[[Path], object]) -> None:
        folder = class_folder / student / assignment
        folder.mkdir(parents=True)
        for name, make in files.items():
            make(
                folder
                / name.replace("MODULE", module).replace("_txt", ".txt").replace("_json", ".json")
            )
        made.append(student)

    right = text("def add(a, b):\n    return a + b\n")
    place("pipe", MODULE=os.mkfifo)
    place("zero", MODULE=link_to("/dev/zero"))
    place("linked", MODULE=link_to(secret))
    place("socket", MODULE=open_socket)
    place("huge", MODULE=huge)
    place("unreadable", MODULE=unreadable)
    place("hard", MODULE=lambda path: os.link(secret, path))
    place("tree", down=lambda path: deep(path))
    place("stamp_pipe", MODULE=right, timestamp_txt=os.mkfifo, collected_json=os.mkfifo)
    place(
        "stamp_zero", MODULE=right, timestamp_txt=link_to("/dev/zero"),
        collected_json=link_to("/dev/zero"),
    )  # fmt: skip
    place("stamp_forged", MODULE=right, timestamp_txt=text(STAMP), collected_json=text(FORGED))
    place(
        "stamp_garbage", MODULE=right, timestamp_txt=text("not a time"),
        collected_json=text("{" * 10_000),
    )  # fmt: skip
    place("stamp_zone", MODULE=right, timestamp_txt=text("2020-01-01 12:00:00 America"))
    place("stamp_year", MODULE=right, timestamp_txt=text("0001-01-01 00:00:00 +1400"))
    place("beside", MODULE=right, data=link_to("/dev/zero"), notes=os.mkfifo, key=link_to(secret))
    place("line\nbreak \x1b[2J<b>", MODULE=right)
    (class_folder / "away").mkdir()
    (class_folder / "away" / assignment).symlink_to(outside / assignment)
    (class_folder / "moved").symlink_to(outside)
    odd = os.fsencode(class_folder / "bytes" / assignment)
    os.makedirs(odd)
    with open(os.path.join(odd, b"\xff\xfe.py"), "wb") as file:
        file.write(b"\xff\xfe not text")
    return [*made, "away", "moved", "bytes"]
