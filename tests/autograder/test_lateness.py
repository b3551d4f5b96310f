"""Final scores of late work: every limit of the policy, changes of the clock, and unchanged raw scores."""

from __future__ import annotations

import io
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from rich.console import Console
from typer.testing import CliRunner

from autograder.api import Run
from autograder.cli import app
from autograder.cli.tables import show_class
from autograder.course.config import Course, CourseError, Extension, LatePolicy
from autograder.course.digests import submission_digest, suite_digest
from autograder.course.reading import load_course
from autograder.feedback.html import write_what_counts
from autograder.gradebook import texts
from autograder.gradebook.final_scores import ClassList, Effective, what_counts
from autograder.gradebook.journal import Journal, Reading
from autograder.gradebook.lateness import (
    Final,
    GradeKey,
    counting,
    days_late,
    due_for,
    final,
    on_the_clock,
    points_off,
)
from autograder.gradebook.times import keep_times, read_names, read_times
from autograder.records import Grade, InfrastructureError, SourceFile, Submission
from autograder.runs.run import RunSummary
from autograder.submissions.collected import Collected, write_collected
from autograder.submissions.find import find_submissions
from tests.autograder.pages import write_all
from tests.autograder.tables import rows_of
from tests.autograder.tiny_course import COURSE, write_tiny_course

NAME = "01_adding"
BERLIN = ZoneInfo("Europe/Berlin")
QUARTER = timedelta(minutes=15)
NOW = timedelta(0)
SECOND = timedelta(seconds=1)

POLICY = """\
timezone: Europe/Berlin
late: {grace_minutes: 15, percent_a_day: 10, most_percent: 50}
assignments:
  - name: 01_adding
    due: 2026-11-27 23:59
"""


def berlin(text: str, fold: int = 0) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold)


def write_course(folder: Path, policy: str = POLICY) -> Course:
    write_tiny_course(folder)
    (folder / "course.yml").write_text(
        COURSE.replace("assignments:\n  - name: 01_adding\n", policy), "utf-8"
    )
    return load_course(folder)


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return write_course(tmp_path / "course")


def with_extensions(course: Course, *extensions: Extension) -> Course:
    assert course.late
    return course.model_copy(
        update={"late": course.late.model_copy(update={"extensions": extensions})}
    )


def graded(student: str = "ada", score: float = 8.0, text: str = "text", suite: str = "") -> Grade:
    return Grade(student, NAME, "graded", score, 10.0, submission_sha256=text, suite_sha256=suite)


# ---------------------------------------------------------------------- days

DUE = berlin("2026-11-27 23:59")


@pytest.mark.parametrize(
    ("after", "days"),
    [
        (timedelta(days=-40), 0),
        (NOW, 0),
        (SECOND, 0),
        (QUARTER, 0),
        (QUARTER + timedelta(microseconds=1), 1),
        (timedelta(days=1) + QUARTER, 1),
        (timedelta(days=1) + QUARTER + SECOND, 2),
        (timedelta(days=365), 365),
        (timedelta(days=365) + QUARTER + SECOND, 366),
    ],
)
def test_first_late_day_begins_after_the_grace_time(after, days):
    assert days_late(DUE, DUE.astimezone(timezone.utc) + after, QUARTER) == days


@pytest.mark.parametrize(("due", "length"), [("2026-10-24 12:00", 25), ("2027-03-27 12:00", 23)])
def test_late_day_ends_at_the_local_time_of_the_due_date(due, length):
    """Summer time ends on 25 October 2026 and begins on 28 March 2027: these days have 25 and 23 hours."""
    moment = berlin(due).astimezone(timezone.utc)
    assert days_late(berlin(due), moment + timedelta(hours=length), NOW) == 1
    assert days_late(berlin(due), moment + timedelta(hours=length) + SECOND, NOW) == 2


