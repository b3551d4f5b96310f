"""Mistakes are recognised by their answers in any order of submissions, and run only as far as needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from autograder.bridge.inside.server import answer
from autograder.bridge.outside import loopback
from autograder.bridge.outside.subject import RemoteSubject
from autograder.bridge.outside.transcript import Answer, Digest, KeptTranscripts, Transcript
from autograder.bridge.shared.errors import Frame, RemoteException, student_raised
from autograder.course.reading import load_course
from autograder.grading.diagnosis import Attempt
from autograder.grading.grader import Grader
from autograder.grading.preparation import open_grader
from autograder.grading.suite_run import TrustedExaminee
from autograder.records import SourceFile, Submission
from autograder.walls.outside.launcher import Sandbox
from tests.autograder.tiny_course import MISTAKES, SOLUTION, write_tiny_course

NAME = "01_adding"
FIRST = "test_two_and_three_are_five"
OTHERS = """
- id: adds_one_more
  in: add
  replace: a + b
  with: a + b + 1
  hint: Where does the one come from?

- id: forgets_later
  in: Total.push
  replace: self.value = self.value + number
  with: "self.value = self.value + number if self.value < 20 else number"
  hint: What is different once much has been pushed?

- id: refuses_large_numbers
  in: add
  replace: together = a + b
  with: |
    if b > 99:
        raise ValueError("too large")
    together = a + b
  hint: Is any number too large?

- id: adds_a_third
  in: add
  replace: a + b
  with: a + b + 1 / 3
  hint: Are sums of whole numbers whole?

- id: takes_one_step_too_many
  in: add
  replace: together = a + b
  with: |
    together = a
    for _ in range(b):
        together = together + 1
    together = together + 1
  hint: How many steps is it to the second number?

- id: accepts_small_negative_numbers
  in: Total.push
  replace: if number < 0
  with: if number < -9999
  hint: Which numbers are refused?

- id: refuses_the_wrong_numbers
  in: Total.push
  replace: if number < 0
  with: if number > 3
  hint: On which side of the line are the numbers that are refused?
