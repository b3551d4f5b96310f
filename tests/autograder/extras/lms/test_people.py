"""Who is who: no grade and no file goes to a stranger, whatever people are called, and nobody loses the own name."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from autograder.course.config import Course
from autograder.extras.lms.collecting import CollectOptions, CollectReport, collect
from autograder.extras.lms.exports import Exported, ExportRequest, export
from autograder.extras.lms.identity import Described, Directory, Id, anything
from autograder.extras.lms.roster import read_roster
from autograder.gradebook.decisions import ids_of, make_decision
from autograder.records import Grade
from autograder.submissions.collected import read_collected
from autograder.submissions.find import find_submissions
from autograder.text.names import graded_name, submission_folder
from tests.autograder.tables import column

NAME = "01_adding"
AT = datetime(2026, 11, 25, 12, 0)


@pytest.fixture
def table(tmp_path: Path) -> Callable[[str, str], Path]:
    def write(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text, "utf-8")
        return tmp_path / name

    return write


@pytest.fixture
def gather(course: Course, tmp_path: Path) -> Callable[..., CollectReport]:
    def run(*paths: Path, roster: Path | None = None, **options: object) -> CollectReport:
        wanted = CollectOptions(
            tmp_path / "submitted", course.assignment(NAME), read_roster(roster), **options
        )  # type: ignore[arg-type]
        return collect(paths, course, wanted)

    return run


@pytest.fixture
def fill(course: Course, tmp_path: Path) -> Callable[..., Exported]:
    """Fill these scores into a sheet; the students are ids in the grades."""

    def run(
        tool: str,
        sheet: Path,
        scores: dict[str, float],
        roster: Path | None = None,
        **options: object,
    ) -> Exported:
        grades = tuple(
            Grade(student, NAME, "graded", score, 10) for student, score in scores.items()
        )
        request = ExportRequest(
            course,
            grades,
            tmp_path / "submitted",
            NAME,
            sheet=sheet,
            roster=read_roster(roster),
            **options,  # type: ignore[arg-type]
        )
        return export(tool, request)

    return run


def texts(folder: Path) -> dict[str, str]:
    """Return the collected texts by the students' own ids."""
    found = {}
    for (student, name), one in read_collected(folder).items():
        identity = one.original or student
        (file,) = (folder / submission_folder(identity) / name).glob("*.py")
        found[identity] = file.read_text("utf-8")
    return found


# ------------------------------------------------------------------ names


def named(*names: str) -> Described:
    return Described((), names)


@pytest.mark.parametrize(
    "one, other",
    [
        ("Thomas James", "James, Thomas"),
        ("Thomas James", "jamesthomas"),  # as Canvas writes the last name first
        ("Élodie du Châtelet", "duchâteletélodie"),
        ("ADA  LOVELACE", "ada lovelace"),
        ("Sean O'Brien", "O’Brien, Sean"),
        ("J.R. Smith", "J. R. Smith"),
        ("राम गुप्ता", "गुप्ता, राम"),
        ("राम गुप्ता", "गुप्ताराम"),
        ("محمد علي", "علي، محمد"),
        ("Müller, Na", unicodedata.normalize("NFD", "Na Müller")),
        ("สมชาย ใจดี", "ใจดีสมชาย"),
        ("Straße, Anna", "Anna Strasse"),
        ("李伟", "李伟"),
        ("\N{RIGHT-TO-LEFT MARK}דן כהן", "כהן, דן"),
    ],
)
def test_a_name_is_found_in_each_notation_that_tells_its_order(one, other):
    for there, wanted in ((one, other), (other, one)):
        directory = Directory[str]()
        directory.add("this", named(there))
        directory.add("that", named("Grace Hopper"))
        assert directory.find(named(wanted)) == "this"


@pytest.mark.parametrize(
    "one, other",
    [
        ("Thomas James", "Thomas, James"),
        ("Thomas James", "thomasjames"),
        ("Thomas James", "James Thomas"),
        ("Wei Li", "Li Wei"),
        ("राम गुप्ता", "रमा गुप्ता"),
        ("محمد علي", "محمّد علي"),
        ("Ana Pena", "Ana Peña"),
        ("กา ดี", "กำ ดี"),
        ("Ada Lovelace", "Ada"),
    ],
)
def test_another_name_is_not_found(one, other):
    for there, wanted in ((one, other), (other, one)):
        directory = Directory[str]()
        directory.add("this", named(there))
        assert directory.find(named(wanted)) is None


