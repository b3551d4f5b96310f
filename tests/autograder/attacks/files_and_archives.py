"""Attacks by the submitted files themselves: links, pipes, archives, names. None may be followed or unpacked."""

from __future__ import annotations

import gzip
import io
import os
import socket
import tarfile
import warnings
import zipfile
from pathlib import Path

from tests.autograder.attacks.field import LEFT_BEHIND, Attack

RIGHT = "def add(a, b):\n    return a + b\n"


def solution_near(folder: Path) -> Path:
    solution = (folder.parents[2] / "course" / "solutions" / "01_adding" / "adding.py").resolve()
    assert solution.is_file(), "the attack has to know its way"
    return solution


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


def zip_with_a_link(folder: Path, wrong: str) -> None:
    link = zipfile.ZipInfo("adding.py")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(folder / "adding.zip", "w") as archive:
        archive.writestr(link, str(solution_near(folder)))


def zip_bomb(folder: Path, wrong: str) -> None:
    write_zip(folder / "adding.zip", [("adding.py", b"#" * (200 << 20))])


def zip_of_zips(folder: Path, wrong: str) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("adding.py", RIGHT)
    write_zip(folder / "adding.zip", [("more.zip", inner.getvalue()), ("adding.py", wrong)])


def zip_with_a_lie(folder: Path, wrong: str) -> None:
    """Declare a small size for an entry of megabytes."""
    write_zip(folder / "adding.zip", [("adding.py", b"#" * (30 << 20))])
    raw = bytearray((folder / "adding.zip").read_bytes())
    for signature, at in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        start = raw.find(signature)
        raw[start + at : start + at + 4] = (100).to_bytes(4, "little")
    (folder / "adding.zip").write_bytes(raw)


