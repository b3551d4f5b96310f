"""Hints for known mistakes: code with the mistake unlocks its hint, and no other code does."""

from __future__ import annotations

import datetime
import json
import os
import shutil
import types
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from autograder.authoring import build as building
from autograder.authoring.hints_file import is_current, survey
from autograder.bridge.outside.transcript import Answer, Transcript
from autograder.bridge.shared.calls import Call
from autograder.course.config import Assignment, Course
from autograder.course.mistakes_file import load_mistakes
from autograder.course.reading import load_course
from autograder.selfcheck import locked_hints
from autograder.selfcheck.check import CheckReport, check_target
from autograder.selfcheck.handed_out import FILE_NAME
from autograder.selfcheck.locked_hints import (
    MistakeHint,
    Reading,
    SteadyServer,
    fingerprints,
    named,
    steady_fingerprint,
)
from autograder.text.wording import MANY_CAUSES
from tests.autograder.sampling import sampled
from tests.autograder.waiting import HANGS

COURSE = load_course(Path(__file__).parents[2])
SALT = "a test"
STEP = (
    1 if os.environ.get("HINTS") == "all" else 9
)  # every so-and-so-many-th mistake; all take minutes


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use long limits: some tests of the course compute for seconds, and longer on a busy machine."""
    monkeypatch.setattr("autograder.selfcheck.check.SECONDS", HANGS)
    monkeypatch.setattr("autograder.selfcheck.locked_hints.SECONDS", HANGS)


def answers(*values: object) -> list[Answer]:
    return [Answer("call", "f", value) for value in values]


def hint(name: str, order: int = 0, fails: tuple[str, ...] = ()) -> MistakeHint:
    return MistakeHint(name, name, f"What about {name}?", "f", order, fails)


SAMPLE = ("03_masked_heads",)
each_assignment = pytest.mark.parametrize(
    "assignment", sampled(COURSE.assignments, lambda a: a.name in SAMPLE, lambda a: a.name)
)


# -- the assignments -----------------------------------------------------------------------------


def check_copy(assignment: Assignment, text: str, folder: Path) -> CheckReport:
    """Return the output of `check` for a student with this text."""
    if not folder.exists():
        shutil.copytree(COURSE.release_folder(assignment), folder)
    (folder / f"{assignment.stem}.py").write_text(text)
    return check_target(folder / f"{assignment.stem}.py")


@each_assignment
def test_mistake_that_fails_a_visible_test_unlocks_its_hint(
    assignment: Assignment, tmp_path: Path, record_property: Any
) -> None:
    """Mistakes with equal answers in all their failing visible tests get a question, and nobody's name.

    Only some of the mistakes are tried, unless HINTS=all is set.
    """
    silent, strange, wrong, failing, named = [], [], [], 0, 0
    known = {mistake.id: mistake for mistake in load_mistakes(COURSE, assignment)}
    for mistake in list(known.values())[::STEP]:
        report = check_copy(assignment, mistake.source, tmp_path / assignment.name)
        red = [finding.result for finding in report.findings if finding.result.outcome == "failed"]
        names = {result.mistake for result in red if result.mistake}
        failing += bool(red)
        named += bool(names)
        if red and not any(result.hint for result in red):
            silent.append(mistake.id)
        wrong += [(mistake.id, name) for name in names if known[name].title != mistake.title]
        strange += [
            result.hint
            for result in red
            if result.mistake and result.hint != known[result.mistake].hint
        ]
    record_property("failing", failing)
    record_property("named", named)
    assert silent == [] and strange == [] and wrong == []
    share = 0.7 if STEP == 1 else 0.5  # a sample of nine can be far from the whole
    assert named >= share * failing, f"only {named} of {failing} mistakes get a name"


@each_assignment
def test_stub_unlocks_no_hint(assignment: Assignment, tmp_path: Path) -> None:
    report = check_copy(
        assignment, COURSE.stub_file(assignment).read_text(), tmp_path / assignment.name
    )
    assert report.score == 0
    assert [result.hint for result in report.results if result.hint] == []


@each_assignment
def test_hints_are_not_readable_in_the_file(assignment: Assignment) -> None:
    text = (COURSE.release_folder(assignment) / FILE_NAME).read_text()
    hidden = COURSE.hidden_test_file(assignment).read_text()
    for mistake in load_mistakes(COURSE, assignment):
        assert (
            mistake.hint not in text
        )  # questions of the text, which stand there, may begin like one
        assert mistake.id not in text
    for line in hidden.splitlines():
        if line.startswith("def test_"):
            assert line.removeprefix("def ").partition("(")[0] not in text


ANSWERS_CHANGED = (
    "The engine records other answers than those that the hints of {} were locked with. If that is intended, raise "
    "ANSWERS_VERSION in autograder/authoring/hints_file.py and run `autograder build`."
)


def share_of_locks_derived_again(course: Course, assignment: Assignment) -> float:
    """Return the share of the committed locks that are derived again; near a border, another computer may
    choose another grid.
    """
    committed = json.loads((course.release_folder(assignment) / FILE_NAME).read_text())["tests"]
    derived, _ = survey(course, assignment)
    ours, theirs = (
        {
            (test, index)
            for test, grids in tests.items()
            for locked in grids.values()
            for index in locked
        }
        for tests in (derived, committed)
    )
    return len(ours & theirs) / len(ours | theirs)


@pytest.mark.parametrize(
    "name",
    sampled(
        ["03_masked_heads", "06_bert_param_count", "12_rotary_positions"],
        "12_rotary_positions".__eq__,
    ),
)
def test_committed_hints_match_the_recorded_answers(name: str) -> None:
    assert share_of_locks_derived_again(COURSE, COURSE.assignment(name)) > 0.9, (
        ANSWERS_CHANGED.format(name)
    )


def test_changed_recording_invalidates_the_hints(
    course: Course, adding: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert share_of_locks_derived_again(course, adding) == 1.0
    record = Transcript.record

    def record_otherwise(
        self: Transcript, operation: str, arguments: dict[str, Any], value: Any
    ) -> None:
        record(self, operation.upper(), arguments, value)

    monkeypatch.setattr(Transcript, "record", record_otherwise)
    assert share_of_locks_derived_again(course, adding) == 0.0


@pytest.mark.slow
def test_hints_are_unlocked_despite_rounding_differences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every number of every answer differs by about a millionth, and every mistake still unlocks its hint."""
    random = np.random.default_rng(0)

    class ReadElsewhere(Reading):
        def __init__(self, answer: Answer) -> None:
            super().__init__(answer)
            for piece in self.pieces:
                flat = np.sinh(piece.numbers) * locked_hints.BEND
                off = random.standard_normal((2, len(flat))) * 1e-6
                elsewhere = flat * (1 + off[0]) + off[1] * (flat != 0)
                piece.numbers = np.arcsinh(elsewhere / locked_hints.BEND)

    monkeypatch.setattr(locked_hints, "Reading", ReadElsewhere)
    assignment = COURSE.assignment("03_masked_heads")
    for mistake in load_mistakes(COURSE, assignment):
        report = check_copy(assignment, mistake.source, tmp_path / assignment.name)
        failed = [result for result in report.results if result.outcome == "failed"]
        assert not failed or any(result.hint for result in failed), mistake.id


