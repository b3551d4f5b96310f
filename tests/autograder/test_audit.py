"""The audit finds every kind of unfairness that is planted in a tiny course."""

from __future__ import annotations

import json
import shutil

import pytest
from typer.testing import CliRunner

from autograder.authoring.build import build, check
from autograder.cli import app
from autograder.course.reading import load_course

SUITE = "tests/assignments/01_adding"


@pytest.fixture
def course(built_course, tmp_path):
    folder = shutil.copytree(built_course, tmp_path / "course")
    needs = (
        '@pytest.mark.needs("test_pushes_add_up")\ndef test_negative'  # no point for refusals alone
    )
    edit_tests(folder, "hidden", "def test_negative", needs)
    return folder


def audit(course, *options):
    """Return the exit code and the JSON of `autograder audit` for the course."""
    always = ("--seeds", "2", "--jobs", "1", "--json", "--unsafe")
    result = CliRunner().invoke(app, ["audit", "--course", str(course), *always, *options])
    assert result.exit_code in (0, 1), result.output
    return result.exit_code, json.loads(result.stdout)[0]


def edit_tests(course, kind, old, new):
    """Edit the visible or the hidden tests."""
    edit(course, f"{SUITE}/test_{kind}.py", old, new)


def edit(course, name, old, new):
    file = course / name
    text = file.read_text("utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), "utf-8")


@pytest.mark.slow
def test_audit_of_a_fair_course_finds_no_problem(course):
    code, found = audit(course, "--no-mutants")
    assert (code, found["problems"]) == (0, [])
    assert found["stub"] == "1/1" and found["solution"] == "2/2" and found["alternatives"] == "1/1"
    assert found["mistakes_caught"] == found["mistakes_named"] == "2/2"


@pytest.mark.slow
def test_picture_without_a_sentence_is_refused(course):
    text = "from matplotlib.figure import Figure\n\n\ndef bars(student):\n    return Figure()\n"
    (course / SUITE / "pictures.py").write_text(f'{text}\n\nPICTURES = {{"add": [bars]}}\n')
    build(load_course(course))
    code, record = audit(course, "--only", "solution")
    assert code == 1
    assert record["problems"] == [
        f"{SUITE}/pictures.py, bars: `bars` in pictures.py returns no sentence about its picture: "
        "`return figure, sentence`."
    ]


@pytest.mark.slow
def test_recorded_failing_tests_are_those_that_each_mistake_does_not_pass(course):
    file = course / SUITE / "failing_tests.json"
    assert audit(course, "--only", "mistake")[0] == 0 and not file.exists()
    assert audit(course, "--only", "mistake", "--record")[0] == 0
    assert json.loads(file.read_text("utf-8")) == {
        "subtracts": ["test_two_and_three_are_five", "test_any_two_numbers"],
        "forgets_what_came_before": ["test_pushes_add_up", "test_negative_numbers_are_refused"],
    }
    assert audit(course, "--only", "mistake")[0] == 0


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"subtracts": []}, "the mistake `forgets_what_came_before` is not in it"),
        ({"subtracts": [], "forgets_what_came_before": [], "adds": []},
         "there is no mistake `adds` any more"),
        ({"subtracts": ["test_gone"], "forgets_what_came_before": ["test_pushes_add_up"]},
         "there is no test `test_gone` any more"),
    ],
)  # fmt: skip
def test_stale_record_of_failing_tests_is_reported_by_the_check(course, record, reason):
    (course / SUITE / "failing_tests.json").write_text(json.dumps(record), "utf-8")
    assert check(load_course(course)) == [
        f"{SUITE}/failing_tests.json is out of date: {reason}. "
        "Write it anew: autograder audit 01_adding --only mistake --record"
    ]


@pytest.mark.slow
def test_mistake_that_is_not_named_because_of_its_record_says_so(course):
    record = {"subtracts": [], "forgets_what_came_before": ["test_pushes_add_up"]}
    (course / SUITE / "failing_tests.json").write_text(json.dumps(record), "utf-8")
    code, found = audit(course, "--only", "mistake")
    assert code == 1
    assert found["problems"][0].startswith("mistake subtracts is caught, but not named: ")
    assert found["problems"][0].endswith(
        "failing_tests.json does not know that it fails test_two_and_three_are_five, "
        "test_any_two_numbers: add --record."
    )


@pytest.mark.slow
def test_trivial_answers_and_losses_are_told(course):
    code, found = audit(course, "--no-mutants")
    assert (code, found["problems"], found["trivial"]) == (0, [], "20%")
    nothing = dict.fromkeys(("ones", "zeros", "noise", "nothing", "empty"), 0)
    assert found["trivial_answers"] == {**nothing, "first argument": 2}
    assert found["losses"] == [["subtracts", 4, None], ["forgets_what_came_before", 4, None]]
    assert found["unpromised"] == 3


