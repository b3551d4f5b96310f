"""Known mistakes that are carried over to alternatives."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.authoring.audit import Audit
from autograder.authoring.carried_over import CarriedOver, mistaken, with_edits
from autograder.course.reading import load_course
from tests.autograder.tiny_course import write_tiny_course

ADD = "def add(a, b):\n    {0}\n\n\ndef other(a, b):\n    {1}\n"


@pytest.mark.parametrize(
    ("old", "new", "bodies", "came"),
    [
        ("a + b", "a - b", ("total = a + b", "pass"), "total = a - b"),
        ("a + b", "a - b", ("total = a+b", "pass"), None),
        ("a + b", "a - b", ("total = a + b", "total = a + b"), None),
        ("a + b", "a - b", ("pass", "total = a + b"), None),
        ("a + b", "a - b)", ("total = a + b", "pass"), None),
        ("return a", "return b", ("return a  # so", "pass"), "return b  # so"),
        ("return a", "return b", ("return a + b", "pass"), None),
    ],
)
def test_an_edit_is_carried_over_where_its_text_means_the_same(
    old: str, new: str, bodies: tuple[str, str], came: str | None
) -> None:
    edited = with_edits(ADD.format(*bodies), [{"in": "add", "replace": old, "with": new}])
    assert edited == (came and ADD.format(came, bodies[1]))


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