"""
REFUSES = """if b > 99:
        raise ValueError("too large")
    together = a + b"""
EDITS = {
    "subtracts": ("a + b", "a - b"),
    "adds_one_more": ("a + b", "a + b + 1"),
    "forgets_what_came_before": ("self.value = self.value + number", "self.value = number"),
    "forgets_later": ("self.value = self.value + number",
                      "self.value = self.value + number if self.value < 20 else number"),
    None: ("a + b", "a + b + 2"),
}  # fmt: skip


@pytest.fixture(scope="module")
def one_grader(tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox) -> Iterator[Grader]:
    root = write_tiny_course(tmp_path_factory.mktemp("course"))
    (root / "tests" / "assignments" / NAME / "mistakes.yml").write_text(MISTAKES + OTHERS, "utf-8")
    hidden = root / "tests" / "assignments" / NAME / "test_hidden.py"
    longer = hidden.read_text("utf-8").replace("for _ in range(3)", "for _ in range(9)")
    hidden.write_text(longer.replace("random.randint(1, 9)", "random.randint(5, 9)"), "utf-8")
    grader = open_grader(load_course(Path(root)), sandbox, 1)
    yield grader
    grader.close()


@pytest.fixture
def grader(one_grader: Grader) -> Grader:
    """A grader in a new run, in which no mistake has run yet."""
    one_grader.reseed(one_grader.run_seed + 1)
    return one_grader


def named(grader: Grader, mistake: str | None) -> set[str | None]:
    return set(names(grader, EDITS[mistake]).values())


def names(
    grader: Grader, *edits: tuple[str, str], solution: str = SOLUTION
) -> dict[str, str | None]:
    """The mistake that is named for each failing test of the solution with these edits."""
    text = solution
    for right, wrong in edits:
        assert text.count(right) == 1
        text = text.replace(right, wrong)
    grade = grader.grade(Submission("ada", NAME, (SourceFile("adding.py", text),)))
    failed = {
        test.name: test.mistake for test in grade.tests if test.outcome not in ("passed", "skipped")
    }
    assert failed
    return failed


@pytest.mark.parametrize("order", [[*EDITS, "subtracts"], list(reversed(EDITS))])
def test_mistakes_are_named_in_any_order_of_submissions(grader, order):
    for mistake in order:
        assert named(grader, mistake) == {mistake}


def test_an_exception_may_say_it_in_other_words(grader):
    found = names(grader, ("together = a + b", REFUSES.replace("too large", "b is not a digit")))
    assert found == {"test_any_two_numbers": "refuses_large_numbers"}


def test_a_mistake_that_explains_half_of_a_part_is_not_named(grader):
    found = names(grader, EDITS["forgets_what_came_before"], ("raise ValueError", "raise KeyError"))
    assert found == {"test_pushes_add_up": None, "test_negative_numbers_are_refused": None}


def test_what_a_check_tells_in_words_stands_for_the_answers(tmp_path, sandbox):
    """Other wrong sums are recognised as `subtracts`, because both are called too small."""
    root = write_tiny_course(tmp_path)
    hidden = root / "tests" / "assignments" / NAME / "test_hidden.py"
    fair = 'checks.equal(student.add(a, b), reference.add(a, b), f"add({a}, {b})")'
    told = 'checks.between(student.add(a, b), a + b, a + b + 5, telling="The sum is too small.")'
    hidden.write_text(hidden.read_text("utf-8").replace(fair, told), "utf-8")
    grader = open_grader(load_course(Path(root)), sandbox, 1)
    text = SOLUTION.replace("a + b", "a + b - 30 * (b > 99)")
    grade = grader.grade(Submission("ada", NAME, (SourceFile("adding.py", text),)))
    grader.close()
    named = {test.name: (test.mistake, test.message) for test in grade.tests if not test.score}
    assert named["test_any_two_numbers"] == ("subtracts", "The sum is too small.")


def test_two_mistakes_that_explain_all_of_a_part_together_are_named(grader):
    found = names(
        grader, EDITS["forgets_what_came_before"], ("if number < 0:", "if number < -9999:")
    )
    assert found == {
        "test_pushes_add_up": "forgets_what_came_before",
        "test_negative_numbers_are_refused": "accepts_small_negative_numbers",
    }


@pytest.fixture
def recorded(grader: Grader, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that stores which tests mistakes fail, as if an audit had recorded it; no test by default."""

    def record(**fails: frozenset[str]) -> None:
        diagnosis = grader.diagnosis(NAME)
        mistakes = [
            replace(each, fails=fails.get(each.id, frozenset())) for each in diagnosis.mistakes
        ]
        monkeypatch.setattr(diagnosis, "mistakes", tuple(mistakes))

    return record


def attempted(grader: Grader) -> set[str]:
    return {mistake for mistake, *_ in grader.diagnosis(NAME).attempts}


def test_answers_that_are_almost_equal_are_named_without_room_for_the_first(grader, monkeypatch):
    """Of answers that are kept as digests, another processor's last bit would tell nothing."""
    thirds = [("a + b", f"a + b + {third}") for third in ("1 / 3", "0.33333333331")]
    monkeypatch.setattr(grader.diagnosis(NAME), "kept", KeptTranscripts(most_bytes=0))
    for third in [*thirds, thirds[0]]:
        assert set(names(grader, third).values()) == {"adds_a_third"}
    assert named(grader, "adds_one_more") == {"adds_one_more"}


def test_a_mistake_runs_once_in_each_test_of_a_submission_whatever_the_room(grader, monkeypatch):
    diagnosis = grader.diagnosis(NAME)
    runs = []
    monkeypatch.setattr(diagnosis.kept, "add", runs.append)
    monkeypatch.setattr(Attempt, "decides", lambda attempt, students: False)
    names(grader, EDITS["forgets_what_came_before"], ("if number < 0:", "if number < -9999:"))
    assert len(runs) == len(diagnosis.attempts) > 2


