"""Downloads of course sites become `submitted/`: every student is found, no file is lost, no path is trusted."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder.cli import app
from autograder.course.config import Course
from autograder.extras.lms.collecting import CollectReport
from autograder.extras.lms.collecting.choose import named_in
from autograder.extras.lms.exports import ExportRequest, export
from autograder.records import Grade, RefusedError
from autograder.submissions.collected import Collected, read_collected, write_collected
from autograder.submissions.find import find_submissions
from autograder.text.names import graded_name
from tests.autograder.extras.lms.collecting.downloads import (
    CANVAS,
    CANVAS_SHEET,
    GRADESCOPE,
    MOODLE,
    MOODLE_SHEET,
    NAME,
    known,
    tree,
    unpacked,
)
from tests.autograder.extras.strangers_package import example_of_the_docs, installed_package
from tests.autograder.tables import rows_of

# ------------------------------------------------------------------ Canvas


UNUSABLE = "a .py, an .ipynb or an archive is needed. It is kept, and `grade` refuses it."


def test_canvas_download_is_collected(packed, gather, tmp_path):
    report = gather(packed("math-1-adding submissions.zip", CANVAS))
    assert tree(tmp_path / "submitted") == {
        f"1001/{NAME}/adding.py": "ada = 1\n",
        f"1002/{NAME}/adding.py": "grace = 1\n",
        f"1003/{NAME}/adding.ipynb": "{}\n",
        f"1004/{NAME}/01_adding.zip": "PK of Barbara",
        f"1005/{NAME}/essay.pdf": "%PDF",
        f"1006/{NAME}/text.html": "<p>typed</p>",
    }
    assert (
        report.summary
        == f"6 submissions of 6 students: 6 new; 1 late, of 1 student: hoppergrace ({NAME})."
    )
    assert report.as_record()["late_students"] == ["hoppergrace"]
    where = "math-1-adding submissions.zip"
    assert report.odd == [
        f"{where}: notes of the tutor.txt is not named like a file from Canvas.",
        f"{where}: duchâteletélodie: there is only essay.pdf; {UNUSABLE}",
        f"{where}: knuthdonald: there is only text.html; {UNUSABLE}",
    ]


@pytest.mark.parametrize("names", [("Eve", "Dee"), ("Lovelace, Eve", "Dee"), ("Eve", "Eve")])
@pytest.mark.parametrize("assignments", [1, 2])
def test_late_hand_ins_are_counted_and_each_student_is_named_once(names, assignments):
    report = CollectReport(Path("submitted"))
    for number in range(assignments):
        report.late += [
            Collected(f"s{k}", f"0{number}_x", name=name) for k, name in enumerate(names)
        ]
    between = "; " if any("," in name for name in names) else ", "
    work = " and ".join(f"0{number}_x" for number in range(assignments))
    whose = between.join(f"{name} ({work})" for name in names)
    late = f"{2 * assignments} late, of 2 students: {whose}."
    assert report.summary.endswith(late)
    assert report.as_record()["late_students"] == list(names)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param(
            CANVAS,
            {
                "1001": ("lovelaceada", False),
                "1002": ("hoppergrace", True),
                "1003": ("turingalan", False),
                "1004": ("liskovbarbara", False),
                "1005": ("duchâteletélodie", False),
                "1006": ("knuthdonald", False),
            },
            id="names and late marks",
        ),
        pytest.param(
            {
                "lovelaceada_LATE_1001_9001_adding.py": "ada = 1\n",
                "1001_5678_9010_adding.py": "five = 1\n",
                "hoppergrace_5002_9002_adding.py": "grace = 1\n",
            },
            {
                "1001": ("lovelaceada", True),
                "5678": ("1001", False),
                "5002": ("hoppergrace", False),
            },
            id="a display name that is the number of another student takes nothing from them",
        ),
        pytest.param({"anon_x1Yz9_77_adding.py": "one\n", "LATE_anon_Qw3rT_78_adding.py": "two\n"},
                     {"anon_x1Yz9": ("", False), "anon_Qw3rT": ("", True)}, id="anonymous"),
        pytest.param({"hoppergrace_late_1002_5002_adding.py": "grace = 1\n"},
                     {"1002": ("hoppergrace", True)}, id="late mark in lowercase"),
    ],
)  # fmt: skip
def test_canvas_record_has_names_and_late_marks(packed, gather, tmp_path, files, expected):
    gather(packed("submissions.zip", files))
    facts = known(tmp_path / "submitted")
    assert {student: (one.name, one.late) for student, one in facts.items()} == expected
    assert {one.source for one in facts.values()} == {"submissions.zip"}
    if "1001" in expected:
        text = (tmp_path / "submitted" / "1001" / NAME / "adding.py").read_text()
        assert text == "ada = 1\n"


def test_canvas_last_of_two_uploads_is_collected(packed, gather, tmp_path):
    files = {
        "lovelaceada_1001_90_adding.py": "first\n",
        "lovelaceada_1001_100_adding-1.py": "second\n",
    }
    report = gather(packed("submissions.zip", files))
    assert tree(tmp_path / "submitted") == {f"1001/{NAME}/adding.py": "second\n"}
    assert report.notes == [
        "submissions.zip: lovelaceada: adding.py is there more than once; the last one counts."
    ]


TYPED = {
    "lovelaceada_1001_5001_adding.py": "ada = 1\n",
    "leetom_107_text.html": "<p>typed</p>",
    "raoanita_LATE_108_text.html": "<p>typed late</p>",
    "ngbo_109_link.html": "<a href='https://example.org'>",
    "_110_link.html": "<a href='https://example.org'>",
    "anon_x1Yz9_text.html": "<p>typed</p>",
    "LATE_anon_Qw3rT_link.html": "<a href='https://example.org'>",
}


def test_canvas_typed_texts_and_links_are_collected_and_refused(packed, gather, course, tmp_path):
    """Canvas names them without a second number because there is no file (content_zipper.rb)."""
    report = gather(packed("math-1-adding submissions.zip", TYPED))
    facts = known(tmp_path / "submitted")
    assert {student: (one.name, one.late) for student, one in facts.items()} == {
        "1001": ("lovelaceada", False), "107": ("leetom", False), "108": ("raoanita", True),
        "109": ("ngbo", False), "110": ("", False), "anon_x1Yz9": ("", False),
        "anon_Qw3rT": ("", True),
    }  # fmt: skip
    assert len(report.odd) == 6
    assert {sentence.partition(": ")[2] for sentence in report.odd} >= {
        f"leetom: a typed text was handed in, no file; {UNUSABLE}",
        f"raoanita: a typed text was handed in, no file; {UNUSABLE}",
        f"ngbo: a typed link was handed in, no file; {UNUSABLE}",
    }
    refused = problems_of(tmp_path / "submitted", course)
    assert refused.pop("1001") is None
    assert set(refused) == {graded_name(student) for student in facts} - {"1001"}
    none = "No file adding.py or adding.ipynb was handed in; there is only"
    assert refused["107"] == f"{none} typed_text.html."
    assert refused["109"] == f"{none} typed_link.html."


# ------------------------------------------------------------------ Moodle


def test_moodle_download_is_collected(packed, gather, tmp_path):
    report = gather(packed("Maths-Week 1-4711.zip", MOODLE))
    assert tree(tmp_path / "submitted") == {
        f"657831/{NAME}/adding.py": "ada = 1\n",
        f"657832/{NAME}/adding.py": "grace = 1\n",
        f"657833/{NAME}/adding.ipynb": "{}\n",
        f"657834/{NAME}/adding.py": "alan = 1\n",
        f"657835/{NAME}/test_adding.py": "given\n",
        f"657836/{NAME}/onlinetext.html": "<p>typed</p>",
        f"657837/{NAME}/adding.py": "donald = 1\n",
    }
    where = "Maths-Week 1-4711.zip"
    assert report.odd == [
        f"{where}: Barbara Liskov: a typed text was handed in, no file; {UNUSABLE}",
        f"{where}: Participant: there is only test_adding.py; {UNUSABLE}",
    ]
    facts = known(tmp_path / "submitted")
    assert facts["657833"].name == "Élodie du Châtelet"
    assert {one.late for one in facts.values()} == {None}


@pytest.mark.parametrize(
    "mine",
    [
        "Eve_657831_assignsubmission_file__657899_assignsubmission_file/adding.py",
        "Eve_657899_assignsubmission_file_x_657831_assignsubmission_file_adding.py",
    ],
)
def test_file_names_like_moodles_folders_do_not_change_the_student(packed, gather, tmp_path, mine):
    report = gather(packed("moodle.zip", {**MOODLE, mine: "eve = 1\n"}))
    assert tree(tmp_path / "submitted")[f"657831/{NAME}/adding.py"] == "ada = 1\n"
    assert "eve = 1\n" not in tree(tmp_path / "submitted").values()
    assert any("contains Moodle's mark" in sentence for sentence in report.odd)


# ------------------------------------------------------------------ Gradescope


def test_gradescope_export_is_collected(packed, gather, tmp_path):
    report = gather(packed("assignment_5_export.zip", GRADESCOPE))
    assert tree(tmp_path / "submitted") == {
        f"00123/{NAME}/adding.py": "both = 1\n",
        f"124/{NAME}/adding.py": "alan = 1\n",
        f"grace@example.org/{NAME}/adding.py": "both = 1\n",
        f"submission_2/{NAME}/adding.py": "unknown = 1\n",
        f"submission_99/{NAME}/adding.py": "whose = 1\n",
    }
    where = "assignment_5_export.zip: submission_metadata.yml"
    assert report.odd == [f"{where} lists submission_4, but there is no such folder."]
    assert report.notes == [
        f"{where} names no student for submission_99; the folder's name is used."
    ]


@pytest.mark.parametrize(
    "text",
    [
        "- a list\n",
        "{unclosed",
        "!!python/object/apply:os.system ['touch pwned']",
        "[" * 5000,
        "\0",
        "a: &a [x]\nb: *c\n",
        b"\xff\xfe\xff",
    ],
)
def test_invalid_gradescope_metadata_is_reported(packed, gather, text):
    files = {"submission_metadata.yml": text, "submission_1/adding.py": "x"}
    report = gather(packed("export.zip", files))
    (problem,) = report.odd
    assert "submission_metadata.yml in" in problem and not report.counts
    assert not Path("pwned").exists()


# ------------------------------------------------------------------ Brightspace and Blackboard

BRIGHTSPACE = {
    "123456-789012 - Ada Lovelace - Nov 28, 2026 1203 AM/adding.py": "later\n",
    "123456-789012 - Ada Lovelace - Nov 27, 2026 1158 PM/adding.py": "earlier\n",
    "123457-789012 - Grace Hopper - 1 December, 2026 2359/adding.py": "grace\n",
    "index.html": "<html>",
}
BLACKBOARD = {
    "Adding_ada_1_attempt_2026-11-28-00-03-10_adding.py": "later\n",
    "Adding_ada_1_attempt_2026-11-28-00-03-10.txt": "Name: Ada Lovelace (ada_1)\nAssignment: Adding\n",
    "Adding_ada_1_attempt_2026-11-27-23-58-10_adding.py": "earlier\n",
    "Adding_grace_attempt_2026-11-27-23-58-10_adding.py": "grace\n",
}


@pytest.mark.parametrize(
    "files, students",
    [
        (BRIGHTSPACE, {"123456": "Ada Lovelace", "123457": "Grace Hopper"}),
        (BLACKBOARD, {"ada_1": "Ada Lovelace", "grace": ""}),
    ],
)
def test_latest_attempt_of_brightspace_and_blackboard_is_collected(
    packed, gather, tmp_path, files, students
):
    report = gather(packed("adding.zip", files))
    assert {student: one.name for student, one in known(tmp_path / "submitted").items()} == students
    assert sorted(tree(tmp_path / "submitted").values()) == ["grace\n", "later\n"]
    assert not report.odd
    assert "Ada Lovelace has 2 attempts; the one of 2026-11-28" in report.notes[0]


def test_moodle_archives_are_ordered_by_the_times_of_their_files(tmp_path, gather):
    for name, day in (("a.zip", 28), ("b.zip", 27)):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            entry = zipfile.ZipInfo(
                "Ada Lovelace_17_assignsubmission_file/adding.py", (2026, 11, day, 12, 0, 0)
            )
            archive.writestr(entry, f"{day}\n")
    report = gather(tmp_path / "a.zip", tmp_path / "b.zip", assignment=NAME)
    assert report.counts == {"new": 1, "older": 1}
    assert tree(tmp_path / "submitted") == {f"17/{NAME}/adding.py": "28\n"}


# ------------------------------------------------------------------ folders, and all sources alike


PLAIN = {
    "class/ada/01_adding/adding.py": "ada = 1\n",
    "class/grace/adding.py": "grace = 1\n",
    "class/alan/02_many_heads/many_heads.py": "alan = 1\n",
    "class/eve/01_adding/adding.py": b"\xff\xfe not a text",
}


def test_plain_folders_and_archives_are_collected(packed, gather, tmp_path):
    archive = packed("class.zip", PLAIN)
    report = gather(archive)
    expected = {
        f"ada/{NAME}/adding.py": "ada = 1\n",
        f"grace/{NAME}/adding.py": "grace = 1\n",
        "alan/02_many_heads/many_heads.py": "alan = 1\n",
        f"eve/{NAME}/NOT_COLLECTED.txt": "adding.py is not UTF-8 text (byte 1); save it as UTF-8.\n",
        f"eve/{NAME}/adding.py": "\ufffd\ufffd not a text",
    }
    assert tree(tmp_path / "submitted") == expected
    assert report.odd == [
        "class.zip: eve, 01_adding: adding.py is not UTF-8 text (byte 1); save it as UTF-8."
    ]
    assert gather(unpacked(archive) / "class").counts == {"unchanged": 4}
    assert gather(tmp_path / "submitted").counts == {"unchanged": 4}


@pytest.mark.parametrize(
    "name, assignment",
    [
        ("lin-101-adding submissions.zip", NAME),
        ("Kurs-01_adding-77.zip", NAME),
        ("many heads.zip", "02_many_heads"),
        ("02-Many-Heads", "02_many_heads"),
        ("submissions.zip", None),
        ("adding and many heads.zip", "02_many_heads"),
        ("paddings.zip", None),
    ],
)
def test_archive_name_determines_the_assignment(course, name, assignment):
    found = named_in(name, course)
    assert (found.name if found else None) == assignment


def test_file_without_a_known_assignment_is_listed(packed, gather, tmp_path):
    archive = packed("submissions.zip", {"lovelaceada_1001_5001_homework.py": "ada = 1\n"})
    (problem,) = gather(archive).odd
    sentence = "is not named like an assignment; name the assignment with --assignment."
    assert f"homework.py {sentence}" in problem
    assert not gather(archive, assignment=NAME).odd
    assert tree(tmp_path / "submitted") == {f"1001/{NAME}/homework.py": "ada = 1\n"}


# ------------------------------------------------------------------ again, and nothing is lost


def stamped(when: str, text: str) -> dict[str, str | bytes]:
    metadata = f"submission_1:\n  :submitters:\n  - :sid: ada\n  :created_at: {when}\n"
    return {"submission_metadata.yml": metadata, "submission_1/adding.py": text}


def test_later_submission_replaces_the_earlier_one_which_is_kept(packed, gather, tmp_path):
    gather(packed("monday.zip", stamped("2026-03-02 10:00:00 Z", "monday\n")))
    report = gather(packed("tuesday.zip", stamped("2026-03-03 10:00:00 Z", "tuesday\n")))
    files = tree(tmp_path / "submitted")
    assert files.pop(f"ada/{NAME}/adding.py") == "tuesday\n"
    assert list(files.values()) == ["monday\n"]
    assert next(iter(files)).startswith(f".earlier/ada/{NAME}/")
    assert report.counts == {"replaced": 1} and "this one counts now" in report.notes[0]
    assert known(tmp_path / "submitted")["ada"].submitted_at == "2026-03-03T10:00:00+00:00"


def test_files_changed_by_hand_are_kept(packed, gather, tmp_path):
    archive = packed("1.zip", {"lovelaceada_1001_1_adding.py": "x\n"})
    gather(archive)
    file = tmp_path / "submitted" / "1001" / NAME / "adding.py"
    file.write_text("mended\n")
    report = gather(archive)
    assert file.read_text() == "mended\n"
    assert report.counts == {"changed by hand": 1} and "`--replace`" in report.odd[0]
    assert gather(archive, replace=True).counts == {"replaced": 1}
    assert sorted(tree(tmp_path / "submitted").values()) == ["mended\n", "x\n"]


# ------------------------------------------------------------------ work that cannot be used


def problems_of(folder: Path, course: Course) -> dict[str, str | None]:
    """Return why each submission below a folder or in an archive cannot be graded."""
    return {found.student: found.problem for found in find_submissions(folder, course)}


def test_grade_gives_the_reason_that_collect_saw(packed, gather, course, tmp_path):
    """The files are kept beside the reason, and another attempt replaces both."""
    files = {
        "class/ada/01_adding/adding.py": "one = 1\n",
        "class/ada/01_adding/adding (1).py": "two = 1\n",
        "class/cy/01_adding/a/adding.py": "one = 1\n",
        "class/cy/01_adding/b/adding.py": "two = 1\n",
        "class/ed/01_adding/adding.py": "ed = 1\n",
    }
    archive = packed("class.zip", files)
    directly = problems_of(archive, course)
    gather(archive)
    assert problems_of(tmp_path / "submitted", course) == directly
    assert directly["ed"] is None and "with different contents" in (directly["ada"] or "")
    left = tree(tmp_path / "submitted")
    kept = sorted(text for name, text in left.items() if not name.endswith(".txt"))
    assert kept == ["ed = 1\n", "one = 1\n", "one = 1\n", "two = 1\n", "two = 1\n"]
    del files["class/ada/01_adding/adding (1).py"]
    assert gather(packed("again.zip", files)).counts["replaced"] == 1
    assert problems_of(tmp_path / "submitted", course)["ada"] is None


def test_unusable_files_do_not_replace_usable_ones(packed, gather, tmp_path):
    gather(packed("adding.zip", {"lovelaceada_1001_1_adding.py": "x\n"}))
    unusable = packed("adding-2.zip", {"lovelaceada_1001_2_essay.pdf": "%PDF"})
    assert gather(unusable, assignment=NAME).odd
    assert tree(tmp_path / "submitted") == {f"1001/{NAME}/adding.py": "x\n"}
    gather(packed("adding-3.zip", {"turingalan_1003_3_essay.pdf": "%PDF"}), assignment=NAME)
    usable = packed("adding-4.zip", {"turingalan_1003_4_adding.py": "y\n"})
    assert gather(usable).counts == {"replaced": 1}


# ------------------------------------------------------------------ and back again


@pytest.mark.parametrize(
    "tool, files, sheet, title",
    [("canvas", CANVAS, CANVAS_SHEET, "Adding (7)"), ("moodle", MOODLE, MOODLE_SHEET, "Grade")],
)
def test_collected_students_are_found_in_the_sites_sheet(
    packed, gather, course, tmp_path, tool, files, sheet, title
):
    """Every collected student is found in the site's own sheet, each in a separate row."""
    gather(packed("download.zip", files))
    students = [student for student in sorted(known(tmp_path / "submitted")) if student in sheet]
    grades = tuple(
        Grade(student, NAME, "graded", number / 2, 10) for number, student in enumerate(students)
    )
    (tmp_path / "sheet.csv").write_text(sheet, "utf-8")
    exported = export(
        tool, ExportRequest(course, grades, tmp_path / "submitted", sheet=tmp_path / "sheet.csv")
    )
    assert exported.problems == []
    cells = [row[title] for row in rows_of(tmp_path / "sheet-filled.csv")]
    assert [float(cell) for cell in cells if cell != "10"] == [grade.score for grade in grades]