def test_a_name_is_turned_round_only_if_one_fits_on_either_side():
    directory = Directory[str]()
    directory.add("wei", named("Wei Li"))
    match = directory.match_all({1: named("Li Wei")})[1]
    assert (match.place, match.turned) == ("wei", True)
    assert list(directory.match_all({1: named("Li Wei"), 2: named("Wei Li")})) == [2]
    assert directory.match_all({1: named("Li Wei"), 2: named("LI WEI")}) == {}
    directory.add("another", named("WEI LI"))
    assert directory.match_all({1: named("Li Wei")}) == {}


def test_a_comma_forbids_to_turn_a_name_round():
    directory = Directory[str]()
    directory.add("tj", named("Thomas, James"))
    assert directory.match_all({1: named("Thomas James")}) == {}


def test_a_name_is_never_an_id():
    """Students choose their names: one who is called like another's login or number is still somebody else."""
    directory = Directory[str]()
    directory.add("jane", Described((Id("jd"), Id("1234", "canvas")), ("Jane Doe",)))
    assert directory.find(named("jd")) is None is directory.find(named("1234"))
    assert directory.find(anything("jd")) == "jane"


def test_numbers_of_one_site_tell_people_of_the_same_name_apart():
    directory = Directory[str]()
    directory.add("alan", Described((Id("1004", "canvas"),), ("Alan Turing",)))
    assert directory.find(Described((Id("1003", "canvas"),), ("turingalan",))) is None
    assert directory.find(Described((Id("1003", "moodle"),), ("Alan Turing",))) == "alan"
    assert directory.find(Described((Id("1004", "moodle"),), ("Grace Hopper",))) is None


# ------------------------------------------------------------------ collect


def test_turned_names_keep_their_own_work(packed, gather, table, tmp_path):
    files = {
        "jamesthomas_101_9001_adding.py": "his = 1\n",
        "thomasjames_102_9002_adding.py": "other = 1\n",
    }
    report = gather(
        packed("adding.zip", files), roster=table("roster.csv", "student,name\ntj,Thomas James\n")
    )
    assert texts(tmp_path / "submitted") == {"tj": "his = 1\n"}
    assert report.odd == [
        "adding.zip: thomasjames was left out: the roster has no student called 102 or thomasjames."
    ]
    people = "student,name\ntj,Thomas James\njt,James Thomas\n"
    assert not gather(packed("adding.zip", files), roster=table("roster.csv", people)).odd
    assert texts(tmp_path / "submitted") == {"tj": "his = 1\n", "jt": "other = 1\n"}


def test_a_turned_name_is_not_taken_where_the_name_itself_has_handed_in(
    packed, gather, table, tmp_path
):
    roster = table("roster.csv", "student,name\nwl,Wei Li\n")
    own = "Wei Li_5_assignsubmission_file/adding.py"
    other = "Li Wei_6_assignsubmission_file/adding.py"
    gather(packed("monday.zip", {own: "own = 1\n", other: "other = 1\n"}), roster=roster)
    assert texts(tmp_path / "submitted") == {"wl": "own = 1\n"}
    report = gather(packed("tuesday.zip", {other: "other = 1\n"}), roster=roster)
    assert "was left out: Wei Li has handed in under that name" in report.odd[0]
    assert texts(tmp_path / "submitted") == {"wl": "own = 1\n"}


def test_work_of_two_people_of_one_name_is_left_out_and_both_are_listed(
    packed, gather, table, tmp_path
):
    files = {"turingalan_1003_1_adding.py": "one = 1\n", "turingalan_1004_2_adding.py": "two = 1\n"}
    report = gather(
        packed("adding.zip", files), roster=table("roster.csv", "student,name\nat,Alan Turing\n")
    )
    assert not read_collected(tmp_path / "submitted")
    assert [sentence.split(" was left out")[0] for sentence in report.odd] == [
        "adding.zip: turingalan (1003)",
        "adding.zip: turingalan (1004)",
    ]
    roster = table("roster.csv", "student,name,canvas\nat,Alan Turing,1004\n")
    gather(packed("adding.zip", files), roster=roster)
    assert texts(tmp_path / "submitted") == {"at": "two = 1\n"}