def test_a_mistake_that_passes_the_failing_tests_takes_no_test(grader, recorded):
    recorded(subtracts=frozenset({FIRST}), forgets_later=frozenset({"test_pushes_add_up"}))
    assert named(grader, None) == {None}
    assert attempted(grader) == {"subtracts"}


@pytest.mark.parametrize(
    ("body", "tries"),
    [
        ('raise NotImplementedError("add is not written yet.")', False),
        ("import os; os._exit(3)", False),
        ("while True: pass", False),
        ("import torch; return torch.softmax(torch.tensor([a, b]), -1)", True),
    ],
)
def test_only_an_answer_of_written_code_is_compared_with_mistakes(grader, body, tries):
    """PyTorch raises NotImplementedError, too: softmax takes no whole numbers."""
    assert set(names(grader, ("together = a + b", body)).values()) == {None}
    assert bool(attempted(grader)) == tries


def test_only_mistakes_that_fail_the_same_tests_are_tried(grader, recorded):
    """`subtracts` stands first in the file, and is recorded with a test that the submission passes."""
    fails = frozenset({FIRST})
    recorded(
        subtracts=fails | {"test_pushes_add_up"}, adds_one_more=fails, refuses_large_numbers=fails
    )
    assert names(grader, EDITS["adds_one_more"]) == {FIRST: "adds_one_more"}
    assert attempted(grader) == {"adds_one_more", "refuses_large_numbers"}


def test_mistakes_that_no_test_tells_apart_get_their_questions_without_a_name(grader, recorded):
    fails = frozenset({FIRST})
    recorded(adds_one_more=fails, takes_one_step_too_many=fails)
    text = SOLUTION.replace("a + b", "a + b + 1")
    grade = grader.grade(Submission("ada", NAME, (SourceFile("adding.py", text),)))
    (failed,) = (test for test in grade.tests if test.outcome == "failed")
    assert failed.mistake is None
    assert (
        "Where does the one come from? Or: How many steps is it to the second number?"
        in failed.hint
    )


def test_a_mistake_that_fails_more_tests_than_recorded_is_named(grader, recorded):
    """Other random inputs can make a mistake fail a test that it passed when the audit recorded it."""
    pushes = frozenset({"test_first_push_is_the_sum", "test_pushes_add_up"})
    recorded(refuses_the_wrong_numbers=pushes, subtracts=frozenset({FIRST}))
    found = names(grader, ("if number < 0:", "if number > 3:"))
    assert len(found) == 3 and set(found.values()) == {"refuses_the_wrong_numbers"}
    assert attempted(grader) == {"refuses_the_wrong_numbers"}


