"""`export --to satisfied`: objectives by student in place of points."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder.cli import app
from autograder.course.reading import load_course
from autograder.gradebook.journal import Journal
from autograder.records import Grade
from autograder.records import TestResult as Result
from tests.autograder.tables import rows_of
from tests.autograder.tiny_course import write_tiny_course

NAME = "01_adding"
ADD = "Adding: Two numbers"
TOTAL = "Adding: A running total"
PART = "points: 4, satisfied_at: 0.7}"  # of `add`; 0.7 of 4 is 2.8 points
WHOLE = "minutes: 10\n    satisfied_at: 0.5"


def grade(student: str, add: float, sums: float) -> Grade:
    tests = [
        Result(f"test_{part}", part, part, "passed" if score == most else "failed", score, most)
        for part, score, most in (("add", add, 4.0), ("total", sums, 6.0))
    ]
    return Grade(student, NAME, "graded", add + sums, 10.0, tuple(tests), submission_sha256="s")


@pytest.fixture
def ask(tmp_path: Path):
    def run(part: str, whole: str, decisions: str, *grades: Grade):
        root = write_tiny_course(tmp_path / "course")
        text = (root / "course.yml").read_text("utf-8")
        text = text.replace("points: 4}", part).replace("minutes: 10", whole)
        (root / "course.yml").write_text(text, "utf-8")
        (root / "decisions.yml").write_text(decisions, "utf-8")
        with Journal(tmp_path / "grades") as journal:
            for written in grades:
                journal.append(written)
        output = tmp_path / "scores.csv"
        words = ["export", tmp_path / "grades", "--to", "satisfied", "--output", output]
        done = CliRunner().invoke(app, [*map(str, words), "--course", str(root)])
        return done, output

    return run


SIGNED = "reason: R, by: G, at: 2026-11-30"


@pytest.mark.parametrize(
    ("part", "whole", "decisions", "graded", "states", "count"),
    [
        (PART, "minutes: 10", "", (2.8, 0), {ADD: "satisfied"}, "1 of 1"),
        (PART, "minutes: 10", "", (2.79, 6), {ADD: "not yet"}, "0 of 1"),
        ("points: 4}", WHOLE, "", (1.9, 3), {ADD: "not yet", TOTAL: "satisfied"}, "1 of 2"),
        (PART, WHOLE, "", (2.7, 3), {ADD: "not yet", TOTAL: "satisfied"}, "1 of 2"),
        (PART, WHOLE, "give: 0.1, part: add", (2.7, 3), {ADD: "satisfied", TOTAL: "satisfied"}, "2 of 2"),
        (PART, WHOLE, "excuse: true", (0, 0), {ADD: "excused", TOTAL: "excused"}, "0 of 0"),
    ],
)  # fmt: skip
def test_an_objective_is_satisfied_from_a_share_of_its_points_on(
    ask, part, whole, decisions, graded, states, count
):
    entry = f"- {{assignment: {NAME}, student: ada, {decisions}, {SIGNED}}}\n" if decisions else ""
    done, output = ask(part, whole, entry, grade("ada", *graded))
    assert done.exit_code == 0, done.output
    (row,) = rows_of(output)
    assert {title: row[title] for title in row if ":" in title} == states
    assert row["satisfied"] == count
    page = output.with_suffix(".html").read_text("utf-8")
    assert all(title in page for title in states)
    assert page.count("✓ satisfied") == list(states.values()).count("satisfied")


def test_the_last_hand_in_counts_and_refused_work_satisfies_nothing(ask):
    refused = Grade("bo", NAME, "refused", 0.0, 10.0, problem="The file is empty.")
    done, output = ask(PART, "minutes: 10", "", grade("ada", 0, 0), grade("ada", 4, 0), refused)
    assert done.stdout.startswith("2 students are in ")
    assert {row["student"]: row[ADD] for row in rows_of(output)} == {
        "ada": "satisfied",
        "bo": "not yet",
    }


def test_without_objectives_the_setting_is_named_and_no_other_page_replaced(ask, tmp_path):
    done, output = ask("points: 4}", "minutes: 10", "", grade("ada", 4, 0))
    assert (done.exit_code, output.exists()) == (2, False)
    assert "`satisfied_at: 0.8`" in done.stderr
    output.with_suffix(".html").write_text("<title>Mine</title>", "utf-8")
    done, output = ask(PART, "minutes: 10", "", grade("ada", 4, 0))
    assert (done.exit_code, output.exists()) == (2, False)
    assert load_course(tmp_path / "course").assignments[0].parts[0].satisfied_at == 0.7