def zip_twice_the_same(folder: Path, wrong: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write_zip(
            folder / "adding.zip",
            [("adding.py", wrong), ("adding.py", RIGHT), ("ADDING.py", RIGHT)],
        )


def zip_by_lzma(folder: Path, wrong: str) -> None:
    write_zip(folder / "adding.zip", [("adding.py", wrong)], zipfile.ZIP_LZMA)


def zip_locked(folder: Path, wrong: str) -> None:
    write_zip(folder / "adding.zip", [("adding.py", wrong)])
    raw = bytearray((folder / "adding.zip").read_bytes())
    raw[6] |= 1
    raw[raw.find(b"PK\x01\x02") + 8] |= 1
    (folder / "adding.zip").write_bytes(raw)


def zip_of_many(folder: Path, wrong: str) -> None:
    write_zip(
        folder / "adding.zip", [("adding.py", wrong), *[(f"{n}.py", "x") for n in range(20_000)]]
    )


def zip_in_front_of_a_program(folder: Path, wrong: str) -> None:
    write_zip(folder / "inner.zip", [("adding.py", RIGHT)])
    (folder / "adding.py").write_bytes(
        wrong.encode() + b"\n'''" + (folder / "inner.zip").read_bytes() + b"'''"
    )
    (folder / "inner.zip").unlink()


def broken_zip(folder: Path, wrong: str) -> None:
    write_zip(folder / "adding.zip", [("adding.py", wrong * 50)])
    raw = (folder / "adding.zip").read_bytes()
    (folder / "adding.zip").write_bytes(raw[:60] + b"\xff" * 40 + raw[100:])


def tar_of(folder: Path, *members: tuple[tarfile.TarInfo, bytes], mode: str = "w:gz") -> None:
    with tarfile.open(folder / "adding.tar.gz", mode) as archive:
        for info, data in members:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.devmajor, info.devminor = kind, link, 1, 1
    return info


def tar_with_devices(folder: Path, wrong: str) -> None:
    tar_of(
        folder,
        (member("null", tarfile.CHRTYPE), b""),
        (member("disk", tarfile.BLKTYPE), b""),
        (member("pipe.py", tarfile.FIFOTYPE), b""),
        (member("hard.py", tarfile.LNKTYPE, "/etc/passwd"), b""),
        (member("adding.py"), wrong.encode()),
    )


def tar_through_a_link(folder: Path, wrong: str) -> None:
    tar_of(
        folder,
        (member("out", tarfile.SYMTYPE, "/tmp"), b""),
        (member(f"out/{LEFT_BEHIND}_tar"), b"x"),
        (member(f"/tmp/{LEFT_BEHIND}_tar"), b"x"),
        (member(f"../../{LEFT_BEHIND}_tar"), b"x"),
        (member("adding.py"), wrong.encode()),
    )


def tar_link_to_the_solution(folder: Path, wrong: str) -> None:
    tar_of(folder, (member("adding.py", tarfile.SYMTYPE, str(solution_near(folder))), b""))


def tar_bomb(folder: Path, wrong: str) -> None:
    with gzip.open(folder / "adding.tar.gz", "wb", 1) as stream:
        info = member("adding.py")
        info.size = 8 << 30
        stream.write(info.tobuf())
        for _ in range(100):
            stream.write(bytes(1 << 20))


def tar_with_another_name(folder: Path, wrong: str) -> None:
    info = member("harmless.txt")
    info.pax_headers = {
        "path": f"../../{LEFT_BEHIND}_pax",
        "size": "99999999999",
        "linkpath": "/etc/passwd",
    }
    tar_of(folder, (info, b"x"), (member("adding.py"), wrong.encode()))


def link_to_the_solution(folder: Path, wrong: str) -> None:
    (folder / "adding.py").symlink_to(solution_near(folder))


def links_all_the_way(folder: Path, wrong: str) -> None:
    """Replace the student's folder by a link to the solutions."""
    folder.rmdir()
    folder.symlink_to(solution_near(folder).parent)


def folder_that_is_a_link(folder: Path, wrong: str) -> None:
    folder.rmdir()
    folder.symlink_to("/etc")


def hanging_pipe(folder: Path, wrong: str) -> None:
    os.mkfifo(folder / "adding.py")


def listening_socket(folder: Path, wrong: str) -> None:
    here = os.getcwd()
    os.chdir(folder)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("adding.py")
    finally:
        os.chdir(here)


def device(folder: Path, wrong: str) -> None:
    (folder / "adding.py").symlink_to("/dev/zero")


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


def five_megabytes(folder: Path, wrong: str) -> None:
    (folder / "adding.py").write_text(wrong + "#" * (5 << 20))


def thousands_of_files(folder: Path, wrong: str) -> None:
    (folder / "adding.py").write_text(wrong)
    for n in range(2000):
        (folder / f"{n}.txt").touch()


def in_utf_16(folder: Path, wrong: str) -> None:
    (folder / "adding.py").write_text(RIGHT, "utf-16")


def in_latin_1(folder: Path, wrong: str) -> None:
    (folder / "adding.py").write_bytes(wrong.encode() + b"# \xe9\xff\n")


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


def two_that_differ(folder: Path, wrong: str) -> None:
    (folder / "adding.py").write_text(wrong)
    (folder / "adding.ipynb").write_text(
        '{"cells": [{"cell_type": "code", "source": "def add(a, b): return a + b"}]}'
    )


ATTACKS = [
    Attack("zip_slip", "a zip that writes outside its folder", make=zip_slip),
    Attack(
        "zip_over_the_tests",
        "a zip that replaces the tests and the settings",
        make=zip_over_the_tests,
    ),
    Attack("zip_with_a_link", "a zip whose file is a link to the solution", make=zip_with_a_link),
    Attack("zip_bomb", "a small zip that becomes 200 MB", make=zip_bomb),
    Attack("zip_of_zips", "a zip within a zip, with another answer", make=zip_of_zips),
    Attack("zip_with_a_lie", "a zip that lies about the size of its file", make=zip_with_a_lie),
    Attack("zip_twice_the_same", "a zip with the same name twice", make=zip_twice_the_same),
    Attack("zip_by_lzma", "a zip whose reader needs as much memory as it likes", make=zip_by_lzma),
    Attack("zip_locked", "a zip with a password", make=zip_locked),
    Attack("zip_of_many", "a zip of twenty thousand files", make=zip_of_many),
    Attack(
        "zip_behind_a_program", "a file that is a program and a zip", make=zip_in_front_of_a_program
    ),
    Attack("zip_broken", "a zip with broken bytes", make=broken_zip),
    Attack("tar_with_devices", "a tar with devices, pipes and hard links", make=tar_with_devices),
    Attack("tar_through_a_link", "a tar that writes through its own link", make=tar_through_a_link),
    Attack(
        "tar_link_to_the_solution",
        "a tar whose file is a link to the solution",
        make=tar_link_to_the_solution,
    ),
    Attack("tar_bomb", "a tar of eight gigabytes in a few kilobytes", make=tar_bomb),
    Attack(
        "tar_with_another_name",
        "a tar whose extended header renames its file",
        make=tar_with_another_name,
    ),
    Attack(
        "link_to_the_solution", "a file that is a link to the solution", make=link_to_the_solution
    ),
    Attack(
        "link_to_the_solutions",
        "a folder that is a link to the solutions' folder",
        make=links_all_the_way,
    ),
    Attack("link_to_a_folder", "a folder that is a link to another", make=folder_that_is_a_link),
    Attack("pipe", "a pipe without a writer", make=hanging_pipe),
    Attack("socket", "a socket where a file should be", make=listening_socket),
    Attack("device", "a link to a device without end", make=device),
    Attack(
        "folder_like_the_file", "a folder called like the file", make=folder_called_like_the_file
    ),
    Attack(
        "package_beside_it",
        "a package and a library that an import would prefer",
        make=package_beside_it,
    ),
    Attack(
        "files_that_python_runs",
        "files that Python or pytest would run by themselves",
        make=files_that_python_runs,
    ),
    Attack("five_megabytes", "a file that is too large", make=five_megabytes),
    Attack("thousands_of_files", "a folder of two thousand files", make=thousands_of_files),
    Attack("utf_16", "a file in another encoding that Python would not read so", make=in_utf_16),
    Attack("latin_1", "a file with bytes that are no text", make=in_latin_1),
    Attack(
        "names_that_command", "file names with commands, escapes and tags", make=names_that_command
    ),
    Attack("two_that_differ", "two files with different answers", make=two_that_differ),
]
