"""What a known mistake may cost, by its weight; and what an idea must fail by."""

from __future__ import annotations

import pytest

from autograder.authoring.given_functions import called_by_accident
from autograder.authoring.proportion import Cost, out_of_proportion
from autograder.checks.sentences import is_about_form
from autograder.course.reading import load_course
from tests.autograder.golden_sentences import GOLDEN
from tests.autograder.tiny_course import write_tiny_course

VALUES = "The output differs first at row 0: 1 came back, 2 was expected."
SHAPE = "The loss has shape (3,); () was expected."
TYPE = "The loss is 0.5; a tensor was expected."
EITHER = "The loss is None; a tensor or an array was expected."


@pytest.mark.parametrize(
    ("weight", "lost", "in_part", "said"),
    [
        (None, 20.0, 0.0, []),
        ("form", 2.0, 2.0, []),
        ("form", 2.25, 1.0, ["a slip of form may cost a third of the 6 points of its part `loss`"]),
        ("slip", 4.0, 4.0, []),
        ("slip", 4.5, 0.5, ["a slip may cost 20%"]),
        ("idea", 2.0, 2.0, []),
        ("idea", 1.5, 1.5, ["an idea costs at least a third of the 6 points of its part `loss`"]),
        ("central", 5.0, 5.0, []),
        ("central", 9.0, 4.5, ["the central idea costs at least 80%"]),
    ],
)
def test_each_weight_has_its_limit(
    weight: str | None, lost: float, in_part: float, said: list[str]
) -> None:
    cost = Cost(lost, 20.0, in_part, 6.0, "loss", [VALUES])
    problems = list(out_of_proportion("twice", weight, cost))
    assert len(problems) == len(said)
    assert all(words in problem for words, problem in zip(said, problems))


@pytest.mark.parametrize("weight", ["idea", "central"])
@pytest.mark.parametrize(
    ("failures", "fair"),
    [
        ([SHAPE], False),
        ([TYPE, SHAPE], False),
        ([EITHER], False),
        ([SHAPE, VALUES], True),
        ([], True),
    ],
)
def test_an_idea_fails_by_its_values(weight: str, failures: list[str], fair: bool) -> None:
    problems = list(out_of_proportion("cut", weight, Cost(6.0, 20.0, 6.0, 6.0, "loss", failures)))
    assert fair == (not problems)
    assert fair or "fails by shapes and types alone" in problems[0]


ABOUT_FORM = {
    *(
        "close_shape", "close_no_broadcast", "close_none", "close_tuple", "close_numpy",
        "close_sparse",
    ),
    *("close_text", "close_whole_numbers", "close_bool", "close_too_few_items", "equal_bool"),
    *("shape_of_a_name", "equal_list_for_tuple", "opaque", "shape", "shape_call", "shape_type"),
    *("dtype", "tensor", "unpack", "between_type", "batch_invariant_shape"),
    *("prefix_invariant_shape", "causal_shape", "convex_hull_shape"),
}  # fmt: skip


@pytest.mark.parametrize("name", GOLDEN)
def test_failures_about_form_are_told_from_those_about_values(name: str) -> None:
    public = GOLDEN[name][-1].replace("«", "").replace("»", "")
    assert is_about_form(public) == (name in ABOUT_FORM)


def test_given_functions_of_the_student_are_no_part_of_a_hidden_test(tmp_path) -> None:
    folder = write_tiny_course(tmp_path)
    solution = folder / "solutions/01_adding/adding.py"
    given = 'def numbers(count):\n    """Given."""\n    return list(range(count))\n\n\n# %% part="add"\n'
    text = solution.read_text("utf-8")
    solution.write_text(text.replace('# %% part="add"\n', given, 1), "utf-8")
    suite = folder / "tests/assignments/01_adding/test_hidden.py"
    fair = suite.read_text("utf-8")

    def problems(call: str, listed: str = "") -> list[str]:
        suite.write_text(
            listed + fair.replace("wrong = -random", f"{call}\n    wrong = -random"), "utf-8"
        )
        course = load_course(folder)
        return called_by_accident(course, course.assignment("01_adding"))

    assert problems("reference.numbers(3)") == []
    for call in (
        "student.numbers(3)",
        'getattr(student, "numbers")(3)',
        'hasattr(student, "numbers")',
    ):
        (problem,) = problems(call)
        assert "`numbers` is given" in problem and "reference.numbers" in problem
    assert problems("student.numbers(3)", 'GIVEN = ("numbers",)\n') == []
    (problem,) = problems("pass", 'GIVEN = ("numbers",)\n')
    assert problem.endswith("GIVEN lists `numbers`, which no test calls.")