def test_a_name_that_ends_in_a_number_is_ambiguous_until_somebody_tells(
    packed, gather, table, tmp_path
):
    alone = {"anna_2_303_9003_adding.py": "anna = 1\n"}
    (sentence,) = gather(packed("adding.zip", alone)).odd
    assert "anna_2_303_9003_adding.py can be of student 2 or 303; it is left out." in sentence
    roster = table("roster.csv", "student,name,canvas\nanna,anna_2,303\n")
    gather(packed("adding.zip", alone), roster=roster)
    assert texts(tmp_path / "submitted") == {"anna": "anna = 1\n"}


def test_folders_keep_the_names_of_students(packed, gather, fill, table, course, tmp_path):
    files = {f"class/{name}/{NAME}/adding.py": "x\n" for name in ("Lovelace, Ada", "O'Brien, Sean")}
    gather(packed("class.zip", files))
    assert sorted(texts(tmp_path / "submitted")) == ["Lovelace, Ada", "O'Brien, Sean"]
    students = sorted(s.student for s in find_submissions(tmp_path / "submitted", course))
    sheet = table(
        "book.csv", 'Student,ID,Section,Adding (5)\n"Lovelace, Ada",1,S,\n"O\'Brien, Sean",2,S,\n'
    )
    exported = fill("canvas", sheet, dict(zip(students, (4, 3))))
    assert not exported.problems
    assert column(tmp_path / "book-filled.csv", "Adding (5)", "Student") == {
        "Lovelace, Ada": "4",
        "O'Brien, Sean": "3",
    }
    fill("csv", sheet, dict(zip(students, (4, 3))), output=tmp_path / "scores.csv")
    assert column(tmp_path / "scores.csv", "total") == {
        "": "10",
        "Lovelace, Ada": "4",
        "O'Brien, Sean": "3",
    }


@pytest.mark.parametrize(
    "header, row",
    [
        ("Matrikelnummer;Vorname;Nachname;id", "x;Ada;Lovelace;a1"),
        ("id,First name,Surname", "a1,Ada,Lovelace"),
        ("id,Prénom,Nom", "a1,Ada,Lovelace"),
        ("id,Nom,Cognoms", "a1,Ada,Lovelace"),
        ("id,Nome,Cognome", "a1,Ada,Lovelace"),
        ("id,Имя,Фамилия", "a1,Ada,Lovelace"),
        ("LastName,FirstName,ID,SIS Login ID,Section", "Lovelace,Ada,1,a1,S"),
    ],
)
def test_first_and_last_names_have_columns_in_many_languages(table, header, row):
    roster = read_roster(table("roster.csv", f"{header}\n{row}\n"))
    (person,) = roster.people
    assert (person.id, person.name) == ("a1", "Ada Lovelace")
    assert roster.find(named("lovelaceada")) == person
    assert roster.find(named("adalovelace")) is None


@pytest.mark.parametrize(
    "title, cell",
    [
        ("tutor name", "Grace Hopper"),
        ("Tutor_Email", "grace@example.org"),
        ("Supervisor Name", "Grace Hopper"),
        ("Name of the teacher", "Grace Hopper"),
        ("TA login", "grace7"),
        ("Partner GitHub username", "grace7"),
        ("Emergency contact name", "Grace Hopper"),
        ("Name der Betreuerin", "Grace Hopper"),
        ("midterm", "85"),
        ("MIDTERM", "85"),
        ("Friday", "85"),
        ("Number of absences", "85"),
    ],
)
def test_a_column_about_others_or_of_points_identifies_no_student(table, title, cell):
    roster = read_roster(table("roster.csv", f"student,name,{title}\nada42,Ada Lovelace,{cell}\n"))
    assert roster.find(anything(cell)) is None


@pytest.mark.parametrize(
    "title",
    [
        *("ID", "Matric ID", "user_id", "UserID", "ETHID", "netid", "uid", "Student ids", "id_2"),
        *("Identity", "Examination number", "Institution number", "GitHub handle", "E-Mail"),
    ],
)
def test_a_column_of_ids_identifies_a_student(table, title):
    roster = read_roster(table("roster.csv", f"student,name,{title}\nada42,Ada Lovelace,x7\n"))
    assert roster.find(anything("x7")) is not None


