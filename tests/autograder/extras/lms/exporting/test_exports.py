"""Exports for other tools: golden files from each tool's documented format, and the round trip."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from autograder.cli import app
from autograder.course.config import Course
from autograder.extras.lms.exports import ExportRequest, export
from autograder.extras.lms.exports.classroom50 import scale
from autograder.extras.lms.exports.gradescope_run import results
from autograder.extras.lms.roster import read_roster
from autograder.extras.lms.sheet import Sheet
from autograder.gradebook.journal import Journal
from autograder.records import Grade, RefusedError
from tests.autograder.extras.lms.exporting.exported_class import (
    CLASS,
    GOLDENS,
    NAME,
    ada,
    course_built,
    golden,
)
from tests.autograder.extras.strangers_package import example_of_the_docs, installed_package
from tests.autograder.tables import column, rows_of

RUNNER = {
    "CLASSROOM": "cs-principles",
    "ASSIGNMENT": "adding",
    "ASSIGNMENT_TYPE": "individual",
    "OWNER": "ada",
    "SUBMISSION_TAG": "submit/2026-03-20T22-58-00Z-a1b2c3d",
    "COMMIT_URL": "https://example.org/ada/adding/commit/a1b2c3d",
    "RELEASE_URL": "https://example.org/ada/adding/releases/tag/submit",
    "REVIEW_URL": "https://example.org/ada/adding/compare/0000000...a1b2c3d",
}


# ------------------------------------------------------------------ Canvas


def test_canvas_export_changes_only_the_scores(ask, tmp_path):
    exported = ask("canvas", "canvas-downloaded.csv")
    assert (tmp_path / "canvas-downloaded-filled.csv").read_bytes() == golden("canvas-filled.csv")
    assert (tmp_path / "canvas-downloaded.csv").read_bytes() == golden("canvas-downloaded.csv")
    assert exported.problems == [f"1003, {NAME}: EX is there already and is kept."]
    assert exported.summary == (
        f"3 scores are in {tmp_path / 'canvas-downloaded-filled.csv'}. 1 of them replaced another score. "
        "Nothing was filled in for Student, Test."
    )


def test_canvas_scales_scores_to_the_gradebooks_maximum_with_a_message(ask, tmp_path):
    exported = ask(
        "canvas", "canvas-downloaded.csv", grades=(ada(),), assignment=NAME, column="Essay"
    )
    assert "Essay (88124) is out of 5 there: scores out of 10 are scaled." in exported.summary
    assert "Section 1,,3.75,," in (tmp_path / "canvas-downloaded-filled.csv").read_text("utf-8")


@pytest.mark.parametrize(
    "title, found",
    [
        ("1 Adding (5)", True),
        ("01_adding (5)", True),
        ("ADDING (5)", True),
        ("Adding", False),
        ("Add (5)", False),
    ],
)
def test_canvas_column_is_found_by_title_or_name(fill, title, found):
    exported, filled = fill("canvas", f"Student,ID,{title}\nAda Lovelace,1001,\n")
    assert (bool(exported.problems), "1001,7.5" in filled) == (not found, found)


def test_export_does_not_overwrite_a_filled_sheet(ask, tmp_path):
    (tmp_path / "canvas-downloaded-filled.csv").write_text("by hand", "utf-8")
    ask("canvas", "canvas-downloaded.csv")
    assert (tmp_path / "canvas-downloaded-filled.csv").read_text("utf-8") == "by hand"
    assert (tmp_path / "canvas-downloaded-filled-2.csv").read_bytes() == golden("canvas-filled.csv")
    with pytest.raises(RefusedError, match="is there already"):
        ask("canvas", "canvas-downloaded.csv", output=tmp_path / "canvas-downloaded.csv")


def test_students_without_a_score_are_named_with_its_column_if_they_have_others(
    course, ask, tmp_path
):
    (first,) = course.assignments
    second = first.model_copy(update={"name": "02_totals", "title": "Totals"})
    both = course.model_copy(update={"assignments": (first, second)})
    grades = (ada(), replace(ada(), assignment="02_totals"), replace(ada(), student="1002"))
    sheet = tmp_path / "sheet.csv"
    rows = "Student,ID,Adding (5),Totals (6)\nAda,1001,,\nGrace,1002,,\nAlan,1003,,\n"
    sheet.write_text(rows, "utf-8")
    exported = export("canvas", ExportRequest(both, grades, None, sheet=sheet))
    assert exported.summary.endswith("Nothing was filled in for Grace (Totals (6)), Alan.")


@pytest.mark.parametrize("tool", ["csv", "junit", "gradescope"])
def test_export_overwrites_only_earlier_exports(ask, course, tmp_path, tool):
    course_built(course)
    path = tmp_path / "output"
    ask(tool, output=path, assignment=NAME)
    ask(tool, output=path, assignment=NAME, grades=())
    path.write_text("Student,ID\nfrom Canvas\n")
    with pytest.raises(RefusedError, match="`export` did not write it"):
        ask(tool, output=path, assignment=NAME)
    assert path.read_text() == "Student,ID\nfrom Canvas\n"


# ------------------------------------------------------------------ Moodle


def test_moodle_export_changes_only_the_grades(ask, tmp_path):
    exported = ask("moodle", "moodle-downloaded.csv")
    assert (tmp_path / "moodle-downloaded-filled.csv").read_bytes() == golden("moodle-filled.csv")
    assert exported.problems == [
        "1003: Moodle says that this grade cannot be changed.",
        f"1004 (=cmd|' /C calc'!A0), {NAME}: not found in moodle-downloaded.csv.",
    ]
    assert exported.summary.endswith("Nothing was filled in for Alan Turing, Barbara Liskov.")


def test_german_moodle_worksheet_with_decimal_commas_is_filled(ask, tmp_path):
    third = Grade("1002", NAME, "graded", 10 / 3, 10)
    exported = ask("moodle", "moodle-german-downloaded.csv", grades=(ada(), third))
    assert (tmp_path / "moodle-german-downloaded-filled.csv").read_bytes() == golden(
        "moodle-german-filled.csv"
    )
    assert "Bewertung is out of 100 there: scores out of 10 are scaled." in exported.summary


@pytest.mark.parametrize("tool", ["canvas", "moodle"])
def test_table_of_another_kind_is_refused(ask, tmp_path, tool):
    sheet = tmp_path / "other.csv"
    sheet.write_text("apples,pears\n1,2\n", "utf-8")
    with pytest.raises(RefusedError, match="other.csv is no"):
        ask(tool, sheet=sheet)
    with pytest.raises(RefusedError, match="Say with --sheet"):
        ask(tool)


@pytest.mark.parametrize(
    "data", [b"PK\x03\x04", b"\0\0\0", b"", b'a,"b\n1,2', b"\xff\xfe\0", b"\n\n"]
)
def test_file_that_is_not_a_table_is_refused(ask, tmp_path, data):
    sheet = tmp_path / "broken.csv"
    sheet.write_bytes(data)
    with pytest.raises(RefusedError, match=r"broken\.csv.*\."):
        ask("canvas", sheet=sheet)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_sheet_keeps_all_other_cells_and_the_encoding(encoding, end):
    cells = ["Näme;ID;Grade", '"Lovelace; ""Ada""";1;', "Émilie ;2;", "short"]
    sheet = Sheet(
        (end.join([cells[0].replace("ID", '"ID"'), cells[1], "", *cells[2:]])).encode(encoding),
        "sheet.csv",
    )
    blank = [*cells[:2], "", *cells[2:]]
    assert sheet.data == (end.join(blank) + end).encode(encoding)
    assert sheet.rows == [['Lovelace; "Ada"', "1", ""], ["Émilie ", "2", ""], ["short"]]
    sheet.fill(0, 2, "7;5")
    sheet.fill(1, 2, "8")
    filled = [cells[0], cells[1] + '"7;5"', "", cells[2] + "8", cells[3]]
    assert sheet.data == (end.join(filled) + end).encode(encoding)


