"""Automatic grading, with graders that answer at once: what is graded when, and what happens when something fails."""

from __future__ import annotations

import errno
import os
import pkgutil
import random
import re
import shutil
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from autograder.course.config import Course
from autograder.course.digests import submission_digest
from autograder.course.reading import load_course
from autograder.feedback.live_pages import LivePages
from autograder.gradebook import journal
from autograder.gradebook.final_scores import ClassList
from autograder.gradebook.journal import Journal, Reading
from autograder.gradebook.run_state import OpenRun
from autograder.nbgrader.inbound import Inbound
from autograder.records import Grade, InfrastructureError, Submission
from autograder.runs import run
from autograder.runs.pool import Plan
from autograder.runs.watching import Watching
from autograder.submissions.class_folder import ClassFolder
from tests.autograder.stand_in_graders import StandInGraders, one_point
from tests.autograder.tiny_course import SOLUTION, write_tiny_course

NAME = "01_adding"
NOON = datetime(2026, 11, 27, 12, tzinfo=timezone.utc)


@dataclass
class Room:
    """A course, the folder of its class, and automatic grading on a clock that is set by hand."""

    folder: Path
    course: Course
    graders: StandInGraders
    seconds: float = 0.0
    clock_is_ahead: int = 0
    lines: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    postponed: list[str] = field(default_factory=list)
    class_list: tuple[str, ...] = ()

    @property
    def submitted(self) -> Path:
        return self.folder / "submitted"

    @property
    def grades(self) -> Path:
        return self.folder / "grades"

    def hand_in(self, student: str, text: str = "x = 1\n") -> Path:
        place = self.submitted / student / NAME / "adding.py"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")
        return place

    def start(self, inbound: Inbound | None = None) -> Watching:
        pages = LivePages(
            self.grades, self.course, lambda _: ClassList(), self.problems.append,
            lambda grade: self.lines.append(grade.student), self.postponed.append,
            inbound.publish if inbound else lambda *_: None,
        )  # fmt: skip
        pages.write_all()
        return Watching(
            Plan(self.course, 0),
            inbound or ClassFolder(self.submitted, self.course, None),
            Journal(self.grades),
            pages,
            self.class_list,
            clock=lambda: self.seconds,
            now=lambda: NOON + timedelta(seconds=self.seconds + self.clock_is_ahead),
        )

    def run(self, seconds: float, grading: Watching | None = None) -> Watching:
        """Let time pass, with a step every tenth of a second; return what grades."""
        grading = grading or self.start()
        for _ in range(round(10 * seconds)):
            grading.step()
            self.seconds += 0.1
        return grading

    def journal(self) -> list[tuple[str, str]]:
        """The students in the journal, and the texts that were graded."""
        found = Reading(self.grades / "grades.jsonl")
        return [(grade.student, grade.submission_sha256) for grade in found]


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Room]:
    course = load_course(write_tiny_course(tmp_path / "course"))
    made = Room(tmp_path, course, StandInGraders(one_point(course)))
    made.submitted.mkdir()
    monkeypatch.setattr(run, "graders", made.graders.start)
    monkeypatch.setattr("autograder.runs.changes.Changes.watch", lambda *_: False)
    yield made


def with_quota(room: Room, per_hour: int) -> None:
    file = room.course.root / "course.yml"
    text = file.read_text("utf-8")
    file.write_text(text.replace("load_seconds: 5", f"load_seconds: 5, per_hour: {per_hour}"))
    room.course = load_course(room.course.root)


# ---------------------------------------------------------------------- what is graded


def test_new_and_changed_work_is_graded_once_each_with_its_own_inputs(room: Room) -> None:
    room.hand_in("ada")
    grading = room.run(2)
    room.hand_in("ada", "x = 2\n")
    room.run(10, grading)
    assert [student for student, _ in room.journal()] == ["ada", "ada"]
    assert room.lines == ["ada", "ada"]
    seeds = {grade.seed for grade in Reading(room.grades / "grades.jsonl")}
    assert len(seeds) == 2 and min(seeds).bit_length() > 64


def test_every_grade_has_its_time_and_the_pages_and_the_table_are_written(room: Room) -> None:
    room.hand_in("ada")
    room.run(2)
    (grade,) = Reading(room.grades / "grades.jsonl")
    assert NOON <= datetime.fromisoformat(grade.graded_at) <= NOON + timedelta(seconds=2)
    assert "1 <small>of 10 points" in (room.grades / f"feedback/ada/{NAME}.html").read_text()
    assert "ada,01_adding,graded,1,10" in (room.grades / "grades.csv").read_text()
    assert "ada" in (room.grades / "index.html").read_text()


