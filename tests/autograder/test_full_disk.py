"""On a full disk, commands report one sentence with exit code 3 and keep existing files."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from autograder.cli import app
from autograder.gradebook.journal import Journal, Reading
from autograder.records import Grade, InfrastructureError
from autograder.text.files import write_whole

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def fill_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every file that is opened for writing fail."""
    real = Path.open

    def opened(path: Path, mode: str = "r", *options: Any, **more: Any) -> Any:
        if "w" in mode:
            raise FULL
        return real(path, mode, *options, **more)

    monkeypatch.setattr(Path, "open", opened)


def test_failed_write_names_the_file_and_keeps_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    with pytest.raises(InfrastructureError, match="cannot be written: No space left"), Journal(tmp_path) as journal:
        journal.append(grade)
        journal._file = Path("/dev/full").open("ab")  # noqa: SIM115
        journal.append(grade)
    assert [each.student for each in Reading(tmp_path / "grades.jsonl")] == ["ada"]


def test_a_command_ends_with_exit_code_3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`report` writes its pages with `write_whole`; here every write fails."""
    with Journal(tmp_path) as journal:
        journal.append(Grade("ada", "03_masked_heads", "graded", 1.0, 15.0))

    fill_the_disk(monkeypatch)
    done = CliRunner().invoke(app, ["report", str(tmp_path), "--course", str(Path(__file__).parents[2])])
    assert done.exit_code == 3
    assert done.output.strip().endswith("No space left on device.") and "Traceback" not in done.output
