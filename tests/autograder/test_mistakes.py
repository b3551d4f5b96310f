"""Known mistakes: valid edits change the solution, and every invalid one is reported as a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from autograder.course.config import Assignment, Course
from autograder.course.mistakes_file import load_mistakes
from autograder.course.reading import load_course
from autograder.records import CourseError
from tests.autograder.tiny_course import write_tiny_course

ROOT = Path(__file__).parents[2]
LABEL = "tests/assignments/01_adding/mistakes.yml"


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return load_course(write_tiny_course(tmp_path))


@pytest.fixture
def adding(course: Course) -> Assignment:
    return course.assignment("01_adding")


def run(source: str) -> ModuleType:
    module = ModuleType("adding")
    exec(compile(source, "adding.py", "exec"), module.__dict__)
    return module


def problems_of(course: Course, text: str) -> list[str]:
    adding = course.assignments[0]
    course.mistakes_file(adding).write_text(text)
    with pytest.raises(CourseError) as caught:
        load_mistakes(course, adding)
    return list(caught.value.problems)


def test_each_mistake_is_the_solution_with_its_edit(course: Course, adding: Assignment) -> None:
    subtracts, forgets = load_mistakes(course, adding)
    assert (subtracts.id, subtracts.title) == ("subtracts", "subtracts")
    assert forgets.title == "forgets what came before"
    assert forgets.hint == "What happens to the numbers of earlier pushes?"
    assert run(subtracts.source).add(5, 3) == 2
    total = run(forgets.source).Total(10)
    assert [total.push(3), total.push(4)] == [3, 4]
    solution = course.solution_file(adding).read_text()
    assert subtracts.source == solution.replace("a + b", "a - b")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "|\n    self.value = self.value + number\n    return self.value\n",
            "|\n    if number > 5:\n        self.value += number\n    return self.value\n",
        ),
        (
            '"self.value = self.value + number\\n        return self.value"',
            '"if number > 5:\\n            self.value += number\\n        return self.value"',
        ),
        ("self.value = self.value + number", "|\n    if number > 5:\n        self.value += number\n"),
    ],
    ids=["blocks", "with its own indentation", "one line by several"],
)  # fmt: skip
def test_edit_can_replace_several_lines(
    course: Course, adding: Assignment, old: str, new: str
) -> None:
    text = f"- id: small_ones_lost\n  in: Total.push\n  replace: {old}\n  with: {new}\n  hint: h\n"
    course.mistakes_file(adding).write_text(text)
    (mistake,) = load_mistakes(course, adding)
    total = run(mistake.source).Total()
    assert [total.push(3), total.push(7)] == [0, 7]


def test_an_edit_stays_inside_its_function(course: Course) -> None:
    text = "- {id: a, in: add, replace: self.value = start, with: pass, hint: h}\n"
    assert problems_of(course, text) == [
        f"{LABEL}, line 1: the mistake `a`: `self.value = start` is not found in `add`; it must be there exactly once."
    ]


def test_invalid_edits_are_reported(course: Course) -> None:
    text = """\
- {id: nothing_new, in: add, replace: a + b, with: a + b, hint: h}
- {id: same_to_python, in: add, replace: a + b, with: (a + b), hint: h}
- {id: three_times, in: add, replace: together, with: x, hint: h}
- {id: nowhere, in: Total.pusch, replace: number, with: x, hint: h}
- {id: bare, hint: h}
- {id: half_an_edit, in: add, replace: a + b, hint: h}
- {id: broken, in: add, replace: a + b, with: a +, hint: h}
- id: overlap
  hint: h
  edits:
    - {in: add, replace: a + b, with: a - b}
    - {in: add, replace: together = a + b, with: together = 3}