# ------------------------------------------------------------------ the record


def test_record_round_trip(tmp_path):
    facts = ("2026-03-20T23:58:00+01:00", True, 2, "x.zip", {"adding.py": "00"})
    written = [Collected("ada", NAME, "Ada", *facts), Collected("zoë", NAME)]
    write_collected(tmp_path, written)
    assert list(read_collected(tmp_path).values()) == written
    assert read_collected(tmp_path / "elsewhere") == {}
    record = json.loads((tmp_path / "collected.json").read_text("utf-8"))
    assert record["schema"] == 1
    assert list(record["submissions"][0])[:4] == ["student", "assignment", "name", "submitted_at"]


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", '{"schema": 2, "submissions": []}'),
        '{"schema": 1, "submissions": [{"student": 5, "assignment": ""}]}',
        '{"schema": 1, "submissions": [{"student": "a"}]}',
        '{"schema": 1, "submissions": [{"student": "a", "assignment": "b", "late": "yes"}]}',
        '{"schema": 1, "submissions": [{"student": "a", "assignment": "b", "submitted_at": "soon"}]}',
    ],
)
def test_invalid_record_is_reported(tmp_path, text):
    (tmp_path / "collected.json").write_text(text, "utf-8")
    with pytest.raises(RefusedError, match=r"collect again\.$"):
        read_collected(tmp_path)


