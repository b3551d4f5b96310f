"""What `grade --watch` notices: changes in the named folders alone, and a command that runs again and again."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

from autograder.runs.changes import Changes
from autograder.runs.repeated import Repeated
from tests.autograder.waiting import HANGS, wait_until

pytest.importorskip("watchfiles", reason="watchfiles is not installed: pip install '.[watch]'")


def test_changes_of_watched_folders_are_noticed_and_links_are_not_followed(tmp_path: Path) -> None:
    seen: set[Path] = set()

    def changed(paths: Collection[Path]) -> None:
        seen.update(paths)

    secret = tmp_path / "secret"
    ada = tmp_path / "class" / "ada"
    secret.mkdir()
    ada.mkdir(parents=True)
    (ada / "link").symlink_to(secret)
    changes = Changes(changed)
    try:
        odd = ada.parent / "\udcff"  # a name in no encoding
        odd.mkdir()
        assert changes.watch({ada.parent, ada, odd}) and not changes.watch({ada, odd, ada.parent})
        number = 0

        def write() -> bool:
            nonlocal number
            number += 1
            (secret / f"{number}.py").write_text("")
            (ada / f"{number}.py").write_text("")
            return bool(seen)

        assert wait_until(write)
        assert {path.parent for path in seen} == {ada}
    finally:
        changes.close()


def test_folder_that_vanishes_can_be_watched_again(tmp_path: Path) -> None:
    seen: list[Path] = []
    folder = tmp_path / "class"
    folder.mkdir()
    changes = Changes(seen.extend)
    try:
        changes.watch({folder})
        shutil.rmtree(folder)
        changes.watch(())
        folder.mkdir()
        assert changes.watch({folder})

        def write() -> bool:
            (folder / f"{len(list(folder.iterdir()))}.py").write_text("")
            return any(path.suffix == ".py" for path in seen)

        assert wait_until(write)
    finally:
        changes.close()


def test_command_is_run_again_and_again_but_never_twice_at_a_time(tmp_path: Path) -> None:
    file = tmp_path / "runs"
    program = (
        "import time\n"
        f"with open({str(file)!r}, 'a') as runs: runs.write('(')\n"
        "time.sleep(0.1)\n"
        f"with open({str(file)!r}, 'a') as runs: runs.write(')')\n"
    )
    problems: list[OSError] = []
    with Repeated([sys.executable, "-c", program], 0.0, problems.append):
        assert wait_until(lambda: file.exists() and file.read_text().count("(") > 2)
    assert "((" not in file.read_text() and problems == []
    with Repeated([str(tmp_path / "nowhere")], 0.0, problems.append):
        assert wait_until(lambda: len(problems) > 2)
    assert problems[0].filename == str(tmp_path / "nowhere")


def test_command_that_runs_is_ended_and_not_begun_again(tmp_path: Path) -> None:
    file = tmp_path / "runs"
    program = f"open({str(file)!r}, 'a').write('x'); import time; time.sleep({HANGS})"
    with Repeated([sys.executable, "-c", program], 0.0, lambda _: None):
        assert wait_until(lambda: file.exists() and file.read_text() == "x")
    assert file.read_text() == "x"
