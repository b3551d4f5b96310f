"""`autograder grade --watch` as a command: from a file to its page, a clean end, and random kills."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder.cli import app
from autograder.cli.instructors import AS_ROOT
from autograder.gradebook.journal import Reading
from autograder.records import Grade
from tests.autograder.student_repositories import NEEDS_GIT, make_repository
from tests.autograder.tiny_course import SOLUTION, write_tiny_course
from tests.autograder.waiting import wait_until

pytest.importorskip("watchfiles", reason="watchfiles is not installed: pip install '.[watch]'")

NAME = "01_adding"
ROOT = Path(__file__).parents[2]
PROGRAM = "from autograder.cli import main; main()"
STAND_INS = "from tests.autograder.stand_in_graders import main; main()"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tiny_course(tmp_path)
    (tmp_path / "submitted").mkdir()
    return tmp_path


def hand_in(folder: Path, student: str, number: int = 0, text: str = SOLUTION) -> None:
    place = folder / "submitted" / student / NAME / "adding.py"
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = folder / "draft.py"
    draft.write_text(f"{text}\n# {number}\n", "utf-8")
    draft.replace(place)


def page(folder: Path, student: str) -> Path:
    return folder / "grades" / "feedback" / student / f"{NAME}.html"


def grades(folder: Path) -> list[Grade]:
    return list(Reading(folder / "grades" / "grades.jsonl"))


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "grade", "submitted", "--watch", "--jobs", "1", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def watching(
    process: subprocess.Popen[str], is_ready: bool = True
) -> Iterator[subprocess.Popen[str]]:
    try:
        if is_ready:
            first = next((line for line in process.stderr if line.rstrip() != AS_ROOT), "")
            assert first.startswith("Watching submitted."), first + process.stderr.read()
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_work_is_graded_as_it_comes_and_sigterm_ends_in_order(folder: Path) -> None:
    hand_in(folder, "ada")
    with watching(start(folder, "--json")) as process:
        assert wait_until(page(folder, "ada").is_file)
        hand_in(folder, "bob", text="def add(a, b):\n    return a - b\n")
        assert wait_until(page(folder, "bob").is_file)
        second = start(folder)
        said = second.communicate()[1]
        assert second.returncode == 2 and "is in use: process" in said
        process.send_signal(signal.SIGTERM)
        lines, said = process.communicate()
    assert process.returncode == 0
    assert (
        said == "Stopped. What was graded is in the journal; the same command goes on from there.\n"
    )
    records = [json.loads(line) for line in lines.splitlines()]
    assert [(each["student"], each["score"]) for each in records] == [("ada", 10), ("bob", 0)]
    assert all(each["graded_at"] for each in records)
    assert len({grade.seed for grade in grades(folder)}) == 2
    assert "Automatic grading: stopped." in (folder / "grades/status/index.html").read_text()
    assert not (folder / "grades" / "run.json").exists()
    table = (folder / "grades" / "grades.csv").read_text()
    assert "ada,01_adding,graded,10" in table and "bob,01_adding,graded,0" in table


def start_with_stand_ins(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", STAND_INS], cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("begin", "kills", "seconds"),
    [(start_with_stand_ins, 50, 1.5), (start, 5, 4.0)],
    ids=["fifty times", "with real graders"],
)
def test_kills_lose_nothing_and_count_nothing_twice(
    folder: Path, begin: Callable[[Path], subprocess.Popen[str]], kills: int, seconds: float
) -> None:
    """Students hand in all the time; each text is graded at most once, and the last of each is."""
    chance = random.Random(50)
    handed = Counter[str]()
    for number in range(kills):
        with watching(begin(folder), is_ready=number % 2 == 0) as process:
            ends = time.monotonic() + chance.uniform(0, seconds)
            while time.monotonic() < ends:
                student = chance.choice(["ada", "bob", "cleo", "dora", "eve"])
                handed[student] += 1
                hand_in(folder, student, handed[student])
                time.sleep(chance.uniform(0, 0.2))
            process.kill()
    with watching(begin(folder)) as process:
        work = {name: folder / "submitted" / name / NAME / "adding.py" for name in handed}
        texts = {name: file.read_text("utf-8") for name, file in work.items()}
        assert wait_until(lambda: all_are_graded(folder, texts))
        assert wait_until(lambda: all(page(folder, name).is_file() for name in texts))
        table = folder / "grades" / "grades.csv"
        assert wait_until(lambda: len(table.read_text("utf-8").splitlines()) == 1 + len(texts))
    attempts = Counter(grade.attempt for grade in grades(folder))
    assert set(attempts.values()) == {1}
    assert len(attempts) > kills / 2
    lines = (folder / "grades" / "grades.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == len(attempts)  # none of them is damaged


def all_are_graded(folder: Path, texts: dict[str, str]) -> bool:
    stored = folder / "grades" / "submissions"
    latest = {grade.student: grade.submission_sha256 for grade in grades(folder)}
    if latest.keys() != texts.keys():
        return False
    found = {
        name: json.loads((stored / f"{digest}.json").read_text()) for name, digest in latest.items()
    }
    return all(files[0][1] == texts[name] for name, files in found.items())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["submitted", "--cluster", "local:2"], "--watch and --cluster do not go together"),
        (["submitted", "--seed", "3"], "--watch and --seed do not go together"),
        (["submitted", "--assignment", "02_none"], "has no assignment `02_none`"),
        (["submitted", "--output", "submitted"], "is the folder of the submissions"),
        (["submitted", "--output", "submitted/grades"], "lies among the submissions that are watched"),
        (["nowhere"], "There is no folder nowhere."),
    ],
)  # fmt: skip
def test_options_that_do_not_fit_are_a_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(app, ["grade", *words, "--watch", "--jobs", "1"])
    assert said in done.stderr and done.exit_code == 2


@NEEDS_GIT
@pytest.mark.slow
def test_work_in_repositories_is_collected_and_graded(folder: Path) -> None:
    repository = make_repository(folder / "repositories", "ada", {f"{NAME}/adding.py": SOLUTION})
    (folder / "repositories.csv").write_text(f"student,url\nada,{repository.url}\n", "utf-8")
    with watching(start(folder, "--collect", "repositories.csv")) as process:
        assert wait_until(page(folder, "ada").is_file)
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert process.returncode == 0
    assert [(grade.student, grade.score) for grade in grades(folder)] == [("ada", 10.0)]
