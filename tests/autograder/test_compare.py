"""`autograder compare`: the changes between two gradings of a class, and the tests that caused them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder.cli import app
from autograder.gradebook.comparing import compare
from autograder.gradebook.journal import Journal
from autograder.records import Grade
from autograder.records import TestResult as Result

NAME = "01_adding"


def test_of(name: str, score: float, points: float = 2.0, **more: str) -> Result:
    outcome = more.pop("outcome", "passed" if score else "failed")
    return Result(name, "add", f"What {name} says.", outcome, score, points, **more)  # type: ignore[arg-type]


test_of.__test__ = False  # type: ignore[attr-defined]


def grade(student: str, *tests: Result, **more) -> Grade:
    score, points = sum(test.score for test in tests), sum(test.max_score for test in tests)
    facts = {"seed": 41, "submission_sha256": "s", "suite_sha256": "one", **more}
    return Grade(student, NAME, "graded", score, points, tests, **facts)


def refused(student: str) -> Grade:
    return Grade(
        student, NAME, "refused", 0.0, 4.0, problem="The file is empty.", submission_sha256="s"
    )


A, B = test_of("a", 2), test_of("b", 2)
NO_A = test_of("a", 0, message="3 came back, 5 was expected.")


def test_unchanged_submissions_are_only_counted():
    other_words = replace(NO_A, message="4 came back, 6 was expected.")
    found = compare(
        [grade("ada", A, B), grade("ben", NO_A)], [grade("ada", A, B), grade("ben", other_words)]
    )
    assert found.changes == ()
    assert found.counts == {"down": 0, "removed": 0, "up": 0, "added": 0, "same": 0, "unchanged": 2}


def test_changes_are_sorted_lower_scores_first_then_by_difference():
    before = [grade("ada", NO_A, B), grade("ben", A, B), grade("cy", A, B), grade("dan", A)]
    no_b = test_of("b", 0)
    after = [grade("ada", A, B), grade("ben", NO_A, B), grade("cy", NO_A, no_b), grade("eve", A)]
    found = compare(before, after)
    kinds = [(change.student, change.kind) for change in found.changes]
    assert kinds == [
        ("cy", "down"),
        ("ben", "down"),
        ("dan", "removed"),
        ("ada", "up"),
        ("eve", "added"),
    ]


def test_change_names_the_test_and_the_reason():
    (change,) = compare([grade("ada", A, B)], [grade("ada", NO_A, B)]).changes
    (test,) = change.tests
    assert (test.title, test.before, test.after) == ("What a says.", "passed", "failed")
    assert (test.score_before, test.score_after) == (2, 0)
    assert test.message == "3 came back, 5 was expected."
    (back,) = compare([grade("ada", NO_A)], [grade("ada", A)]).changes
    assert back.tests[0].message == test.message, "of a test that passes now, the old message"


def test_added_and_removed_tests_are_changes():
    (change,) = compare([grade("ada", A)], [grade("ada", B)]).changes
    assert change.kind == "same"
    tests = [(test.name, test.before, test.after) for test in change.tests]
    assert tests == [("b", None, "passed"), ("a", "passed", None)]


def test_refused_then_graded_is_a_change_without_points():
    (change,) = compare([refused("ada")], [grade("ada", test_of("a", 0, 4))]).changes
    assert change.kind == "same"


def test_last_grade_of_the_earlier_run_counts_although_an_earlier_one_differs():
    assert compare(
        [grade("ada", NO_A, seed=1), grade("ada", A)], [grade("ada", A)]
    ).seeds_before == (41,)
    assert compare([grade("ada", A), grade("ada", NO_A)], [grade("ada", A)]).counts["up"] == 1


def test_changed_submission_is_distinguished_from_a_changed_suite():
    (change,) = compare([grade("ada", A)], [grade("ada", NO_A, submission_sha256="t")]).changes
    assert change.other_submission
    (change,) = compare([grade("ada", A)], [grade("ada", NO_A, suite_sha256="two")]).changes
    assert not change.other_submission


GONE = (
    "The earlier part `first` passes now, so its follow-through is gone: "
    "later tests count with the student's own code."
)


def in_part(part: str, outcome: str) -> Result:
    points = 2.0 if outcome in ("passed", "followed") else 0.0
    return Result(part, part, f"What {part} says.", outcome, points, 2.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "after", "reasons"),
    [
        (("failed", "followed"), ("passed", "failed"), [GONE]),
        (("failed", "followed"), ("passed", "skipped"), [GONE]),
        (("skipped", "followed"), ("passed", "timeout"), [GONE]),
        (("failed", "followed"), ("passed", "passed"), []),
        (("failed", "followed"), ("failed", "failed"), []),
        (("failed", "failed"), ("passed", "failed"), []),
        (("passed", "followed"), ("passed", "failed"), []),
    ],
)
def test_a_part_that_passes_now_is_the_reason_of_marks_that_are_gone(before, after, reasons):
    tests = [
        [in_part(part, end) for part, end in zip(("first", "second"), ends, strict=True)]
        for ends in (before, after)
    ]
    (change,) = compare([grade("ada", *tests[0])], [grade("ada", *tests[1])]).changes
    assert change.reasons == change.as_record()["reasons"] == reasons


@pytest.mark.parametrize(("seed", "other"), [(41, False), (42, True)])
def test_different_seeds_are_reported(seed, other):
    found = compare([grade("ada", A)], [grade("ada", A, seed=seed)])
    assert found.other_seeds is other


# ---------------------------------------------------------------------- the command


def journal(folder: Path, *grades: Grade) -> Path:
    with Journal(folder) as written:
        for entry in grades:
            written.append(entry)
    return folder


def run(*words: object):
    return CliRunner().invoke(app, ["compare", *map(str, words)], env={"COLUMNS": "140"})


def test_compare_command_prints_the_table_and_exits_with_0(tmp_path):
    old = journal(tmp_path / "old", grade("ada", A, B), grade("ben", A, B))
    new = journal(tmp_path / "new", grade("ada", NO_A, B, seed=7), grade("ben", A, B, seed=7))
    done = run(old, new / "grades.jsonl")
    assert done.exit_code == 0
    said = " ".join(done.stdout.split())
    assert "ada, 01_adding: 4 / 4 → 2 / 4 passed → failed (2 → 0): What a says." in said
    assert "3 came back, 5 was expected." in said
    assert "1 down, 1 unchanged." in said
    assert "seeds 41 and 7" in said
    assert "ben" not in said


def test_submissions_of_one_run_only_take_one_line_and_reasons_the_whole_width(tmp_path):
    students = [f"student{number}" for number in range(40)]
    old = journal(tmp_path / "old", *(grade(student, A, B) for student in students))
    new = journal(tmp_path / "new", grade("student0", NO_A, B), grade("new", A, B))
    done = CliRunner().invoke(app, ["compare", str(old), str(new)], env={"COLUMNS": "80"})
    assert len(done.stdout.splitlines()) < 12
    said = " ".join(done.stdout.split())
    assert "Only in the old grades: student1, 01_adding; " in said
    assert "Only in the new grades: new, 01_adding." in said
    assert "1 down, 39 only in the old grades, 1 only in the new grades." in said


def test_unreadable_lines_are_reported(tmp_path):
    old, new = (journal(tmp_path / name, grade("ada", A)) for name in ("old", "new"))
    with (old / "grades.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"a": 1}\n')
    done = run(old, new)
    assert done.exit_code == 0
    assert done.stderr.startswith(f"{old / 'grades.jsonl'}: line 2 cannot be read; the grade in")