# ------------------------------------------------------------------ hostile archives


@pytest.mark.parametrize(
    "sid", ["../../evil", "/etc/evil", "..", "con", "a\\b", "x" * 300, "'\"\\0'", ".hidden"]
)
def test_ids_cannot_escape_the_folder(packed, gather, tmp_path, sid):
    metadata = f"submission_1:\n  ':submitters':\n  - {{':sid': {json.dumps(sid)}}}\n"
    files = {"submission_metadata.yml": metadata, "submission_1/adding.py": "x\n"}
    gather(packed("export.zip", files))
    (file,) = tree(tmp_path / "submitted")
    assert file.endswith(f"/{NAME}/adding.py") and file.count("/") == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["export.zip", "submitted"]


def test_archive_paths_cannot_escape_the_folder(packed, gather, tmp_path):
    files = {
        "../lovelaceada_1001_1_adding.py": "x",
        "/hoppergrace_1002_2_adding.py": "x",
        "turingalan_1003_3_../../adding.py": "x",
        "liskovbarbara_1004_4_adding.py": "x",
    }
    report = gather(packed("submissions.zip", files))
    assert report.odd
    assert all(file.endswith(f"/{NAME}/adding.py") for file in tree(tmp_path / "submitted"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["submissions.zip", "submitted"]


# ------------------------------------------------------------------ the command


@pytest.fixture
def command(course: Course, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*words: str):
        return CliRunner().invoke(app, ["collect", *words, "--course", str(course.root)])

    return run


def test_collect_command_reports_results_and_problems(command, packed, tmp_path):
    packed("good.zip", {"lovelaceada_1001_1_adding.py": "x\n"})
    done = command("good.zip")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == "1 submission of 1 student: 1 new.\n"
    packed("submissions.zip", CANVAS)
    done = command("submissions.zip", "--output", "there", "--json")
    assert done.exit_code == 1 and "essay.pdf" in done.stderr
    record = json.loads(done.stdout)
    assert record["submissions"] == {"new": 6}
    assert (record["late"], len(record["not_understood"])) == (1, 3)


@pytest.mark.parametrize(
    "words, code",
    [
        ("nothing.zip", 2),
        ("good.zip nothing.zip", 2),
        ("good.zip --from sakai", 2),
        ("good.zip --assignment 99_none", 2),
        ("good.zip --roster nothing.csv", 2),
        ("good.zip --roster good.zip", 2),
        ("good.zip --output good.zip/below", 2),
        ("gradebook.csv", 2),
        ("good.zip gradebook.csv", 2),
        ("good.zip --times nothing.csv", 2),
        ("good.zip --times gradebook.csv", 2),
        ("good.zip --from moodle", 1),
        ("empty", 1),
        ("broken.zip", 2),
    ],
)
def test_collect_command_reports_wrong_arguments(command, packed, tmp_path, words, code):
    packed("good.zip", {"lovelaceada_1001_1_adding.py": "x\n"})
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.zip").write_bytes(b"PK\x03\x04")
    (tmp_path / "gradebook.csv").write_text("Student,ID\nAda,1001\n")
    done = command(*words.split())
    assert done.exit_code == code
    assert not done.exception or isinstance(done.exception, SystemExit)
    assert done.stderr.count("\n") == 1 and done.stderr.endswith(".\n")
    assert not (tmp_path / "submitted").exists() or not tree(tmp_path / "submitted")


# ------------------------------------------------------------------ a site of one's own


def test_a_package_adds_a_collector(
    packed: Callable[..., Path], course: Course, tmp_path: Path
) -> None:
    names = "[autograder.collectors]\nmysite = collects_my_site:MySiteCollector\n"
    program = example_of_the_docs("mysite.py")
    archive = packed("work.zip", {"Ada Lovelace - 12345/adding.py": "x = 1\n"})
    words = ["collect", str(archive), "--course", str(course.root), "-a", NAME]
    with installed_package(tmp_path / "site-packages", "collects_my_site", program, names):
        known = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "known")])
        asked = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "asked"), "--from", "mysite"])
        unknown = CliRunner().invoke(app, [*words, "--from", "yoursite"])
    assert (known.exit_code, asked.exit_code) == (0, 0), known.output + asked.output
    for folder in ("known", "asked"):
        (collected,) = read_collected(tmp_path / folder).values()
        assert (collected.name, collected.student) == ("Ada Lovelace", "12345")
    assert unknown.exit_code == 2 and "mysite, gradescope" in unknown.stderr