MOODLE_HEADERS = [
    "Identifier,Full name,Status,Grade,Maximum grade,Grade can be changed",
    "ID,Nama lengkap,Status,Nilai,Nilai maksimum,Nilai dapat diubah",
    "Identifiant,Nom complet,Statut,Note,Note maximale,La note peut être modifiée",
    "Identificador,Nombre completo,Estado,Calificación,Calificación máxima,La calificación puede ser cambiada",
    "Идентификатор,Полное имя,Статус,Оценка,Максимальная оценка,Оценка может быть изменена",
    "المُعرَّف,الاسم كاملا,الحالة,الدرجة,أعلى تقدير,يمكن تغيير الدرجة",
    "ID,フルネーム,ステータス,評点,最大評点,評点変更可",
    "Identyfikator,Pełna nazwa,Status,Ocena,Maksymalna ocena,Ostatnia aktualizacja (ocena)",
]


@pytest.mark.parametrize("header", MOODLE_HEADERS)
def test_moodle_worksheets_of_many_languages_have_their_maximum(fill, header):
    exported, filled = fill("moodle", f'{header}\nTeilnehmer/in1001,Ada Lovelace,x,,"100,00",Ja\n')
    assert not exported.problems
    assert filled.splitlines()[1] == 'Teilnehmer/in1001,Ada Lovelace,x,75,"100,00",Ja'


