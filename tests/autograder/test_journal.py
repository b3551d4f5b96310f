"""The journal: what a line holds, what stands once for each suite, and which lines can be read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.gradebook.journal import FILE_NAME, Journal, Reading
from autograder.gradebook.suites import FOLDER
from autograder.records import Grade, InfrastructureError, TestResult

SUITE = "5" * 64
PROMISED = [
    "schema", "student", "assignment", "status", "score", "max_score", "tests", "problem", "seed", "isolation",
    "seconds", "submission_sha256", "suite_sha256", "autograder", "flags", "test_seconds",
]  # fmt: skip


def right(number: int) -> TestResult:
    title = f"With size {number}, the weights of each position sum to one, also where a mask hides others."
    return TestResult(
        f"test_weights_sum_to_one_with_size_{number}", "attention", title, "passed", 1.0, 1.0
    )


def graded(student: str = "ada", tests: int = 30, **changes: object) -> Grade:
    grade = Grade(
        student, "03_masked_heads", "graded", float(tests), float(tests), tuple(map(right, range(tests))),
        seed=2**127, isolation="namespaces", seconds=0.067, submission_sha256="a" * 64, suite_sha256=SUITE,
        autograder="0.1.0", test_seconds=(0.002,) * tests,
    )  # fmt: skip
    return replace(grade, **changes)


def some_failures() -> Grade:
    tests = list(graded().tests)
    tests[3] = replace(
        tests[3],
        outcome="failed",
        score=0.0,
        message="It is wrong: é",
        hint="Which?",
        mistake="axis",
        to_try="Try: `attention(1)`",
    )
    tests[7] = replace(tests[7], outcome="followed", score=0.5, message="Right, once `a` is right.")
    old_sandbox = "host-network"  # journals that name it are read for ever
    return replace(graded("bo", score=28.5, isolation=old_sandbox), tests=tuple(tests))


def refused() -> Grade:
    return Grade(
        "cy", "03_masked_heads", "refused", 0.0, 30.0, problem="There is no file.",
        submission_sha256="b" * 64,
    )  # fmt: skip


def write(folder: Path, *grades: Grade) -> list[str]:
    with Journal(folder) as journal:
        for grade in grades:
            journal.append(grade)
    return (folder / FILE_NAME).read_text("utf-8").splitlines()


def test_grades_are_read_as_they_were_written(tmp_path: Path) -> None:
    grades = [
        graded(), some_failures(), refused(), graded("dan", flags=("Line 3 looks names up.",)),
    ]  # fmt: skip
    write(tmp_path, *grades)
    assert list(Reading(tmp_path / FILE_NAME)) == grades
    with Journal(tmp_path) as journal:
        assert list(journal.latest.values()) == grades


def test_line_holds_the_promised_fields_and_the_tests_that_were_not_passed(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in write(tmp_path, graded(), some_failures(), refused())]
    assert [list(line) for line in lines] == [PROMISED] * 3
    assert [line["schema"] for line in lines] == [2, 2, 2]
    assert [[test["outcome"] for test in line["tests"]] for line in lines] == [
        [],
        ["failed", "followed"],
        [],
    ]
    promised = ["name", "outcome", "score", "message", "hint", "mistake"]
    assert [list(test) for test in lines[1]["tests"]] == [[*promised, "to_try"], promised]


def test_right_answer_takes_less_than_1_kb_and_common_facts_stand_once(tmp_path: Path) -> None:
    lines = write(tmp_path, graded("ada"), graded("bo"), some_failures())
    assert max(len(line.encode()) for line in lines[:2]) <= 1000
    (file,) = (tmp_path / FOLDER).iterdir()
    assert file.name == f"{SUITE}.json"
    record = json.loads(file.read_text("utf-8"))
    assert (record["assignment"], len(record["tests"])) == ("03_masked_heads", 30)
    assert record["tests"][0] == {
        k: getattr(right(0), k) for k in ("name", "part", "title", "max_score", "hidden")
    }
    first, second, _ = Reading(tmp_path / FILE_NAME)
    assert first.tests is second.tests, "a large class shares the results of passed tests"


def test_failing_answer_takes_less_than_2_5_kb_and_equal_results_are_shared(tmp_path: Path) -> None:
    tests, message = (
        list(graded().tests),
        "attention(query, key, value) returned another tensor. " * 5,
    )
    for number in range(4):
        tests[number] = replace(
            tests[number], outcome="failed", score=0.0, message=message, hint="Which axis is it?"
        )
    lines = write(
        tmp_path, *(replace(graded(student), tests=tuple(tests)) for student in ("ada", "bo"))
    )
    assert max(len(line.encode()) for line in lines) <= 2500
    first, second = Reading(tmp_path / FILE_NAME)
    assert all(one is other for one, other in zip(first.tests, second.tests)), (
        "so do those who make the same mistake"
    )
    assert first.seed is second.seed and first.seconds is second.seconds


@pytest.mark.parametrize(
    "changed", [{"title": "Another title."}, {"max_score": 2.0}, {"name": "test_other"}]
)
def test_grade_with_other_tests_under_the_same_digest_is_written_in_full(
    tmp_path: Path, changed: dict
) -> None:
    other = replace(graded("bo"), tests=(replace(right(0), **changed), *map(right, range(1, 30))))
    fewer = replace(graded("cy"), tests=tuple(map(right, range(3))))
    unnamed = graded("dan", suite_sha256="suite")
    lines = write(tmp_path, graded(), other, fewer, unnamed)
    assert [len(json.loads(line)["tests"]) for line in lines] == [0, 30, 3, 30]
    assert list(Reading(tmp_path / FILE_NAME)) == [graded(), other, fewer, unnamed]


@pytest.mark.parametrize("content", [None, "", "{}", "[1]", '{"tests": [{"name": "a"}]}'])
def test_missing_suite_is_named_and_a_new_grade_brings_it_back(
    tmp_path: Path, content: str | None
) -> None:
    write(tmp_path, graded(), refused())
    file = tmp_path / FOLDER / f"{SUITE}.json"
    file.unlink() if content is None else file.write_text(content)
    journal = Reading(tmp_path / FILE_NAME)
    assert [grade.student for grade in journal] == ["cy"]
    assert "line 1 cannot be read" in journal.problem and str(file) in journal.problem
    with Journal(tmp_path) as written:
        assert written.problem == journal.problem
        written.append(graded("bo"))
    assert [grade.student for grade in Reading(tmp_path / FILE_NAME)] == ["ada", "cy", "bo"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"name":"test_weights_sum_to_one_with_size_3"', '"name":"test_unknown"'),
        ('"outcome":"failed",', ""),
        ('"score":0.0', '"score":"0"'),
        ('"suite_sha256":"5', '"suite_sha256":"../5'),
        ('"schema":2,', ""),
        ('"schema":2,', '"schema":1,'),
        ('"status":"graded"', '"status":"lost"'),
        ('"outcome":"followed"', '"outcome":"banana"'),
    ],
)
def test_changed_lines_are_reported(tmp_path: Path, old: str, new: str) -> None:
    (line,) = write(tmp_path, some_failures())
    assert old in line
    (tmp_path / FILE_NAME).write_text(line.replace(old, new) + "\n", "utf-8")
    journal = Reading(tmp_path / FILE_NAME)
    assert list(journal) == [] and journal.damaged == [1]


NO_SCORES = [
    "NaN", "Infinity", "-Infinity", "-0.5", "30.01", "1e999", "9" * 400, '"28"', "true", "null",
    "[28]",
]  # fmt: skip


@pytest.mark.parametrize("value", NO_SCORES)
@pytest.mark.parametrize(
    "field", ['"score":28.5', '"score":0.5', '"max_score":30.0', '"seconds":0.067']
)
def test_number_that_is_none_or_beyond_its_maximum_makes_its_line_unreadable(
    tmp_path: Path, field: str, value: str
) -> None:
    """Of the grade, of a test, its maximum, and its seconds, for which 30.01 is a value as any other."""
    first, second = write(tmp_path, some_failures(), graded("ada"))
    name = field.partition(":")[0]
    assert field in first
    (tmp_path / FILE_NAME).write_text(
        f"{first.replace(field, f'{name}:{value}')}\n{second}\n", "utf-8"
    )
    journal = Reading(tmp_path / FILE_NAME)
    usable = value == "30.01" and name in ('"seconds"', '"max_score"')
    assert [grade.student for grade in journal] == (["bo", "ada"] if usable else ["ada"])
    assert journal.damaged == ([] if usable else [1])


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-1.0", '"1"', "null"])
def test_suite_with_a_maximum_that_is_no_number_cannot_be_read(tmp_path: Path, value: str) -> None:
    write(tmp_path, graded())
    file = tmp_path / FOLDER / f"{SUITE}.json"
    file.write_text(
        file.read_text("utf-8").replace('"max_score": 1.0', f'"max_score": {value}', 1), "utf-8"
    )
    journal = Reading(tmp_path / FILE_NAME)
    assert list(journal) == [] and journal.missing == {file}


def test_suite_that_cannot_be_written_is_an_infrastructure_error(tmp_path: Path) -> None:
    (tmp_path / FOLDER).write_text("a file in the way")
    with (
        Journal(tmp_path) as journal,
        pytest.raises(InfrastructureError, match="Earlier grades are kept"),
    ):
        journal.append(graded())
    assert (tmp_path / FILE_NAME).read_text() == ""