MORE = '''
import torch


def layer(size: int) -> torch.nn.Module:
    """A linear layer with small numbers."""
    made = torch.nn.Linear(size, size)
    return made


def twice(function, number: int) -> int:
    """What a function gives for a number, and once more for the result."""
    return function(function(number))


def shout(number: int) -> int:
    """Prints a number, and refuses it below zero."""
    print("number", number)
    if number < 0:
        raise ValueError("below zero")
    return number


class Sum:
    """A value to which others are added."""

    def __init__(self, value: int) -> None:
        self.value = value

    def plus(self, number: int) -> "Sum":
        return Sum(self.value + number)


def size() -> int:
    return 3


def counted(number: int) -> int:
    total = 0
    for _ in range(number):
        total += 1
    return total
'''
MORE_TESTS = '''

@pytest.mark.part("total")
@pytest.mark.points(1)
def test_layer_is_small(student):
    """All numbers of a layer are small."""
    checks.true(float(student.layer(4).weight.detach().abs().max()) < 2, "The numbers are large.")


@pytest.mark.part("total")
@pytest.mark.points(1)
def test_a_function_twice(student):
    """A function is called twice."""
    checks.equal(student.twice(lambda number: number + 2, 3), 7, "twice")


@pytest.mark.part("total")
@pytest.mark.points(1)
def test_shout_prints(student, capsys):
    """The number is printed."""
    student.shout(3)
    checks.equal(capsys.readouterr().out, "number 3\\n", "printed")


@pytest.mark.part("total")
@pytest.mark.points(1)
def test_shout_prints_below_zero(student, capsys):
    """A number below zero is printed, and refused."""
    with pytest.raises(ValueError):
        student.shout(-3)
    checks.equal(capsys.readouterr().out, "number -3\\n", "printed")


@pytest.mark.part("total")
@pytest.mark.points(1)
def test_each_sum_is_another_one(student):
    """A sum of a sum."""
    checks.equal(student.Sum(1).plus(2).plus(3).value, 6, "value")


@pytest.mark.part("total")
@pytest.mark.points(1)
def test_counted(student):
    """So many things are counted."""
    counted = student.counted(student.size())
    told = f"It is {'less' if counted < 3 else 'more'} than 3."
    checks.true(counted == 3, "It is not 3.", telling=told)


@pytest.mark.part("total")
@pytest.mark.points(1)
@pytest.mark.forbids("torch.add")
def test_by_hand(student):
    """Python adds, not PyTorch."""
    checks.equal(student.add(4, 5), 9, "add(4, 5)")
'''
MORE_MISTAKES = """
- id: large_numbers
  in: layer
  replace: return made
  with: |-
    made.weight.data *= 100
    return made
  hint: How large are the numbers of a layer?

- id: prints_another_word
  in: shout
  replace: print("number"
  with: print("nummer"
  hint: Which word is printed?

- id: returns_more
  in: shout
  replace: return number
  with: return number + number
  hint: What is returned?

- id: takes_away
  in: Sum.plus
  replace: self.value + number
  with: self.value - number
  hint: Does it become more?

- id: counts_one_less
  in: counted
  replace: total = 0
  with: total = -1
  hint: Where does counting begin?

- id: counts_from_one
  in: twice
  replace: function(function(number))
  with: "[number][1 + (function is None)]"
  hint: Which is the first place of a list?

- id: once
  in: twice
  replace: function(function(number))
  with: function(number)
  hint: How often is the function called?
"""


@pytest.fixture(scope="module")
def larger_grader(tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox) -> Iterator[Grader]:
    """The grader of a course with a module, a function of the test, and a forbidden name."""
    root = write_tiny_course(tmp_path_factory.mktemp("larger"))
    tests = root / "tests" / "assignments" / NAME
    more = {
        root / "solutions" / NAME / "adding.py": MORE,
        tests / "test_hidden.py": MORE_TESTS,
        tests / "mistakes.yml": MORE_MISTAKES,
    }
    for file, text in more.items():
        file.write_text(file.read_text("utf-8") + text, "utf-8")
    course = (root / "course.yml").read_text("utf-8").replace("points: 6", "points: 13")
    (root / "course.yml").write_text(course, "utf-8")
    grader = open_grader(load_course(root), sandbox, 1)
    yield grader
    grader.close()


