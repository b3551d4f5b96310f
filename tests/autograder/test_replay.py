"""The replay cache: known exchanges are not computed again, and no grade changes by it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.bridge.outside.replay import Node, ReplayCache, Request, digest_of_seen
from autograder.course.reading import load_course
from autograder.grading.grader import Grader
from autograder.grading.preparation import open_grader
from autograder.records import Grade, SourceFile, Submission
from autograder.suite import session
from autograder.walls.outside.launcher import Sandbox
from autograder.walls.outside.worker_process import WorkerProcess
from tests.autograder.tiny_course import write_files

NAME = "01_doubling"
COURSE = """\
title: Doubling
limits: {call_seconds: 1, load_seconds: 3}
assignments:
  - name: 01_doubling
    title: Doubling
    minutes: 5
    parts:
      - {name: double, title: Twice, points: 4}
"""
SOLUTION = '''\
# %%
import torch


# %%
def double(x):
    """Twice `x`."""
    # TODO: twice x
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION


# %% part="double"
'''
VISIBLE = '''\
import pytest
from autograder import checks


@pytest.mark.part("double")
@pytest.mark.points(1)
def test_one(student):
    """Twice one is two."""
    checks.equal(student.double(1), 2)
'''
HIDDEN = '''\
import random
import secrets

import pytest
import torch
from autograder import checks


@pytest.mark.part("double")
@pytest.mark.points(1)
def test_many(student, reference):
    """Twice a number is twice the number, whatever came before."""
    for _ in range(3):
        x = random.randrange(1000)
        checks.equal(student.double(x), reference.double(x))


@pytest.mark.part("double")
@pytest.mark.points(1)
@pytest.mark.forbids("torch.add")
def test_vectors(student):
    """Vectors are doubled, too."""
    x = torch.randn(5)
    checks.close(student.double(x), x + x, atol=1e-3)


@pytest.mark.part("double")
@pytest.mark.points(1)
def test_unsteady(student):
    """A test that asks something else each time."""
    x = secrets.randbits(40)
    checks.equal(student.double(x), 2 * x)
    checks.close(student.double(torch.ones(2)), 2 * torch.ones(2), atol=1e-3)
'''
TESTS = ["test_one", "test_many", "test_vectors", "test_unsteady"]


@pytest.fixture(scope="module")
def course_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("doubling")
    files = {
        "course.yml": COURSE,
        f"solutions/{NAME}/doubling.py": SOLUTION,
        f"tests/assignments/{NAME}/test_visible.py": VISIBLE,
        f"tests/assignments/{NAME}/test_hidden.py": HIDDEN,
        f"tests/assignments/{NAME}/mistakes.yml": "[]\n",
    }
    return write_files(root, files)


@pytest.fixture(scope="module")
def one_grader(course_folder: Path, sandbox: Sandbox) -> Iterator[Grader]:
    grader = open_grader(load_course(course_folder), sandbox, 0)
    grader.prepare_all()
    yield grader
    grader.close()


@pytest.fixture
def grader(one_grader: Grader) -> Grader:
    """A grader in a new run, with an empty cache."""
    one_grader.reseed(one_grader.run_seed + 1)
    return one_grader


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the tests whose code was executed."""
    names: list[str] = []
    run = session.runtestprotocol

    def noted(item, **options):
        names.append(item.name)
        return run(item, **options)

    monkeypatch.setattr(session, "runtestprotocol", noted)
    return names


def graded(grader: Grader, body: str) -> Grade:
    text = SOLUTION.replace("return 2 * x", body)
    assert body in text
    return grader.grade(Submission("ada", NAME, (SourceFile("doubling.py", text),)))


def outcomes(grade: Grade) -> list[str]:
    return [test.outcome for test in grade.tests]


def test_equal_answers_reuse_the_result_without_running_the_test(grader, ran):
    assert outcomes(graded(grader, "return 2 * x")) == ["passed"] * 4
    assert ran == TESTS
    ran.clear()
    assert outcomes(graded(grader, "return x * 2  # in other words")) == ["passed"] * 4
    assert ran == []


def test_new_answer_runs_the_test(grader, ran):
    graded(grader, "return 2 * x")
    ran.clear()
    wrong_later = "return 2 * x if isinstance(x, int) and x < 2 else 3 * x"
    assert outcomes(graded(grader, wrong_later)) == ["passed", "failed", "failed", "failed"]
    assert set(ran) == set(TESTS[1:])


def test_diverging_answers_do_not_repeat_calls(grader):
    graded(grader, "return 2 * x")
    counting = "double.asked = getattr(double, 'asked', 0) + 1\n    return 2 * x if double.asked != 4 else 0"
    assert outcomes(graded(grader, counting)) == outcomes(graded(grader, counting))
    grade = graded(grader, counting)
    assert grade.tests[0].outcome == "passed"
    assert grade.tests[1].outcome == "passed", (
        "the third answer of the second test is wrong once, not when alone"
    )