# -- building ---------------------------------------------------------------------------------------


@pytest.fixture
def course(built_course: Path, tmp_path: Path) -> Course:
    return load_course(shutil.copytree(built_course, tmp_path / "course"))


@pytest.fixture
def adding(course: Course) -> Assignment:
    return course.assignment("01_adding")


def hints(course: Course) -> Path:
    return course.release_folder(course.assignments[0]) / FILE_NAME


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("tests/assignments/01_adding/mistakes.yml", "Do two heaps", "Will two heaps"),
        ("tests/assignments/01_adding/test_visible.py", "push(7), 7", "push(8), 8"),
        ("solutions/01_adding/adding.py", "How do two heaps", "How can two heaps"),
        ("assignments/01_adding/hints.json", '"test_two_and', '"test_one_and'),
    ],
)
def test_check_reports_stale_and_damaged_hints(
    course: Course, adding: Assignment, file: str, old: str, new: str
) -> None:
    path = course.root / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    assert not is_current(course, adding, hints(course).read_text())
    if "mistakes" not in file:
        assert any(
            "hints.json was made from other mistakes" in problem
            for problem in building.check(course)
        )


# -- the student's side -----------------------------------------------------------------------------


def wrong(course: Course, text: str) -> CheckReport:
    file = course.stub_file(course.assignments[0])
    file.write_text(text)
    return check_target(file)