def test_file_that_is_still_written_is_not_graded(room: Room) -> None:
    grading = room.start()
    for number in range(30):
        room.hand_in("ada", "x = 1\n" * number)
        room.run(0.3, grading)
    assert room.journal() == []
    room.run(2, grading)
    assert len(room.journal()) == 1


def test_file_that_is_renamed_into_place_is_graded(room: Room) -> None:
    grading = room.run(1)
    place = room.hand_in("ada").rename(room.folder / "draft.py")
    room.run(6, grading)
    assert room.journal() == []
    place.rename(room.submitted / "ada" / NAME / "adding.py")
    room.run(6, grading)
    assert len(room.journal()) == 1


def test_unchanged_work_is_not_graded_again_after_a_restart(room: Room) -> None:
    room.hand_in("ada")
    (room.submitted / "bob" / NAME).mkdir(parents=True)
    (room.submitted / "bob" / NAME / "adding.txt").write_text("no program")
    room.run(2)
    assert len(room.journal()) == 2
    room.run(2)
    room.run(2)
    assert len(room.journal()) == 2


def test_page_that_a_killed_run_did_not_write_is_written_at_the_start(room: Room) -> None:
    room.hand_in("ada")
    room.run(2)
    page = room.grades / f"feedback/ada/{NAME}.html"
    page.unlink()
    room.run(0)
    assert page.is_file()


def test_a_hundred_hand_ins_of_one_student_are_graded_once_as_the_newest(room: Room) -> None:
    """While the flood waits for a grader, the others come first."""
    for number in range(100):
        room.hand_in("flood", f"x = {number}\n")
    for student in ("ada", "bob"):
        room.hand_in(student)
    grading = room.run(2)
    room.hand_in("flood", "x = 100\n")
    room.hand_in("cleo")
    room.run(7, grading)
    graded = [student for student, _ in room.journal()]
    assert graded == ["ada", "bob", "flood", "cleo", "flood"]


@pytest.mark.parametrize("is_listed", [True, False])
def test_new_names_with_endless_work_are_graded_in_turn_with_the_class(
    room: Room, is_listed: bool
) -> None:
    """Each new name costs a minute; the class is listed, or was graded before."""
    answer = room.graders.answer

    def answer_late(submission: Submission, seed: int) -> Grade:
        room.seconds += 60 if submission.student.startswith("_") else 0
        return answer(submission, seed)

    room.graders.answer = answer_late
    honest = ("ada", "bob", "cleo")
    for student in honest:
        room.hand_in(student)
    room.class_list = honest if is_listed else ()
    grading = room.run(2)
    for number in range(9):
        room.hand_in(f"_{number}", f"while {number} < 10: pass\n")
    for student in honest:
        room.hand_in(student, "x = 2\n")
    room.run(30, grading)
    graded = [student for student, _ in room.journal()][3:]
    assert len(graded) == 12 and graded[1:6:2] == list(honest)


# ---------------------------------------------------------------------- the quota


def test_quota_postpones_with_a_sentence_and_grades_the_newest_later(room: Room) -> None:
    with_quota(room, 2)
    grading = room.start()
    for number in range(5):
        room.hand_in("ada", f"x = {number}\n")
        room.run(6, grading)
    room.hand_in("bob")
    room.run(6, grading)
    assert [student for student, _ in room.journal()] == ["ada", "ada", "bob"]
    assert len(room.postponed) == 3
    assert room.postponed[-1].startswith(
        "ada: Work for 01_adding was graded 2 times within an hour, as often as this course allows. "
        "The newest version that is handed in until 13:00:0"
    )
    page = room.grades / f"feedback/ada/{NAME}.html"
    assert "is handed in until 13:00:0" in page.read_text()
    room.seconds = 3600
    room.run(20, grading)
    last = room.journal()[-1]
    newest = next(iter(ClassFolder(room.submitted, room.course, None).submissions(["ada"])))
    assert last == ("ada", submission_digest(newest)) and len(room.journal()) == 4
    assert "is graded at" not in page.read_text()


def test_quota_holds_across_a_restart_and_counts_no_refusals(room: Room) -> None:
    with_quota(room, 1)
    bad = room.submitted / "ada" / NAME / "adding.txt"
    bad.parent.mkdir(parents=True)
    bad.write_text("no program")
    room.run(2)
    bad.unlink()
    room.hand_in("ada", "x = 1\n")
    room.run(2)
    room.hand_in("ada", "x = 2\n")
    room.run(2)
    assert [grade.status for grade in Reading(room.grades / "grades.jsonl")] == [
        "refused",
        "graded",
    ]
    assert len(room.postponed) == 1


