"""Failures are shown by cause: a known mistake and its question once, with the tests that it explains below."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console

from autograder.course.config import Assignment, Part
from autograder.feedback.render import Message
from autograder.records import Outcome, TestResult
from autograder.selfcheck.check import CheckReport, Finding
from autograder.selfcheck.screens import check_screen

QUESTION = "Do two heaps become smaller?"


def result(name: str, outcome: Outcome = "failed", part: str = "add", **more: str) -> TestResult:
    score = 0.5 if outcome == "passed" else 0.0
    return TestResult(name, part, f"Title of {name}.", outcome, score, 0.5, **more)


RESULTS = (
    result("first", message="One.", hint=QUESTION, mistake="`a` is subtracted"),
    result("right", "passed"),
    result("other", message="Other."),
    result("second", message="Two.", hint=QUESTION, mistake="`a` is subtracted"),
)


def in_order(text: str, *words: str) -> bool:
    places = [text.find(word) for word in words]
    return -1 not in places and places == sorted(places)


def test_notebook_shows_the_question_once_above_the_tests() -> None:
    for text in (repr(Message("Part", RESULTS)), Message("Part", RESULTS)._repr_html_()):
        assert text.count(QUESTION) == text.count("is subtracted") == 1
        assert in_order(
            text, "is subtracted", QUESTION, "Title of first. (−0.5)", "One.", "Title of second.",
            "Two.",
        )  # fmt: skip
        assert in_order(text, "Two.", "Title of right.", "Title of other. (−0.5)", "Other.")


SAME = tuple(result(name, message="`add` is not there.") for name in ("one", "two", "three"))


def test_notebook_shows_one_cause_of_several_tests_above_them() -> None:
    for text in (repr(Message("Part", SAME)), Message("Part", SAME)._repr_html_()):
        assert text.count("is not there") == 1
        assert in_order(text, "is not there", "Title of one.", "Title of two.", "Title of three.")


TO_TRY = "Try: `add('<b>', 3)`"


def test_notebook_ends_a_failure_with_the_call_to_try() -> None:
    tried = [replace(one, to_try=TO_TRY) for one in (*RESULTS, *SAME) if one.fails]
    for results in (tuple(tried[:3]), tuple(tried[3:])):
        text, page = repr(Message("Part", results)), Message("Part", results)._repr_html_()
        assert text.count(TO_TRY) == page.count("Try: <code>add(&#x27;&lt;b&gt;&#x27;, 3)</code>")
        assert text.count(TO_TRY) == len({one.message for one in results})


def test_sums_for_machines_are_rounded() -> None:
    tenths = tuple(replace(result(f"{n}", "passed"), score=0.1, max_score=0.1) for n in range(8))
    assert sum(test.score for test in tenths) != 0.8
    report = CheckReport("adding.py", "01_adding", tuple(map(Finding, tenths)), {})
    assert (report.as_record()["score"], report.as_record()["max_score"]) == (0.8, 0.8)
    parts = tuple(Part(name=f"p{number}", points=0.1) for number in range(8))
    assert Assignment(name="01_adding", title="Adding", minutes=1, parts=parts).points == 0.8


def test_terminal_shows_one_cause_of_several_tests_above_them() -> None:
    console = Console(width=80, color_system=None)
    with console.capture() as capture:
        console.print(
            check_screen(CheckReport("adding.py", "01_adding", tuple(map(Finding, SAME)), {}))
        )
    text = capture.get()
    assert text.count("is not there") == 1 and "for the same reason" not in text
    assert in_order(text, "is not there", "Title of one.", "Title of two.", "Title of three.")


def test_terminal_shows_the_question_once_and_names_the_mistake_in_later_parts() -> None:
    later = result("later", part="total", message="Three.", hint=QUESTION, mistake="subtracts")
    findings = tuple(
        Finding(each, mistake="`a` is subtracted" if each.mistake else "")
        for each in (*RESULTS, later)
    )
    console = Console(width=80, color_system=None)
    with console.capture() as capture:
        console.print(check_screen(CheckReport("adding.py", "01_adding", findings, {})))
    text = capture.get()
    assert text.count(QUESTION) == 1
    assert text.count("This looks familiar: `a` is subtracted.") == 2, "once in each part"
    assert in_order(
        text, QUESTION, "Title of first. (−0.5)", "Title of second. (−0.5)", "Title of right.",
        "Total",
    )  # fmt: skip
