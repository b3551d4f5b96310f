"""Late penalties in nbgrader's gradebook equal those of the autograder."""

from __future__ import annotations

import csv
import json

import pytest

pytest.importorskip("nbgrader", reason="nbgrader is not installed: pip install '.[nbgrader]'")

from tests.autograder.nbgrader.classroom import TINY, Classroom, tiny_classroom

POLICY = """\
timezone: Europe/Berlin
late: {grace_minutes: 15, percent_a_day: 10, extensions: [{student: ben, days: 2}]}
assignments:
  - name: 01_adding
    due: 2026-11-27 23:59
"""
STAMPS = {  # nbgrader's are in UTC
    "ada": "2026-11-29 11:00:00.000000 UTC",
    "ben": "2026-11-29 11:00:00.000000 UTC",
    "cy": "2026-11-27 23:13:59.000000 UTC",
    "dan": None,
}


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Classroom:
    """A class with full marks: ada two days late, ben with an extension, cy within grace, dan only collected."""
    room = tiny_classroom(tmp_path_factory.mktemp("late"))
    course = room.folder / "course.yml"
    course.write_text(
        course.read_text("utf-8").replace("assignments:\n  - name: 01_adding\n", POLICY), "utf-8"
    )
    for student, stamp in STAMPS.items():
        place = room.hand_in(student, room.solution())
        if stamp:
            (place.parent / "timestamp.txt").write_text(stamp, "utf-8")
    dan = {"student": "dan", "assignment": TINY, "submitted_at": "2026-11-28T12:00:00+01:00"}
    collected = json.dumps({"schema": 1, "submissions": [dan]})
    (room.folder / "submitted" / "collected.json").write_text(collected, "utf-8")
    room.nbgrader("generate_assignment", TINY)
    return room


def penalties(room: Classroom) -> dict[str, tuple[float, float]]:
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{room.folder / 'gradebook.db'}", "attention-by-hand") as gradebook:
        submissions = gradebook.assignment_submissions(TINY)
        return {
            s.student.id: (s.score, s.notebooks[0].late_submission_penalty or 0.0)
            for s in submissions
        }


def facts(room: Classroom) -> tuple[str, dict[str, tuple[str | None, str | None]], set[str]]:
    """The due date, the names, and the students whose work waits for grading by hand, in the gradebook."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{room.folder / 'gradebook.db'}", "attention-by-hand") as gradebook:
        names = {
            student.id: (student.first_name, student.last_name) for student in gradebook.students
        }
        waiting = {
            s.student.id for s in gradebook.assignment_submissions(TINY) if s.needs_manual_grade
        }
        return str(gradebook.find_assignment(TINY).duedate), names, waiting


@pytest.mark.slow
def test_gradebook_has_due_date_names_and_refusals(room, tmp_path):
    room = room.copy(tmp_path)
    assert facts(room)[0] == "2026-11-27 22:59:00"
    room.hand_in("eve", b"caf\xe9", "adding.py")
    record = json.loads((room.folder / "submitted" / "collected.json").read_text("utf-8"))
    record["submissions"][0]["name"] = "Dan Brown Smith"
    (room.folder / "submitted" / "collected.json").write_text(json.dumps(record), "utf-8")
    room.nbgrader("autograde", TINY)
    due, names, waiting = facts(room)
    assert (due, names["dan"], waiting) == ("2026-11-27 22:59:00", ("Dan Brown", "Smith"), {"eve"})
    assert room.feedback_text("eve").count("is not UTF-8 text") == 2, "once in each part"


@pytest.mark.slow
def test_nbgraders_gradebook_has_the_same_late_penalties(room):
    output = room.nbgrader("autograde", TINY)
    assert penalties(room) == {
        "ada": (10.0, 2.0), "ben": (10.0, 0.0), "cy": (10.0, 0.0), "dan": (10.0, 1.0),
    }  # fmt: skip
    assert "ada: 10 points, minus 2 for two days late." in output

    room.autograder("grade", "submitted", "--jobs", "1")
    with (room.folder / "grades" / "grades.csv").open(encoding="utf-8", newline="") as file:
        ours = {row["student"]: float(row["final_score"]) for row in csv.DictReader(file)}
    assert ours == {student: score - minus for student, (score, minus) in penalties(room).items()}


COUNTING = """\
import atexit, os
from autograder.gradebook.journal import Reading
begun = []
original = Reading.__iter__
Reading.__iter__ = lambda self: begun.append(self) or original(self)
atexit.register(lambda: open(os.environ["READINGS"], "a").write(f"{len(begun)}\\n"))
"""


def test_journal_is_read_as_often_for_a_class_as_for_one_student(room, tmp_path):
    """Once when grading begins, and once for the late days that other work took."""
    room = room.copy(tmp_path / "course")
    course = room.folder / "course.yml"
    course.write_text(
        course.read_text("utf-8").replace("late: {", "late: {free_days: 1, "), "utf-8"
    )
    (tmp_path / "sitecustomize.py").write_text(COUNTING, "utf-8")
    count = tmp_path / "readings"
    room.nbgrader("autograde", TINY, "--force", PYTHONPATH=str(tmp_path), READINGS=str(count))
    assert max(map(int, count.read_text().split())) == 2
    late = {student: minus for student, (_, minus) in penalties(room).items() if minus}
    assert late == {"ada": 1.0}, "one day of the two is free, and all of dan's"
