"""Who handed in: work of a group is of each member, a roster tells the ids, and two people are never one."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from autograder.course.config import Course
from autograder.extras.lms.exports import Exported, ExportRequest, export
from autograder.extras.lms.identity import anything
from autograder.extras.lms.roster import Roster, read_roster
from autograder.records import Grade, RefusedError
from tests.autograder.extras.lms.collecting.downloads import (
    CANVAS,
    CANVAS_SHEET,
    MOODLE,
    NAME,
    known,
    tree,
)
from tests.autograder.pages import write_all
from tests.autograder.tables import column

TEAMS = {  # as Moodle's downloader.php names them: the number is the group's
    "Team Blue_17_assignsubmission_file/adding.py": "blue = 1\n",
    "Team Red_23_assignsubmission_file/adding.py": "red = 1\n",
    "Default group_assignsubmission_file/adding.py": "default = 1\n",
}
TEAM_SHEET = """\
Identifier,Full name,Email address,Status,Group,Grade,Maximum grade,Last modified (submission),Last modified (grade)
"Participant 17","Ada Lovelace",ada@example.org,Submitted,"Team Red",,10.00,"Friday, 27 November 2026, 11:58 PM",-
"Participant 18","Ben Ito",ben@example.org,Submitted,"Team Blue",,10.00,"Friday, 27 November 2026, 11:59 PM",-
"Participant 23","Cleo Group",cleo@example.org,Submitted,"Team Blue",,10.00,"Friday, 27 November 2026, 11:59 PM",-
"Participant 24","Dan Roe",dan@example.org,"No submission","Default group",,10.00,-,-
"""


@pytest.fixture
def team_sheet(tmp_path: Path) -> Path:
    (tmp_path / "worksheet.csv").write_text(TEAM_SHEET, "utf-8")
    return tmp_path / "worksheet.csv"


@pytest.mark.parametrize("tool", ["moodle", "moodle-feedback"])
def test_moodle_group_number_is_not_used_as_participant_number(
    packed, gather, course, team_sheet, tmp_path, tool
):
    """Collected without a roster: Ada is participant 17, Team Blue is group 17, whose score she must not get."""
    gather(packed("LIN101-adding-4712.zip", TEAMS))
    exported = export_to(tool, course, tmp_path, team_sheet)
    assert not (tmp_path / "worksheet-filled.csv").exists()
    assert not (tmp_path / "pages.zip").exists()
    hint = (
        "nothing is written there. If both are one person, pass a roster with both names; for the work of a group, "
        "collect again with a roster that has a column `group`."
    )
    assert exported.problems == [
        f"17 (Team Blue), {NAME}: that row of worksheet.csv is of Ada Lovelace; {hint}",
        f"23 (Team Red), {NAME}: that row of worksheet.csv is of Cleo Group; {hint}",
        f"Default group, {NAME}: not found in worksheet.csv.",
    ]


def export_to(
    tool: str, course: Course, tmp_path: Path, sheet: Path, roster: Roster | None = None
) -> Exported:
    """Export a grade and a page for each collected student: 1 point, 2 points and so on."""
    students = sorted(known(tmp_path / "submitted"))
    grades = tuple(Grade(student, NAME, "graded", n, 10) for n, student in enumerate(students, 1))
    write_all(tmp_path / "grades", course, grades)
    output = tmp_path / "pages.zip" if tool == "moodle-feedback" else None
    places = {"sheet": sheet, "folder": tmp_path / "grades", "output": output}
    submitted = tmp_path / "submitted"
    return export(
        tool, ExportRequest(course, grades, submitted, roster=roster or Roster(), **places)
    )


def test_group_work_is_collected_for_each_member(packed, gather, course, team_sheet, tmp_path):
    """The worksheet of a team assignment is a roster of its groups."""
    report = gather(
        packed("LIN101-adding-4712.zip", TEAMS), roster=read_roster(team_sheet), times=team_sheet
    )
    assert tree(tmp_path / "submitted") == {
        f"ada@example.org/{NAME}/adding.py": "red = 1\n",
        f"ben@example.org/{NAME}/adding.py": "blue = 1\n",
        f"cleo@example.org/{NAME}/adding.py": "blue = 1\n",
        f"dan@example.org/{NAME}/adding.py": "default = 1\n",
    }
    where = "LIN101-adding-4712.zip"
    assert report.notes == [
        f"{where}: Default group is a group; its work is collected for Dan Roe.",
        f"{where}: Team Blue is a group; its work is collected for Ben Ito, Cleo Group.",
        f"{where}: Team Red is a group; its work is collected for Ada Lovelace.",
    ]
    facts = known(tmp_path / "submitted")
    assert {(one.name, one.key, one.called) for one in facts.values()} == {
        (name, "", "") for name in ("Ada Lovelace", "Ben Ito", "Cleo Group", "Dan Roe")
    }
    assert facts["cleo@example.org"].submitted_at == "2026-11-27T23:59:00+00:00"
    assert not export_to("moodle", course, tmp_path, team_sheet).problems
    scores = column(tmp_path / "worksheet-filled.csv", "Grade", by="Full name")
    assert scores == {"Ada Lovelace": "1", "Ben Ito": "2", "Cleo Group": "3", "Dan Roe": "4"}
    assert not export_to("moodle-feedback", course, tmp_path, team_sheet).problems
    with zipfile.ZipFile(tmp_path / "pages.zip") as pages:
        names = sorted(pages.namelist())[:2]
    kind = f"assignsubmission_file_{NAME}.html"
    assert names == [f"Ada Lovelace_17_{kind}", f"Ben Ito_18_{kind}"]


@pytest.mark.parametrize(
    "text",
    [
        "student,name,moodle\nada42,Ada Lovelace,17\n",
        "student,moodle\nada42,17\n",
        "student,name\n17,Ada Lovelace\n",
    ],
)
def test_roster_without_groups_assigns_group_work_to_no_student(
    packed, gather, roster, tmp_path, text
):
    report = gather(packed("adding.zip", TEAMS), roster=roster(text))
    assert not tree(tmp_path / "submitted")
    assert "Team Blue was left out: its number is that of " in report.odd[1]
    assert report.odd[1].endswith("If this is a group, add a column `group` to the roster.")
    assert roster(text).graded("17", "Team Blue") is None


def test_participant_and_group_with_equal_numbers_stay_separate(packed, gather, tmp_path):
    gather(packed("adding.zip", {"Ada Lovelace_17_assignsubmission_file/adding.py": "ada = 1\n"}))
    many = {"Team Blue_17_assignsubmission_file/many_heads.py": "blue = 1\n"}
    report = gather(packed("many heads.zip", many))
    assert tree(tmp_path / "submitted") == {f"17/{NAME}/adding.py": "ada = 1\n"}
    assert "Team Blue was left out: 17 is Ada Lovelace in " in report.odd[0]


def test_roster_with_both_names_identifies_the_row(packed, gather, roster, course, tmp_path):
    gather(packed("adding.zip", {"kingcountess_1001_5001_adding.py": "ada = 1\n"}))
    (tmp_path / "book.csv").write_text(CANVAS_SHEET, "utf-8")
    (problem,) = export_to("canvas", course, tmp_path, tmp_path / "book.csv").problems
    assert "If both are one person" in problem
    people = roster("student,name,canvas name\nada42,Ada Lovelace,kingcountess\n")
    assert not export_to("canvas", course, tmp_path, tmp_path / "book.csv", roster=people).problems


def test_ambiguous_group_names_are_assigned_to_no_student(roster):
    people = roster('student,groups\nada,"Team C, One"\nben,Team C++\ncleo,one\n')
    assert people.members("Team C") == [] == people.members("Two")
    assert [person.id for person in people.members("ONE")] == ["ada", "cleo"]


# ------------------------------------------------------------------ rosters


def test_roster_determines_the_ids(packed, gather, roster, tmp_path):
    people = roster(
        "student,name,email,canvas\nada42,Ada Lovelace,ada@example.org,\ngh,Grace Hopper,,1002\n"
        "knuth,Donald Knuth,,1006\n"
    )
    report = gather(packed("submissions.zip", CANVAS), roster=people)
    assert set(known(tmp_path / "submitted")) == {"ada42", "gh", "knuth"}
    assert any("Donald Knuth: there is only text.html" in problem for problem in report.odd)
    assert report.summary.endswith("1 late, of 1 student: Grace Hopper (01_adding).")
    assert known(tmp_path / "submitted")["gh"].name == "Grace Hopper"
    unknown_students = [problem for problem in report.odd if "was left out" in problem]
    assert len(unknown_students) == 3
    message = "turingalan was left out: the roster has no student called 1003 or turingalan."
    assert f"submissions.zip: {message}" in unknown_students


@pytest.mark.parametrize(
    "titles, row, key, student",
    [
        ("Student,ID,SIS User ID,SIS Login ID", '"Lovelace, Ada",1001,S-1,ada1', "1001", "ada1"),
        ("Identifier,Full name,Email address", "Participant 6,Ada Lovelace,a@x.org", "6",
         "a@x.org"),
        ("Identifier;Vollständiger Name", "Teilnehmer/in6;Ada Lovelace", "6", "Teilnehmer/in6"),
        ("First Name,Last Name,SID,Email", "Ada,Lovelace,01,a@x.org", "lovelaceada", "01"),
        ("student,name", "ada42,Ada King Lovelace", "lovelaceadaking", "ada42"),
    ],
)  # fmt: skip
def test_tables_of_all_sites_can_be_rosters(roster, titles, row, key, student):
    person = roster(f"{titles}\n{row}\n").find(anything(key))
    assert person is not None and person.id == student


def test_equal_numbers_of_two_sites_do_not_mix_students(packed, gather, roster, tmp_path):
    """Moodle's number of Ada equals Canvas's number of Grace, and the column does not tell the site."""
    people = roster("student,name,number\nada42,Ada Lovelace,1001\ngh,Grace Hopper,657831\n")
    report = gather(packed("moodle.zip", MOODLE), roster=people)
    assert tree(tmp_path / "submitted") == {f"gh/{NAME}/adding.py": "grace = 1\n"}
    why = "in the roster, 657831 and Ada Lovelace match more than one student: Ada Lovelace, Grace Hopper."
    assert f"moodle.zip: Ada Lovelace was left out: {why}" in report.odd


PEOPLE = """\
student,name,email
ada42,Ada Lovelace,ada@x.org
jm,Jörg Müller,joerg@x.org
a_l,"Turing, Alan",alan@x.org
1001,Grace Hopper,
Lovelace,Byron Noel,
"""
NOTATIONS = {
    "Lovelace, Ada(ada42)": "ada42",
    "Ada Lovelace (ada@x.org)": "ada42",
    "Lovelace_Ada_ada42_17": "ada42",
    "Mueller_Joerg_jm_17": "jm",
    "Muller_Jorg_jm_17": "jm",
    "Turing_Alan_a_l_17": "a_l",
    "Ada Lovelace ada42": "ada42",
    "ada42-participation-101": "ada42",
    "Grace Hopper 1001": "1001",
    "ada42_3": "ada42",
    "a_l_2_adding_1_3": "a_l",
    "Smith_Bob_ada42_17": None,
    "Bob Smith ada42": None,
    "Bob Smith (ada42)": None,
    "Ada King Lovelace": None,
    "Bob Smith 1001": None,
    "ada43-participation-101": None,
    "Ada Lovelace (ben@x.org)": None,
}


@pytest.mark.parametrize("label", NOTATIONS)
def test_names_of_sites_folders_are_matched_to_people(packed, gather, roster, tmp_path, label):
    """By an id in them that the roster has, if the name beside it can be the same person's."""
    archive = packed("adding.zip", {f"{label}/{NAME}/adding.py": "x = 1\n"})
    report = gather(archive, roster=roster(PEOPLE))
    student = NOTATIONS[label]
    assert list(tree(tmp_path / "submitted")) == (
        [f"{student}/{NAME}/adding.py"] if student else []
    )
    assert bool(report.odd) == (student is None)