def larger_names(grader: Grader, *edits: tuple[str, str]) -> dict[str, str | None]:
    return names(grader, *edits, solution=SOLUTION + MORE)


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the tests that run on mistakes."""
    ran: list[str] = []
    ending = TrustedExaminee.ending

    def noted(self, test, run):
        if isinstance(self.subject, RemoteSubject):
            ran.append(test.name)
        return ending(self, test, run)

    monkeypatch.setattr(TrustedExaminee, "ending", noted)
    return ran


def test_a_mistake_that_gives_the_same_bytes_is_named_without_a_test(grader, examined):
    assert named(grader, "subtracts") == {"subtracts"}
    assert not examined


def test_a_mistake_with_another_answer_takes_no_test(grader, examined):
    assert named(grader, None) == {None}
    assert not examined


def test_equal_answers_with_other_random_numbers_need_the_test(larger_grader, examined):
    """A new layer counts by its names and shapes: the first mistakes make an equal one, which is small."""
    edits = (
        "return made",
        "torch.randn(9)\n    return torch.nn.Linear(size, size).apply(enlarged)",
    )
    enlarged = ("def twice(", "def enlarged(made):\n    made.weight.data *= 50\n\n\ndef twice(")
    found = larger_names(larger_grader, edits, enlarged)
    assert found == {"test_layer_is_small": "large_numbers"}
    assert set(examined) == {"test_layer_is_small"}


@pytest.mark.parametrize(
    ("body", "tests"),
    [("function(number)", set()), ("5", {"test_a_function_twice"})],
    ids=["the same question", "no question"],
)
def test_a_test_answers_only_what_it_was_asked(larger_grader, examined, monkeypatch, body, tests):
    """The mistake calls the test's function: its answer is recorded if the submission has called it, too."""
    larger_grader.reseed(larger_grader.run_seed + 1)
    diagnosis = larger_grader.diagnosis(NAME)
    once = tuple(mistake for mistake in diagnosis.mistakes if mistake.id == "once")
    monkeypatch.setattr(diagnosis, "mistakes", once)
    found = larger_names(larger_grader, ("function(function(number))", body))
    assert found == {"test_a_function_twice": "once"}
    assert set(examined) == tests


def test_a_mistake_that_raises_beside_a_function_of_the_test_needs_the_test(
    larger_grader, examined, monkeypatch
):
    """What describes its exception asks for the shapes of all that stands in the line."""
    larger_grader.reseed(larger_grader.run_seed + 1)
    diagnosis = larger_grader.diagnosis(NAME)
    raising = tuple(each for each in diagnosis.mistakes if each.id == "counts_from_one")
    monkeypatch.setattr(diagnosis, "mistakes", raising)
    found = larger_names(larger_grader, ("function(function(number))", "5"))
    assert found == {"test_a_function_twice": None}
    assert set(examined) == {"test_a_function_twice"}


def test_what_is_printed_is_compared(larger_grader):
    edit = 'print("number"', 'print("nummer"'
    found = larger_names(larger_grader, edit)
    assert found == {
        "test_shout_prints": "prints_another_word",
        "test_shout_prints_below_zero": "prints_another_word",
    }
    silent = 'print("number", number)', 'print("number", number) if number > 0 else None'
    assert larger_names(larger_grader, silent) == {"test_shout_prints_below_zero": None}


def test_an_object_that_is_changed_in_place_is_that_of_a_new_one(larger_grader):
    """Whoever was graded before: the mistake makes objects, the submission keeps one."""
    edit = (
        "return Sum(self.value + number)",
        "self.value = self.value - number\n        return self",
    )
    for _ in range(2):
        larger_grader.reseed(larger_grader.run_seed + 1)
        found = larger_names(larger_grader, edit)
        assert found == {"test_each_sum_is_another_one": "takes_away"}
        larger_names(larger_grader, ("Sum(self.value + number)", "Sum(self.value - number)"))


def test_a_mistake_is_not_asked_for_what_only_the_submission_made_of_it(larger_grader, monkeypatch):
    """It would count to a thousand million."""
    diagnosis = larger_grader.diagnosis(NAME)
    less = tuple(each for each in diagnosis.mistakes if each.id == "counts_one_less")
    monkeypatch.setattr(diagnosis, "mistakes", less)
    asked = []

    def noted(server, operation, arguments):
        asked.append(arguments.get("args"))
        return answer(server, operation, arguments)

    monkeypatch.setattr(loopback, "answer", noted)
    hostile = [("return 3", "return 10**9"), ("total = 0", "return -1\n    total = 0")]
    assert larger_names(larger_grader, *hostile) == {"test_counted": "counts_one_less"}
    assert (3,) in asked and (10**9,) not in asked
    honest = larger_names(larger_grader, ("total = 0", "total = -1"))
    assert honest == {"test_counted": "counts_one_less"}


