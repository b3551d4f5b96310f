"""On a full or read-only disk, commands report one sentence with exit code 3 and keep existing files."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from autograder.cli import app
from autograder.gradebook.journal import Journal, Reading
from autograder.records import Grade, InfrastructureError, RefusedError
from autograder.text.files import check_folder, write_whole
from tests.autograder.tiny_course import write_tiny_course

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def fill_the_disk(monkeypatch: pytest.MonkeyPatch, name: str = "") -> None:
    """Let every file fail that is opened for writing, or those with `name` in theirs."""
    real = os.open

    def opened(path: str, flags: int, *options: Any, **more: Any) -> int:
        if flags & os.O_CREAT and name in os.path.basename(path):
            raise FULL
        return real(path, flags, *options, **more)

    monkeypatch.setattr(os, "open", opened)


def descriptor_of(file: Path) -> int:
    """Return the descriptor under which this process has opened a file."""
    links = [*Path("/proc/self/fd").iterdir()]
    (descriptor,) = (int(link.name) for link in links if link.resolve() == file.resolve())
    return descriptor


def test_failed_write_names_the_file_and_keeps_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "page.html"
    write_whole(file, "old")

    fill_the_disk(monkeypatch)
    with pytest.raises(OSError) as error:
        write_whole(file, "new")
    assert error.value.filename == str(file)
    assert file.read_text() == "old" and list(tmp_path.iterdir()) == [file]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_full_disk_raises_infrastructure_error_from_the_journal(tmp_path: Path) -> None:
    grade = Grade("ada", "01_adding", "graded", 1.0, 1.0)
    with (
        pytest.raises(InfrastructureError, match="cannot be written: No space left"),
        Journal(tmp_path) as journal,
    ):
        journal.append(grade)
        with Path("/dev/full").open("ab") as full:
            os.dup2(full.fileno(), descriptor_of(journal.path))
        journal.append(grade)
    assert [each.student for each in Reading(tmp_path / "grades.jsonl")] == ["ada"]


def test_a_command_ends_with_exit_code_3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`report` writes its pages with `write_whole`; here every write fails."""
    with Journal(tmp_path) as journal:
        journal.append(Grade("ada", "03_masked_heads", "graded", 1.0, 15.0))

    fill_the_disk(monkeypatch)
    course = str(Path(__file__).parents[2])
    done = CliRunner().invoke(app, ["report", str(tmp_path), "--course", course])
    assert done.exit_code == 3 and "Traceback" not in done.output
    assert done.output.strip().endswith("No space left on device.")


READ_ONLY = SimpleNamespace(f_flag=getattr(os, "ST_RDONLY", 0))


@pytest.mark.skipif(not hasattr(os, "statvfs"), reason="asks the file system for its flags")
@pytest.mark.parametrize(
    "command", ["export --to csv GRADES --output DISK/all.csv", "collect GRADES --output DISK/in"]
)
def test_a_read_only_disk_ends_with_exit_code_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    root = write_tiny_course(tmp_path / "course")
    with Journal(tmp_path / "grades") as journal:
        journal.append(Grade("ada", "01_adding", "graded", 1.0, 10.0))
    disk = tmp_path / "disk"
    disk.mkdir()
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != disk and may(path, mode))
    with pytest.raises(RefusedError, match="no permission"):
        check_folder(disk)
    monkeypatch.setattr(os, "statvfs", lambda path: READ_ONLY)
    words = command.replace("GRADES", str(tmp_path / "grades")).replace("DISK", str(disk)).split()
    done = CliRunner().invoke(app, [*words, "--course", str(root)])
    assert done.exit_code == 3, done.output
    assert done.output.strip().endswith("Read-only file system.") and list(disk.iterdir()) == []