def test_skipped_hour_is_read_as_the_later_one():
    assert on_the_clock(datetime(2027, 3, 28, 2, 30), BERLIN).astimezone(timezone.utc).hour == 1


# ---------------------------------------------------------------------- points


@pytest.mark.parametrize(
    ("score", "days", "minus"),
    [(8, 0, 0), (8, 1, 0.8), (8, 5, 4), (8, 6, 4), (8, 1000, 4), (0, 3, 0), (10 / 3, 1, 0.33)],
)
def test_deduction_is_a_percentage_up_to_the_maximum(score, days, minus):
    assert points_off(score, days, LatePolicy(percent_a_day=10, most_percent=50)) == minus


# ---------------------------------------------------------------------- one grade


def test_time_without_an_offset_is_in_the_courses_time_zone(course):
    assert final(course, graded(), datetime(2026, 11, 28, 0, 14)).days == 0
    assert final(course, graded(), datetime(2026, 11, 28, 0, 14, 1)).days == 1
    assert final(course, graded(), datetime(2026, 11, 28, 0, 14, tzinfo=timezone.utc)).days == 1


def test_unknown_submission_time_has_no_deduction_and_is_marked(course):
    count = final(course, graded(), None)
    assert (count.score, count.days, count.known) == (8.0, 0, False)


def test_without_a_due_date_no_submission_is_late(tmp_path):
    course = write_course(tmp_path, POLICY.replace("    due: 2026-11-27 23:59\n", ""))
    count = final(course, graded(), berlin("2030-01-01 00:00"))
    assert (count.score, count.days, count.known) == (8.0, 0, True)
    assert final(course, graded(), None).known


def test_due_date_without_a_time_ends_with_the_day(tmp_path):
    course = write_course(
        tmp_path,
        POLICY.replace("2026-11-27 23:59", "2026-11-27").replace("grace_minutes: 15, ", ""),
    )
    assert final(course, graded(), berlin("2026-11-27 23:59:59")).days == 0
    assert final(course, graded(), berlin("2026-11-28 00:00")).days == 1


# ---------------------------------------------------------------------- late days