@pytest.mark.parametrize(
    "columns, cells, sentence",
    [
        (",Last modified (grade)", ",-", "maximum of `Grade` was not"),
        ("", "", "maximum of `Grade` was not found, so no score"),
        (",Scale", "Good,x", r"scale in words \(Good\)"),
        (",Maximum grade", ",Very good", r"scale in words \(Very"),
        (",Maximum grade", "Good,", r"scale in words \(Good\)"),
        (",Maximum grade", ",", "unless the grade is a scale in words: then choose points"),
        (",Maximum grade", ',"1,000.00"', "maximum of `Grade` was not found, so no score"),
    ],
)
def test_moodle_worksheet_without_a_maximum_in_points_is_refused(
    fill, tmp_path, columns, cells, sentence
):
    with pytest.raises(RefusedError, match=sentence):
        fill(
            "moodle",
            f"Identifier,Full name,Grade{columns}\nParticipant 1001,Ada Lovelace,{cells}\n",
        )
    assert not (tmp_path / "sheet-filled.csv").exists()


@pytest.mark.parametrize(
    "excused", ["EX", "ex", "Ex", "n/a", "Excused", "Missing", "Complete", "nan", "1_0"]
)
def test_canvas_keeps_a_text_in_place_of_a_score(fill, excused):
    text = f"Student,ID,Section,Adding (5)\nAda Lovelace,1001,S,{excused}\n"
    problem = f"1001, {NAME}: {excused} is there already and is kept."
    exported, _ = fill("canvas", text)
    assert exported.problems == [problem]
    assert exported.summary == "Nothing was filled in, and no file was written."


@pytest.mark.parametrize(
    "title, points, word",
    [
        ("Final Grade (5)", "10", "its title contains “Final Grade”"),
        ("My Current Score (5)", "10", "its title contains “Current Score”"),
        ("Adding (5)", "(read only)", "it is read-only"),
    ],
)
def test_canvas_columns_that_are_not_imported_are_told(fill, title, points, word):
    text = f"Student,ID,Section,{title}\nPoints Possible,,,{points}\nAda Lovelace,1001,S,\n"
    (problem,) = fill("canvas", text, assignment=NAME, column=title)[0].problems
    told = f"{NAME}: Canvas does not import the column “{title}”, because {word}."
    assert problem.startswith(told)


def test_moodle_feedback_contains_a_page_per_participant(give_pages):
    exported, archive = give_pages()
    with zipfile.ZipFile(archive) as packed:
        pages = {name: packed.read(name).decode() for name in packed.namelist()}
    assert sorted(pages) == [
        f"Ada Lovelace_1001_assignsubmission_file_{NAME}.html",
        f"Grace Hopper_1002_assignsubmission_file_{NAME}.html",
        f"Participant_1003_assignsubmission_file_{NAME}.html",
    ]
    assert all(f"<bdi>{name.split('_')[1]}</bdi>" in page for name, page in pages.items())
    assert exported.summary.startswith("3 pages are in ")
    assert exported.problems == [
        f"1004 (=cmd|' /C calc'!A0), {NAME}: not found in moodle-downloaded.csv."
    ]


# ------------------------------------------------------------------ CSV


def test_csv_has_a_row_per_student_and_no_formulas(ask, tmp_path):
    exported = ask("csv", output=tmp_path / "scores.csv")
    assert (tmp_path / "scores.csv").read_bytes() == golden("scores.csv")
    assert exported.summary == f"4 students are in {tmp_path / 'scores.csv'}."


