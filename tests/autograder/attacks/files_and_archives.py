"""Attacks by the submitted files themselves: links, pipes, archives, names. None may be followed or unpacked."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

from tests.autograder.attacks.field import LEFT_BEHIND, Attack

RIGHT = "def add(a, b):\n    return a + b\n"


def write_zip(
    path: Path, entries: list[tuple[str, str | bytes]], method: int = zipfile.ZIP_DEFLATED
) -> None:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in entries:
            archive.writestr(name, content)


def zip_slip(folder: Path, wrong: str) -> None:
    up = "../" * 12
    outside = [
        f"{up}tmp/{LEFT_BEHIND}_1",
        f"/tmp/{LEFT_BEHIND}_2",
        f"..\\..\\{LEFT_BEHIND}_3",
        f"C:/{LEFT_BEHIND}_4",
    ]
    write_zip(folder / "adding.zip", [("adding.py", wrong), *[(name, "x") for name in outside]])


def zip_over_the_tests(folder: Path, wrong: str) -> None:
    names = [
        "../../../course/tests/assignments/01_adding/test_hidden.py",
        "test_hidden.py",
        "conftest.py",
        "course.yml",
    ]
    write_zip(
        folder / "adding.zip",
        [("adding.py", wrong), *[(name, "def test_a(): pass") for name in names]],
    )


def zip_in_front_of_a_program(folder: Path, wrong: str) -> None:
    write_zip(folder / "inner.zip", [("adding.py", RIGHT)])
    (folder / "adding.py").write_bytes(
        wrong.encode() + b"\n'''" + (folder / "inner.zip").read_bytes() + b"'''"
    )
    (folder / "inner.zip").unlink()


def tar_of(folder: Path, *members: tuple[tarfile.TarInfo, bytes], mode: str = "w:gz") -> None:
    with tarfile.open(folder / "adding.tar.gz", mode) as archive:
        for info, data in members:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.devmajor, info.devminor = kind, link, 1, 1
    return info


def tar_through_a_link(folder: Path, wrong: str) -> None:
    tar_of(
        folder,
        (member("out", tarfile.SYMTYPE, "/tmp"), b""),
        (member(f"out/{LEFT_BEHIND}_tar"), b"x"),
        (member(f"/tmp/{LEFT_BEHIND}_tar"), b"x"),
        (member(f"../../{LEFT_BEHIND}_tar"), b"x"),
        (member("adding.py"), wrong.encode()),
    )


def tar_with_another_name(folder: Path, wrong: str) -> None:
    info = member("harmless.txt")
    info.pax_headers = {
        "path": f"../../{LEFT_BEHIND}_pax",
        "size": "99999999999",
        "linkpath": "/etc/passwd",
    }
    tar_of(folder, (info, b"x"), (member("adding.py"), wrong.encode()))


def folder_called_like_the_file(folder: Path, wrong: str) -> None:
    (folder / "adding.py").mkdir()
    (folder / "adding.py" / "__init__.py").write_text(RIGHT)


def package_beside_it(folder: Path, wrong: str) -> None:
    (folder / "adding.py").write_text(wrong)
    (folder / "adding").mkdir()
    (folder / "adding" / "__init__.py").write_text(RIGHT)
    (folder / "adding.so").write_bytes(b"\x7fELF")
    (folder / "adding.pyc").write_bytes(b"x")


def files_that_python_runs(folder: Path, wrong: str) -> None:
    (folder / "adding.py").write_text(wrong)
    for name in (
        "conftest.py",
        "sitecustomize.py",
        "torch.py",
        "pytest.py",
        "random.py",
        "test_hidden.py",
        "x.pth",
    ):
        (folder / name).write_text("import os; os._exit(0)")
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --collect-only\n")


def names_that_command(folder: Path, wrong: str) -> None:
    (folder / "adding.py").write_text(wrong)
    for name in (
        "::error::x",
        "a\nb.py",
        "\x1b[2J.py",
        "<script>.ipynb",
        "-rf",
        "$(reboot).py",
        "\udcff.py",
    ):
        (folder / name).write_text("x = 1")


ATTACKS = [
    Attack("zip_slip", "a zip that writes outside its folder", make=zip_slip),
    Attack(
        "zip_over_the_tests",
        "a zip that replaces the tests and the settings",
        make=zip_over_the_tests,
    ),
    Attack("tar_through_a_link", "a tar that writes through its own link", make=tar_through_a_link),
    Attack(
        "files_that_python_runs",
        "files that Python or pytest would run by themselves",
        make=files_that_python_runs,
    ),
    Attack(
        "names_that_command", "file names with commands, escapes and tags", make=names_that_command
    ),
]
