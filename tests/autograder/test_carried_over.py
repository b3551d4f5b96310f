"""Known mistakes that are carried over to alternatives."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.authoring.carried_over import CarriedOver, mistaken, with_edits
from autograder.course.config import load_course
from tests.autograder.tiny_course import write_tiny_course


@pytest.mark.parametrize(
    ("text", "came"),
    [
        ("total = a + b\n", "total = a - b\n"),
        ("total = a+b\n", None),
        ("one = a + b\ntwo = a + b\n", None),
        ("if a + b:\n", None),
    ],
)
def test_an_edit_is_carried_over_where_its_text_is_there_once(text: str, came: str | None) -> None:
    assert with_edits(text, [{"replace": "a + b", "with": "a - b"}]) == came


def test_each_mistake_meets_each_alternative_that_has_its_text(tmp_path: Path) -> None:
    root = write_tiny_course(tmp_path)
    alternatives = root / "tests/assignments/01_adding/alternatives"
    solution = (root / "solutions/01_adding/adding.py").read_text("utf-8")
    (alternatives / "the_same.py").write_text(solution, "utf-8")
    course = load_course(root)
    found = [(name, m.id) for name, m in mistaken(course, course.assignment("01_adding"))]
    assert found == [("the_same", "subtracts"), ("the_same", "forgets_what_came_before")]


def test_the_share_is_told_in_a_sentence() -> None:
    assert CarriedOver().sentence == ""
    told = CarriedOver(failed=10, asked=7, failed_ideas=4, asked_ideas=4).sentence
    assert "7 of 10 known mistakes" in told and "4 of 4 ideas" in told