def test_every_export_reports_points_that_differ_from_course_yml(ask, tmp_path):
    """The message equals that of `report` and mentions only exported assignments."""
    old = Grade("1005", NAME, "graded", 3, 3)
    said = f"{NAME}: there are grades out of 3 points, but course.yml says 10. `autograder grade` grades these again."
    for tool, options in (
        ("csv", {}),
        ("junit", {}),
        ("canvas", {"like": "canvas-downloaded.csv"}),
    ):
        problems = ask(tool, grades=(ada(), old), output=tmp_path / tool, **options).problems
        assert said in problems
    assert said not in ask("csv", grades=(ada(),), output=tmp_path / "csv").problems


@pytest.mark.parametrize("tool, sheet", [("csv", ""), ("canvas", "canvas-downloaded.csv")])
def test_grades_of_a_removed_assignment_are_reported(ask, tmp_path, tool, sheet):
    lost = Grade("1001", "00_old", "graded", 3, 3)
    problems = ask(tool, sheet, grades=(ada(), lost), output=tmp_path / "out.csv").problems
    assert problems == ["00_old is not an assignment of this course; its grades are left out."]


# ------------------------------------------------------------------ points given by hand in formgrader


@pytest.fixture(scope="module")
def gradebook(tmp_path_factory) -> str:
    """nbgrader's gradebook with the autograder's points of `ada`."""
    api = pytest.importorskip("nbgrader.api", reason="nbgrader is not installed")
    path = tmp_path_factory.mktemp("gradebook") / "gradebook.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(
            "PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        )  # for alembic
        book = api.Gradebook(f"sqlite:///{path}", "a course")
    with book:
        book.add_assignment(NAME)
        book.add_notebook("adding", NAME)
        for part, most in (("add", 4), ("total", 6)):
            book.add_grade_cell(part, "adding", NAME, max_score=most, cell_type="code")
        book.add_solution_cell("write-add", "adding", NAME)
        book.add_student("1001")
        book.add_submission(NAME, "1001")
        for part, auto in (("add", 1.5), ("total", 6)):
            book.find_grade(part, "adding", NAME, "1001").auto_score = auto
        book.db.commit()
    return str(path)


@pytest.fixture
def formgrader(gradebook, course: Course):
    """Give `ada` points and comments as an instructor does in formgrader."""
    from nbgrader.api import Gradebook

    def give(manual: float | None = None, extra: float | None = None, comment: str = "") -> None:
        path = shutil.copy(gradebook, course.root / "gradebook.db")
        with Gradebook(f"sqlite:///{path}", "a course") as book:
            cell = book.find_grade("add", "adding", NAME, "1001")
            cell.manual_score, cell.extra_credit = manual, extra
            book.find_comment("write-add", "adding", NAME, "1001").manual_comment = comment or None
            book.db.commit()

    return give


@pytest.mark.slow
@pytest.mark.parametrize(
    "manual, extra, total",
    [(3.5, None, "9.5"), (None, 2, "9.5"), (0, 1, "7"), (4, 2, "12"), (None, None, "7.5")],
)
def test_manual_points_and_extra_credit_count(formgrader, command, tmp_path, manual, extra, total):
    """Manual points replace the part's points, and extra credit is added, as in nbgrader."""
    formgrader(manual, extra)
    done = command.to_csv()
    assert done.exit_code == 0, done.stderr
    noted = "Points given by hand in nbgrader count for 1001." in done.stdout
    assert noted == ((manual, extra) != (None, None))
    scores = column(tmp_path / "scores.csv", "total")
    assert (scores["1001"], scores["1002"]) == (total, "10")


@pytest.mark.slow
def test_comments_of_formgrader_are_exported(formgrader, command, tmp_path):
    formgrader(comment="=Almost.")
    command.to_csv()
    comments = column(tmp_path / "scores.csv", "comments")
    assert (comments["1001"], comments["1002"]) == (f"{NAME}: =Almost.", "")
    sheet = Path(shutil.copy(GOLDENS / "moodle-downloaded.csv", tmp_path))
    command(str(tmp_path / "grades"), "--to", "moodle", "--sheet", str(sheet), "--assignment", NAME)
    filled = rows_of(tmp_path / "moodle-downloaded-filled.csv")
    (row,) = (row for row in filled if row["Full name"] == "Ada Lovelace")
    assert (row["Grade"], row["Feedback comments"]) == ("7.5", "'=Almost.")


