"""What students see of hidden tests before and after the due date: `feedback` in course.yml."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from xml.etree import ElementTree

import pytest

import autograder
from autograder.course.config import Course, CourseError
from autograder.course.digests import suite_digest
from autograder.course.reading import load_course
from autograder.gradebook.journal import Journal
from autograder.gradebook.visibility import as_shown, visibility
from autograder.grading.preparation import open_grader
from autograder.records import Grade, SourceFile, Submission, TestResult
from tests.autograder.tiny_course import COURSE, SOLUTION, write_tiny_course

NAME = "01_adding"
BEFORE, AFTER = (datetime(2026, 11, day, tzinfo=timezone.utc) for day in (20, 29))
SENTENCE = "The results of hidden tests are shown after 27 November 2026, 23:59 CET."
SUITE = "ab" * 32
TESTS = (
    TestResult("test_small", "add", "It adds.", "passed", 1, 1, hidden=False),
    TestResult("test_any", "add", "Any numbers.", "failed", 0, 3, "Not equal.",
               full_message="add(3, 4) is 9, not 7."),
    TestResult("test_push", "total", "It pushes.", "failed", 0, 2, "Push(7) is 0.", hidden=False),
    TestResult("test_sums", "total", "It sums up.", "passed", 4, 4),
)  # fmt: skip
GRADE = Grade(
    "ada", NAME, "graded", 5, 10, TESTS, suite_sha256=SUITE, test_seconds=(0.1, 0.2, 0.3, 0.4)
)


def course(
    folder: Path, feedback: str, due: str | None = "2026-11-27 23:59", late: str = ""
) -> Course:
    write_tiny_course(folder)
    text = COURSE.replace(
        "feedback: hints", f"feedback: {feedback}\ntimezone: Europe/Berlin\n{late}"
    )
    if due:
        text = text.replace("    title: Adding\n", f"    title: Adding\n    due: {due}\n")
    (folder / "course.yml").write_text(text, "utf-8")
    return load_course(folder)


def described(grade: Grade) -> list[tuple[str, float, float, str | None]]:
    return [(test.title, test.score, test.max_score, test.message) for test in grade.tests]


# ------------------------------------------------------------------ the setting and the date


@pytest.mark.parametrize(
    ("feedback", "before", "after"),
    [
        ("hints", "hints", "hints"),
        ("full", "full", "full"),
        ("{before_due: visible, after_due: full}", "visible", "full"),
        ("{before_due: parts}", "parts", "hints"),
    ],
)
def test_level_changes_with_the_due_date(tmp_path, feedback, before, after):
    found = course(tmp_path, feedback)
    assert [visibility(found, NAME, now)[0] for now in (BEFORE, AFTER)] == [before, after]


def test_the_last_extension_and_the_grace_time_delay_the_level_for_everybody(tmp_path):
    late = "late: {percent_a_day: 10, grace_minutes: 30, extensions: [{student: ben, days: 2}]}\n"
    found = course(tmp_path, "{before_due: parts, after_due: full}", late=late)
    level, until = visibility(found, NAME, AFTER)
    assert (level, until.isoformat()) == ("parts", "2026-11-30T00:29:00+01:00")
    assert visibility(found, NAME, datetime(2026, 11, 30, tzinfo=timezone.utc))[0] == "full"


@pytest.mark.parametrize(
    ("feedback", "sentence"),
    [
        (
            "part",
            'must be `visible`, `parts`, `hints` or `full`, or a block of these, not the text "part"; did you mean',
        ),
        ("{before_due: none}", "`before_due` of `feedback` must be `visible`, `parts`, `hints` or `full`"),
        ("{befor_due: parts}", "`befor_due` is not a setting of `feedback`; did you mean `before_due`?"),
        ("3", "`feedback` of the course must be a block of `name: value` lines, not 3."),
    ],
)  # fmt: skip
def test_wrong_settings_are_sentences(tmp_path, feedback, sentence):
    with pytest.raises(CourseError) as refusal:
        course(tmp_path, feedback)
    assert sentence in str(refusal.value)


# ------------------------------------------------------------------ what is shown


def test_parts_show_the_points_and_no_hidden_test(tmp_path):
    shown = as_shown(course(tmp_path, "{before_due: parts}"), GRADE, BEFORE)
    assert described(shown) == [
        ("It adds.", 1, 1, None),
        ("1 hidden test", 0, 3, SENTENCE),
        ("It pushes.", 0, 2, "Push(7) is 0."),
        ("1 hidden test", 4, 4, SENTENCE),
    ]
    assert (shown.score, shown.max_score, shown.test_seconds) == (5, 10, (0.1, 0.2, 0.3, 0.4))


def test_visible_shows_neither_points_nor_results(tmp_path):
    shown = as_shown(course(tmp_path, "{before_due: visible}"), GRADE, BEFORE)
    assert [row[:3] for row in described(shown) if row[0] == "1 hidden test"] == [
        ("1 hidden test", 0, 0)
    ] * 2
    assert (shown.score, shown.max_score) == (1, 3)
    assert as_shown(course(tmp_path, "visible"), GRADE, AFTER).tests[1].message == (
        "The results of hidden tests are not shown."
    )


def test_full_shows_inputs_and_numbers_after_the_due_date(tmp_path):
    found = course(tmp_path, "{before_due: hints, after_due: full}")
    assert [as_shown(found, GRADE, now).tests[1].message for now in (BEFORE, AFTER)] == [
        "Not equal.",
        "add(3, 4) is 9, not 7.",
    ]


# ------------------------------------------------------------------ from grading to the pages and exports


@pytest.mark.parametrize(
    ("feedback", "graded"), [("hints", "hints"), ("full", "full"), ("{after_due: full}", "both")]
)
def test_the_setting_changes_the_suite_only_where_it_changes_the_messages(
    tmp_path, feedback, graded
):
    """With other messages, the submissions are graded again; the date alone needs no new grading."""
    found = course(tmp_path, feedback)
    assert found.feedback.graded == graded
    same = course(tmp_path, {"hints": "{before_due: parts}"}.get(feedback, feedback))
    (assignment,) = found.assignments
    assert suite_digest(found, assignment) == suite_digest(same, assignment)
    other = course(tmp_path, "full" if feedback == "hints" else "hints")
    assert suite_digest(found, assignment) != suite_digest(other, assignment)


@pytest.fixture(scope="module")
def wrong(tmp_path_factory, sandbox) -> Grade:
    """The grade of an answer that subtracts, by the engine."""
    found = course(tmp_path_factory.mktemp("course"), "{before_due: hints, after_due: full}")
    grader = open_grader(found, sandbox, 7, [NAME])
    try:
        text = SOLUTION.replace("a + b", "a + b + 1 if a > 9 or a < 2 else a + b")
        return grader.grade(Submission("ada", NAME, (SourceFile("adding.py", text),)))
    finally:
        grader.close()


def test_grader_stores_both_messages_and_the_seconds(wrong):
    by_name = {test.name: test for test in wrong.tests}
    failed = by_name["test_any_two_numbers"]
    assert (
        failed.hidden
        and "was expected" not in failed.message
        and "was expected" in failed.full_message
    )
    assert not by_name["test_two_and_three_are_five"].hidden
    assert all(test.to_try is None for test in wrong.tests if test.hidden)
    assert (
        len(wrong.test_seconds) == len(wrong.tests)
        and sum(wrong.test_seconds) <= wrong.seconds + 0.01
    )


@pytest.mark.parametrize(
    ("due", "feedback", "there", "not_there"),
    [
        ("2099-01-01", "{before_due: visible}", "3 <small>of 3 points in the visible tests", "Any two whole numbers"),
        (
            "2099-01-01",
            "{before_due: parts, after_due: full}",
            "7 <small>of 10 points</small>",
            "Any two whole numbers",
        ),
        ("2099-01-01", "{after_due: full}", "Any two whole numbers", "was expected"),
        ("2020-01-01", "{before_due: visible, after_due: full}", "was expected", "in the visible tests"),
    ],
)  # fmt: skip
def test_page_shows_what_the_date_allows(tmp_path, wrong, due, feedback, there, not_there):
    found = course(tmp_path / "course", feedback, due)
    with Journal(tmp_path / "grades") as journal:
        journal.append(wrong)
    autograder.report(tmp_path / "grades", found)
    page = (tmp_path / "grades/feedback/ada/01_adding.html").read_text("utf-8")
    assert there in page
    assert not_there not in page


@pytest.mark.parametrize(("due", "shown"), [("2099-01-01", False), ("2020-01-01", True)])
def test_exports_for_students_show_what_the_date_allows(tmp_path, wrong, due, shown):
    found = course(tmp_path / "course", "{before_due: visible, after_due: full}", due)
    with Journal(tmp_path / "grades") as journal:
        journal.append(wrong)
    for tool, name in (("classroom50", "result.json"), ("junit", "junit.xml")):
        autograder.export(tool, tmp_path / "grades", found, output=tmp_path / name)
        text = (tmp_path / name).read_text("utf-8")
        assert ("Any two whole numbers" in text, "hidden test" in text) == (shown, not shown)
    record = json.loads((tmp_path / "result.json").read_text("utf-8"))
    assert (record["score"], record["max-score"]) == ((7, 10) if shown else (3, 3))
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()[0]
    times = [float(case.get("time")) for case in suite.iter("testcase")]
    assert sum(times) == pytest.approx(sum(wrong.test_seconds))
