"""Attacks by the submitted files themselves: links, pipes, archives, names. None may be followed or unpacked."""

from __future__ import annotations

import zipfile
from pathlib import Path

from tests.autograder.attacks.field import LEFT_BEHIND, Attack


def write_zip(
    path: Path, entries: list[tuple[str, str | bytes]], method: int = zipfile.ZIP_DEFLATED
) -> None:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in entries:
            archive.writestr(name, content)


def zip_slip(folder: Path, wrong: str) -> None:
    up = "../" * 12
    outside = [
        f"{up}tmp/{LEFT_BEHIND}_1", f"/tmp/{LEFT_BEHIND}_2", f"..\\..\\{LEFT_BEHIND}_3",
        f"C:/{LEFT_BEHIND}_4",
    ]  # fmt: skip
    write_zip(folder / "adding.zip", [("adding.py", wrong), *[(name, "x") for name in outside]])


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


ATTACKS = [
    Attack("zip_slip", "a zip that writes outside its folder", make=zip_slip),
    Attack("files_that_python_runs", "files that Python or pytest would run by themselves",
           make=files_that_python_runs),
]  # fmt: skip