def test_mistake_in_different_code_unlocks_the_hint(course: Course) -> None:
    report = wrong(course, "def add(x, y):\n    return -(y - x)\n\nclass Total:\n    pass\n")
    (finding, _) = report.findings
    assert finding.result.hint == "Do two heaps become smaller when they are put together?"
    assert finding.mistake == "subtracts"
    assert str(finding.place) == "adding.py:1"


def test_missing_or_unreadable_file_gives_no_hints(course: Course) -> None:
    for text in ("no JSON", "[]", '{"schema": 99, "assignment": "01_adding", "tests": {}}'):
        hints(course).write_text(text)
        (finding, _) = wrong(course, "def add(x, y):\n    return x - y\n").findings
        assert finding.result.hint is None


A, B = hint("a", 0), hint("b", 1)


def test_mistakes_with_equal_answers_get_their_questions_without_a_name() -> None:
    failing = {"a part": ["one"]}
    both = [replace(each, fails=("one",)) for each in (B, A)]
    chosen = named({"one": both}, failing, ["one"])["one"]
    assert (chosen.id, chosen.title, chosen.place) == ("", "", "f")
    assert chosen.hint.endswith("What about a? Or: What about b?")
    elsewhere = [both[1], replace(both[0], place="g")]
    assert named({"one": elsewhere}, failing, ["one"])["one"].place == ""
    many = [hint(name, order, fails=("one",)) for order, name in enumerate("abcd")]
    assert named({"one": many}, failing, ["one"])["one"].hint == MANY_CAUSES


# -- fingerprints -----------------------------------------------------------------------------------


def test_fingerprint_ignores_small_noise() -> None:
    generator = torch.Generator().manual_seed(1)
    for _ in range(30):
        table = 10 * torch.randn(4, 7, generator=generator, dtype=torch.float64)
        found = steady_fingerprint(SALT, answers(table), answers(table + 1))
        assert found is not None
        grids, fingerprint = found
        noise = 1e-6 * torch.randn(4, 7, generator=generator, dtype=torch.float64)
        noisy = table + noise * (1 + table.abs())
        assert fingerprints(SALT, answers(noisy), [grids])[grids] == fingerprint


def test_different_answers_have_different_fingerprints() -> None:
    table = torch.arange(6.0)
    different = [
        answers(table), answers(table.double()), answers(table.reshape(2, 3)), answers(table * 1.1),
        answers(table.int()), answers(table.numpy()), answers(table, 1), answers([table]), answers((table,)),
        answers({"a": table}), answers(torch.tensor([0.0, 1, 2, 3, 4, float("nan")])),
        answers(torch.tensor([0.0, 1, 2, 3, 4, float("inf")])), answers(table.to("meta")), answers(2.0), answers(2),
        answers(True), answers("2"), answers(None), answers(torch.float32), answers(table.to(torch.complex64)),
        answers(np.arange(6)),
    ]  # fmt: skip
    one, two = (0,), (0, 0)
    found = [next(iter(fingerprints(SALT, answer, [one, two]).values())) for answer in different]
    assert (
        len(set(found)) == len(found) - 1
    )  # a tensor and an array of the same numbers are the same


def test_answers_close_to_the_correct_ones_have_no_fingerprint() -> None:
    table = torch.arange(6.0, dtype=torch.float64)
    assert steady_fingerprint(SALT, answers(table + 1e-7), answers(table)) is None
    same = steady_fingerprint(SALT, answers(table), answers(table))
    assert same is not None  # the words of an error, perhaps


