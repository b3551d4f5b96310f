"""nbgrader's exchange end to end: `submit`, automatic grading of the inbound folder, `fetch_feedback`."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("nbgrader", reason="nbgrader is not installed: pip install '.[nbgrader]'")
pytest.importorskip("watchfiles", reason="watchfiles is not installed: pip install '.[watch]'")

from autograder.gradebook.journal import Reading
from autograder.gradebook.times import read_times
from autograder.nbgrader.inbound import Inbound
from tests.autograder.nbgrader.classroom import BIN, TINY, Classroom, generated_classroom
from tests.autograder.waiting import wait_until

COURSE = "attention-by-hand"
SECRET = "4f" * 64


@pytest.fixture
def room(tmp_path: Path) -> Classroom:
    """A course whose assignment is released, with the exchange beside it."""
    room = generated_classroom(tmp_path / "course")
    exchange = tmp_path / "exchange"
    exchange.mkdir()
    exchange.chmod(0o777)
    settings = room.folder / "nbgrader_config.py"
    text = settings.read_text("utf-8")
    text = text.replace(
        "find_own_tools()\n", f'find_own_tools()\n    c.Exchange.root = "{exchange}"\n', 1
    )
    settings.write_text(text, "utf-8")
    return room


class Student:
    """A student's server: a home of its own, and two lines of settings."""

    def __init__(self, home: Path, exchange: Path, name: str) -> None:
        self.home, self.name = home, name
        home.mkdir()
        (home / "nbgrader_config.py").write_text(
            f'c = get_config()\nc.CourseDirectory.course_id = "{COURSE}"\n'
            f'c.Exchange.root = "{exchange}"\nc.CourseDirectory.student_id = "{name}"\n'
        )

    def nbgrader(self, *words: str) -> str:
        environment = {name: v for name, v in os.environ.items() if not name.startswith("JUPYTER")}
        process = subprocess.run(
            [str(BIN / "nbgrader"), *words],
            cwd=self.home,
            env={
                **environment,
                "HOME": str(self.home),
                "JUPYTER_DATA_DIR": str(self.home / "data"),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.returncode == 0, process.stdout
        return process.stdout

    def feedback(self) -> list[str]:
        """The texts of the feedback that was fetched, oldest first."""
        files = sorted((self.home / TINY / "feedback").rglob("adding.html"))
        return [file.read_text("utf-8") for file in files]


@contextmanager
def watching(room: Classroom, inbound: Path):
    process = subprocess.Popen(
        [str(BIN / "autograder"), "grade", str(inbound), "--watch", "--jobs", "1"],
        cwd=room.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert any(line.startswith("Watching ") for line in process.stdout)
        yield process
        process.send_signal(signal.SIGTERM)
        process.communicate()
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()


def test_submitted_work_is_graded_and_its_feedback_can_be_fetched(
    room: Classroom, tmp_path: Path
) -> None:
    room.nbgrader("release_assignment", TINY)
    exchange = tmp_path / "exchange"
    inbound = exchange / COURSE / "inbound"
    ada = Student(tmp_path / "ada", exchange, "ada")
    ada.nbgrader("fetch_assignment", TINY)
    ada.nbgrader("submit", TINY)
    with watching(room, inbound):
        feedback = exchange / COURSE / "feedback"
        assert wait_until(lambda: list(feedback.glob("*.html")))
        ada.nbgrader("fetch_feedback", TINY)
        (first,) = ada.feedback()
        assert "0 <small>of 10 points" in first and "is not written yet" in first
        shutil.copy(room.folder / "solutions" / TINY / "adding.ipynb", ada.home / TINY)
        ada.nbgrader("submit", TINY)
        assert wait_until(lambda: len(list(feedback.glob("*.html"))) == 2)
    ada.nbgrader("fetch_feedback", TINY)
    first, second = ada.feedback()
    assert "10 <small>of 10 points" in second
    grades = list(Reading(room.folder / "grades" / "grades.jsonl"))
    assert [(grade.student, grade.score) for grade in grades] == [("ada", 0.0), ("ada", 10.0)]
    times, _ = read_times(room.folder / "grades")
    assert times.keys() == {grade.attempt for grade in grades}
    assert feedback.stat().st_mode & 0o777 == 0o711
    room.nbgrader("collect", TINY)
    said = room.nbgrader("autograde", TINY)
    assert "of 10 points" not in said  # the grade in the journal counts
    assert room.gradebook_scores() == {"ada": {"add": 4.0, "total": 6.0}}


# ---------------------------------------------------------------------- the inbound folder alone


def hand_in(inbound: Path, name: str, text: str, secret: str = SECRET) -> Path:
    place = inbound / name
    place.mkdir(parents=True)
    (place / "adding.ipynb").write_text(text)
    if secret:
        (place / "submission_secret.txt").write_text(secret)
    return place


@pytest.fixture
def inbound(tmp_path: Path, room: Classroom) -> Inbound:
    root = tmp_path / "exchange" / COURSE / "inbound"
    root.mkdir(parents=True)
    (root.parent / "outbound").mkdir()
    assert Inbound.fits(root) and not Inbound.fits(root.parent)
    return Inbound(root, room.course)


def test_newest_complete_hand_in_counts(inbound: Inbound) -> None:
    names = [f"a+b+{TINY}+2026-11-2{day} 10:00:00.0 UTC+r{day}" for day in range(4)]
    for name in names[:3]:
        hand_in(inbound.root, name, "{}")
    hand_in(inbound.root, names[3], "{}", secret="")  # still being copied
    hand_in(inbound.root, f"bob+{TINY}+2026-11-20 10:00:00.0 UTC", "{}")
    hand_in(inbound.root, "bob+99_other+2026-11-20 10:00:00.0 UTC+x", "{}")
    (inbound.root / "notes.txt").write_text("")
    found = {each.student: each.path for each in inbound.submissions(names[:1])}
    assert found == {"a+b": inbound.root / names[2]}
    hand_in(inbound.root, f"c+d+{TINY}+2026-11-20 10:00:00.0 UTC", "{}")
    everybody = {each.student for each in inbound.submissions(os.listdir(inbound.root))}
    assert everybody == {"a+b", "bob", "c+d"}


TIMES = [
    "02:30:00 CEST", "02:10:00 CET", "02:20:00.5 +0100", "00:30:00 -0100", "01:40:00",
    "02:10:00 GMT",
]  # fmt: skip


@pytest.mark.parametrize("end", ["", "+r4nd0m"])
@pytest.mark.parametrize("earlier", range(len(TIMES) - 1))
def test_times_of_hand_in_are_instants(inbound: Inbound, earlier: int, end: str) -> None:
    """As texts, 02:30 CEST comes after 02:10 CET."""
    names = [f"a+b+{TINY}+2026-10-25 {clock}{end}" for clock in TIMES[earlier : earlier + 2]]
    for name in names:
        hand_in(inbound.root, name, "{}")
    hand_in(inbound.root, f"a+b+{TINY}+soon{end}", "{}")
    found = {each.student: each.path for each in inbound.submissions(names)}
    assert found == {"a+b": inbound.root / names[1]}


def test_hand_in_through_a_link_gets_no_page_of_others(inbound: Inbound, tmp_path: Path) -> None:
    """A folder that is a link to another's would have the other's secret."""
    real = hand_in(inbound.root, f"ada+{TINY}+2026-11-20 10:00:00.0 UTC+x", "{}")
    link = inbound.root / f"eve+{TINY}+2026-11-20 10:00:00.0 UTC+y"
    link.symlink_to(real)
    assert {each.student for each in inbound.submissions(os.listdir(inbound.root))} == {"ada"}


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder to another user")
def test_hand_in_under_the_name_of_another_user_is_not_graded(
    room: Classroom, inbound: Inbound
) -> None:
    told: list[str] = []
    strict = Inbound(inbound.root, room.course, tell=told.append)
    forged = hand_in(inbound.root, f"daemon+{TINY}+2026-11-20 10:00:00.0 UTC+x", "{}")
    os.chown(forged, 65534, -1)
    assert list(strict.submissions([forged.name])) == []
    assert "was handed in by nobody; it is not graded" in told[0]
    os.chown(forged, 1, -1)
    assert [each.student for each in strict.submissions([forged.name])] == ["daemon"]


def test_page_is_found_only_with_the_secret(inbound: Inbound, tmp_path: Path) -> None:
    """There is one, for the released notebook, however many are handed in and whatever their names are."""
    place = hand_in(inbound.root, f"ada+{TINY}+2026-11-20 10:00:00.0 UTC+x", "{}")
    for name in (b"a.ipynb", b"b.ipynb", b"\xff\xfe.ipynb"):
        Path(os.fsdecode(os.path.join(os.fsencode(place), name))).write_text("{}")
    (submission,) = inbound.submissions(os.listdir(inbound.root))
    page = tmp_path / "page.html"
    page.write_text("feedback")
    inbound.publish(submission, page)
    from nbgrader.utils import notebook_hash

    (published,) = inbound.feedback.iterdir()
    assert published.stem == notebook_hash(secret=SECRET, notebook_id="adding")
    assert published.read_text() == "feedback" and published.stat().st_mode & 0o777 == 0o644