ASSIGNMENTS = ("01_adding", "02_adding", "03_adding")
DUES = (
    "2026-03-14 12:00",
    "2026-03-28 12:00",
    "2026-04-11 12:00",
)  # summer time begins on the 29th
DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A course with three assignments, which stand in course.yml in another order than they are due."""
    root = write_tiny_course(tmp_path_factory.mktemp("late") / "course")
    head, _, entry = COURSE.partition("assignments:\n")
    for name in ASSIGNMENTS[1:]:
        shutil.copytree(root / "solutions" / NAME, root / "solutions" / name)
    dated = {
        name: entry.replace(f"name: {NAME}\n", f"name: {name}\n    due: {due}\n")
        for name, due in zip(ASSIGNMENTS, DUES, strict=True)
    }
    text = f"{head}timezone: Europe/Berlin\nassignments:\n" + "".join(
        dated[name] for name in reversed(ASSIGNMENTS)
    )
    (root / "course.yml").write_text(text, "utf-8")
    return load_course(root)


BUDGET = {"free_days": 5, "most_per_assignment": 2, "grace_minutes": 15}
MORE_DAYS = [{"student": "ada", "assignment": "02_adding", "days": 2}]
# the extension makes the first assignment the last one due
LAST_DUE = [{"student": "ada", "assignment": "01_adding", "due": "2026-05-01 12:00"}]
LATE_DAYS = {
    "in time": (BUDGET, "ada", (NOW, NOW, NOW), {}, (8, 8, 8), (0, 0, 0), 5),
    "within the grace time": (BUDGET, "ada", (QUARTER, NOW, NOW), {}, (8, 8, 8), (0, 0, 0), 5),
    "a started day": (BUDGET, "ada", (QUARTER + SECOND, NOW, NOW), {}, (8, 8, 8), (1, 0, 0), 4),
    "two, two and one": (BUDGET, "ada", (2 * DAY, 2 * DAY, DAY), {}, (8, 8, 8), (2, 2, 1), 0),
    "the last has none left": (BUDGET, "ada", (2 * DAY, 2 * DAY, 2 * DAY), {}, (8, 8, 0), (2, 2, 0), 1),
    "more than one assignment takes": (BUDGET, "ada", (3 * DAY, DAY, NOW), {}, (0, 8, 8), (0, 1, 0), 4),
    "no most": ({"free_days": 5}, "ada", (4 * DAY, 2 * DAY, DAY), {}, (8, 0, 8), (4, 0, 1), 0),
    "a percentage beyond": (
        BUDGET | {"percent_a_day": 10}, "ada", (3 * DAY, 2 * DAY, 2 * DAY), {}, (7.2, 8, 7.2), (2, 2, 1), 0,
    ),
    "summer time begins": (
        {"free_days": 5}, "ada", (NOW, 2 * DAY, NOW), {}, (8, 8, 8), (0, 2, 0), 3,
    ),
    "a second more than two days": (
        {"free_days": 5}, "ada", (NOW, 2 * DAY + SECOND, NOW), {}, (8, 8, 8), (0, 3, 0), 2,
    ),
    "an extension comes first": (
        BUDGET | {"extensions": MORE_DAYS}, "ada", (NOW, 3 * DAY, NOW), {}, (8, 8, 8), (0, 1, 0), 4,
    ),
    "an extension changes the order": (
        BUDGET | {"free_days": 2, "extensions": LAST_DUE}, "ada", (49 * DAY, 2 * DAY, NOW), {}, (0, 8, 8), (0, 2, 0), 0,
    ),
    "an excuse costs none": (
        BUDGET, "ada", (2 * DAY, 2 * DAY, 2 * DAY), {0: "excuse"}, (0, 8, 8), (0, 2, 2), 1,
    ),
    "accepted work costs none": (
        BUDGET, "ada", (9 * DAY, 2 * DAY, 2 * DAY), {0: "accept_late"}, (8, 8, 8), (0, 2, 2), 1,
    ),
    "accepting gives the days back": (
        BUDGET, "ada", (2 * DAY, 2 * DAY, 2 * DAY), {1: "accept_late"}, (8, 8, 8), (2, 0, 2), 1,
    ),
    "a group takes each member's": (BUDGET, "pair", (2 * DAY, 2 * DAY, DAY), {}, (8, 8, 8), (2, 2, 1), 0),
    "an unknown time costs none": (BUDGET, "ada", (None, 2 * DAY, NOW), {}, (8, 8, 8), (0, 2, 0), 3),
}  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "owner", "after", "made", "scores", "taken", "left"),
    LATE_DAYS.values(),
    ids=LATE_DAYS,
)
def test_late_days_are_taken_in_the_order_of_due_dates(
    three, tmp_path, policy, owner, after, made, scores, taken, left
):
    course = three.model_copy(update={"late": LatePolicy.model_validate(policy), "root": tmp_path})
    submitted = tmp_path / "submitted"
    submitted.mkdir()
    known = [
        Collected(owner, name, submitted_at=(berlin(due) + late).isoformat())
        for name, due, late in zip(ASSIGNMENTS, DUES, after, strict=True)
        if late is not None
    ]
    write_collected(submitted, known)
    works = [
        Submission(owner, name, (SourceFile("a.py", name),), path=submitted / owner / name)
        for name in ASSIGNMENTS
    ]
    kept = texts.put(tmp_path / "grades", works)
    keep_times(tmp_path / "grades", submitted, kept)
    with Journal(tmp_path / "grades") as journal:
        for work in kept:
            grade = Grade(owner, work.submission.assignment, "graded", 8.0, 10.0)
            journal.append(replace(grade, submission_sha256=work.digest))
    entries = [
        f"- {{assignment: {ASSIGNMENTS[number]}, student: ada, {kind}: true, reason: R, by: G, at: 2026-11-30}}\n"
        for number, kind in made.items()
    ]
    (tmp_path / "decisions.yml").write_text("".join(entries), "utf-8")
    members = ("ada", "ben") if owner == "pair" else ()
    people = ClassList(groups={"pair": members} if members else {})
    effective = what_counts(
        tmp_path / "grades", course, Reading(tmp_path / "grades/grades.jsonl"), lambda _: people
    )
    for student in members or ("ada",):
        finals = [effective.finals[student, name] for name in ASSIGNMENTS]
        assert tuple(final.score for final in finals) == scores
        assert tuple(final.free for final in finals) == taken
        assert {(final.left, final.of) for final in finals} == {(left, policy["free_days"])}


@pytest.mark.parametrize(
    ("late", "sentence"),
    [
        ("{grace_minutes: 5}",
         "must say what a late day costs: `percent_a_day`, `free_days` or both."),
        ("{percent_a_day: 5, most_per_assignment: 2}",
         "it must say how many `free_days` there are."),
        ("{free_days: 0}", "must be greater than 0"),
        ("{free_days: 1.5}", "must be a whole number"),
    ],
)  # fmt: skip
def test_late_days_that_cannot_be_are_reported(tmp_path, late, sentence):
    with pytest.raises(CourseError) as caught:
        write_course(tmp_path, re.sub(r"late: .*", f"late: {late}", POLICY))
    assert sentence in str(caught.value)


def test_the_best_attempt_is_that_after_the_late_days(three):
    """Of two equal attempts, the one without late days counts; one for which no day is left is none."""
    late = LatePolicy(free_days=2)
    course = three.model_copy(update={"late": late, "attempts": "best"})
    first, second, _ = ASSIGNMENTS
    grades, times = [], {}
    for name, due, text, score, after in (
        (first, DUES[0], "early", 8.0, NOW),
        (first, DUES[0], "equal", 8.0, DAY),
        (second, DUES[1], "good", 9.0, 2 * DAY - timedelta(hours=2)),
        (second, DUES[1], "better", 10.0, 5 * DAY),
    ):
        grades.append(replace(graded(score=score, text=text), assignment=name))
        times[grades[-1].attempt] = berlin(due).astimezone(timezone.utc) + after
    assert [grade.submission_sha256 for grade in counting(course, grades, times)] == [
        "early",
        "good",
    ]


@pytest.mark.parametrize(
    ("days", "free", "minus", "sentence"),
    [
        (0, 0, 0.0, "3 of 5 late days left"),
        (2, 2, 0.0, "8 points, two days late; 2 late days taken, 3 of 5 late days left"),
        (3, 1, 1.6,
         "8 points, minus 1.6 for three days late; 1 late day taken, 3 of 5 late days left"),
        (7, 0, 8.0, "8 points, minus 8 for seven days late; 3 of 5 late days left"),
    ],
)  # fmt: skip
def test_pages_and_tables_say_how_many_late_days_are_left(
    course, tmp_path, days, free, minus, sentence
):
    count = Final(8.0, minus, days, free, left=3, of=5)
    assert count.sentence == sentence
    effective = Effective([graded()], {graded().key: count}, [], ClassList())
    write_what_counts(tmp_path / "pages", course, effective)
    page = (tmp_path / "pages" / "feedback" / "ada" / f"{NAME}.html").read_text("utf-8")
    assert f"{sentence}." in page
    (row,) = rows_of(tmp_path / "pages" / "grades.csv")
    assert (row["late_days_taken"], row["late_days_left"]) == (f"{free}", "3")


# ---------------------------------------------------------------------- extensions


def test_extension_applies_to_the_named_student(course):
    more = with_extensions(
        course,
        Extension(student="ada", days=2),
        Extension(student="ben", assignment=NAME, days=1),
        Extension(student="cy", assignment="02_other", days=2),
    )
    assignment = course.assignment(NAME)
    assert due_for(more, assignment, "ada") == berlin("2026-11-29 23:59")
    assert due_for(more, assignment, "ben") == berlin("2026-11-28 23:59")
    assert due_for(more, assignment, "cy") == berlin("2026-11-27 23:59")


# ---------------------------------------------------------------------- attempts


def best(course: Course) -> Course:
    return course.model_copy(update={"attempts": "best"})


IN_TIME, LATE = berlin("2026-11-27 12:00"), berlin("2026-11-30 12:00")
TIMES = {("ada", NAME, "one"): IN_TIME, ("ada", NAME, "two"): LATE}
REFUSED = replace(graded(score=0, text="two"), status="refused", problem="Not UTF-8.")
# of an attempt "one" and a later one, the number of the one that counts as the best
ATTEMPTS = {
    "the better one": (graded(score=9, text="one"), graded(score=5, text="two"), {}, 0),
    "the better one after lateness": (graded(score=7, text="one"), graded(score=9, text="two"), TIMES, 0),
    "the later of two equal ones": (graded(text="one"), graded(text="two"), {}, 1),
    "a text that was graded again": (graded(score=9, text="one"), graded(text="one"), {}, 1),
    "one of the newest suite": (graded(score=9, text="one", suite="old"), graded(text="two", suite="new"), {}, 1),
    "none that was refused": (graded(score=0, text="one"), REFUSED, {}, 0),
    "one that was refused, if all were": (REFUSED, REFUSED, {}, 1),
}  # fmt: skip


@pytest.mark.parametrize("one, other, times, best_one", ATTEMPTS.values(), ids=ATTEMPTS)
def test_the_last_attempt_counts_or_the_best(course, one, other, times, best_one):
    assert counting(course, [one, other], {}) == [other]
    assert counting(best(course), [one, other], times) == [(one, other)[best_one]]


# ---------------------------------------------------------------------- course.yml


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("Europe/Berlin", "Berlin", "line 4: `timezone` of the course must be a time zone such as `Europe/Berlin`"),
        ("percent_a_day: 10", "percent_a_day: 101", "line 5: `percent_a_day` of `late` must be at most 100, not 101."),
        ("grace_minutes: 15", "grace_minutes: -1", "line 5: `grace_minutes` of `late` must be at least 0, not -1."),
        ("2026-11-27 23:59", "friday", "line 8: `due` of the assignment `01_adding` must be a date and time such as"),
        ("50}", "50, extensions: [{student: ada}]}", "line 5: extension 1 must say either `due` or `days`."),
        ("50}", "50, extensions: [{student: ada, due: 2026-12-01}]}", "it must say for which `assignment`."),
        (
            "50}",
            "50, extensions: [{student: ada, assignment: 01_ading, days: 1}]}",
            "line 5: the course has no assignment `01_ading`; did you mean `01_adding`?",
        ),
    ],
)  # fmt: skip
def test_invalid_policy_is_reported(tmp_path, old, new, sentence):
    assert old in POLICY
    with pytest.raises(CourseError) as caught:
        write_course(tmp_path, POLICY.replace(old, new))
    assert sentence in str(caught.value)


def test_changed_due_date_needs_no_new_grading(tmp_path):
    with_due, without = write_course(tmp_path / "a"), load_course(write_tiny_course(tmp_path / "b"))
    digests = [suite_digest(course, course.assignment(NAME)) for course in (with_due, without)]
    assert digests[0] == digests[1]


# ---------------------------------------------------------------------- files


def submission(student: str, text: str = "x = 1\n", path: Path | None = None) -> Submission:
    return Submission(student, NAME, (SourceFile("adding.py", text),), path=path)


def run_of(folder: Path, grades: list[Grade], finals: Mapping[GradeKey, Final]) -> Run:
    return Run(
        folder, folder / "index.html", tuple(grades), finals, names=read_names(folder),
        summary=RunSummary(),
    )  # fmt: skip


def test_times_are_read_from_collected_json_and_earlier_ones_are_kept(tmp_path):
    submitted, grades = tmp_path / "submitted", tmp_path / "grades"
    submitted.mkdir()
    for text, when in (("one", "2026-11-27T12:00:00+01:00"), ("two", "2026-11-30T12:00:00Z")):
        write_collected(
            submitted, [Collected("ada", NAME, submitted_at=when), Collected("ben", NAME)]
        )
        class_ = [
            submission(student, text, submitted / student / NAME) for student in ("ada", "ben")
        ]
        keep_times(grades, submitted, texts.put(grades, class_))
    digests = [submission_digest(submission("ada", text)) for text in ("one", "two")]
    assert read_times(grades)[0] == {
        ("ada", NAME, digests[0]): berlin("2026-11-27 12:00"),
        ("ada", NAME, digests[1]): datetime(2026, 11, 30, 12, tzinfo=timezone.utc),
    }


def test_stamp_of_unchanged_work_with_an_untouched_file_beside_it_is_no_later(course, tmp_path):
    """The student adds the notebook as it was released, changes the name of the file, and then the work."""
    released = course.notebook_file(course.assignment(NAME))
    released.parent.mkdir(parents=True, exist_ok=True)
    released.write_text(UNTOUCHED, "utf-8")
    mine = SourceFile("adding.py", "x = 1\n")
    steps = [(mine,), (mine, SourceFile("adding.ipynb", UNTOUCHED)), (replace(mine, name="my.py"),)]
    for day, files in enumerate([*steps, (SourceFile("adding.py", "x = 2\n"),)], start=1):
        stamp = f"2026-11-0{day} 12:00:00 UTC"
        (tmp_path / "timestamp.txt").write_text(stamp, "utf-8")
        handed = [Submission("ada", NAME, files, path=tmp_path / "adding.py")]
        stored = texts.put(tmp_path / "grades", handed)
        keep_times(tmp_path / "grades", tmp_path, stored, trust_timestamps=True, course=course)
    released.unlink()
    days = sorted(moment.day for moment in read_times(tmp_path / "grades")[0].values())
    assert days == [1, 1, 1, 4]


UNTOUCHED = '{"cells": [], "nbformat": 4, "nbformat_minor": 5, "metadata": {}}'
EARLY, LATE, TABLE = (
    "2026-11-27T12:00:00+01:00",
    "2026-11-27T11:00:01Z",
    "2026-11-30T12:00:00+01:00",
)


@pytest.mark.parametrize(
    ("seen", "counts"),
    [
        ([(EARLY, False), (LATE, False)], EARLY),
        ([(LATE, False), (EARLY, False)], EARLY),
        ([(EARLY, False), (None, False)], EARLY),
        ([(EARLY, False), (TABLE, True)], TABLE),
        ([(TABLE, True), (EARLY, False)], TABLE),
        ([(TABLE, True), (EARLY, True)], EARLY),
        ([(EARLY, True), (TABLE, True)], TABLE),
    ],
)
def test_same_work_keeps_its_first_time_unless_a_table_says_otherwise(tmp_path, seen, counts):
    submitted = tmp_path / "submitted"
    submitted.mkdir()
    for moment, by_table in seen:
        facts = Collected("ada", NAME, submitted_at=moment, by_table=by_table)
        write_collected(submitted, [facts])
        class_ = [submission("ada", path=submitted / "ada" / NAME)]
        keep_times(tmp_path / "grades", submitted, texts.put(tmp_path / "grades", class_))
    assert list(read_times(tmp_path / "grades")[0].values()) == [datetime.fromisoformat(counts)]


@pytest.mark.parametrize("spelling", ["submitted", "x/../submitted", "submitted/ada/..", "link"])
def test_times_are_found_by_any_way_to_the_folder(course, tmp_path, spelling):
    folder = tmp_path / "submitted" / "ada" / NAME
    folder.mkdir(parents=True)
    (folder / "adding.py").write_text("x = 1\n", "utf-8")
    (tmp_path / "link").symlink_to("submitted")
    (tmp_path / "x").mkdir()
    write_collected(
        tmp_path / "submitted", [Collected("ada", NAME, submitted_at="2026-11-27T12:00:00+01:00")]
    )
    way = tmp_path / spelling
    keep_times(
        tmp_path / "grades", way, texts.put(tmp_path / "grades", find_submissions(way, course))
    )
    assert list(read_times(tmp_path / "grades")[0].values()) == [berlin("2026-11-27 12:00")]


@pytest.mark.parametrize("graded_folder", ["submitted", "submitted/ada", f"submitted/ada/{NAME}"])
def test_times_in_a_students_own_folder_are_ignored(tmp_path, graded_folder):
    """`collected.json` and `timestamp.txt` in a student's own folder, for every way to grade that folder."""
    folder = tmp_path / "submitted" / "ada" / NAME
    folder.mkdir(parents=True)
    early = [
        Collected(student, NAME, "Forged", submitted_at="2020-01-01T12:00:00+01:00")
        for student in ("ada", "ben")
    ]
    for place in (folder, folder.parent):
        write_collected(place, early)
        (place / "timestamp.txt").write_text("2020-01-01 12:00:00 UTC\n", "utf-8")
    known = texts.put(tmp_path / "grades", [submission("ada", path=folder / "adding.py")])
    keep_times(tmp_path / "grades", tmp_path / graded_folder, known)
    assert read_times(tmp_path / "grades")[0] == {}
    assert read_names(tmp_path / "grades") == {}, "nor do they rename anybody"


