"""A hand-in counts when its files have stayed the same for a while, whatever the clocks say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from autograder.submissions.files import STUDENT_ENTRIES
from autograder.submissions.settling import Settling, look_at


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


def test_file_is_complete_when_it_was_seen_unchanged_for_long_enough(
    tmp_path: Path, clock: Clock
) -> None:
    settling = Settling(tmp_path, 0.5, clock)
    file = tmp_path / "ada" / "adding.py"
    for seconds, text, expected in (
        (0.0, "def", False),
        (0.4, "def add", False),  # it has grown
        (0.8, "def add", False),
        (0.9, "def add", True),
        (5.0, "def add", False),  # known
    ):
        clock.seconds = seconds
        if not file.exists() or file.read_text() != text:
            write(file, text)
        assert settling.is_complete("ada") is expected, seconds


def test_changed_content_of_the_same_size_and_time_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "ada" / "adding.py"
    write(file, "a = 1")
    os.utime(file, (1, 1))
    before = look_at(tmp_path / "ada").stamp
    draft = tmp_path / "draft"
    write(draft, "a = 2")
    os.utime(draft, (1, 1))
    draft.replace(file)
    assert look_at(tmp_path / "ada").stamp != before


def test_empty_and_vanished_folders_are_never_complete(tmp_path: Path, clock: Clock) -> None:
    settling = Settling(tmp_path, 0.5, clock)
    (tmp_path / "ada" / "01_adding").mkdir(parents=True)
    for name in ("ada", "nobody"):
        for seconds in (0.0, 10.0):
            clock.seconds = seconds
            assert not settling.is_complete(name)
    assert not settling.is_waiting


@pytest.mark.parametrize("is_there", [True, False])
def test_entry_that_vanished_or_could_not_be_read_counts_again(
    tmp_path: Path, clock: Clock, is_there: bool
) -> None:
    settling = Settling(tmp_path, 0.5, clock)
    file = tmp_path / "ada" / "adding.py"
    write(file, "a = 1")
    assert not settling.is_complete("ada")
    clock.seconds = 1
    assert settling.is_complete("ada")
    if is_there:
        settling.forget("ada")
    else:
        kept = file.parent.rename(tmp_path / "away")
        assert not settling.is_complete("ada")
        kept.rename(file.parent)
    assert not settling.is_complete("ada")
    clock.seconds = 2
    assert settling.due == ["ada"] and settling.is_complete("ada")


def test_links_are_not_followed(tmp_path: Path) -> None:
    write(tmp_path / "secret" / "many.txt", "x")
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / "link").symlink_to(tmp_path / "secret")
    seen = look_at(tmp_path / "ada")
    assert [name for name, *_ in seen.stamp] == ["link"]
    assert seen.folders == (tmp_path / "ada",)


def test_look_at_many_folders_ends_at_the_limit_of_a_student(tmp_path: Path) -> None:
    for number in range(40):
        for inner in range(40):
            (tmp_path / "ada" / str(number) / str(inner)).mkdir(parents=True)
    assert len(look_at(tmp_path / "ada").folders) <= STUDENT_ENTRIES + 1 < 40 * 40
