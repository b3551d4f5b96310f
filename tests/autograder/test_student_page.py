"""The instructors' page about a student: attempts over time, and code beside its failing tests."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import autograder
from autograder.course.reading import load_course
from autograder.feedback.student_page import student_path
from autograder.gradebook import texts
from autograder.gradebook.journal import Journal
from autograder.gradebook.times import keep_times
from autograder.records import Grade, SourceFile, Submission, TestResult
from autograder.submissions.collected import Collected, write_collected
from tests.autograder.tiny_course import COURSE, write_tiny_course

NAME = "01_adding"
CODE = "def add(a, b):\n    return a + c  # <b>\n\n\nclass Total:\n    pass\n"
RAISED = "Your code raised a NameError (line 2).\n    return a + c"
DUE = "timezone: Europe/Berlin\nassignments:\n  - name: 01_adding\n    due: 2026-11-27 23:59\n"


def failed(name: str, title: str, message: str, **more: object) -> TestResult:
    return TestResult(name, "add", title, "failed", 0, 4, message, **more)


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write the report of attempts `(code, time, tests)` of ada; return her page without tags, and as it is."""
    monkeypatch.chdir(tmp_path)
    write_tiny_course(tmp_path / "course")
    text = COURSE.replace("assignments:\n  - name: 01_adding\n", DUE).replace(
        "feedback: hints", "feedback: visible"
    )
    (tmp_path / "course/course.yml").write_text(text, "utf-8")

    def write(
        *attempts: tuple[str, str | None, tuple[TestResult, ...]], name: str = "adding.py"
    ) -> tuple[str, str]:
        folder, submitted = tmp_path / "grades", tmp_path / "submitted"
        submitted.mkdir()
        with Journal(folder) as journal:
            for code, time, tests in attempts:
                write_collected(
                    submitted, [Collected("ada", NAME, "Ada Lovelace", submitted_at=time)]
                )
                place = submitted / "ada" / NAME
                stored = texts.put(
                    folder, [Submission("ada", NAME, (SourceFile(name, code),), path=place)]
                )
                keep_times(folder, submitted, stored)
                score = sum(test.score for test in tests)
                common = {
                    "seed": 7,
                    "submission_sha256": stored[0].digest,
                    "suite_sha256": "ab" * 32,
                }
                journal.append(Grade("ada", NAME, "graded", score, 4, tests, **common))
        autograder.report(folder, load_course(tmp_path / "course"))
        source = (folder / student_path("ada")).read_text("utf-8")
        words = html.unescape(re.sub(r"<[^>]*>", " ", source.partition("<body>")[2]))
        return " ".join(words.split()), source

    return write


RIGHT = TestResult("test_add", "add", "It adds.", "passed", 4, 4)
WRONG = failed("test_add", "It adds.", RAISED)


def test_attempts_are_listed_by_time_with_the_one_that_counts(page):
    text, _ = page(
        (CODE, "2026-11-20T12:00:00+01:00", (WRONG,)),
        ("# right\n", "2026-11-29T12:00:00+01:00", (RIGHT,)),
    )
    assert (
        "20 November 2026, 12:00 CET Adding 0 of 4 29 November 2026, 12:00 CET Adding 4 of 4 late, counts"
        in text
    )


def test_code_stands_beside_its_failing_tests_with_marked_lines(page):
    text, source = page((CODE, None, (WRONG,)))
    assert re.search(r"<mark>   2     return a \+ c  # &lt;b&gt;\n +✗ It adds\.</mark>", source)
    assert "adding.py 1 line named by failing tests" in text
    assert source.count("<mark>") == 1


def test_lines_of_a_notebook_are_marked_by_cell(page):
    cells = [
        {"cell_type": "markdown", "source": "x"},
        {"cell_type": "code", "source": ["a = 1\n", "b = c\n"]},
    ]
    notebook = json.dumps({"cells": cells, "nbformat": 4, "metadata": {}})
    wrong = replace(WRONG, message="Your code raised a NameError (line 2 of cell 2).")
    text, source = page((notebook, None, (wrong,)), name="adding.ipynb")
    assert re.search(r"     cell 2\n   1 a = 1\n<mark>   2 b = c\n +✗ It adds\.</mark>", source)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "{}",
        "no notebook",
        '{"cells": [1, null, {"cell_type": "code", "source": 3}]}',
    ],
)
def test_broken_notebook_does_not_prevent_the_page(page, text):
    assert "It adds." in page((text, None, (WRONG,)), name="adding.ipynb")[0]


def test_page_shows_hidden_tests_with_full_messages_and_a_prepared_command(page):
    """The course shows students only the visible tests."""
    hidden = failed(
        "test_any", "Any numbers.", "Too large.", hidden=True, full_message="add(3, 4) is 9, not 7."
    )
    text, _ = page((CODE, None, (hidden,)))
    assert "Any numbers. −4 add(3, 4) is 9, not 7." in text
    assert "autograder decide ada --assignment 01_adding --reason '…'" in text
    assert "Any numbers." not in Path("grades/feedback/ada/01_adding.html").read_text("utf-8")
