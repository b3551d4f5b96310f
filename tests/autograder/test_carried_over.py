"""Known mistakes that are carried over to alternatives."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.authoring.audit import Audit
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
    told = CarriedOver(10, 7, 4, 4, wrong_names=("one", "another")).sentence
    assert "7 of 10 known mistakes" in told and "4 of 4 ideas" in told and "2 wrong names" in told


def test_a_wrong_name_in_an_alternative_is_a_figure_and_no_problem() -> None:
    audit = Audit("01_adding", carried=CarriedOver(10, 7, 4, 4, wrong_names=("one",)))
    audit.conclude()
    assert audit.problems == []
    assert audit.as_record()["wrong_names_in_alternatives"] == ("one",)
