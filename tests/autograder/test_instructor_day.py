"""A day of an instructor: collect, grade, decide, grade with a mended suite, compare, and export to three sites.

Ada's answer is right. Ben forgets the earlier numbers (7 of 10 points), Cy subtracts (6), Dee is right and two days late,
Fay's message does not name the number (9), and Eve hands in nothing. The golden files were checked by hand.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.autograder.tiny_course import COURSE, HIDDEN, SOLUTION, write_tiny_course
from tests.autograder.typed_commands import run_command

GOLDENS = Path(__file__).parent / "goldens" / "day"
NAME = "01_adding"
POLICY = "late: {percent_a_day: 10}\nassignments:\n  - name: 01_adding\n    due: 2026-11-27 23:59\n"
ROSTER = """\
student,name,canvas,moodle
ada,Ada Lovelace,1001,17
ben,Ben Bit,1002,18
cy,Cy Young,1003,19
dee,Dee Dot,1004,20
eve,Eve Even,1005,21
fay,Fay Fox,1006,22
"""
TIMES = "student,submitted_at\nAda Lovelace,2026-11-27 12:00\nBen Bit,2026-11-27 12:01\nCy Young,2026-11-27 12:02\n"
TIMES += "Dee Dot,2026-11-29 12:00\nFay Fox,2026-11-27 12:03\n"
CANVAS = "Student,ID,SIS Login ID,Section,Adding (77),Essay (78)\n    Points Possible,,,,10,5\n" + "".join(
    f'"{last}, {first}",{number},{first.lower()},S1,,4\n'
    for first, last, number in (
        ("Ada", "Lovelace", 1001), ("Ben", "Bit", 1002), ("Cy", "Young", 1003),
        ("Dee", "Dot", 1004), ("Eve", "Even", 1005), ("Fay", "Fox", 1006),
    )
)  # fmt: skip
MOODLE = (
    "Identifier,Full name,Grade,Maximum Grade,Last modified (grade),Feedback comments\n"
    + "".join(
        f"Participant {number},{name},,10.00,-,\n"
        for number, name in enumerate(
            ("Ada Lovelace", "Ben Bit", "Cy Young", "Dee Dot", "Eve Even", "Fay Fox"), 17
        )
    )
)
ANSWERS = {
    "lovelaceada_1001": SOLUTION,
    "bitben_1002": SOLUTION.replace("self.value = self.value + number", "self.value = number"),
    "youngcy_1003": SOLUTION.replace("a + b", "a - b"),
    "dotdee_LATE_1004": SOLUTION,
    "foxfay_1006": SOLUTION.replace(
        'f"number must not be negative, but it is {number}."', '"too small"'
    ),
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run a command in the course's folder and return its output; it must end with this exit code."""
    course = write_tiny_course(tmp_path / "course")
    (course / "course.yml").write_text(
        COURSE.replace("assignments:\n  - name: 01_adding\n", POLICY), "utf-8"
    )
    (course / "roster.csv").write_text(ROSTER, "utf-8")
    (course / "times.csv").write_text(TIMES, "utf-8")
    (course / "canvas.csv").write_text(CANVAS, "utf-8")
    (course / "moodle.csv").write_text(MOODLE, "utf-8")
    with zipfile.ZipFile(course / "LIN101-adding submissions.zip", "w") as archive:
        for number, (name, text) in enumerate(ANSWERS.items(), 5001):
            archive.writestr(f"{name}_{number}_adding.py", text)
    monkeypatch.chdir(course)
    monkeypatch.setenv("AUTOGRADER_BY", "Grace Hopper")

    return run_command


def golden(name: str) -> str:
    return (GOLDENS / name).read_bytes().decode()


@pytest.mark.slow
def test_a_day_of_an_instructor(run):
    assert run("collect", "LIN101-adding submissions.zip", "--times", "times.csv").startswith(
        "5 submissions"
    )
    run("grade", "submitted", "--seed", "7", "--jobs", "1")
    assert Path("grades/grades.csv").read_bytes().decode() == golden("grades.csv")

    picked = run("decide", "--pick", "72")
    assert picked == "ben, 01_adding: 7 / 10. 70.0 %, below 72 %\n1 submission to review.\n"
    about = ("--assignment", NAME, "--reason")
    run("decide", "ben", "--give", "1", "--part", "total", *about, "You showed it in the tutorial.")
    run("decide", "cy", "--excuse", *about, "Ill.")
    run("decide", "dee", "--accept-late", *about, "The site was down.")
    run(
        "decide", "--drop", "test_first_push_is_the_sum", "--counts", "out", *about,
        "Not in the text.",
    )  # fmt: skip
    run("decide", "ada", "--comment", "Well done.", "--assignment", NAME)
    run("report")
    assert "Decisions" in Path("grades/index.html").read_text("utf-8")

    hidden = HIDDEN.replace(', naming=("number", wrong))', ")")
    Path(f"tests/assignments/{NAME}/test_hidden.py").write_text(hidden, "utf-8")
    run("grade", "submitted", "--seed", "7", "--jobs", "1", "--output", "grades-new")
    changed = run("compare", "grades", "grades-new").splitlines()
    assert [line for line in changed if NAME in line] == [f"fay, {NAME}: 7 / 8 → 8 / 8"]
    assert changed[-1] == "1 up, 4 unchanged."

    run("export", "grades-new", "--to", "csv")
    run("export", "grades-new", "--to", "canvas", "--sheet", "canvas.csv")
    said = run(
        "export", "grades-new", "--to", "moodle", "--sheet", "moodle.csv", "--assignment", NAME,
        code=1,
    )  # fmt: skip
    assert said.startswith(f"cy, {NAME}: excused, so no grade is written.\n")
    assert Path("scores.csv").read_bytes().decode() == golden("scores.csv")
    assert Path("canvas-filled.csv").read_bytes().decode() == golden("canvas-filled.csv")
    assert Path("moodle-filled.csv").read_bytes().decode() == golden("moodle-filled.csv")
