"""Who is who: no grade and no file goes to a stranger, whatever people are called, and nobody loses the own name."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from autograder.course.config import Course
from autograder.extras.lms.collecting import CollectOptions, CollectReport, collect
from autograder.extras.lms.exports import Exported, ExportRequest, export
from autograder.extras.lms.exports.canvas import comparable_title
from autograder.extras.lms.exports.moodle_feedback import page_name
from autograder.extras.lms.identity import Described, Directory, Id, anything, same_name
from autograder.extras.lms.roster import read_roster
from autograder.feedback.html import write_what_counts
from autograder.feedback.pages import feedback_path
from autograder.feedback.student_page import student_path
from autograder.gradebook.decisions import ids_of, make_decision
from autograder.gradebook.final_scores import ClassList, what_counts
from autograder.gradebook.table import write_gradebook
from autograder.records import Grade
from autograder.submissions import find_submissions
from autograder.submissions.collected import read_collected
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


@pytest.mark.parametrize(
    "one, other", [("रमा गुप्ता", "राम गुप्ता"), ("teamblue", "Ada Lovelace"), ("Ada", "Ada Lovelace")]
)
def test_names_that_cannot_be_of_one_person(one, other):
    assert not same_name(one, other) and not same_name(other, one)


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


def test_the_only_turned_name_is_taken_with_a_word(packed, gather, table, tmp_path):
    roster = table("roster.csv", "student,name\nwl,Wei Li\n")
    alone = packed("adding.zip", {"Li Wei_5_assignsubmission_file/adding.py": "one = 1\n"})
    report = gather(alone, roster=roster)
    assert report.notes == [
        "adding.zip: Li Wei is taken for Wei Li, the only one so called, turned round."
    ]
    assert texts(tmp_path / "submitted") == {"wl": "one = 1\n"}


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


def test_work_that_was_taken_for_a_turned_name_is_told_when_the_name_itself_hands_in(
    packed, gather, table, tmp_path
):
    roster = table("roster.csv", "student,name\nwl,Wei Li\n")
    gather(
        packed("monday.zip", {"Li Wei_6_assignsubmission_file/adding.py": "other = 1\n"}),
        roster=roster,
    )
    report = gather(
        packed("tuesday.zip", {"Wei Li_5_assignsubmission_file/adding.py": "own = 1\n"}),
        roster=roster,
    )
    assert report.odd == [
        "tuesday.zip: work of Li Wei was collected for Wei Li before; it is somebody else's."
    ]
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


def test_names_of_canvas_keep_their_marks(packed, gather, tmp_path):
    names = (
        "lovelaceada",
        "गुप्ताराम",
        "สมชายใจดี",
        "محمّدعلي",
        unicodedata.normalize("NFD", "müllerna"),
    )
    files = {
        f"{name}_{number}_{number + 900}_adding.py": "x\n" for number, name in enumerate(names, 101)
    }
    report = gather(packed("adding.zip", files))
    assert report.counts == {"new": 5} and not report.odd
    assert {one.name for one in read_collected(tmp_path / "submitted").values()} == set(names)


def test_a_name_that_ends_in_a_number_is_ambiguous_until_somebody_tells(
    packed, gather, table, tmp_path
):
    alone = {"anna_2_303_9003_adding.py": "anna = 1\n"}
    (sentence,) = gather(packed("adding.zip", alone)).odd
    assert "anna_2_303_9003_adding.py can be of student 2 or 303; it is left out." in sentence
    roster = table("roster.csv", "student,name,canvas\nanna,anna_2,303\n")
    gather(packed("adding.zip", alone), roster=roster)
    assert texts(tmp_path / "submitted") == {"anna": "anna = 1\n"}


def test_the_other_files_tell_how_large_canvas_numbers_are(packed, gather, tmp_path):
    files = {
        "hoppergrace_10417_9000123_adding.py": "grace = 1\n",
        "lab_3_10418_9000124_adding.py": "lab = 1\n",
        "turingalan_10419_9000125_12_adding.py": "alan = 1\n",
    }
    assert not gather(packed("adding.zip", files)).odd
    assert texts(tmp_path / "submitted") == {
        "10417": "grace = 1\n",
        "10418": "lab = 1\n",
        "10419": "alan = 1\n",
    }


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


def test_ids_of_the_roster_stand_in_the_exports(packed, gather, fill, table, course, tmp_path):
    roster = table(
        "roster.csv",
        "student,name,canvas\nA/2026/0042,Alan Turing,101\no'brien@example.org,Sean O'Brien,102\n",
    )
    files = {"turingalan_101_9001_adding.py": "x\n", "obriensean_102_9002_adding.py": "y\n"}
    gather(packed("adding.zip", files), roster=roster)
    students = sorted(student for student, _ in read_collected(tmp_path / "submitted"))
    scores = dict(zip(students, (4, 3)))
    fill("csv", roster, scores, roster=roster, output=tmp_path / "scores.csv")
    assert set(column(tmp_path / "scores.csv", "name")) == {
        "",
        "A/2026/0042",
        "o'brien@example.org",
    }
    fill("csv", roster, scores, output=tmp_path / "again.csv")
    assert set(column(tmp_path / "again.csv", "name")) == {"", "A/2026/0042", "o'brien@example.org"}


def test_clones_of_github_classroom_are_found_by_the_username(gather, table, tmp_path):
    for user in ("wizzkid8769", "darth-vader"):
        place = tmp_path / "adding-submissions" / f"adding-{user}"
        place.mkdir(parents=True)
        (place / "adding.py").write_text(f"{user!r}\n", "utf-8")
    people = (
        '"identifier","github_username","github_id","name"\n"217","wizzkid8769","123","John Doe"\n'
    )
    people += '"218","darth-vader","124",""\n'
    report = gather(tmp_path / "adding-submissions", roster=table("roster.csv", people))
    assert not report.odd
    assert texts(tmp_path / "submitted") == {"217": "'wizzkid8769'\n", "218": "'darth-vader'\n"}


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


def test_the_gradebook_has_the_own_ids(course, tmp_path):
    student = graded_name("A/2026/0042")
    record = {"schema": 1, "names": {}, "originals": {student: "A/2026/0042"}}
    (tmp_path / "names.json").write_text(json.dumps(record), "utf-8")
    effective = what_counts(tmp_path, course, [Grade(student, NAME, "graded", 3, 10)])
    path = write_gradebook(tmp_path, effective)
    assert column(path, "score") == {"A/2026/0042": "3"}


def test_every_page_has_the_name_and_the_id_of_the_roster(course, tmp_path):
    student = graded_name("A/42")
    people = ClassList(names={student: "Ada Lovelace"}, originals={student: "A/42"})
    grade = Grade(student, NAME, "graded", 3, 10)
    write_what_counts(
        tmp_path, course, what_counts(tmp_path, course, [grade], lambda names: people)
    )
    assert column(tmp_path / "grades.csv", "score") == {"A/42": "3"}
    for page in ("index.html", feedback_path(grade), student_path(student)):
        text = (tmp_path / page).read_text("utf-8")
        assert "A/42" in text and "Ada Lovelace" in text, page


def test_titles_of_assignments_keep_their_marks():
    """Two titles that differ in a vowel sign are two columns."""
    assert comparable_title("काम 01") == comparable_title("काम_1") != comparable_title("कमा 01")


def test_feedback_of_moodle_is_named_with_all_marks():
    assert page_name("राम गुप्ता_7", "5", NAME) == f"राम गुप्ता 7_5_assignsubmission_file_{NAME}.html"


def test_folders_of_names_keep_their_marks():
    assert submission_folder("रमा गुप्ता") == "रमा गुप्ता"


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


def test_vowel_signs_are_part_of_a_name(fill, table, tmp_path):
    sheet = table("book.csv", BOOK + '"गुप्ता, राम",102,ram,A,\n')
    assert fill("canvas", sheet, {"रमा गुप्ता": 3}).problems == [
        f"रमा गुप्ता, {NAME}: not found in book.csv."
    ]
    assert not fill("canvas", sheet, {"राम गुप्ता": 3}).problems


def test_two_grades_that_match_one_row_are_both_listed_and_not_written(fill, table, tmp_path):
    sheet = table("book.csv", BOOK + '"Lovelace, Ada",1,ada,S,\n"Doe, Jane",3,jd,S,\n')
    exported = fill("canvas", sheet, {"ada": 5, "Ada Lovelace": 6, "jd": 7})
    assert exported.problems == [
        f"{NAME}: ada and Ada Lovelace match the same row of book.csv; neither score is written."
    ]
    assert column(tmp_path / "book-filled.csv", "Adding (5)", "ID") == {"": "10", "1": "", "3": "7"}


def test_a_name_of_two_rows_lists_both(fill, table, tmp_path):
    sheet = table("book.csv", BOOK + '"Lovelace, Ada",1,a1,S,\n"LOVELACE, Ada",2,a2,S,\n')
    exported = fill("canvas", sheet, {"Ada Lovelace": 5})
    assert exported.problems == [
        f"Ada Lovelace, {NAME}: more than one row of book.csv fits: Lovelace, Ada; LOVELACE, Ada."
    ]


def test_a_namesake_of_another_section_gets_nothing(packed, gather, fill, table, tmp_path):
    """The sheet of one section lacks the student 1003, and has another one of the same name."""
    gather(packed("adding.zip", {"turingalan_1003_1_adding.py": "x\n"}))
    exported = fill("canvas", table("book.csv", BOOK + '"Turing, Alan",1004,at,S,\n'), {"1003": 5})
    assert exported.problems[0].startswith(
        f"1003 (turingalan), {NAME}: that row of book.csv is of Turing, Alan; nothing"
    )


def test_a_display_name_like_a_login_gets_no_row(packed, gather, fill, table, tmp_path):
    gather(packed("adding.zip", {"jd_5_assignsubmission_file/adding.py": "x\n"}))
    assert fill("canvas", table("book.csv", BOOK + '"Doe, Jane",3,jd,S,\n'), {"5": 5}).problems


def test_the_only_turned_row_is_filled_with_a_word(fill, table, tmp_path):
    sheet = table(
        "sheet.csv", "Identifier,Full name,Grade,Maximum grade\nParticipant 5,Li Wei,,10.00\n"
    )
    exported = fill("moodle", sheet, {"Wei Li": 5})
    assert "Wei Li is taken for Li Wei, the only one so called, turned round." in exported.summary
    assert column(tmp_path / "sheet-filled.csv", "Grade", "Full name") == {"Li Wei": "5"}


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