def test_quota_is_no_reason_to_grade_again(room: Room) -> None:
    room.hand_in("ada")
    room.run(2)
    with_quota(room, 1)
    room.run(2)
    assert len(room.journal()) == 1


# ---------------------------------------------------------------------- failures


def failing(room: Room, times: int, error: Exception) -> None:
    """Let the graders fail so many times with bob's work."""
    answer = room.graders.answer
    left = iter(range(times))

    def fail(submission: Submission, seed: int) -> Grade:
        if submission.student == "bob" and next(left, None) is not None:
            raise error
        return answer(submission, seed)

    room.graders.answer = fail


@pytest.mark.parametrize(
    "error", [InfrastructureError("No memory is left."), BrokenProcessPool("A process died.")]
)
def test_failure_of_the_machine_is_told_and_tried_again_and_delays_nobody(
    room: Room, error: Exception
) -> None:
    failing(room, 3, error)
    for student in ("bob", "cleo"):
        room.hand_in(student)
    grading = room.run(3)
    assert [student for student, _ in room.journal()] == ["cleo"]
    said = (
        "No memory is left." if isinstance(error, InfrastructureError) else "The grader died twice."
    )
    assert room.problems == [f"bob, {NAME}: {said}"]
    room.run(250, grading)
    assert [student for student, _ in room.journal()] == ["cleo", "bob"]
    assert room.graders.pools > 3 or isinstance(error, InfrastructureError)