def test_invalid_gradebook_is_reported(command, course, tmp_path):
    pytest.importorskip("nbgrader.api", reason="nbgrader is not installed")
    (course.root / "gradebook.db").write_bytes(b"no database" * 100)
    done = command.to_csv()
    assert (done.exit_code, (tmp_path / "scores.csv").is_file()) == (1, True)
    assert done.stderr.startswith(
        "nbgrader's gradebook cannot be read (DatabaseError): points given by hand are"
    )


# ------------------------------------------------------------------ students who handed in nothing


def test_csv_with_a_roster_has_a_row_for_every_student(ask, tmp_path):
    people = "ada42,Ada Lovelace,1001\nben,Ben Ito,2001\n1003,Alan Turing,\ncy,=Cy,2002\n"
    (tmp_path / "roster.csv").write_text(f"student,name,canvas\n{people}", "utf-8")
    table = tmp_path / "scores.csv"
    exported = ask("csv", output=table, roster=read_roster(tmp_path / "roster.csv"))
    rows = {row["student"]: (row["name"], row[NAME], row["total"]) for row in rows_of(table)}
    assert (rows["ben"], rows["cy"]) == (("Ben Ito", "", "0"), ("'=Cy", "", "0"))
    assert set(rows) == {"", "1001", "1002", "1003", "1004", "ben", "cy"}
    assert exported.summary.endswith(" No work of Ben Ito, =Cy was graded.")


# ------------------------------------------------------------------ JUnit


def test_junit_export_matches_the_golden_file(ask, tmp_path):
    """The golden file was checked by the schema that Jenkins publishes (junit-4.xsd)."""
    ask("junit", output=tmp_path / "junit.xml")
    assert (tmp_path / "junit.xml").read_bytes() == golden("junit.xml")


# ------------------------------------------------------------------ Classroom 50


def test_exports_show_a_followed_test_as_passed(ask, course, tmp_path, monkeypatch):
    first, second, *others = ada().tests
    message = "Right, once `add` is right."
    followed = replace(second, outcome="followed", score=second.max_score, message=message)
    grade = replace(ada(), tests=(first, followed, *others))
    ask("junit", grades=(grade,), output=tmp_path / "junit.xml")
    root = ElementTree.parse(tmp_path / "junit.xml").getroot()
    case = root.findall("testsuite/testcase")[1]
    assert [element.tag for element in case] == ["system-out"] and message in (case[0].text or "")
    record = results(course, course.assignments[0], grade, set(), "visible")["tests"][1]
    assert record["status"] == "passed" and message in record["output"]
    ask("classroom50", grades=(grade,), output=tmp_path / "result.json")
    assert json.loads((tmp_path / "result.json").read_text())["tests"][1]["passed"] is True


def test_classroom50_export_matches_the_golden_file(ask, tmp_path, monkeypatch):
    for name, value in RUNNER.items():
        monkeypatch.setenv(name, value)
    ask("classroom50", grades=(ada(),), output=tmp_path / "result.json")
    record = json.loads((tmp_path / "result.json").read_text("utf-8"))
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", record["graded_at"])
    record["graded_at"] = "2026-03-21T08:00:00Z"
    assert record == json.loads(golden("classroom50.json"))


def test_scale_converts_points_to_integers():
    for points, times in (
        ([1, 2], 1),
        ([0.5, 1], 2),
        ([0.75, 1 / 3], 12),
        ([], 1),
        ([0.1, 0.2], 10),
    ):
        assert scale(points) == times


# ------------------------------------------------------------------ the command


@pytest.fixture
def command(course: Course, tmp_path: Path, monkeypatch):
    grades = tmp_path / "grades"
    with Journal(grades) as journal:
        for grade in CLASS:
            journal.append(grade)
    monkeypatch.chdir(course.root)

    def run(*words: str):
        return CliRunner().invoke(app, ["export", *words])

    table = str(tmp_path / "scores.csv")
    run.to_csv = lambda: run(str(grades), "--to", "csv", "--output", table)  # type: ignore[attr-defined]
    return run


