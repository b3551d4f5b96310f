"""One error is paid for once: later parts are tried with the solution in place of an earlier part that failed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import nn

from autograder.bridge.inside.worker import Worker
from autograder.bridge.outside.endless_calls import SHARE_LEFT
from autograder.bridge.outside.local import LocalStudent, load
from autograder.bridge.outside.loopback import LoopbackConnection
from autograder.bridge.outside.remote import RemoteStudent
from autograder.bridge.outside.solution_answers import StandIns
from autograder.bridge.outside.worker_connection import WorkerConnection
from autograder.bridge.shared.errors import StudentRaisedError
from autograder.course.config import Course
from autograder.course.mistakes_file import load_mistakes
from autograder.course.reading import load_course
from autograder.grading import preparation
from autograder.grading.follow_through import names_of_parts
from autograder.grading.grader import Grader
from autograder.grading.preparation import open_grader
from autograder.grading.workers import LOADING_FACTOR
from autograder.records import Grade, SourceFile, Submission, TestResult
from autograder.walls.outside.launcher import Sandbox

ROOT = Path(__file__).resolve().parents[2]
HEADS, BLOCKS, COUNTS = "03_masked_heads", "05_encoder_block", "06_bert_param_count"

MODEL = """
import math
from dataclasses import dataclass

import torch
from torch import nn

class Layer(nn.Module):
    def __init__(self, size, offset=0.0):
        super().__init__()
        if size < 1:
            raise ValueError(f"size must be positive, got {size}")
        self.linear = nn.Linear(size, size)
        self.scale = nn.Parameter(torch.ones(size))
        self.register_buffer("shift", torch.full((size,), offset))
        self.dropout = nn.Dropout(0.5)
        self.size = size

    def forward(self, x):
        return self.dropout(self.linear(x) * self.scale + self.shift)

def draw(generator):
    return torch.randn(3, generator=generator)

def power(x, exponent=2):
    return x ** exponent

@dataclass(frozen=True)
class Sizes:
    wide: int = 1
    high: int = 1

def area(sizes):
    return math.prod(vars(sizes).values())
"""
STUDENTS = """
import copy
from dataclasses import dataclass

import torch
from torch import nn

class Layer(nn.Module):
    pass

def draw(generator):
    return None

def power(x, exponent=2):
    return 0 * x

