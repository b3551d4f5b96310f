"""A day with a class of thirty names from fourteen writing systems: every grade stands in the row of its student.

Two pairs are called like each other turned round, two students hand in as a group, half of the class is in each of two
sections and one student is in both, and an older download is collected after the newer one. The golden files were
checked by hand: of the answers, A is right (10 points), B forgets the earlier numbers (7), C subtracts (6), and D's
message does not name the number (9).
"""

from __future__ import annotations

import unicodedata
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.autograder.tiny_course import SOLUTION, write_tiny_course
from tests.autograder.typed_commands import run_command

GOLDENS = Path(__file__).parent / "goldens" / "names"
ANSWERS = {
    "A": SOLUTION,
    "B": SOLUTION.replace("self.value = self.value + number", "self.value = number"),
    "C": SOLUTION.replace("a + b", "a - b"),
    "D": SOLUTION.replace('f"number must not be negative, but it is {number}."', '"too small"'),
}
PEOPLE = [  # last name, first name, id, answer
    ("James", "Thomas", "tj", "A"),
    ("Thomas", "James", "jt", "B"),
    ("Li", "Wei", "A/2026/0042", "C"),
    ("Wei", "Li", "A/2026/0043", "D"),
    ("Lovelace", "Ada", "ada", "A"),
    ("O'Brien", "Seán", "o'brien@example.org", "B"),
    ("du Châtelet", "Élodie", "elodie", "C"),
    ("Müller", "Jürgen", "jm", "D"),
    ("Nguyễn", "Văn An", "nva", "A"),
    ("Şahin", "Çağla", "cs", "B"),
    ("Иванова", "Ольга", "oi", "C"),
    ("Шевченко", "Тарас", "ts", "D"),
    ("Παπαδοπούλου", "Ελένη", "ep", "A"),
    ("علي", "محمد", "ma", "B"),
    ("علي", "محمّد", "mma", "C"),
    ("رضایی", "مینا", "mr", "D"),
    ("כהן", "דן", "dk", "A"),
    ("गुप्ता", "राम", "ram", "B"),
    ("गुप्ता", "रमा", "rama", "C"),
    ("ใจดี", "สมชาย", "somchai", "D"),
    ("李", "伟", "lw", "A"),
    ("王", "小明", "wx", "B"),
    ("김", "민준", "km", "C"),
    ("やまだ", "はなこ", "hy", "D"),
    ("ბერიძე", "ნინო", "nb", "A"),
    ("Պետրոսյան", "Անի", "ap", "B"),
    ("குமார்", "செல்வி", "sk", "C"),
    ("ተስፋዬ", "ሰላም", "st", "D"),
    ("Blue", "Una", "ub", "B"),
    ("Blue", "Otto", "ob", "B"),
]
GROUP = "Team Blue"
MEMBERS = ("ub", "ob")


def canvas_name(last: str, first: str) -> str:
    """Return a name as Canvas writes it before a file's name: the sortable name without spaces and signs."""
    kept = (
        letter for letter in f"{last}{first}".lower() if unicodedata.category(letter)[0] in "LM"
    )
    return "".join(kept)


def section(number: int) -> str:
    if number == 4:
        return "North and South"
    return "North" if number % 2 else "South"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run a command in the course's folder and return its output; it must end with this exit code."""
    course = write_tiny_course(tmp_path / "course")
    roster = ["student,name,canvas,group,section"]
    sheet = ["Student,ID,SIS Login ID,Section,Adding (77)", "    Points Possible,,,,10"]
    newer: dict[str, str] = {"teamblue_10029_900029_adding.py": ANSWERS["B"]}
    older: dict[str, str] = {}
    for number, (last, first, identity, answer) in enumerate(PEOPLE):
        canvas = 10001 + number
        group = GROUP if identity in MEMBERS else ""
        known = (
            canvas if number % 3 else ""
        )  # of a third of the class, the roster has only the name
        roster.append(f"{identity},{first} {last},{known},{group},{section(number)}")
        sheet.append(f'"{last}, {first}",{canvas},login{number},{section(number)},')
        if identity in MEMBERS:
            continue
        newer[f"{canvas_name(last, first)}_{canvas}_{900000 + number}_adding-1.py"] = ANSWERS[
            answer
        ]
        if number % 4 == 0:
            older[f"{canvas_name(last, first)}_{canvas}_{800000 + number}_adding.py"] = "x = 1\n"
    (course / "roster.csv").write_text("\n".join(roster) + "\n", "utf-8")
    (course / "canvas.csv").write_text("\n".join(sheet) + "\n", "utf-8")
    for name, files in (
        ("LIN101-adding submissions.zip", newer),
        ("LIN101-adding submissions-old.zip", older),
    ):
        with zipfile.ZipFile(course / name, "w") as archive:
            for entry, text in files.items():
                archive.writestr(entry, text)
    monkeypatch.chdir(course)

    return run_command


def golden(name: str) -> str:
    return (GOLDENS / name).read_bytes().decode()


@pytest.mark.slow
def test_every_grade_stands_in_the_row_of_its_student(run):
    run("collect", "LIN101-adding submissions.zip", "LIN101-adding submissions-old.zip")
    run("grade", "submitted", "--seed", "7", "--jobs", "1")
    assert run("export", "grades", "--to", "csv") == "30 students are in scores.csv.\n"
    run("export", "grades", "--to", "csv", "--section", "North", "--output", "north.csv")
    done = run("export", "grades", "--to", "canvas", "--sheet", "canvas.csv")
    assert "30 scores are in canvas-filled.csv." in done
    for name in ("scores.csv", "north.csv", "canvas-filled.csv"):
        assert Path(name).read_bytes().decode() == golden(name)