def test_mistake_that_ends_at_a_check_is_compared_with_as_many_right_answers() -> None:
    """That the test stopped after the first answer is no mark of a mistake: others stop there, too."""
    table = torch.arange(6.0, dtype=torch.float64)
    assert steady_fingerprint(SALT, answers(table + 1e-7), answers(table, 1)) is None
    assert steady_fingerprint(SALT, answers(table + 1), answers(table, 1)) is not None


def test_each_answer_has_a_grid_of_its_own() -> None:
    """Of many numbers some lie near a border of each fine grid; the other answers keep theirs."""
    many = torch.linspace(-3, 3, 64, dtype=torch.float64)
    found = steady_fingerprint(SALT, answers(torch.ones(2), many), answers(0, 1))
    assert found is not None
    (first, second), _ = found
    assert first == 0 < second


def gradients(*values: object) -> list[Answer]:
    return [Answer("backward", "f", list(values))]


def test_order_of_gradients_does_not_matter() -> None:
    weight, bias = torch.arange(6.0).reshape(2, 3), torch.tensor([0.3, 0.7])
    found = steady_fingerprint(SALT, gradients(weight, bias, None))
    assert found is not None
    grids, fingerprint = found
    for others, same in (
        ([bias, None, weight], True), ([weight, bias], False), ([weight, bias + 1, None], False),
    ):  # fmt: skip
        again = fingerprints(SALT, gradients(*others), [grids])[grids]
        assert (again == fingerprint) is same
    assert steady_fingerprint(SALT, gradients(weight, bias), gradients(bias, weight)) is not None


# -- fixed conditions -------------------------------------------------------------------------------


def making_a_model(*args: Any) -> Call:
    return Call([None, ["M"]], args, {}, sync=[], grad=True, wanted=[], modules=[])


def test_recorded_weights_do_not_depend_on_the_order_of_draws() -> None:
    first, second = types.ModuleType("one"), types.ModuleType("two")
    exec(
        "import torch\nfrom torch import nn\nclass M(nn.Module):\n  def __init__(self):\n    super().__init__()\n"
        "    self.a = nn.Linear(3, 4)\n    self.b = nn.LayerNorm(4)",
        first.__dict__,
    )
    exec(
        "import torch\nfrom torch import nn\nclass M(nn.Module):\n  def __init__(self):\n    super().__init__()\n"
        "    torch.randn(99)\n    self.b = nn.LayerNorm(4)\n    self.a = nn.Linear(3, 4)",
        second.__dict__,
    )
    made = []
    for module in (first, second):
        server = SteadyServer(module)
        server.seed(3)
        made.append(server.perform(making_a_model()).result)
    assert torch.equal(made[0].a.weight, made[1].a.weight)
    assert torch.equal(made[0].b.weight, torch.ones(4)), "what was set on purpose stays"


def test_weights_that_are_not_random_are_kept() -> None:
    module = types.ModuleType("one")
    exec(
        "from torch import nn\nclass M(nn.Module):\n  def __init__(self, values):\n    super().__init__()\n"
        "    self.values = nn.Parameter(values.clone())",
        module.__dict__,
    )
    server = SteadyServer(module)
    server.seed(3)
    values = torch.tensor([1.0, -2.0])
    made = server.perform(making_a_model(values)).result
    assert torch.equal(made.values, values)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (1 + 2j, 1 + 3j),
        (np.array([1 + 2j]), np.array([1 + 3j])),
        (Fraction(1, 2), Fraction(1, 3)),
        (Decimal("0.1"), Decimal("0.2")),
        (datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)),
    ],
    ids=str,
)
def test_different_answers_of_every_kind_have_different_keys(ours, theirs):
    first, other = (locked_hints.Reading(Answer("call", "f", [value])) for value in (ours, theirs))
    assert first.exactly() != other.exactly()
    transcripts = [Transcript([Answer("call", "f", [value])]) for value in (ours, theirs, ours)]
    assert not transcripts[0].same_as(transcripts[1]) and transcripts[0].same_as(transcripts[2])