def test_right_answers_by_a_forbidden_way_are_those_of_no_mistake(larger_grader):
    """`large_numbers` adds rightly, too."""
    body = "import torch\n    together = int(torch.add(torch.tensor(a), b))"
    found = larger_names(larger_grader, ("together = a + b", body))
    assert found == {"test_by_hand": None}


def test_a_forbidden_name_beside_a_mistake_hides_no_name(larger_grader):
    """It ran in a test that does not forbid it."""
    body = "import torch\n    together = int(torch.add(torch.tensor(a), -b))"
    found = larger_names(larger_grader, ("together = a + b", body))
    assert found.pop("test_by_hand") in (None, "subtracts")
    assert set(found.values()) == {"subtracts"}


def answered(operation: str, value: object) -> Transcript:
    transcript = Transcript()
    transcript.record(operation, {}, value)
    return transcript


def test_transcripts_ignore_the_order_of_gradients():
    weight, bias = torch.randn(3, 2), torch.randn(3)
    asked = answered("backward", [weight, bias, None])
    assert asked.same_as(answered("backward", [None, bias.clone(), weight.clone()]))
    assert not asked.same_as(answered("backward", [weight, bias + 1, None]))
    assert not asked.same_as(answered("backward", [weight, bias]))
    assert not answered("backward", [bias, bias]).same_as(answered("backward", [bias, 2 * bias]))
    assert not answered("call", {"result": [weight, bias], "modules": []}).same_as(
        answered("call", {"result": [bias, weight], "modules": []})
    )


def raised(code: str, text: str) -> Transcript:
    transcript = Transcript()
    frame = Frame("adding.py", 7, "add", code)
    remote = RemoteException("AssertionError", ("AssertionError",), text, (frame,))
    transcript.record_error("call", {}, student_raised(remote))
    return transcript


@pytest.mark.parametrize("code", ["raise AssertionError(f'{T} is too long')", "assert T <= 5, T"])
def test_students_own_error_messages_are_not_compared(code):
    assert raised(code, "8").same_as(raised(code, "T is 8, but 5 fit."))


@pytest.mark.parametrize(
    "value",
    [
        torch.tensor(1.5),
        torch.tensor(True),
        [torch.tensor(2.5, dtype=torch.float64), torch.arange(3)],
        torch.zeros(0, 3),
        torch.arange(6.0).reshape(2, 3).T,
    ],
    ids=["a single number", "a truth value", "a list", "no numbers", "a transposed matrix"],
)
def test_answers_without_room_are_compared_by_digest(value: object) -> None:
    old, same, other = (
        Transcript([Answer("call", "f", each)]) for each in (value, value, torch.ones(7))
    )
    kept = KeptTranscripts(most_bytes=200)
    for transcript in (old, Transcript([Answer("call", "f", "x" * 100)]), other):
        kept.add(transcript)
    assert isinstance(old.answers[0].value, Digest)
    assert same.same_as(old) and not other.same_as(old)


@pytest.mark.parametrize("value", [torch.zeros(3), np.zeros(3)], ids=["tensor", "array"])
def test_transcript_keeps_values_that_the_test_changes_afterwards(value: object) -> None:
    transcript = Transcript()
    transcript.record(
        "call", {}, {"result": value, "modules": [[1, {"values": {"weight": value}}]]}
    )
    before = Transcript()
    before.record(
        "call", {}, {"result": value + 0, "modules": [[1, {"values": {"weight": value + 0}}]]}
    )
    value += 1
    assert transcript.same_as(before)