@pytest.mark.slow
def test_a_suite_that_pays_for_trivial_answers(course):
    edit_tests(
        course, "hidden", "student.add(a, b), reference.add(a, b)", "type(student.add(a, b)), int"
    )
    edit_tests(
        course,
        "visible",
        'checks.equal(student.add(2, 3), 5, "add(2, 3)")',
        "student.add(2, 3) + 1",
    )
    code, found = audit(course, "--only", "trivial")
    assert code == 1 and found["trivial"] == "60%"
    first = found["problems"][0]
    assert first.startswith("trivial ones, trivial zeros, ")
    earned = "4 of 10 points, at most 25% are allowed: test_any_two_numbers 3, test_two_and_three_are_five 1."
    assert f": {earned} It raises the solution's exceptions;" in first


REFUSALS = """\


@pytest.mark.part("add")
@pytest.mark.points(3)
def test_text_is_refused(student):
    \"\"\"A text is refused.\"\"\"
    checks.raises(TypeError, student.add, 1, "2")
"""


def test_refusals_can_be_the_lesson(course):
    """A share allows more to what refuses, and nothing to what does not."""
    edit_tests(course, "hidden", "@pytest.mark.points(3)\n@pytest.mark.needs", "@pytest.mark.needs")
    hidden = course / SUITE / "test_hidden.py"
    hidden.write_text(hidden.read_text("utf-8") + REFUSALS, "utf-8")
    edit_tests(course, "hidden", "def test_any_two_numbers", "def helper_of_two_numbers")
    code, found = audit(course, "--only", "trivial")
    assert (code, found["trivial"]) == (1, "50%")
    assert "course.yml can have a `share_for_refusals`" in found["problems"][0]
    edit(
        course, "course.yml", "    minutes: 10\n", "    minutes: 10\n    share_for_refusals: 0.5\n"
    )
    code, found = audit(course, "--only", "trivial")
    assert (code, found["problems"]) == (0, [])
    earned = found["trivial_answers"]
    assert (earned["first argument"], earned["first argument, without refusals"]) == (5, 2)


def test_one_cause_is_one_line(course):
    edit_tests(course, "hidden", "reference.add(a, b), f", "a * b, f")
    code, found = audit(course, "--only", "trivial")
    (problem,) = found["problems"]
    assert code == 1 and "The solution itself does not pass" in problem
    assert problem.startswith("trivial ones, trivial zeros, trivial noise, ")


DRAWN = """\
    from hypothesis import Phase, given, seed as drawn_from, settings, strategies

    @drawn_from(seed)
    @settings(database=None, deadline=None, phases=[Phase.generate])
    @given(strategies.integers(-99, 99), strategies.integers(100, 199))
    def compare(a, b):
        checks.equal(student.add(a, b), reference.add(a, b), f"add({a}, {b})")

    compare()
"""


@pytest.mark.slow
def test_mistakes_are_named_where_hypothesis_draws_from_the_seed(course):
    body = """\
    a, b = random.randint(-99, 99), random.randint(100, 199)
    checks.equal(student.add(a, b), reference.add(a, b), f"add({a}, {b})")
"""
    edit_tests(course, "hidden", body, DRAWN)
    code, found = audit(course, "--no-mutants")
    assert (code, found["problems"]) == (0, [])
    assert found["mistakes_named"] == "2/2"


@pytest.mark.slow
def test_a_slip_that_costs_much_and_an_idea_that_costs_little(course):
    file = course / SUITE / "mistakes.yml"
    weighed = file.read_text("utf-8").replace(
        "- id: subtracts\n", "- id: subtracts\n  weight: slip\n"
    )
    weighed = weighed.replace("before\n", "before\n  weight: idea\n")
    file.write_text(weighed, "utf-8")
    code, found = audit(course, "--only", "mistake")
    assert code == 1
    assert found["problems"] == ["mistake subtracts costs 4 of 10 points; a slip may cost 20%."]
    assert found["losses"] == [["subtracts", 4, "slip"], ["forgets_what_came_before", 4, "idea"]]
    edit_tests(course, "visible", "points(2)", "points(5)")
    edit_tests(course, "hidden", "points(3)\ndef test_pushes", "points(0.5)\ndef test_pushes")
    edit_tests(course, "hidden", "points(1)", "points(0.5)")
    build(load_course(course))
    _, found = audit(course, "--only", "mistake")
    assert found["problems"][1] == (
        "mistake forgets_what_came_before costs 1 of 10 points; "
        "an idea costs at least a third of the 6 points of its part `total`."
    )
    edit(course, f"{SUITE}/mistakes.yml", "  weight: idea\n", "  weight: idea\n  part: add\n")
    _, found = audit(course, "--only", "mistake")
    assert found["problems"][1].endswith("a third of the 4 points of its part `add`.")


