"""Decisions of the instructors over the journal: points, comments, excuses, dropped tests and late work."""

from __future__ import annotations

import getpass
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

import autograder
from autograder.cli import app
from autograder.course.config import Course, CourseError
from autograder.course.reading import load_course
from autograder.feedback.pages import feedback_path
from autograder.gradebook import texts
from autograder.gradebook.decisions import locked, read_decisions
from autograder.gradebook.final_scores import Effective, differing, what_counts
from autograder.gradebook.journal import Journal, Reading
from autograder.gradebook.times import keep_times
from autograder.records import Grade, SourceFile, Submission, TestResult
from autograder.submissions.collected import Collected, write_collected
from tests.autograder.tables import rows_of
from tests.autograder.tiny_course import COURSE, write_tiny_course

NAME = "01_adding"
LATE = """\
timezone: Europe/Berlin
late: {percent_a_day: 10}
assignments:
  - name: 01_adding
    due: 2026-11-27 23:59
"""
SIGNED = "by: Grace Hopper, at: 2026-11-30 14:05"
POINTS = {
    "small": ("add", 1.0), "any": ("add", 3.0), "push": ("total", 2.0), "sums": ("total", 4.0),
}  # fmt: skip


def graded(student: str, failed: tuple[str, ...] = (), suite: str = "suite") -> Grade:
    """A grade of 10 points, less those of the failed tests."""
    tests = []
    for name, (part, most) in POINTS.items():
        outcome, points = ("failed", 0) if name in failed else ("passed", most)
        tests.append(TestResult(name, part, f"It can {name}.", outcome, points, most))
    score = sum(test.score for test in tests)
    submission = Submission(student, NAME, (SourceFile("adding.py", student),))
    digest = texts.put(Path("unused"), [replace(submission, files=())])[0].digest
    digests = {"submission_sha256": digest, "suite_sha256": suite}
    return Grade(student, NAME, "graded", score, 10, tuple(tests), seed=7, **digests)