@pytest.mark.parametrize(
    "labels",
    [
        ("ada42-participation-101", "ada42-participation-102"),
        ("Lovelace, Ada(ada42)", "Ada Lovelace ada42"),
    ],
)
def test_two_names_of_one_person_are_left_out_and_told(packed, gather, roster, tmp_path, labels):
    files = {f"{label}/{NAME}/adding.py": f"x = {n}\n" for n, label in enumerate(labels)}
    report = gather(packed("adding.zip", files), roster=roster(PEOPLE))
    assert all(any(f"{label} (" in told for told in report.odd) for label in labels)
    assert tree(tmp_path / "submitted") == {}


def test_student_in_two_rows_is_one_person(roster):
    people = roster(
        'student,name,section,group,email\na1,Ada Lovelace,S1,red,ada@x.org\na1,"Lovelace, Ada",S2,,a@y.org\n'
        "b2,Ben Bit,S2,,\n"
    )
    assert [person.id for person in people.people] == ["a1", "b2"]
    (ada, _) = people.people
    assert (ada.sections, ada.groups) == (("S1", "S2"), ("red",))
    assert people.find(anything("ada@x.org")) == people.find(anything("a@y.org")) == ada


@pytest.mark.parametrize(
    ("id", "there", "reason"),
    [
        ("00123", "123",
         "123 can be the id from which a spreadsheet has taken the zeros in front."),
        ("123456789012", "1.23457E+11",
         "1.23457E+11 is a long number that a spreadsheet has shortened."),
        ("123456789012", "1,23457E+11",
         "1,23457E+11 is a long number that a spreadsheet has shortened."),
        ("1234567890123456", "1234567890123000",
         "1234567890123000 is a long number of which a spreadsheet"),
        ("1001", "1001.0", "1001.0 is an id that a spreadsheet has taken for a decimal number."),
        ("999999999999", "1.23457E+11", ""),
        ("1001", "1002", ""),
    ],
)  # fmt: skip
def test_damaged_id_is_named_with_the_reason(roster, packed, gather, tmp_path, id, there, reason):
    """Nobody is found by a damaged id: others can have the same."""
    people = roster(f'student,name\n"{there}",Ada Lovelace\n')
    report = gather(packed("adding.zip", {f"{id}/{NAME}/adding.py": "x = 1\n"}), roster=people)
    assert tree(tmp_path / "submitted") == {}
    assert f"the roster has no student called {id}." in report.odd[0]
    assert reason in report.odd[0] and ("spreadsheet" in report.odd[0]) == bool(reason)


@pytest.mark.parametrize(
    "text", ["apples,pears\n1,2\n", "student,name\na,Ben Bit\na,Cy Young\n", "", 'student,"name\n']
)
def test_invalid_roster_is_reported(roster, text):
    with pytest.raises(RefusedError, match=r"roster\.csv.*\.$"):
        roster(text)