@pytest.mark.slow
def test_promises_that_the_stub_does_not_make(course):
    hidden = "    @pytest.mark.promise({words!r})\n".lstrip()
    for test, words in (
        ("any_two_numbers", "The sum of two whole numbers: add(2, 3) is 5."),
        ("pushes_add_up", "Adds."),
    ):
        edit_tests(
            course, "hidden", f"def test_{test}", hidden.format(words=words) + f"def test_{test}"
        )
    code, found = audit(course, "--only", "stub")
    assert code == 1 and found["unpromised"] == 1
    assert [problem.partition(": ")[2] for problem in found["problems"]] == [
        "`test_negative_numbers_are_refused` names no promise of the stub.",
        "`test_pushes_add_up` names words that the stub does not have: 'Adds.'.",
    ]
    assert set(found["problems"]) <= set(check(load_course(course)))


@pytest.mark.slow
def test_hidden_tests_with_fixed_inputs_need_a_reason(course):
    edit_tests(course, "hidden", "wrong = -random.randint(1, 999)", "wrong = -4")
    code, found = audit(course, "--only", "solution")
    assert code == 1 and found["fixed_inputs"] == {"test_negative_numbers_are_refused": ""}
    assert found["problems"] == [
        "hidden test test_negative_numbers_are_refused (1 points) sends the same to the student's code in 6 of 6 runs, "
        "so a table of answers passes it. Draw its inputs, or give a reason with the marker `fixed_inputs`."
    ]
    reason = '@pytest.mark.fixed_inputs("Only -4 is unlucky.")\n'
    edit_tests(course, "hidden", "def test_negative", f"{reason}def test_negative")
    code, found = audit(course, "--only", "solution")
    assert (code, found["fixed_inputs"]) == (
        0,
        {"test_negative_numbers_are_refused": "Only -4 is unlucky."},
    )
    edit_tests(course, "hidden", "wrong = -4", "wrong = -random.randint(1, 999)")
    code, found = audit(course, "--only", "solution")
    assert code == 1 and found["problems"] == [
        "hidden test test_negative_numbers_are_refused is marked with `fixed_inputs`, but its inputs depend on the seed."
    ]


@pytest.mark.slow
def test_undetected_mistake_is_reported(course):
    mistake = (
        "\n- id: forgets_the_start\n  in: Total.__init__\n  replace: self.value = start\n"
        "  with: self.value = start * 1\n  hint: Where does the sum begin?\n"
    )
    with (course / SUITE / "mistakes.yml").open("a", encoding="utf-8") as file:
        file.write(mistake)
    code, found = audit(course, "--only", "mistake")
    assert code == 1 and found["mistakes_caught"] == "2/3"
    assert "mistake forgets_the_start" in found["problems"][0]


@pytest.mark.slow
def test_alternative_that_loses_points_is_reported(course):
    edit_tests(course, "hidden", 'naming=("number", wrong)', 'naming="must not be negative"')
    code, found = audit(course, "--no-mutants")
    assert code == 1 and found["alternatives"] == "0/1" and found["solution"] == "2/2"
    assert "alternative with_sum" in found["problems"][0]


@pytest.mark.slow
def test_stub_with_points_is_reported(course):
    edit_tests(
        course,
        "visible",
        'checks.equal(student.Total().push(7), 7, "Total().push(7)")',
        "student.Total()",
    )
    build(load_course(course))
    code, found = audit(course, "--no-mutants")
    assert code == 1 and found["stub"] == "0/1"


@pytest.mark.slow
def test_surviving_mutants_are_reported_unless_listed_as_equivalent(course):
    edit_tests(course, "hidden", "wrong = -random.randint(1, 999)", "wrong = -1")
    reason = '@pytest.mark.fixed_inputs("Only -1 leaves a mutant.")\n'
    edit_tests(course, "hidden", "def test_negative", f"{reason}def test_negative")
    code, found = audit(course)
    assert code == 1 and found["survivors"], "number < 0 may become number <= 0 unseen"
    lines = [f"- id: {name}\n  reason: Zero may be pushed or not.\n" for name in found["survivors"]]
    (course / SUITE / "equivalent_mutants.yml").write_text("".join(lines), "utf-8")
    code, found = audit(course)
    assert code == 0 and set(found["equivalent"]) == set(found["survivors"])