def test_nobody_waits_for_a_worker_whose_test_asks_something_else(grader, monkeypatch):
    """It does not end by itself; what it is killed for does not count."""
    kills = []
    end = WorkerProcess.end

    def noted(self, kill=True):
        kills.append(kill)
        return end(self, kill)

    monkeypatch.setattr(WorkerProcess, "end", noted)
    for body in ("return 2 * x", "return 2 * x if isinstance(x, int) else 2 * x + 1e-6"):
        assert graded(grader, body).score == 4
    assert kills and all(kills)


def test_forbidden_name_fails_despite_cached_answers(grader):
    graded(grader, "return 2 * x")
    assert outcomes(graded(grader, "torch.add\n    return 2 * x")) == ["passed"] * 4
    for _ in range(2):
        using = graded(grader, "torch.add(torch.ones(1), 1)\n    return 2 * x")
        assert outcomes(using) == ["passed", "passed", "failed", "passed"]
        assert "ran `torch.add` in this test" in (using.tests[2].message or "")
    assert outcomes(graded(grader, "return 2 * x")) == ["passed"] * 4


def test_flags_do_not_depend_on_earlier_submissions(grader):
    body = "torch.add(torch.ones(1), 1) if isinstance(x, int) else None\n    return 2 * x"
    first = graded(grader, body)
    assert outcomes(first) == ["passed"] * 4
    assert first.flags == graded(grader, body).flags == ()


@pytest.mark.parametrize(
    ("body", "outcome", "words"),
    [
        pytest.param("while x != 1: pass  # a vector is neither one nor not one\n    return 2",
                     "timeout", "no answer within", marks=pytest.mark.slow),
        ("import os; os._exit(3) if x != 1 else None\n    return 2", "crashed", "exit code 3"),
    ],
)  # fmt: skip
def test_crash_or_timeout_during_replay_is_reported_as_usual(grader, body, outcome, words):
    fresh = graded(grader, body)
    graded(grader, "return 2 * x")
    known = graded(grader, body)
    assert outcomes(fresh) == outcomes(known) == ["passed", outcome, "failed", outcome]
    for grade in (fresh, known):
        assert words in (grade.tests[1].message or "") and words in (grade.tests[3].message or "")


def test_another_run_does_not_use_the_cache(grader, ran):
    graded(grader, "return 2 * x")
    grader.reseed(grader.run_seed + 1)
    ran.clear()
    assert outcomes(graded(grader, "return 2 * x")) == ["passed"] * 4
    assert ran == TESTS


def frame(text: bytes) -> tuple[bytearray, bytearray]:
    return bytearray(text), bytearray()


def test_cache_is_emptied_when_it_exceeds_its_size():
    known = ReplayCache(max_bytes=10_000)
    first = known.first_node("test")
    assert isinstance(first, Node)
    known.next_node(first, [Request(bytes(4000))], frame(b"yes"))
    assert known.first_node("test") is first and first.requests
    for answer in range(20):
        known.next_node(first, [], frame(b"%d" % answer))
    assert known.first_node("test") is not first


PLACE = b'["torch.softmax","net.ipynb cell 1",3]'


@pytest.mark.parametrize(
    ("first", "other", "same"),
    [
        (b'"ok":1,"entered":[%s]' % PLACE, b'"ok":1', True),
        (b'"ok":1,"entered":[%s,%s]' % (PLACE, PLACE), b'"ok":1,"entered":[%s]' % PLACE, True),
        (b'"ok":1,"entered":[%s]' % PLACE, b'"ok":2,"entered":[%s]' % PLACE, False),
        (
            b'"ok":{"!table":{"left":1,"entered":[%s]}}' % PLACE,
            b'"ok":{"!table":{"left":1,"entered":[]}}',
            False,
        ),
    ],
    ids=["beside none", "two beside one", "other answers", "in an answer"],
)
def test_forbidden_names_beside_an_answer_do_not_count_and_those_in_it_do(first, other, same):
    digests = {digest_of_seen(b'{"!table":{"id":5,%s}}' % text, b"") for text in (first, other)}
    assert len(digests) == (1 if same else 2)


def test_the_lines_of_an_exception_do_not_count_and_those_in_an_answer_do():
    def digest(text: bytes) -> bytes:
        return digest_of_seen(b'{"!table":{"id":5,%s}}' % text, b"")

    error = b'"error":{"!table":{"text":"%s","frames":[["a.py",%d]]}}'
    assert digest(error % (b"no", 1)) == digest(error % (b"no", 2))
    assert digest(error % (b"no", 1)) != digest(error % (b"yes", 1))
    answer = b'"ok":{"!table":%s}' % (b"{%s}" % error)
    assert digest(answer % (b"no", 1)) != digest(answer % (b"no", 2))


def test_equal_requests_are_stored_once():
    known = ReplayCache(max_bytes=20_000)
    node = known.first_node("test")
    for _ in range(10):
        node = known.next_node(node, [Request(b"?" * 8000)], frame(b"yes"))
    assert known.first_node("test").requests