@pytest.mark.parametrize(
    "cell, sections",
    [
        ("A", {"A"}),
        ("A and B", {"A and B", "A", "B"}),
        ("A, B, and C", {"A, B, and C", "A", "B", "C"}),
        ("A und B", {"A und B", "A", "B"}),
        ("", set()),
    ],
)
def test_a_student_can_be_in_several_sections(table, cell, sections):
    roster = read_roster(table("roster.csv", f'student,section\nada,"{cell}"\nben,A\n'))
    assert set(roster.people[0].sections) == sections
    assert ("ada" in {person.id for person in roster.of_section("A").people}) == ("A" in sections)


def test_a_decision_names_a_student_by_the_own_id():
    decision = make_decision(
        assignment=NAME, student="A/2026/0042", excuse=True, reason="Ill.", by="me", at=AT
    )
    assert set(ids_of(decision)) == {"A/2026/0042", graded_name("A/2026/0042")}
    assert graded_name("A/2026/0042") != "A/2026/0042" and graded_name("ada") == "ada"


# ------------------------------------------------------------------ sheets

BOOK = "Student,ID,SIS Login ID,Section,Adding (5)\n    Points Possible,,,,10\n"


def test_turned_names_get_no_row_of_somebody_else(fill, table, tmp_path):
    sheet = table("book.csv", BOOK + '"Thomas, James",2,jt,S,\n"Doe, Jane",3,jd,S,\n')
    exported = fill("canvas", sheet, {"Thomas James": 3})
    assert exported.problems == [f"Thomas James, {NAME}: not found in book.csv."]
    assert not (tmp_path / "book-filled.csv").exists()
    both = table("both.csv", BOOK + '"Thomas, James",2,jt,S,\n"James, Thomas",4,tj,S,\n')
    assert not fill("canvas", both, {"Thomas James": 3, "James Thomas": 4}).problems
    assert column(tmp_path / "both-filled.csv", "Adding (5)", "ID") == {
        "": "10",
        "2": "4",
        "4": "3",
    }


def test_two_grades_that_match_one_row_are_both_listed_and_not_written(fill, table, tmp_path):
    sheet = table("book.csv", BOOK + '"Lovelace, Ada",1,ada,S,\n"Doe, Jane",3,jd,S,\n')
    exported = fill("canvas", sheet, {"ada": 5, "Ada Lovelace": 6, "jd": 7})
    assert exported.problems == [
        f"{NAME}: ada and Ada Lovelace match the same row of book.csv; neither score is written."
    ]
    assert column(tmp_path / "book-filled.csv", "Adding (5)", "ID") == {"": "10", "1": "", "3": "7"}


def test_a_namesake_of_another_section_gets_nothing(packed, gather, fill, table, tmp_path):
    """The sheet of one section lacks the student 1003, and has another one of the same name."""
    gather(packed("adding.zip", {"turingalan_1003_1_adding.py": "x\n"}))
    exported = fill("canvas", table("book.csv", BOOK + '"Turing, Alan",1004,at,S,\n'), {"1003": 5})
    assert exported.problems[0].startswith(
        f"1003 (turingalan), {NAME}: that row of book.csv is of Turing, Alan; nothing"
    )


def test_invisible_characters_stay_out_of_tables(fill, table, packed, gather, tmp_path):
    metadata = (
        "submission_1:\n  :submitters:\n  - :sid: '1'\n    :name: \"Ada\\e[2J\\u202e Love\\u200blace\"\n"
        "submission_2:\n  :submitters:\n  - :sid: '2'\n    :name: \"می\\u200cنا\"\n"
    )
    files = {
        "submission_metadata.yml": metadata,
        "submission_1/adding.py": "x\n",
        "submission_2/adding.py": "y\n",
    }
    gather(packed("export.zip", files))
    fill("csv", tmp_path, {"1": 5, "2": 6}, output=tmp_path / "scores.csv")
    assert column(tmp_path / "scores.csv", "name") == {
        "": "points possible",
        "1": "Ada[2J Lovelace",
        "2": "می\u200cنا",
    }