def test_export_command_fills_a_sheet_and_lists_missing_students(command, tmp_path):
    sheet = shutil.copy(GOLDENS / "canvas-downloaded.csv", tmp_path)
    done = command(str(tmp_path / "grades"), "--to", "canvas", "--sheet", str(sheet))
    assert done.exit_code == 1
    assert done.stdout.startswith("3 scores are in")
    assert "EX is there already and is kept" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["grades", "--to", "spreadsheet"],
        ["nowhere", "--to", "csv"],
        ["--to", "gradescope"],
        ["--to", "gradescope", "--assignment", "99_none"],
        ["../grades", "--to", "canvas", "--sheet", "nothing.csv"],
        ["../grades", "--to", "canvas", "--sheet", "."],
        ["../grades", "--to", "csv", "--roster", "course.yml"],
        ["../grades", "--to", "csv", "--output", "course.yml/scores.csv"],
    ],
)
def test_export_command_reports_wrong_arguments(command, words):
    done = command(*words)
    assert done.exit_code == 2
    assert done.stderr.count("\n") <= 2 and done.stderr.strip().endswith((".", "`."))


def test_export_command_reports_unreadable_grades(command, tmp_path):
    with (tmp_path / "grades" / "grades.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"a": 1}\n')
    done = command.to_csv()
    assert (done.exit_code, (tmp_path / "scores.csv").exists()) == (1, True)
    assert f"line {len(CLASS) + 1} cannot be read; the grade in it is missing." in done.stderr


def test_export_contains_the_score_after_lateness(course, tmp_path, monkeypatch):
    """Graded two days late at 10 % a day: the sheet has the final score, the journal the raw score."""
    file = course.root / "course.yml"
    policy = "late: {percent_a_day: 10, most_percent: 50}\n"
    due = "    minutes: 10\n    due: 2026-03-18T23:58:00\n"
    text = file.read_text("utf-8").replace("    minutes: 10\n", due)
    file.write_text(policy + text, "utf-8")
    grades = tmp_path / "grades"
    with Journal(grades) as journal:
        journal.append(ada())
    entry = {"student": "1001", "assignment": NAME, "submission_sha256": ""}
    times = {"schema": 1, "times": [{**entry, "at": "2026-03-20T23:00:00+00:00"}]}
    (grades / "times.json").write_text(json.dumps(times), "utf-8")
    monkeypatch.chdir(course.root)
    done = CliRunner().invoke(
        app, ["export", str(grades), "--to", "csv", "--output", str(tmp_path / "scores.csv")]
    )
    assert done.exit_code == 0, done.stderr
    assert "1001,,6,6" in (tmp_path / "scores.csv").read_text("utf-8")


def test_a_package_adds_an_export(command, tmp_path: Path) -> None:
    names = "[autograder.exports]\nbrightspace = of_a_stranger:BrightspaceExport\nbroken = of_a_stranger:Nothing\n"
    text = example_of_the_docs("brightspace.py")
    with installed_package(tmp_path / "site-packages", "of_a_stranger", text, names):
        told = [
            command(str(tmp_path / "grades"), "--to", tool)
            for tool in ("brightspace", "broken", "mood")
        ]
    assert told[0].exit_code == 0, told[0].output
    lines = Path("brightspace.csv").read_text("utf-8").splitlines()
    assert lines[0] == f"Username,{NAME} Points Grade,End-of-Line Indicator"
    assert lines[1:] == ["1001,7.5,#", "1002,10,#", "1003,2,#", "1004,0,#"]
    assert told[1].exit_code == 3
    assert "The extension `broken` (of_a_stranger:Nothing) cannot be imported" in told[1].stderr
    assert told[2].exit_code == 2 and "satisfied, brightspace, broken" in told[2].stderr


@pytest.mark.parametrize("hidden", ["\x1b[31m", "\x00", "\u202e", "\u2066", "\x9b"])
def test_cells_hold_no_characters_that_control_a_terminal_or_the_direction(hidden: str) -> None:
    from autograder.gradebook.table import harmless

    assert hidden[0] not in harmless(f"Ada{hidden}") and harmless(f"Ada{hidden}").startswith("Ada")
    assert harmless("रमा") == "रमा" and harmless("Ada\nLine") == "Ada\nLine"