class Stack(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layers = nn.ModuleList([Layer(size), Layer(size, offset=1.0)])

    def forward(self, x):
        for layer in self.layers:
            x = power(layer(x), exponent=2)
        return x

class Louder(Layer):
    def forward(self, x):
        return 3 * self.linear(x) + self.size

def new_layer(size):
    return Layer(size)

def two_draws(generator):
    return draw(generator), draw(generator)

@dataclass(frozen=True)
class Sizes:
    wide: int = 1
    high: int = 1

def area(sizes):
    return 0

def volume(sizes, deep):
    return area(sizes) * deep

AT_THE_TOP = Layer(4)
SIX = area(Sizes(2, high=3))
kept = []

def of_the_top(x):
    return AT_THE_TOP(x)

def keep(size):
    kept.append(Layer(size))

def twins(size):
    layer = Layer(size)
    return layer, copy.deepcopy(layer)

def of_the_kept(x):
    return kept[0](x)
"""


class Stack(nn.Module):
    def __init__(self, layer: type[nn.Module], size: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([layer(size), layer(size, offset=1.0)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x) ** 2
        return x


@pytest.fixture
def student() -> SimpleNamespace:
    reference = LocalStudent(load(MODEL, "model.py", "reference_of_stand_ins").module)
    connection = LoopbackConnection(Worker(ModuleType("student_of_stand_ins")))
    stand_ins = StandIns(reference, ["Layer", "draw", "power", "area"])
    student = RemoteStudent(connection)
    kinds = connection.answer_with(stand_ins)
    loaded = connection.request("load", text=STUDENTS, filename="model.py", stand_ins=kinds)
    assert loaded["errors"] == []
    connection.start_test(3)
    return SimpleNamespace(
        names=student, solution=reference, stand_ins=stand_ins, connection=connection
    )


def test_a_student_may_inherit_from_a_stand_in(student):
    x = torch.randn(2, 4)
    louder = student.names.Louder(4)
    torch.testing.assert_close(louder(x), 3 * (x @ louder.linear.weight.T + louder.linear.bias) + 4)
    layer = student.names.new_layer(4).eval()
    torch.testing.assert_close(layer(x), x @ layer.linear.weight.T + layer.linear.bias)
    with pytest.raises(ValueError, match="size must be positive, got 0"):
        student.names.new_layer(0)


def test_a_generator_advances_and_the_random_numbers_of_the_test_do_not(student):
    one, other = torch.Generator().manual_seed(1), torch.Generator().manual_seed(1)
    before = torch.default_generator.get_state()
    for drawn in student.names.two_draws(one):
        torch.testing.assert_close(drawn, torch.randn(3, generator=other))
    student.names.new_layer(4)
    assert torch.equal(torch.default_generator.get_state(), before)


def test_the_solution_reads_the_fields_of_a_students_object(student):
    assert student.names.volume(student.names.Sizes(2, high=3), 4) == 24


def test_what_the_top_of_a_text_asked_for_lasts_for_all_tests(student):
    x = torch.randn(2, 4)
    for seed in range(2):
        student.connection.start_test(seed)
        assert student.stand_ins.called == {"Layer", "area"}
        assert student.names.SIX == 6
        assert student.names.of_the_top(x).shape == x.shape


def test_a_copy_of_a_stand_in_has_the_same_answers_and_its_own_numbers(student):
    """As in clones of one layer, in a stack of them."""
    layer, twin = student.names.twins(4)
    x = torch.randn(2, 4)
    before = layer.eval()(x)
    torch.testing.assert_close(twin.eval()(x), before)
    with torch.no_grad():
        twin.linear.weight.zero_()
    torch.testing.assert_close(layer(x), before)
    assert not torch.equal(twin(x), before)


def test_a_module_of_one_test_is_not_answered_by_a_module_of_the_next(student):
    student.names.keep(4)
    student.connection.start_test(4)
    student.names.new_layer(4)
    with pytest.raises(StudentRaisedError):
        student.names.of_the_kept(torch.randn(2, 4))


def test_the_solution_answers_a_test_in_the_same_way_whatever_ran_before_it(student):
    make = student.stand_ins.answer
    answers = []
    for layers_before in (0, 2):
        student.connection.start_test(0)
        for _ in range(layers_before):
            student.names.new_layer(4)
        student.connection.start_test(1)
        answers.append(repr(make("make", "Layer", (4,), {})))
    assert answers[0] == answers[1]


def test_the_names_of_a_part_stand_before_its_marker():
    solution = (ROOT / "solutions" / BLOCKS / "encoder_block.py").read_text("utf-8")
    names, reached = names_of_parts(solution)
    assert names == {
        "layer_norm": {"layer_norm", "LayerNorm"},
        "feed_forward": {"FeedForward"},
        "post_norm": {"TransformerEncoderBlock"},
        "pre_norm": {"PreNormBlock"},
        "encoder": {"TransformerEncoder"},
    }
    assert reached["feed_forward"] == {"FeedForward"}
    assert reached["pre_norm"] == set().union(*list(names.values())[:4])


# ------------------------------------------------------------------ grades


@pytest.fixture(scope="module")
def course() -> Course:
    return load_course(ROOT)


@pytest.fixture(scope="module")
def grader(course: Course, sandbox: Sandbox) -> Iterator[Grader]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preparation, "load_mistakes", lambda *which: ())
        grader = open_grader(course, sandbox, 7, [HEADS, BLOCKS, COUNTS])
        yield grader
        grader.close()


def graded(grader: Grader, assignment: str, text: str) -> Grade:
    stem = assignment.partition("_")[2]
    return grader.grade(Submission("ada", assignment, (SourceFile(f"{stem}.py", text),)))


def solution_of(course: Course, assignment: str, *edits: tuple[str, str]) -> str:
    text = course.solution_file(course.assignment(assignment)).read_text("utf-8")
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return text


def of_part(grade: Grade, *parts: str) -> list[TestResult]:
    return [test for test in grade.tests if test.part in parts]


ATTENTION_WRONG = ("return weights @ v, weights", "return weights @ v + 1, weights")


def test_a_head_is_right_once_attention_is(course, grader):
    grade = graded(grader, HEADS, solution_of(course, HEADS, ATTENTION_WRONG))
    head = of_part(grade, "head")
    assert sum(test.score for test in head) == sum(test.max_score for test in head)
    followed = [test for test in head if test.outcome == "followed"]
    assert followed and {test.message for test in followed} == {"Right, once `attention` is right."}
    assert any(test.outcome == "failed" for test in of_part(grade, "attention"))
    assert {test.outcome for test in of_part(grade, "mask")} == {"passed"}
    assert Grade.from_json(grade.to_json()) == grade


def test_every_test_follows_what_the_top_of_the_text_made_of_the_wrong_part(course, grader):
    """The head asks for attention only once, when the text is loaded."""
    inline = (
        "torch.softmax((self.query(x) @ self.key(x).mT / self.key.out_features ** 0.5)"
        ".masked_fill(~self.mask[:T, :T], -math.inf), -1) @ self.value(x)"
    )
    text = solution_of(
        course,
        HEADS,
        ATTENTION_WRONG,
        ("        output, _ = attention(", f"        return ONE * {inline}\n        print("),
    )
    one = "ONE = attention(*torch.ones(3, 1, 1, 1))[0].item()"
    head = of_part(graded(grader, HEADS, f"{text}\n{one}\n"), "head")
    assert [test.outcome for test in head].count("followed") > 1
    assert {test.outcome for test in head} == {"passed", "followed"}


def test_the_top_of_a_text_may_hand_its_own_objects_to_the_solution(course, grader):
    """In a new worker, because this one imports `sys`."""
    text = solution_of(
        course,
        COUNTS,
        ("segments + layer_norm", "segments"),
        ("    return counts\n", "    COUNTED.values()\n    return counts\n"),
    )
    counted = "import sys\nCOUNTED = {'base': count_embeddings(BertConfig())}"
    whole = of_part(graded(grader, COUNTS, f"{text}\n{counted}\n"), "bert")
    assert sum(test.score for test in whole) == sum(test.max_score for test in whole)


def test_the_solution_may_be_asked_where_a_whole_package_is_forbidden(course, grader):
    """Asking it uses PyTorch, which the student's code in 06 may not do."""
    edit = ("segments + layer_norm", "segments")
    grade = graded(grader, COUNTS, solution_of(course, COUNTS, edit))
    whole = of_part(grade, "bert")
    followed = [test for test in whole if test.outcome == "followed"]
    assert {test.message for test in followed} == {
        "Right, once `count_embeddings` and `refuse_bad_sizes` are right."
    }
    assert sum(test.score for test in whole) == sum(test.max_score for test in whole)


@pytest.mark.slow
def test_the_mistake_of_a_later_part_is_named_beside_that_of_an_earlier_one(
    course, sandbox, monkeypatch
):
    """Under the wrong attention, no answer of the head is that of a head with one mistake."""
    edits = {
        "scaled_without_the_root": ("math.sqrt(q.shape[-1])", "q.shape[-1]"),
        "shares_returned_by_the_head": ("        return output\n", "        return output, _\n"),
    }
    known = [
        mistake
        for mistake in load_mistakes(course, course.assignment(HEADS))
        if mistake.id in edits
    ]
    monkeypatch.setattr(preparation, "load_mistakes", lambda *which: tuple(known))
    grader = open_grader(course, sandbox, 7, [HEADS])
    try:
        grade = graded(grader, HEADS, solution_of(course, HEADS, *edits.values()))
    finally:
        grader.close()
    for part, mistake in zip(("attention", "head"), edits, strict=True):
        assert {test.mistake for test in of_part(grade, part)} - {None} == {mistake}


def test_an_unwritten_part_earns_nothing_by_the_solution_of_another(course, grader):
    """The stub of the later part is in place: neither what it inherits nor what it names counts."""
    for name in (HEADS, BLOCKS):
        stub = course.stub_file(course.assignment(name)).read_text("utf-8")
        grade = graded(grader, name, stub)
        assert grade.score == 0
        assert not {"passed", "followed"} & {test.outcome for test in grade.tests}


@pytest.mark.slow
def test_a_share_of_zero_turns_it_off_and_others_count_as_much_as_they_say(course, sandbox):
    text = solution_of(course, HEADS, ATTENTION_WRONG)
    scores = {}
    for share in (0.0, 0.5, 1.0):
        other = course.model_copy(update={"follow_through": share})
        grader = open_grader(other, sandbox, 7, [HEADS])
        try:
            grade = graded(grader, HEADS, text)
        finally:
            grader.close()
        scores[share] = grade.score
        assert any(test.outcome == "followed" for test in grade.tests) == (share > 0)
    assert scores[0.0] < scores[0.5] < scores[1.0] < 15
    assert scores[0.5] == pytest.approx((scores[0.0] + scores[1.0]) / 2)


def test_an_import_that_never_ends_gets_less_time_when_it_is_tried_again(
    course, grader, monkeypatch
):
    """Again, because the solution could cure it: the file may call its own endless function when it is imported."""
    asked = []
    request = WorkerConnection.request

    def noted(self, operation, seconds=None, **arguments):
        asked.extend([seconds] if operation == "load" else [])
        return request(
            self,
            operation,
            0.2 if operation == "load" and len(asked) == 1 else seconds,
            **arguments,
        )

    monkeypatch.setattr(WorkerConnection, "request", noted)
    text = solution_of(course, HEADS, ("    scores = ", "    while True: pass\n    scores = "))
    grade = graded(grader, HEADS, f"{text}\nx = torch.ones(1, 1, 1)\nattention(x, x, x)\n")
    full = course.assignment(HEADS).limits.load_seconds
    assert asked[0] == LOADING_FACTOR * full and asked[-1] == SHARE_LEFT[0] * LOADING_FACTOR * full
    assert any(test.outcome == "followed" for test in of_part(grade, "head"))


def readings_of(
    grader: Grader, assignment: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[tuple[WorkerConnection, bool]], Grade]:
    """Return the workers that read a text, each with whether the solution stands for a part, and the grade."""
    graded(grader, assignment, text)  # the stub's answers are known now
    readings: list[tuple[WorkerConnection, bool]] = []
    request = WorkerConnection.request

    def noted(self, operation, seconds=None, **arguments):
        if operation == "load":
            readings.append((self, bool(arguments["stand_ins"])))
        return request(self, operation, seconds, **arguments)

    with monkeypatch.context() as patch:
        patch.setattr(WorkerConnection, "request", noted)
        grade = graded(grader, assignment, text)
    return readings, grade


def workers_with_solution(
    grader: Grader, assignment: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> list[WorkerConnection]:
    """Return the workers that read a text with the solution in place of a part, one for each reading."""
    readings, _ = readings_of(grader, assignment, text, monkeypatch)
    return [connection for connection, with_solution in readings if with_solution]


def is_tried_in_a_used_worker(grader: Grader, text: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a text of 03 is read with the solution in place of a part by a worker that has read it before."""
    readings, grade = readings_of(grader, HEADS, text, monkeypatch)
    assert any(test.outcome == "followed" for test in of_part(grade, "head"))
    ((connection, _),) = [reading for reading in readings if reading[1]]
    return [connection for connection, _ in readings].index(connection) < len(readings) - 1


def test_a_later_part_is_tried_in_the_worker_of_the_repeats(course, grader, monkeypatch):
    text = solution_of(course, HEADS, ATTENTION_WRONG)
    assert is_tried_in_a_used_worker(grader, text, monkeypatch)


@pytest.mark.parametrize("addition", [" + torch.tensor(sys.maxsize % 2)", " + time.time() % 1"])
def test_a_later_part_has_a_new_worker_if_reading_anew_does_not_undo_all(
    course, grader, monkeypatch, addition
):
    """The text could change another module, or its tests answer otherwise when they are repeated."""
    edit = (ATTENTION_WRONG[0], f"return weights @ v{addition}, weights")
    text = f"import {'sys' if 'sys' in addition else 'time'}\n{solution_of(course, HEADS, edit)}"
    assert not is_tried_in_a_used_worker(grader, text, monkeypatch)


def deceived(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the grader believe that a text cannot change more than its own module."""
    request = WorkerConnection.request

    def reaches_nothing(self, operation, seconds=None, **arguments):
        answer = request(self, operation, seconds, **arguments)
        return False if operation == "reaches_outside" else answer

    monkeypatch.setattr(WorkerConnection, "request", reaches_nothing)


ENDS = {
    "the process": "os._exit(1)",
    "the memory": "raise MemoryError",
    "an ordinary error": "raise ValueError",
    "a wrong answer": "return output + 1",
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_what_a_worker_did_before_costs_nothing_with_the_solution(course, grader, monkeypatch, end):
    """The text fails where the wrong part has run before in the same process."""
    deceived(monkeypatch)
    used = "        if hasattr(sys, 'is_used'):\n            "
    text = solution_of(
        course,
        HEADS,
        (ATTENTION_WRONG[0], "sys.is_used = True; return weights @ v + 1, weights"),
        ("        return output\n", f"{used}{end}\n        return output\n"),
    )
    grade = graded(grader, HEADS, f"import os, sys\n{text}")
    head = of_part(grade, "head")
    assert sum(test.score for test in head) == sum(test.max_score for test in head)


def test_a_second_try_hears_the_same_from_the_solution_as_the_first(course, grader, monkeypatch):
    """What fails with the solution in the used worker is tried in one new worker, and in no third one."""
    text = solution_of(
        course,
        BLOCKS,
        ("torch.ones(d_model)", "torch.zeros(d_model)"),
        ("        return self.norm2(", "        return 1 + self.norm2("),
    )
    workers = workers_with_solution(grader, BLOCKS, text, monkeypatch)
    assert len(workers) == 3  # for post_norm the used one and a new one, for encoder another


def test_answers_of_the_solution_are_not_kept_for_a_part_that_has_none(course, grader, monkeypatch):
    """Parts are tried with other names of the solution, so not in the worker that has had them."""
    text = solution_of(
        course,
        COUNTS,
        ("    for name, size in vars(config).items():\n", "    for name, size in ():\n"),
        ("return widen + narrow", "return 1 + widen + narrow"),
    )
    workers = workers_with_solution(grader, COUNTS, text, monkeypatch)
    assert len(set(map(id, workers))) == len(workers) > 1


def test_an_answer_of_the_solution_that_is_too_large_costs_only_its_line(course, grader):
    """The table has 81 million places; a line that asks for it while the text is loaded binds nothing."""
    wrong = ("dtype=torch.bool).tril()", "dtype=torch.bool).triu()")
    text = solution_of(course, HEADS, wrong)
    alone = graded(grader, HEADS, text)
    assert any(test.outcome == "followed" for test in of_part(alone, "head"))
    assert graded(grader, HEADS, f"{text}\nlarge = causal_mask(9000)\n").score == alone.score


def test_an_assertion_in_the_solution_is_an_error_of_the_line_that_asks(course, grader):
    """PyTorch asserts that heads divide a width; the text asks for the opposite while it is loaded."""
    wrong = ("        return self.norm2(", "        return 1 + self.norm2(")
    asks = (
        "try:\n    TransformerEncoderBlock(7, 2, 8)\nexcept Exception as error:\n    kept = error\n"
    )
    grade = graded(grader, BLOCKS, f"{solution_of(course, BLOCKS, wrong)}\n{asks}")
    assert grade.status == "graded"
    assert any(test.outcome == "followed" for test in of_part(grade, "encoder"))


def test_a_text_begins_with_the_same_random_numbers_whenever_it_is_read():
    found = []
    state = torch.default_generator.get_state()
    for seeds in ([], [5]):
        torch.default_generator.set_state(state)
        worker = Worker(ModuleType("begins"))
        for seed in seeds:
            worker.seed(seed)
        for _ in range(2):
            worker.load("import torch\nx = torch.rand(1).item()", "begins.py")
            found.append(worker.module.x)
    assert len(set(found)) == 1