@pytest.mark.parametrize(
    "hostile",
    [
        os.mkfifo,
        lambda path: path.symlink_to("/dev/zero"),
        Path.mkdir,
        lambda path: path.write_text("{" * 10_000),
    ],
)
@pytest.mark.parametrize("name", ["timestamp.txt", "collected.json"])
def test_unusable_timestamp_file_is_ignored(tmp_path, hostile, name):
    folder = tmp_path / "submitted" / "ada" / NAME
    folder.mkdir(parents=True)
    hostile(folder / name)
    known = texts.put(tmp_path / "grades", [submission("ada", path=folder / "adding.py")])
    keep_times(tmp_path / "grades", folder, known, trust_timestamps=True)
    assert read_times(tmp_path / "grades")[0] == {}


@pytest.mark.parametrize(
    ("stamp", "moment"),
    [
        ("2026-11-27 11:00:00.000000 UTC", berlin("2026-11-27 12:00")),
        ("2026-11-27 11:00:00", berlin("2026-11-27 12:00")),
        ("2026-11-27 12:00:00 Europe/Berlin", berlin("2026-11-27 12:00")),
        ("2026-11-27 12:00:00 +0100", berlin("2026-11-27 12:00")),
        ("2026-11-27 12:00:00 CET", berlin("2026-11-27 12:00")),
        ("2026-10-25 02:10:00 CET", datetime(2026, 10, 25, 1, 10, tzinfo=timezone.utc)),
        ("2026-10-25 02:10:00 CEST", datetime(2026, 10, 25, 0, 10, tzinfo=timezone.utc)),
        ("2026-11-27 11.00", None),
        ("2026-11-27 12:00:00 Nowhere/Land", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_times_are_read_from_nbgraders_timestamp(tmp_path, stamp, moment):
    (tmp_path / "timestamp.txt").write_text(stamp + "\n", "utf-8")
    known = texts.put(tmp_path / "grades", [submission("ada", path=tmp_path / "adding.py")])
    keep_times(tmp_path / "grades", tmp_path, known, trust_timestamps=True)
    assert list(read_times(tmp_path / "grades")[0].values()) == ([moment] if moment else [])


def test_unreadable_times_raise_infrastructure_error(tmp_path):
    (tmp_path / "times.json").write_text("{}", "utf-8")
    with pytest.raises(InfrastructureError, match="cannot be read"):
        read_times(tmp_path)


# ---------------------------------------------------------------------- pages


@pytest.fixture
def written(tmp_path, course) -> Path:
    """A folder of grades: ada is two days late, ben is in time, cy's time is unknown and the site marked it as late."""
    submitted, folder = tmp_path / "submitted", tmp_path / "grades"
    submitted.mkdir()
    ada = Collected("ada", NAME, submitted_at="2026-11-29T12:00:00+01:00")
    ben = Collected("ben", NAME, submitted_at="2026-11-27T12:00:00+01:00", late=True)
    write_collected(submitted, [ada, ben, Collected("cy", NAME, "Cyrus <b> Vance", late=True)])
    students = ("ada", "ben", "cy")
    class_ = [submission(student, path=submitted / student / NAME) for student in students]
    keep_times(folder, submitted, texts.put(folder, class_))
    with Journal(folder) as journal:
        for student in students:
            journal.append(graded(student, text=submission_digest(submission(student))))
    write_all(folder, course, Reading(folder / "grades.jsonl"))
    return folder


def test_gradebook_contains_raw_and_final_scores(written):
    assert [
        (row["student"], row["score"], row["final_score"], row["days_late"])
        for row in rows_of(written / "grades.csv")
    ] == [("ada", "8", "6.4", "2"), ("ben", "8", "8", "0"), ("cy", "8", "8", "")]


def test_feedback_page_explains_the_deduction(written):
    late = (written / "feedback" / "ada" / f"{NAME}.html").read_text("utf-8")
    assert '<p class="score">6.4 <small>of 10 points</small></p>' in late
    assert "8 points, minus 1.6 for two days late." in late
    for student in ("ben", "cy"):
        assert (
            "late"
            not in (written / "feedback" / student / f"{NAME}.html")
            .read_text("utf-8")
            .split("<main")[1]
        )


def test_submissions_marked_late_by_the_site_are_listed(written, course):
    """Only cy is listed: ben's time is known, and it is in time."""
    screen = io.StringIO()
    effective = what_counts(written, course, Reading(written / "grades.jsonl"))
    counted, count = effective.grades, effective.finals
    show_class(
        Console(file=screen, width=100), course, run_of(written, counted, count), as_json=False
    )
    assert f"Marked as late by the course site: cy Cyrus <b> Vance ({NAME}).\n" in screen.getvalue()
    look = (
        (written / "index.html")
        .read_text("utf-8")
        .partition('id="look"')[2]
        .partition("</section>")[0]
    )
    assert look.count("<tr>") == 2 and ">cy</a>" in look
    assert "The course site marks it as late, without a submission time." in look
    assert count["cy", NAME].marked and not count["ben", NAME].marked


def test_extension_for_an_unknown_student_is_reported(written, course):
    file = course.root / "course.yml"
    given = ("adda", "cy", "zoe", "Cyrus Vance")
    extensions = ", ".join(f"{{student: {student}, days: 1}}" for student in given)
    file.write_text(
        file.read_text("utf-8").replace("50}", f"50, extensions: [{extensions}]}}"), "utf-8"
    )
    done = CliRunner().invoke(app, ["report", str(written), "--course", str(course.root)])
    assert done.exit_code == 0, done.output
    assert done.stderr.splitlines() == [
        "late.extensions: no student in these grades has the name adda; did you mean ada?",
        "late.extensions: no student in these grades has the name zoe.",
        "late.extensions: no student in these grades has the name Cyrus Vance; did you mean cy?",
    ]
