"""Runs: new inputs in each run, the same inputs after an interruption, and one run at a time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autograder.gradebook.run_state import FILE_NAME, OpenRun
from autograder.gradebook.seals import seal
from autograder.records import RefusedError


def seed_of_a_finished_run(folder: Path, seed: int | None = None) -> int:
    with OpenRun(folder, seed) as run:
        return run.seed


def stop_a_run(folder: Path) -> int:
    with pytest.raises(KeyboardInterrupt), OpenRun(folder) as run:
        raise KeyboardInterrupt
    return run.seed


def test_each_run_draws_a_new_seed(tmp_path: Path) -> None:
    seeds = {seed_of_a_finished_run(tmp_path) for _ in range(20)}
    assert len(seeds) == 20
    assert max(seeds).bit_length() > 100
    assert not (tmp_path / FILE_NAME).exists()


def test_requested_seed_is_used(tmp_path: Path) -> None:
    stop_a_run(tmp_path)
    assert seed_of_a_finished_run(tmp_path, seed=7) == 7


def test_interrupted_run_continues_with_its_seed_and_the_next_run_draws_a_new_one(
    tmp_path: Path,
) -> None:
    stopped = stop_a_run(tmp_path)
    assert seed_of_a_finished_run(tmp_path) == stopped
    assert seed_of_a_finished_run(tmp_path) != stopped


def test_regrade_does_not_continue_an_interrupted_run(tmp_path: Path) -> None:
    stopped = stop_a_run(tmp_path)
    with OpenRun(tmp_path, restarted=True) as run:
        assert run.seed != stopped


@pytest.mark.parametrize("text", ["", "[]", '{"seed": "x"}', "{"])
def test_unreadable_run_file_starts_a_new_run(tmp_path: Path, text: str) -> None:
    seal(tmp_path, FILE_NAME, text.encode())
    (tmp_path / FILE_NAME).write_text(text, "utf-8")
    assert isinstance(seed_of_a_finished_run(tmp_path), int)


def test_second_run_in_a_folder_is_refused_and_names_the_process(tmp_path: Path) -> None:
    with OpenRun(tmp_path):
        holder = json.loads((tmp_path / FILE_NAME).read_text("utf-8"))
        with pytest.raises(RefusedError) as refused:
            OpenRun(tmp_path)
    sentence = str(refused.value)
    assert f"process {holder['process']} on {holder['host']}" in sentence and "--output" in sentence
    seed_of_a_finished_run(tmp_path)