- {id: broken, in: add, replace: a + b, with: a * b, hint: h}
- {id: elsewhere, in: add, part: totals, replace: a + b, with: a * b, hint: h}
"""
    assert problems_of(course, text) == [
        f"{LABEL}, line 1: the mistake `nothing_new`: the edit changes nothing, `replace` and `with` are the same.",
        f"{LABEL}, line 2: the mistake `same_to_python` changes nothing: Python reads it like the solution.",
        f"{LABEL}, line 3: the mistake `three_times`: `together` is found 3 times in `add`; "
        "it must be there exactly once.",
        f"{LABEL}, line 4: the mistake `nowhere`: the solution has no `Total.pusch`; did you mean `Total.push`?",
        f"{LABEL}, line 5: the mistake `bare` needs `in`, `replace` and `with`, or else a list of `edits`.",
        f"{LABEL}, line 6: the mistake `half_an_edit` needs `in`, `replace` and `with`, or else a list of `edits`.",
        f"{LABEL}, line 7: the mistake `broken` is not Python after its edits: invalid syntax.",
        f"{LABEL}, line 8: the mistake `overlap` has two edits of the same place; make them one.",
        f"{LABEL}, line 13: the mistake `broken` is there already, in line 7.",
        f"{LABEL}, line 14: the mistake `elsewhere`: there is no part `totals`; did you mean `total`?",
    ]


def test_invalid_mistakes_yml_is_reported(course: Course) -> None:
    text = "- {id: Capital, in: add, replace: a + b, with: a}\n- {id: b, hnt: x, edits: []}\n- 7\n"
    assert problems_of(course, text) == [
        f"{LABEL}, line 1: `id` of the mistake `Capital` must be small letters, digits and underscores, "
        'such as `forgets_the_last_one`, not the text "Capital".',
        f"{LABEL}, line 1: the mistake `Capital` has no `hint`.",
        f"{LABEL}, line 2: `edits` of the mistake `b` must not be an empty list.",
        f"{LABEL}, line 2: `hnt` is not a setting of the mistake `b`; did you mean `hint`?",
        f"{LABEL}, line 3: mistake 3 must be a block of `name: value` lines, not 7.",
    ]


def test_edit_that_does_not_compile_is_reported(course: Course) -> None:
    (problem,) = problems_of(
        course, "- {id: a, in: add, replace: a + b, with: (yield) + (await b), hint: h}\n"
    )
    assert problem == f"{LABEL}, line 1: the mistake `a` is not Python after its edits: " + (
        "'await' outside async function."
    )


def test_a_mistake_knows_the_recorded_tests_that_it_fails(
    course: Course, adding: Assignment
) -> None:
    assert {mistake.fails for mistake in load_mistakes(course, adding)} == {None}
    first, *others = load_mistakes(course, adding)
    course.failing_tests_file(adding).write_text(json.dumps({first.id: ["test_a", "test_b"]}))
    found = {mistake.id: mistake.fails for mistake in load_mistakes(course, adding)}
    assert found == {first.id: frozenset({"test_a", "test_b"})} | {
        mistake.id: None for mistake in others
    }


@pytest.mark.parametrize("text", ["{", "[]", '{"wrong": 3}'])
def test_a_damaged_record_of_failing_tests_is_a_sentence(
    course: Course, adding: Assignment, text: str
) -> None:
    course.failing_tests_file(adding).write_text(text)
    with pytest.raises(
        CourseError, match=r"failing_tests\.json is damaged.*autograder audit --record"
    ):
        load_mistakes(course, adding)


@pytest.mark.parametrize(
    "assignment", load_course(ROOT).assignments, ids=lambda assignment: assignment.name
)
def test_the_failing_tests_of_each_mistake_of_the_course_are_recorded(
    assignment: Assignment,
) -> None:
    """Without a record, every mistake is tried; after a change of a suite, run `autograder audit --record`."""
    assert [
        mistake.id for mistake in load_mistakes(load_course(ROOT), assignment) if not mistake.fails
    ] == []


@pytest.mark.parametrize(
    "assignment", load_course(ROOT).assignments, ids=lambda assignment: assignment.name
)
def test_mistakes_of_the_course_have_titles_and_equal_titles_equal_hints(
    assignment: Assignment,
) -> None:
    """A page names a mistake by its title; two hints below one name would answer the same code in two ways."""
    text = (ROOT / "tests" / "assignments" / assignment.name / "mistakes.yml").read_text("utf-8")
    entries = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    assert [entry["id"] for entry in entries if not entry.get("title")] == []
    hints: dict[tuple[str, str], str] = {}
    for entry in entries:
        place = entry.get("in") or entry["edits"][0]["in"]
        assert hints.setdefault((place, entry["title"]), entry["hint"]) == entry["hint"], entry[
            "id"
        ]