@pytest.fixture
def course(tmp_path: Path) -> Course:
    write_tiny_course(tmp_path / "course")
    (tmp_path / "course/course.yml").write_text(
        COURSE.replace("assignments:\n  - name: 01_adding\n", LATE), "utf-8"
    )
    return load_course(tmp_path / "course")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Grades: ada has 7 points and is two days late, ben has 4, cy has 10, and eve is refused."""
    folder, submitted = tmp_path / "grades", tmp_path / "submitted"
    submitted.mkdir()
    grades = [graded("ada", ("any",)), graded("ben", ("push", "sums")), graded("cy")]
    grades.append(Grade("eve", NAME, "refused", 0, 10, problem="The file is not UTF-8 text."))
    write_collected(
        submitted,
        [Collected("ada", NAME, "Ada Lovelace", submitted_at="2026-11-29T12:00:00+01:00")],
    )
    keep_times(
        folder,
        submitted,
        texts.put(folder, [Submission("ada", NAME, path=submitted / "ada" / NAME)]),
    )
    write(folder, *grades)
    return folder


def write(folder: Path, *grades: Grade) -> None:
    with Journal(folder) as journal:
        for grade in grades:
            journal.append(grade)


@pytest.fixture
def decided(course: Course, folder: Path) -> Callable[..., Effective]:
    """What counts with these entries, each written as the inside of a YAML block."""

    def count(*entries: str) -> Effective:
        named = [e if "assignment:" in e else f"assignment: {NAME}, {e}" for e in entries]
        lines = [f"- {{{SIGNED}, {entry}}}\n" for entry in named]
        (course.root / "decisions.yml").write_text("".join(lines), "utf-8")
        return what_counts(folder, course, Reading(folder / "grades.jsonl"))

    return count


def scores(effective: Effective) -> dict[str, tuple[float, float]]:
    return {
        g.student: (effective.finals[g.student, NAME].score, g.max_score) for g in effective.grades
    }


# ------------------------------------------------------------------ what a decision does


UNCHANGED = {"ada": (5.6, 10), "ben": (4, 10), "cy": (10, 10), "eve": (0, 10)}  # ada: 7, less 20 %


@pytest.mark.parametrize(
    ("entry", "changed"),
    [
        pytest.param("", {}, id="without decisions lateness alone counts"),
        pytest.param("student: eve, give: 6, reason: R", {"eve": (6, 10)},
                     id="points of a refused submission"),
        pytest.param("student: ada, accept_late: true, reason: R", {"ada": (7, 10)},
                     id="accepted late"),
        pytest.param("drop: any, counts: full, reason: R", {"ada": (8.0, 10)},
                     id="dropped test that counts"),
        pytest.param("drop: any, counts: out, reason: R",
                     {"ada": (5.6, 7), "ben": (1, 7), "cy": (7, 7), "eve": (0, 7)},
                     id="dropped test that leaves the total"),
    ],
)  # fmt: skip
def test_scores_after_a_decision_about_the_test_or_its_time(decided, entry, changed):
    """The test `any` has 3 points, and only ada failed it."""
    effective = decided(entry) if entry else decided()
    assert scores(effective) == {**UNCHANGED, **changed}
    assert effective.problems == []


UNWRITTEN = "`add` is not written yet (line 3)."
ABSENT = "There is no `add` in the submission."
STOPPED = "There is no `add`: the file stopped in line 3 with ValueError."
WAITS = "This waits until “It can small.” passes."


@pytest.mark.parametrize(
    ("small", "dropped", "gained"),
    [
        ("3 came back.", "4 came back.", 3),
        ("3 came back.", WAITS, 3),
        (None, "4 came back.", 3),
        (None, STOPPED, 3),
        (None, UNWRITTEN, 0),
        (None, ABSENT, 0),
        (UNWRITTEN, UNWRITTEN, 0),
        (UNWRITTEN, WAITS, 0),
        (ABSENT, WAITS, 0),
    ],
)
def test_a_dropped_test_gives_nothing_to_code_that_is_not_written(
    decided, command, course, folder, small, dropped, gained
):
    failed = {"any": dropped} | ({"small": small} if small else {})
    grade = graded("ada", tuple(failed))
    tests = [
        replace(
            t,
            message=failed.get(t.name),
            outcome="skipped" if failed.get(t.name) == WAITS else t.outcome,
        )
        for t in grade.tests
    ]
    write(folder, replace(grade, tests=tuple(tests)))
    effective = decided(
        "drop: any, counts: full, reason: Too strict.", "student: ada, accept_late: true, reason: R"
    )
    assert scores(effective)["ada"] == (grade.score + gained, 10)
    assert effective.problems == []


def test_decide_says_whose_scores_a_dropped_test_changes(command, course, folder):
    told = command(
        "decide", "--grades", str(folder), "--drop", "any", "--counts", "full", "-r", "Too strict.",
        "-a", NAME,
    ).output  # fmt: skip
    assert "ada, 01_adding: 7 of 10 points → 10 of 10 points" in told
    assert "Scores that do not change: 3." in told
    assert "cy" not in told


@pytest.mark.parametrize("named", [{"AUTOGRADER_BY": "Grace"}, {}])
def test_the_user_of_the_computer_decides_if_nobody_is_named(
    command, course, folder, monkeypatch, named
):
    for name in ("AUTOGRADER_BY", "LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in named.items():
        monkeypatch.setenv(name, value)
    assert (
        command(
            "decide", "ada", "--excuse", "-r", "Ill.", "-a", NAME, "--grades", str(folder)
        ).exit_code
        == 0
    )
    (entry,) = read_decisions(course)
    assert entry.decision.by == named.get("AUTOGRADER_BY", getpass.getuser())


OLD = (
    "this was decided on {}, long before the first due date of the course, 2026-11-27; "
    "it is of an earlier term, and does not count. Move the file away, or correct the dates."
)


@pytest.mark.parametrize(
    "kind",
    [
        "drop: any, counts: full", "drop: any, counts: out", "student: ada, give: 1",
        "student: ada, accept_late: true", "student: ada, excuse: true",
        "student: nobody, excuse: true",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("at", "is_old"), [("2025-12-01", True), ("2026-10-25", True), ("2026-11-01", False)]
)
def test_a_decision_of_an_earlier_term_is_named_and_does_not_count(
    decided, course, folder, kind, at, is_old
):
    entry = f"- {{assignment: {NAME}, {kind}, reason: R, by: G, at: {at}}}\n"
    decided()
    (course.root / "decisions.yml").write_text(entry, "utf-8")
    effective = what_counts(folder, course, Reading(folder / "grades.jsonl"))
    (named,) = effective.problems if is_old or "nobody" in kind else ("",)
    assert (named == f"decisions.yml, line 1: {OLD.format(at)}") is is_old
    if is_old:
        assert scores(effective) == UNCHANGED
        assert not any(final.decisions for final in effective.finals.values())


def test_points_are_given_back_before_lateness(decided):
    effective = decided(
        "student: ada, part: add, give: 2, reason: Unclear.",
        "student: ben, take: 0.5, reason: Style.",
    )
    assert (scores(effective)["ada"], scores(effective)["ben"]) == ((7.2, 10), (3.5, 10))
    assert effective.finals["ada", NAME].sentence == "9 points, minus 1.8 for two days late"
    (ada,) = (grade for grade in effective.grades if grade.student == "ada")
    assert sum(test.score for test in ada.tests if test.part == "add") == 3
    assert effective.problems == []


def test_points_stay_between_zero_and_the_maximum_and_the_rest_is_named(decided):
    effective = decided(
        "student: ada, part: total, give: 1, reason: Unclear.",
        "student: cy, give: 2, reason: Bonus.",
        "student: ben, take: 7, reason: Style.",
    )
    assert [scores(effective)[name][0] for name in ("ada", "cy", "ben")] == [5.6, 10, 0]
    assert effective.problems == [
        "decisions.yml, line 1: ada can gain only 0 points in the part total of 01_adding, not 1.",
        "decisions.yml, line 3: ben can lose only 4 points in 01_adding, not 7.",
        "decisions.yml, line 2: cy can gain only 0 points in 01_adding, not 2.",
    ]


def test_excused_submission_has_neither_score_nor_deduction(decided):
    final = decided("student: ada, excuse: true, reason: Ill.").finals["ada", NAME]
    assert final.excused and final.score == 0


def test_journal_stays_as_it_is_and_removal_undoes(decided, folder):
    before = (folder / "grades.jsonl").read_bytes()
    decided("student: ben, give: 1, reason: Unclear.")
    assert (folder / "grades.jsonl").read_bytes() == before
    assert scores(decided())["ben"] == (4, 10)


# ------------------------------------------------------------------ decisions that do not fit


@pytest.mark.extras
def test_decision_that_does_not_fit_is_in_every_output(decided, command, folder, tmp_path):
    decided("drop: gone, counts: full, reason: R")
    sentence = "decisions.yml, line 1: 01_adding has no test `gone`."
    export = command("export", "--to", "csv", "--output", str(tmp_path / "scores.csv"))
    said = [command("report"), export, command("compare", str(folder), str(folder))]
    assert [sentence in done.stderr for done in said] == [True] * 3
    assert "01_adding has no test <code>gone</code>." in (folder / "index.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ("drop: anyy, counts: full, reason: R",
         "01_adding has no test `anyy`; did you mean `any`?"),
        ("student: bem, give: 1, reason: R",
         "no student in these grades has the name bem; did you mean `ben`?"),
        ("student: ben, give: 1, part: totl, reason: R",
         "01_adding has no part `totl`; did you mean `total`?"),
        ("assignment: 01_addng, student: ben, give: 1, reason: R",
         "the course has no assignment `01_addng`; did you mean `01_adding`?"),
        (
            "student: ben, give: 1, score: 3, reason: R",
            "ben had 3 points in 01_adding when this was decided, and has 4 now. If the decision is still right, "
            "remove its line `score`.",
        ),
    ],
)  # fmt: skip
def test_decision_that_does_not_fit_is_named(decided, entry, sentence):
    assert decided(entry).problems == [f"decisions.yml, line 1: {sentence}"]


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ("student: ben, reason: R", "must have exactly one of `give`, `take`, `comment`"),
        ("student: ben, give: 1, take: 1, reason: R", "must have exactly one of"),
        ("student: ben, give: -1, reason: R",
         "`give` of decision 1 must be greater than 0, not -1."),
        ("student: ben, give: 1", "must have a `reason`, which the student reads."),
        ("give: 1, reason: R", "must name the `student`."),
        ("student: ben, drop: any, counts: out, reason: R",
         "drops a test for everybody, so it has no `student`."),
        ("drop: any, reason: R",
         "needs `counts: full` or `counts: out` with `drop`, and only there."),
        ("drop: any, counts: none, reason: R", "must be `full` or `out`"),
        ("student: ben, excuse: false, reason: R",
         "`excuse` of decision 1 must be `true`, not false."),
        ("student: ben, excuse: true, part: add, reason: R",
         "can have a `part` only with `give` or `take`."),
        ("student: ben, giv: 1, reason: R", "did you mean `give`?"),
    ],
)  # fmt: skip
def test_invalid_decision_is_reported_with_its_line(decided, entry, sentence):
    with pytest.raises(CourseError) as error:
        decided(entry)
    assert str(error.value).startswith("decisions.yml, line 1: ") and sentence in str(error.value)


# ------------------------------------------------------------------ pages, tables and exports

ALL_KINDS = (
    "student: ada, part: add, give: 1, reason: The sentence was *unclear*.",
    "student: ada, accept_late: true, reason: The site was down.",
    "student: ben, excuse: true, reason: Ill.",
    'student: cy, comment: "=Well <b>done</b>."',
    "drop: push, counts: full, reason: Too strict.",
)


@pytest.fixture
def command(course: Course, folder: Path, tmp_path: Path) -> Callable[..., Result]:
    def run(name: str, *words: str) -> Result:
        where = [] if name in ("compare", "decide") else [str(folder)]
        return CliRunner().invoke(app, [name, *where, *words, "--course", str(course.root)])

    return run


@pytest.fixture
def decide(command: Callable[..., Result], folder: Path) -> Callable[..., Result]:
    """The command `decide` about the assignment, signed, with the reason R."""

    def run(*words: str, about: tuple[str, ...] = ("--assignment", NAME)) -> Result:
        signed = ("--grades", str(folder), "--by", "G", "--reason", "R")
        return command("decide", *words, *about, *signed)

    return run


def test_pages_show_the_decisions(decided, command, folder):
    decided(*ALL_KINDS)
    done = command("report")
    assert done.exit_code == 0, done.output
    pages = {
        name: (folder / feedback_path(graded(name))).read_text("utf-8")
        for name in ("ada", "ben", "cy")
    }
    assert '<p class="score">8 <small>of 10 points</small></p>' in pages["ada"]
    assert "<li>1 point given back: The sentence was *unclear*.</li>" in pages["ada"]
    assert "<li>Accepted although late: The site was down.</li>" in pages["ada"]
    assert "8 points, two days late." in pages["ada"]
    assert '<span class="number quiet">2 of 4</span>' in pages["ada"]
    assert '<p class="score">Excused</p>' in pages["ben"]
    assert "<li>Excused: Ill.</li>" in pages["ben"]
    assert "<li>=Well &lt;b&gt;done&lt;/b&gt;.</li>" in pages["cy"]
    assert '<p class="follows">Counts in full for everybody: Too strict.</p>' in pages["cy"]
    of_cy = (folder / "students/cy.html").read_text("utf-8")
    assert "Well &lt;b&gt;done" in of_cy
    for page in (*pages.values(), of_cy):
        assert "<li>Counts in full" not in page, "it stands at the test"
    report = (folder / "index.html").read_text("utf-8")
    assert (
        "1 point given back: The sentence was *unclear*.</td><td>Grace Hopper, 2026-11-30</td>"
        in report
    )
    assert '<td class="number quiet">excused</td>' in report
    rows = {row["student"]: row for row in rows_of(folder / "grades.csv")}
    assert (rows["ada"]["score"], rows["ada"]["final_score"]) == ("7", "8")
    assert rows["ben"]["final_score"] == ""
    assert rows["cy"]["decisions"].startswith("Counts in full for everybody: Too strict.\n")


@pytest.mark.extras
def test_every_export_contains_the_decisions(decided, command, tmp_path):
    decided(*ALL_KINDS)
    table = tmp_path / "scores.csv"
    assert command("export", "--to", "csv", "--output", str(table)).exit_code == 0
    rows = {row["student"]: row for row in rows_of(table)}
    assert (rows["ada"][NAME], rows["ben"][NAME], rows["ben"]["total"]) == ("8", "excused", "0")
    assert rows["cy"]["comments"] == "01_adding: =Well <b>done</b>."

    sheet = tmp_path / "canvas.csv"
    people = "".join(f"{name},{name},S1,\n" for name in ("ada", "ben", "cy", "eve"))
    sheet.write_text(f"Student,ID,Section,{NAME} (5)\n    Points Possible,,,10\n{people}", "utf-8")
    assert command("export", "--to", "canvas", "--sheet", str(sheet)).exit_code == 0
    filled = (tmp_path / "canvas-filled.csv").read_text("utf-8")
    assert "ada,ada,S1,8\nben,ben,S1,EX\ncy,cy,S1,10\neve,eve,S1,0\n" in filled

    sheet = tmp_path / "moodle.csv"
    people = "".join(
        f"Participant {n},{name},,10,,\n" for n, name in enumerate(("Ada Lovelace", "ben", "cy"), 1)
    )
    sheet.write_text(
        f"Identifier,Full name,Grade,Maximum grade,Last modified (grade),Feedback comments\n{people}",
        "utf-8",
    )
    done = command("export", "--to", "moodle", "--sheet", str(sheet), "--assignment", NAME)
    assert done.exit_code == 1 and f"ben, {NAME}: excused, so no grade is written." in done.stderr
    filled = (tmp_path / "moodle-filled.csv").read_text("utf-8")
    assert "Participant 1,Ada Lovelace,8,10,,\nParticipant 2,ben,,10,,\n" in filled
    assert "Participant 3,cy,10,10,,'=Well <b>done</b>.\n" in filled

    results = tmp_path / "results"
    assert command("export", "--to", "classroom50", "--output", str(results)).exit_code == 0
    record = json.loads((results / "ada" / NAME / "result.json").read_text("utf-8"))
    assert (record["score"], record["max-score"]) == (8, 10)
    assert {test["test-name"] for test in record["tests"] if test["score"] == 1} >= {
        "1 point given back: The sentence was *unclear*."
    }

    junit = tmp_path / "junit.xml"
    assert command("export", "--to", "junit", "--output", str(junit)).exit_code == 0
    text = junit.read_text("utf-8")
    assert '<property name="score" value="excused" />' in text
    assert '<property name="decision" value="Accepted although late: The site was down." />' in text


@pytest.mark.extras
def test_points_for_the_whole_are_assigned_to_parts_for_nbgrader(decided, course):
    """ben has 4 of 4 in `add` and 0 of 6 in `total`; 5 points off leave nothing in `add`."""
    from autograder.extras.lms.exports.by_hand import by_part

    for entry, expected in (
        ("student: ben, give: 5, reason: R", {"add": 4, "total": 5}),
        ("student: ada, give: 2, reason: R", {"add": 3, "total": 6}),
        ("student: ada, take: 2, reason: R", {"add": 0, "total": 5}),
    ):
        (grade,) = (one for one in decided(entry).grades if f"student: {one.student}," in entry)
        moved = by_part(grade, course.assignment(NAME))
        assert {
            part: sum(t.score for t in moved.tests if t.part == part) for part in ("add", "total")
        } == expected


def test_compare_lays_the_decisions_over_both(decided, course, folder, tmp_path):
    """With the mended suite, ben has the point himself; the decision adds another one, and says so."""
    write(tmp_path / "new", graded("ada", ("any",)), graded("ben", ("sums",)), graded("cy"))
    decided(
        "student: ben, part: total, give: 2, score: 4, reason: Too strict.",
        "drop: any, counts: full, reason: R",
    )
    comparison = autograder.compare(folder, tmp_path / "new", course)
    (ben,) = (change for change in comparison.changes if change.student == "ben")
    assert ben.before and ben.after and (ben.before.score, ben.after.score) == (6, 8)
    assert comparison.notes == (
        "decisions.yml, line 1: ben had 4 points in 01_adding when this was decided, and has 6 now. If the decision is "
        "still right, remove its line `score`.",
    )
    raw = autograder.compare(folder, tmp_path / "new")
    assert [
        change.before.score for change in raw.changes if change.student == "ben" and change.before
    ] == [4]


# ------------------------------------------------------------------ a conversation about the work


@pytest.fixture
def talked_about(course: Course) -> Course:
    """The course, with 2 points for a conversation."""
    file = course.root / "course.yml"
    text = file.read_text("utf-8").replace(
        f"- name: {NAME}", f"- name: {NAME}\n    conversation: 2"
    )
    file.write_text(text, "utf-8")
    return load_course(course.root)


def test_a_conversation_is_a_part_of_its_own_with_points_from_a_person(
    talked_about, folder, command
):
    signed = ("--by", "Grace Hopper", "--grades", str(folder), "--assignment", NAME)
    said = ("--reason", "You explained the sum well.")
    done = command("decide", "ben", "--part", "conversation", "--give", "1.5", *said, *signed)
    assert done.exit_code == 0, done.output
    assert "ben, 01_adding: 4 of 10 points → 5.5 of 12 points" in done.stdout
    effective = what_counts(folder, talked_about, Reading(folder / "grades.jsonl"))
    assert scores(effective) == {"ada": (5.6, 12), "ben": (5.5, 12), "cy": (10, 12), "eve": (0, 12)}
    assert effective.problems == []
    assert differing(talked_about, effective.grades, effective.finals) == []
    command("report")
    pages = {
        name: (folder / feedback_path(graded(name))).read_text("utf-8") for name in ("ben", "cy")
    }
    assert "A conversation about this work" in pages["cy"]
    assert "The conversation has not been held yet." in pages["cy"]
    assert "not been held" not in pages["ben"]
    assert "1.5 points for the conversation: You explained the sum well." in pages["ben"]


def test_a_conversation_gives_no_more_than_its_points(talked_about, decide):
    done = decide("ben", "--part", "conversation", "--give", "3")
    assert done.exit_code == 2
    assert "ben can gain only 2 points in the part conversation" in done.stderr


# ------------------------------------------------------------------ the command


def test_decide_appends_to_the_file_and_keeps_comments(command, course, folder):
    file = course.root / "decisions.yml"
    file.write_text(
        f"# Term 1\n- {{assignment: {NAME}, student: cy, take: 1, reason: Style., {SIGNED}}}  # sic",
        "utf-8",
    )
    signed = ("--grades", str(folder), "--by", "Grace Hopper", "--reason", "Too: strict – #1")
    words = ("--give", "1.5", "--part", "total", "--assignment", NAME)
    done = command("decide", "ben", *words, *signed)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(
        "ben, 01_adding: 4 of 10 points → 5.5 of 10 points\n1.5 points given back: Too: strict"
    )
    text = file.read_text("utf-8")
    assert text.startswith("# Term 1\n- {assignment") and "# sic\n- assignment: 01_adding\n" in text
    first, second = (entry.decision for entry in read_decisions(course))
    assert (first.take, second.give, second.part, second.score) == (1, 1.5, "total", 4)
    assert (second.reason, second.by) == ("Too: strict – #1", "Grace Hopper")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("ben", "--give", "1"), "must have a `reason`"),
        (("bem", "--give", "1", "--reason", "R"),
         "no student in these grades has the name bem; did you mean `ben`?"),
        (("cy", "--give", "1", "--reason", "R"), "cy can gain only 0 points in 01_adding, not 1."),
        (("ben", "--give", "1", "--excuse", "--reason", "R"), "must have exactly one of"),
        (("--drop", "gone", "--counts", "out", "--reason", "R"), "01_adding has no test `gone`."),
        (("ben", "--give", "nan", "--reason", "R"), "must be an ordinary number"),
    ],
)  # fmt: skip
def test_decide_refuses_what_does_not_fit_and_writes_nothing(
    command, course, folder, words, sentence
):
    done = command("decide", *words, "--assignment", NAME, "--grades", str(folder), "--by", "G")
    assert done.exit_code == 2
    assert sentence in done.stderr and not (course.root / "decisions.yml").exists()


def test_decide_never_changes_a_file_that_it_cannot_extend(decide, course):
    file = course.root / "decisions.yml"
    file.write_text("[]\n", "utf-8")
    done = decide("ben", "--excuse")
    assert done.exit_code == 2 and file.read_text("utf-8") == "[]\n"


def test_pick_lists_flagged_submissions_and_those_below_a_border(command, folder):
    write(folder, replace(graded("dan", ("sums",)), flags=("It reads its own source.",)))
    words = ("--grades", str(folder), "--pick", "58", "--pick", "90")
    done = command("decide", *words)
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "ada, 01_adding: 5.6 / 10. 56.0 %, below 58 %",
        "dan, 01_adding: 6 / 10. It reads its own source.",
        "2 submissions to review.",
    ]
    (first, _) = json.loads(command("decide", *words, "--json").stdout)
    points = {"score": 5.6, "max_score": 10, "reasons": ["56.0 %, below 58 %"]}
    assert first == {"student": "ada", "assignment": NAME, **points}


# ------------------------------------------------------------------ the roster beside course.yml

ROSTER = """\
student,name,section,group
ada,Ada Lovelace,A,
ben,Ben Bit,B,
cy,Cy Young,A,
dee,Dee Dot,B,Team Blue
fay,Fay Fox,A,Team Blue
gus,Gus Gray,B,
eve,Eve Even,B,
"""


@pytest.fixture
def roster(course, folder) -> Path:
    """The roster; Team Blue handed in one file, and gus nothing."""
    (course.root / "roster.csv").write_text(ROSTER, "utf-8")
    write(folder, graded("Team Blue", ("push",)))
    return course.root / "roster.csv"


@pytest.mark.extras
def test_students_of_the_roster_without_a_submission_are_listed(
    roster, decided, command, folder, course, tmp_path
):
    decided()
    assert command("report").exit_code == 0
    report = (folder / "index.html").read_text("utf-8")
    assert (
        '<tr><th scope="row">gus <bdi class="quiet">Gus Gray</bdi></th><td class="number total">0</td>'
        in report
    )
    assert "Team Blue" not in report
    assert autograder.report(folder, course).absent == {"gus": "Gus Gray"}
    done = command("export", "--to", "csv", "--output", str(tmp_path / "scores.csv"))
    assert done.stdout.endswith("No work of Gus Gray was graded.\n")
    assert "gus,Gus Gray,,0\n" in (tmp_path / "scores.csv").read_text("utf-8")


@pytest.mark.extras
def test_work_of_a_group_counts_for_its_members_with_individual_decisions_on_top(
    roster, decided, course, folder
):
    decided(
        "student: Team Blue, take: 1, reason: Style.",
        "student: dee, give: 2, part: total, reason: Shown in the tutorial.",
        "student: gus, excuse: true, reason: Ill.",
    )
    pages = autograder.report(folder, course)
    assert {student: final.score for (student, _), final in pages.final_scores.items()} == {
        "ada": 5.6, "ben": 4, "cy": 10, "dee": 9, "eve": 0, "fay": 7, "gus": 0,
    }  # fmt: skip
    assert pages.final_scores["gus", NAME].excused and pages.differences == ()
    assert (folder / feedback_path(graded("dee"))).is_file()


@pytest.mark.extras
def test_sections_are_reported_and_exported_alone(roster, decided, command, folder, tmp_path):
    decided("student: ben, give: 1, reason: Unclear.")
    done = command("report", "--section", "B")
    assert done.exit_code == 0 and done.stdout == f"{folder / 'index-B.html'}\n"
    report = (folder / "index-B.html").read_text("utf-8")
    assert all(f'.html">{name}</a> ' in report for name in ("ben", "dee", "eve"))
    assert '<th scope="row">gus ' in report, "gus handed in nothing, so there is no page"
    assert "Lovelace" not in report and "Fay" not in report
    table = tmp_path / "scores.csv"
    assert command("export", "--to", "csv", "--section", "A", "--output", str(table)).exit_code == 0
    assert table.read_text("utf-8").splitlines()[2:] == [
        "ada,Ada Lovelace,5.6,5.6", "cy,Cy Young,10,10", "fay,Fay Fox,8,8",
    ]  # fmt: skip
    done = command("report", "--section", "C")
    assert done.exit_code == 2
    assert "The roster has no section `C`; it has `A` or `B`." in done.stderr


@pytest.mark.extras
@pytest.mark.parametrize(
    "student",
    ["Ben Bit", "bit, ben", "ben@example.org", "bb17", "submitted/ben/01_adding/adding.py"],
)
def test_decide_finds_a_student_by_name_login_address_or_path(decide, course, student):
    (course.root / "roster.csv").write_text(
        "student,name,email,login\nada,Ada Lovelace,ada@example.org,al1\nben,Ben Bit,ben@example.org,bb17\n",
        "utf-8",
    )
    about = () if "/" in student else ("--assignment", NAME)
    done = decide(student, "--excuse", about=about)
    assert done.exit_code == 0, done.output
    assert [entry.decision.student for entry in read_decisions(course)] == ["ben"]


@pytest.mark.extras
def test_decide_does_not_guess_between_two_students_of_one_name(decide, course):
    (course.root / "roster.csv").write_text("student,name\nada,Sam Same\nben,Sam Same\n", "utf-8")
    done = decide("Sam Same", "--excuse")
    assert (done.exit_code, read_decisions(course)) == (2, ())
    assert "no student in these grades has the name Sam Same" in done.stderr


def test_simultaneous_decisions_are_all_kept(course, folder):
    """Each decision reads the file and writes it again, so one that is not locked would lose the others."""
    with ThreadPoolExecutor(8) as threads:
        about = (autograder.decide, "ben", NAME, course, folder)
        made = [threads.submit(*about, by="G", comment=f"Comment {n}.") for n in range(8)]
        assert all(len(one.result()) == 1 for one in made)
    comments = {entry.decision.comment for entry in read_decisions(course)}
    assert comments == {f"Comment {n}." for n in range(8)}


def test_decide_waits_for_another_command_and_then_says_so(course, folder, monkeypatch):
    monkeypatch.setattr("autograder.gradebook.decisions.WAIT", 0)
    with (
        locked(course),
        pytest.raises(autograder.records.RefusedError, match="Another `decide` has been writing"),
    ):
        autograder.decide("ben", NAME, course, folder, by="G", comment="Well done.")
    assert read_decisions(course) == ()