def test_journal_that_cannot_be_written_is_opened_again_and_loses_nothing(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full while half of a line is written; the rest and its seal are cut off."""
    room.hand_in("ada")
    real = journal.seal
    full = iter(range(2))

    def seal(folder: Path, *given: Any) -> None:
        if next(full, None) is None:
            return real(folder, *given)
        for name, cut_off in (("grades.jsonl", b'{"schema":2,"stud'), ("seals.txt", b"0123")):
            with (folder / name).open("ab") as file:
                file.write(cut_off)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(journal, "seal", seal)
    grading = room.run(3)
    room.hand_in("bob")
    room.run(200, grading)
    assert sorted(student for student, _ in room.journal()) == ["ada", "bob"]
    assert len(room.problems) == 1 and "No space left on device." in room.problems[0]
    with OpenRun(room.grades):  # believes its own seals
        pass


def test_pages_that_cannot_be_written_are_written_later(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "page.html")

    room.hand_in("ada")
    monkeypatch.setattr("autograder.feedback.live_pages.RETRY_SECONDS", 0.0)
    with monkeypatch.context() as patched:
        patched.setattr("autograder.feedback.html.write_page", full)
        grading = room.run(3)
    assert len(room.journal()) == 1 and room.problems == ["page.html: No space left on device."]
    page = room.grades / f"feedback/ada/{NAME}.html"
    assert not page.exists()
    room.run(6, grading)
    assert page.is_file()


def test_folder_that_vanishes_is_told_and_found_again(room: Room) -> None:
    room.hand_in("ada")
    grading = room.run(2)
    kept = room.submitted.rename(room.folder / "away")
    room.run(12, grading)
    assert len(room.problems) == 1 and "submitted" in room.problems[0]
    kept.rename(room.submitted)
    room.hand_in("bob")
    room.run(12, grading)
    assert [student for student, _ in room.journal()] == ["ada", "bob"]


def test_malformed_work_is_refused_and_grading_goes_on(room: Room) -> None:
    place = room.hand_in("ada")
    place.write_bytes(b"\xff\xfe\x00")
    (room.submitted / "bob" / NAME).mkdir(parents=True)
    (room.submitted / "bob" / NAME / "adding.py").symlink_to("/etc/passwd")
    os.mkfifo(room.submitted / "cleo.zip")
    shutil.copytree(room.submitted / "ada", room.submitted / "dora\n\x1b[2J")
    room.hand_in("eve")
    room.run(3)
    statuses = {grade.student: grade.status for grade in Reading(room.grades / "grades.jsonl")}
    assert statuses.pop("eve") == "graded"
    assert len(statuses) == 4 and set(statuses.values()) == {"refused"}
    assert not room.problems


@pytest.mark.parametrize("step", [-7200, 7200])
def test_clock_that_is_set_leaves_all_work_graded(room: Room, step: int) -> None:
    with_quota(room, 2)
    room.hand_in("ada")
    grading = room.run(2)
    before = room.seconds
    room.clock_is_ahead = step
    room.hand_in("ada", "x = 2\n")
    room.run(8, grading)
    assert len(room.journal()) == 2 and room.seconds > before


# ---------------------------------------------------------------------- one never ends it for all


def fail_for_bob(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """Let a function that serves bob among others meet an error that nobody thought of."""
    owner, _, name = place.rpartition(".")
    real = getattr(pkgutil.resolve_name(owner), name)

    def fault(*given: Any) -> Any:
        if "bob" in repr(given):
            raise UnicodeEncodeError("utf-8", "bob", 0, 1, "surrogates not allowed")
        return real(*given)

    monkeypatch.setattr(pkgutil.resolve_name(owner), name, fault)


@pytest.mark.parametrize(
    "place",
    [
        "autograder.gradebook.texts.submission_digest",
        "autograder.submissions.settling.look_at",
        "autograder.feedback.html.write_student_page",
        "autograder.feedback.live_pages.feedback_path",
        "autograder.feedback.live_pages.write_class_report",
        "autograder.runs.watching.grade_anew",
    ],
)
def test_fault_with_one_student_is_told_and_ends_it_for_nobody(
    room: Room, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    if place.endswith("grade_anew"):
        failing(room, 10, ValueError("bob"))
    else:
        fail_for_bob(monkeypatch, place)
    for student in ("ada", "bob", "cleo"):
        room.hand_in(student)
    grading = room.run(3)
    room.hand_in("dora")
    room.run(7, grading)
    room.run(3)
    graded = {student for student, _ in room.journal()}
    assert graded - {"bob"} == {"ada", "cleo", "dora"}
    assert (room.grades / f"feedback/dora/{NAME}.html").is_file()
    faults = [problem for problem in room.problems if "fault of the autograder" in problem]
    assert faults and ("bob" in faults[0] or "class_report" in place)


def odd_names(chance: random.Random) -> Iterator[str]:
    """Names that are no text, or that text, paths and screens are hurt by."""
    letters = [byte for byte in range(1, 256) if byte != ord("/")]
    for length in (1, 3, 20, 90):
        yield os.fsdecode(bytes(chance.choices(letters, k=length)))
    yield from (
        "\ud800".encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape"),
        "\x1b[2J",
    )
    yield from ("..", "-rf", "\u202eada", "a\nb", "con", "a+b", "+", "x" * 200)


@pytest.mark.parametrize("is_inbound", [False, True])
def test_names_of_random_bytes_stop_nobody(room: Room, is_inbound: bool) -> None:
    """In each place where a student chooses a name."""
    inbound = None
    if is_inbound:
        room.submitted.rmdir()
        folder = room.folder / "exchange" / "inbound"
        (folder.parent / "outbound").mkdir(parents=True)
        folder.mkdir()
        inbound = Inbound(folder, room.course, tell=room.problems.append)
    for number, name in enumerate(odd_names(random.Random(1))):
        if inbound:
            file = "submission_secret.txt"
            places = [
                inbound.root / f"{name}+{NAME}+{number}",
                inbound.root / f"s{number}+{NAME}+{name}",
            ]
        else:
            file = "adding.py"
            places = [room.submitted / f"_{name}" / NAME, room.submitted / f"s{number}" / NAME]
        for place in places:
            place.mkdir(parents=True, exist_ok=True)
            (place / file).write_text("x = 1\n", "utf-8")
            (place / f"_{name}.ipynb").write_text("{}", "utf-8")
    grading = room.run(3, room.start(inbound))
    if inbound:
        place = inbound.root / f"zoe+{NAME}+2026"
        place.mkdir()
        (place / "submission_secret.txt").write_text("secret")
        (place / "adding.py").write_text("x = 1\n")
    else:
        room.hand_in("zoe")
    room.run(7, grading)
    room.run(3, room.start(inbound))
    assert [student for student, _ in room.journal()].count("zoe") == 1
    assert (room.grades / f"feedback/zoe/{NAME}.html").is_file()
    assert not [problem for problem in room.problems if "fault" in problem], room.problems


# ---------------------------------------------------------------------- the status page


def test_status_page_loads_itself_again_and_names_nobody(room: Room) -> None:
    with_quota(room, 1)
    room.hand_in("ada", SOLUTION)
    grading = room.run(2)
    room.hand_in("ada", "x = 2\n")
    room.run(8, grading)
    page = (room.grades / "status" / "index.html").read_text("utf-8")
    assert '<meta http-equiv="refresh" content="5">' in page
    assert "<td>Adding</td><td>graded</td>" in page
    assert "<td>Adding</td><td>waits for the next hour</td>" in page
    assert "1 more wait" in page
    assert "ada" not in page.replace("grada", "")
    assert "test_" not in page
    assert not re.search(r"\d of 10\b", page), "no score"
