"""Grading as a whole: real and broken submissions of a real assignment, the journal, and a class of many.

Whatever a submission does costs its own points and nobody else's; whatever happens to the machine costs nobody any.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
from typer.testing import CliRunner

from autograder.cli import app
from autograder.course.config import Course, load_course
from autograder.course.mistakes import Mistake, load_mistakes
from autograder.course.notebook import to_notebook
from autograder.gradebook.journal import Journal, read_journal
from autograder.grading import prepared, suite_run
from autograder.grading import run as cohort
from autograder.grading.grader import Grader
from autograder.grading.pool import Plan
from autograder.grading.run import RunSummary, grade_class
from autograder.protocol import wire
from autograder.records import Grade, InfrastructureError, SourceFile, Submission
from autograder.sandbox.launcher import Sandbox
from tests.autograder.sampling import sampled
from tests.autograder.test_sandbox import descendants, living
from tests.autograder.tiny_course import ALTERNATIVE, write_tiny_course
from tests.autograder.waiting import HANGS, wait_until

ROOT = Path(__file__).resolve().parents[2]
NAME = "03_masked_heads"
FULL = 15.0
TINY = "01_adding"


def hurried(course: Course, **limits: float) -> Course:
    """The same course with other limits, so that nobody waits long for those who never answer."""
    assignments = tuple(
        a.model_copy(update={"limits": a.limits.model_copy(update=limits)}) for a in course.assignments
    )
    return course.model_copy(update={"assignments": assignments})


@pytest.fixture(scope="module")
def course() -> Course:
    return hurried(load_course(ROOT), call_seconds=1.5, load_seconds=3, memory_mb=512)


@pytest.fixture(scope="module")
def grader(course: Course) -> Iterator[Grader]:
    """A grader that knows two of the many mistakes: to try them all takes longer than all else here."""

    def two_mistakes(*which: object) -> list[Mistake]:
        return [m for m in load_mistakes(*which) if m.id in ("scaled_without_the_root", "mask_transposed")]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepared, "load_mistakes", two_mistakes)
        grader = Grader(course, Sandbox(hidden=course.hidden_folders), 2026, [NAME])
        yield grader
        grader.close()


@pytest.fixture(scope="module")
def solution(course: Course) -> str:
    return course.solution_file(course.assignment(NAME)).read_text("utf-8")


@pytest.fixture(scope="module")
def stub(course: Course) -> str:
    return course.stub_file(course.assignment(NAME)).read_text("utf-8")


@pytest.fixture
def grade(grader: Grader) -> Callable[..., Grade]:
    def of(*files: str | SourceFile) -> Grade:
        sources = tuple(f if isinstance(f, SourceFile) else SourceFile("masked_heads.py", f) for f in files)
        return grader.grade(Submission("ada", NAME, sources))

    return of


def of_part(grade: Grade, part: str) -> float:
    return sum(test.score for test in grade.tests if test.part == part)


def messages(grade: Grade) -> str:
    return "\n".join(test.message for test in grade.tests if test.message)


def outcomes(grade: Grade) -> set[str]:
    return {test.outcome for test in grade.tests if test.outcome != "skipped"}


def same(grade: Grade) -> dict:
    """All of a grade that may not depend on when and where it was made."""
    return {**json.loads(grade.to_json()), "seconds": None}


# ------------------------------------------------------------------ what students hand in


def test_the_solution_has_full_marks(grade, solution):
    found = grade(solution)
    assert (found.status, found.score, found.max_score) == ("graded", FULL, FULL)
    assert {test.outcome for test in found.tests} == {"passed"} and not messages(found)
    assert found.isolation != "unsafe" and found.seed == 2026


def test_the_stub_has_none_and_says_what_is_missing(grade, stub):
    found = grade(stub)
    assert (found.status, found.score) == ("graded", 0)
    for name in ("causal_mask", "attention", "Head.__init__"):
        line = 1 + next(
            n for n, text in enumerate(stub.split("\n")) if f'"{name} is not written yet.' in text
        )
        assert f"`{name}` is not written yet (line {line})." in messages(found)


def test_a_syntax_error_is_graded_and_shown(grade, solution):
    broken = solution.replace("scores = q @ k", "scores = = q @ k")
    line = 1 + broken[: broken.index("= = q")].count("\n")
    found = grade(broken)
    assert (found.status, found.score) == ("graded", 0)
    assert f"the file stopped in line {line} with SyntaxError" in messages(found)


def test_what_is_finished_counts(grade, solution, stub):
    finished = solution[solution.index("def causal_mask") : solution.index('# %% part="mask"')]
    unfinished = stub[stub.index("def causal_mask") : stub.index('# %% part="mask"')]
    found = grade(stub.replace(unfinished, finished))
    assert (found.score, of_part(found, "mask")) == (3, 3)
    assert "`attention` is not written yet" in messages(found)


def test_a_missing_function_costs_its_own_tests(grade, solution):
    found = grade(solution.replace("def attention(", "def attend(").replace("= attention(", "= attend("))
    assert "There is no `attention` in the submission." in messages(found)
    assert (of_part(found, "mask"), of_part(found, "attention"), of_part(found, "head")) == (3, 0, 5)


def test_a_file_that_stops_in_the_middle_keeps_what_came_before(grade, solution):
    found = grade(solution.replace("class Head(", "raise KeyError('here')\n\nclass Head("))
    assert found.score == 10
    assert "There is no `Head`: the file stopped in line" in messages(found)


def test_a_finished_layer_of_pytorch_is_no_answer(grade, solution):
    shortcut = solution.replace(
        "return weights @ v, weights",
        "return nn.functional.scaled_dot_product_attention(q, k, v, mask), weights",
    )
    found = grade(shortcut)
    assert (of_part(found, "mask"), of_part(found, "attention")) == (3, 0)
    assert "uses `torch.nn.functional.scaled_dot_product_attention`" in messages(found)


def test_a_notebook_has_the_same_grade(grade, course, solution):
    text = nbformat.writes(to_notebook(course.assignment(NAME), solution))
    found = grade(SourceFile("masked_heads.ipynb", text))
    assert (found.score, found.problem) == (FULL, None)


def test_an_empty_file_and_an_unknown_assignment(grade, grader):
    assert (grade("").score, grade("").status) == (0, "graded")
    found = grader.grade(Submission("ada", "99_nothing\x1b[31m", (SourceFile("a.py", ""),)))
    assert (found.status, found.score) == ("refused", 0)
    assert "no assignment" in found.problem and "\x1b" not in found.problem


# ------------------------------------------------------------------ two files


def two(python: str, notebook_cells: list[str]) -> tuple[SourceFile, SourceFile]:
    cells = [{"cell_type": "code", "source": text, "metadata": {}, "outputs": []} for text in notebook_cells]
    text = json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})
    return SourceFile("masked_heads.py", python), SourceFile("masked_heads.ipynb", text)


def test_two_files_that_agree_are_one(grade, solution):
    assert grade(*two(solution, [solution, "check('mask')"])).score == FULL


def test_of_two_files_the_changed_one_counts(grade, solution, stub):
    assert grade(*two(stub, [solution])).score == FULL
    assert grade(*two(solution, [stub])).score == FULL
    assert grade(*two(stub, [stub])).score == 0


def test_two_different_files_are_refused(grade, solution):
    found = grade(*two(solution, [solution.replace(".tril()", ".triu()")]))
    assert (found.status, found.score) == ("refused", 0)
    assert "masked_heads.ipynb and masked_heads.py hold different code" in found.problem


def test_two_files_of_which_one_cannot_be_read(grade, solution):
    found = grade(SourceFile("masked_heads.py", solution), SourceFile("masked_heads.ipynb", "{"))
    assert found.status == "refused" and "cannot be read" in found.problem


# ------------------------------------------------------------------ disasters

# (what the disaster stands in for, the text that replaces its first line, points that are left, a sentence)
IN_THE_MASK = "return torch.ones(T, T, dtype=torch.bool).tril()"
IN_ATTENTION = "scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])"
EAT = "hoard = []\n    while True: hoard.append(bytearray(1 << 20))"
NULL = "import ctypes; ctypes.string_at(0)"
DISASTERS = {
    "endless loop at import": (
        "import math",
        "while True: pass",
        0,
        "gave no answer within",
    ),
    "exit at import": ("import math", "import sys; sys.exit(0)", 0, "the file stopped in line"),
    "crash at import": ("import math", "import os; os._exit(0)", 0, "ended the process"),
    "endless loop": (
        IN_THE_MASK,
        "while True: pass",
        7,
        "gave no answer within",
    ),
    "sleeping": (
        IN_THE_MASK,
        "import time; time.sleep(10**6)",
        7,
        "gave no answer within 7.5 seconds on the clock",
    ),
    "os._exit": (IN_ATTENTION, "import os; os._exit(3)", 4.0, "ended the process that ran it (exit code 3)"),
    "abort": (IN_ATTENTION, "import os; os.abort()", 4.0, "ended the process that ran it (signal "),
    "segmentation fault": (IN_ATTENTION, NULL, 4.0, "ended the process that ran it (signal 11)"),
    "too much memory": (IN_ATTENTION, EAT, 4.0, "Your code raised a MemoryError"),
    "a huge tensor": (IN_ATTENTION, "return torch.ones(10**11)", 4.0, "Your code raised a RuntimeError"),
    "too much recursion": (
        IN_ATTENTION,
        "return attention(q, k, v)",
        4.0,
        "Your code raised a RecursionError",
    ),
    "output without end": (IN_THE_MASK, "while True: print('x' * 10**6)", 7, "gave no answer within"),
    "much output": (IN_THE_MASK, "print('x' * 10**7); " + IN_THE_MASK, FULL, ""),
    "sys.exit": (IN_ATTENTION, "import sys; sys.exit(0)", 4.0, "Your code raised a SystemExit"),
    "pytest.skip": (IN_ATTENTION, "import pytest; pytest.skip('no')", 4.0, "Your code raised a Skipped"),
    "pytest.exit": (IN_ATTENTION, "import pytest; pytest.exit('done', 0)", 4.0, "Your code raised an Exit"),
    "interrupt": (IN_ATTENTION, "raise KeyboardInterrupt", 4.0, "Your code raised a KeyboardInterrupt"),
}
SAMPLE = ("exit at import", "endless loop", "os._exit", "too much memory", "much output", "pytest.exit")


@pytest.mark.parametrize("name", sampled(DISASTERS, SAMPLE.__contains__))
def test_a_disaster_costs_only_itself(grade, solution, name):
    place, code, points, sentence = DISASTERS[name]
    assert solution.count(place) == 1
    found = grade(solution.replace(place, code))
    assert (found.status, found.score) == ("graded", points), messages(found)
    assert sentence in messages(found)
    assert grade(solution).score == FULL


def test_what_exceptions_say_commands_nobody(grade, solution):
    text = r"\x1b[2J\x1b]0;owned\x07\n::error::hi\n  ::set-output name=score::100\r::warning::\n##[add-mask]x\u202e\0"
    found = grade(solution.replace(IN_THE_MASK, f'raise ValueError("{text}")'))
    said = messages(found)
    assert "Your code raised a ValueError" in said and "hi" in said
    assert all(character.isprintable() or character in "\n\u200b" for character in said)
    assert not any(line.lstrip().startswith("::") for line in said.split("\n")) and "##[" not in said


LEAKS = {
    "an exception's name": 'raise type("SECRET" + "x" * 9, (Exception,), {})()',
    "an exception's text": 'raise ValueError("SECRET")',
    "a function's name": "exec('def f(): raise NotImplementedError'); code = locals()['f'].__code__; "
    "exec(code.replace(co_name='SECRET', co_filename='masked_heads.py'))",
    "a line that was never there": "import linecache; linecache.cache['masked_heads.py'] = "
    "(9, None, ['SECRET\\n'] * 999, 'masked_heads.py'); raise ValueError",
}


@pytest.mark.parametrize("way", LEAKS)
def test_students_cannot_write_inputs_of_hidden_tests_into_their_feedback(grade, grader, solution, way):
    hidden = {test.name for test in grader.tests[NAME] if test.hidden}
    found = grade(
        solution.replace(IN_ATTENTION, f"if q.dtype == torch.float64: {LEAKS[way]}\n    {IN_ATTENTION}")
    )
    told = [test.message for test in found.tests if test.outcome == "failed" and test.name in hidden]
    assert any("Your code raised" in message or "not written" in message for message in told)
    leaked = [message for message in told if "SECRET" in message.replace(LEAKS[way], "")]
    assert leaked == []


def test_hidden_tests_quote_the_students_own_lines(grade, grader, solution):
    """In a .py and in a notebook, with the names of the student's own exceptions."""
    own = "class TooDouble(ValueError): pass\nimport math"
    text = solution.replace("import math", own, 1).replace(
        IN_ATTENTION, f"if q.dtype == torch.float64: raise TooDouble('é')\n    {IN_ATTENTION}"
    )
    hidden = {test.name for test in grader.tests[NAME] if test.hidden}
    for file in (SourceFile("masked_heads.py", text), two("", ["x = 1", text])[1]):
        told = [t.message for t in grade(file).tests if t.outcome == "failed" and t.name in hidden]
        where = "line 1" if file.name.endswith(".py") else "of cell 2"
        assert told and all("Your code raised a TooDouble (line" in message for message in told[:3])
        assert all(where in message for message in told)
        assert "if q.dtype == torch.float64: raise TooDouble('é')" in told[0]


# ------------------------------------------------------------------ a second look at failures


def test_state_that_leaks_from_test_to_test_costs_nothing(grade, solution):
    forgetful = solution.replace(
        IN_THE_MASK, f"calls.append(T)\n    if len(calls) > 9: raise RuntimeError\n    {IN_THE_MASK}"
    )
    assert grade(forgetful.replace("import math", "import math\ncalls = []")).score == FULL


def test_a_failure_that_repeats_counts(grade, solution):
    assert of_part(grade(solution.replace(".tril()", ".triu()")), "mask") < 3


def test_all_grades_of_one_run_are_the_same(grade, grader, solution):
    wrong = solution.replace("math.sqrt(q.shape[-1])", "q.shape[-1]")
    first = grade(wrong)
    assert same(first) == same(grade(wrong)) and 0 < first.score < FULL
    assert {test.mistake for test in first.tests if test.mistake} == {"scaled_without_the_root"}


# ------------------------------------------------------------------ the machine fails


def workers(sandbox: Sandbox, before: set[int]) -> set[int]:
    return living(descendants(sandbox._servers[()].process.pid) - before)


@pytest.mark.parametrize(
    ("when", "reply"), [("import math", 2), (IN_ATTENTION, 5)], ids=["loading", "testing"]
)
def test_a_worker_that_somebody_kills_is_replaced(grade, grader, solution, monkeypatch, when, reply):
    """It is killed while the grader waits for its reply of that number; the code naps, to be still at work."""
    sandbox = grader.workers.sandbox
    idle = descendants(sandbox._servers[()].process.pid)
    receive, number, killed = wire.receive_frame, itertools.count(1), []

    def kill_and_receive(*arguments):
        if next(number) == reply:
            for pid in workers(sandbox, idle):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
        return receive(*arguments)

    monkeypatch.setattr(wire, "receive_frame", kill_and_receive)
    indent = "    " if when is IN_ATTENTION else ""
    found = grade(solution.replace(when, f"import time; time.sleep(0.2)\n{indent}{when}"))
    assert killed and found.score == FULL, messages(found)


def test_a_fork_server_that_somebody_kills_is_started_again(grade, grader, solution):
    sandbox = grader.workers.sandbox
    wrong = solution.replace(".tril()", ".triu()")
    expected = grade(wrong)
    for pid in descendants(sandbox._servers[()].process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert same(grade(wrong)) == same(expected)


def test_a_fork_server_killed_during_a_test_costs_nothing(grade, grader, solution):
    sandbox = grader.workers.sandbox
    server = sandbox._servers[()].process.pid
    slow = solution.replace(IN_ATTENTION, f"import time; time.sleep(0.2)\n    {IN_ATTENTION}")
    runs = suite_run.SuiteRun._once
    killed = []

    def once(self, test, fresh):
        if test.name == "test_attention_with_a_mask" and not killed:
            killed.append(os.kill(server, signal.SIGKILL))
        return runs(self, test, fresh)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suite_run.SuiteRun, "_once", once)
        found = grade(slow)
    assert killed and found.score == FULL, messages(found)
    assert sandbox._servers[()].process.pid != server


def test_a_machine_that_keeps_failing_is_never_a_score(grade, solution, monkeypatch):
    def fail(*_: object) -> None:
        raise InfrastructureError("The disk is full.")

    monkeypatch.setattr("autograder.proxy.worker_connection.WorkerConnection.exchange", fail)
    with pytest.raises(InfrastructureError, match="disk is full"):
        grade(solution)


def test_a_machine_that_fails_during_tests_is_never_a_score(grade, monkeypatch):
    monkeypatch.setattr(
        "autograder.suite.session.SuiteSession.run", lambda *_: InfrastructureError("The disk is full.")
    )
    with pytest.raises(InfrastructureError, match="disk is full"):
        grade("x = 1")


# ------------------------------------------------------------------ the journal and a class

WRONG = ALTERNATIVE.replace("sum((a, b))", "a - b")


@pytest.fixture
def tiny(tmp_path: Path) -> Course:
    (tmp_path / "course").mkdir()
    return load_course(write_tiny_course(tmp_path / "course"))


def handed_in(text: str, *students: str) -> list[Submission]:
    return [Submission(name, TINY, (SourceFile("adding.py", text),)) for name in students]


def class_of(count: int) -> list[Submission]:
    """Right, wrong and hopeless ones by turns; each of them different."""
    texts = [ALTERNATIVE, WRONG, "x = 1", ALTERNATIVE.replace("def push", "def pull"), "x = = 1"]
    return [s for n in range(count) for s in handed_in(f"{texts[n % 5]}\n# {n}\n", f"student{n:02}")]


def plan_of(course: Course, jobs: int = 1) -> Plan:
    return Plan(course, run_seed=7, jobs=jobs)


def scores(journal: Journal) -> dict[str, float]:
    return {student: grade.score for (student, _), grade in journal.latest.items()}


def lines(folder: Path) -> list[str]:
    return [grade.student for grade in read_journal(folder / "grades.jsonl")]


def run(plan: Plan, submissions: list[Submission], folder: Path, **options: bool) -> RunSummary:
    with Journal(folder) as journal:
        return grade_class(plan, submissions, journal, lambda _: None, **options)


def test_a_run_goes_on_after_half_a_line(tiny, tmp_path):
    out, submissions = tmp_path / "grades", class_of(4)
    assert run(plan_of(tiny), submissions[:2], out).graded == 2
    journal = out / "grades.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-30])  # killed while it wrote the second line
    first = lines(out)
    assert first == ["student00"]
    outcome = run(plan_of(tiny), submissions, out)
    assert (outcome.graded, outcome.unchanged, outcome.failures) == (3, 1, [])
    with Journal(out) as journal:
        assert scores(journal) == {"student00": 10, "student01": 6, "student02": 0, "student03": 4}
    assert run(plan_of(tiny), submissions, out).unchanged == 4


def test_what_is_graded_again(tiny, tmp_path):
    """A text that changed, a suite that changed, or all with `regrade`; and nothing else."""
    out, submissions = tmp_path / "grades", class_of(2)
    run(plan_of(tiny), submissions, out)
    changed = [submissions[0], *handed_in(ALTERNATIVE, "student01")]
    outcome = run(plan_of(tiny), changed, out)
    assert (outcome.graded, outcome.unchanged) == (1, 1)
    with Journal(out) as journal:
        assert scores(journal) == {"student00": 10, "student01": 10}
    assert run(plan_of(tiny), changed, out, regrade=True).graded == 2
    hidden = tiny.hidden_test_file(tiny.assignments[0])
    hidden.write_text(hidden.read_text().replace("-99, 99", "-98, 98"))
    outcome = run(plan_of(tiny), changed, out)
    assert (outcome.graded, outcome.unchanged) == (2, 0)


def test_a_grader_that_is_killed_loses_no_submission(tiny, tmp_path):
    submissions = class_of(12)
    out, told, killed = tmp_path / "grades", [], []

    def tell(grade: Grade | None) -> None:
        told.append(grade)
        if len(told) == 3:
            victim = multiprocessing.active_children()[0]
            killed.append(os.kill(victim.pid, signal.SIGKILL))

    with Journal(out) as journal:
        outcome = grade_class(plan_of(tiny, jobs=2), submissions, journal, tell)
    assert killed and (outcome.graded, outcome.failures) == (12, [])
    assert sorted(lines(out)) == [s.student for s in submissions]
    with Journal(out) as journal:
        assert list(scores(journal)) and [scores(journal)[f"student{n:02}"] for n in range(5)] == [
            10,
            6,
            0,
            4,
            0,
        ]


CLASS = """
import sys
from pathlib import Path
from autograder.course.config import load_course
from autograder.gradebook.journal import Journal
from autograder.grading.run import grade_class
from tests.autograder.test_grading import class_of, plan_of

if __name__ == "__main__":
    told, stop_after = [], int(sys.argv[3])

    def tell(grade):
        told.append(grade)
        if len(told) == stop_after:
            print("stopped", flush=True)
            sys.stdin.read()

    with Journal(Path(sys.argv[2])) as journal:
        grade_class(plan_of(load_course(sys.argv[1]), jobs=2), class_of(10), journal, tell)
"""


def class_process(tmp_path: Path, course: Course, out: Path, stop_after: int = 0) -> subprocess.Popen:
    """A class of ten that is graded in a process of its own; it stops for good after so many grades."""
    script = tmp_path / "class.py"
    script.write_text(CLASS)
    command = [sys.executable, str(script), str(course.root), str(out), str(stop_after)]
    temporary = out.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    more = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "TMPDIR": str(temporary)}
    return subprocess.Popen(
        command, env={**os.environ, **more}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


@pytest.mark.slow
def test_a_class_killed_in_the_middle_leaves_nothing_and_goes_on(tiny, tmp_path):
    out = tmp_path / "killed"
    with class_process(tmp_path, tiny, out, stop_after=2) as grading_class:
        assert grading_class.stdout.readline() == b"stopped\n"
        family = descendants(grading_class.pid)
        assert len(family) > 4
        grading_class.kill()
    assert wait_until(lambda: living(family) == set()), living(family)
    assert list((tmp_path / "temporary").iterdir()) == []
    assert len(lines(out)) == 2
    for folder in (out, tmp_path / "whole"):
        with class_process(tmp_path, tiny, folder) as grading_class:
            assert grading_class.wait(HANGS) == 0
    assert sorted(lines(out)) == [f"student{n:02}" for n in range(10)]
    by_student = [
        sorted((same(grade) for grade in read_journal(folder / "grades.jsonl")), key=lambda g: g["student"])
        for folder in (out, tmp_path / "whole")
    ]
    assert by_student[0] == by_student[1]


def grade_command(course: Course, folder: Path, output: Path):
    words = ("grade", folder, "--output", output, "--course", course.root)
    return CliRunner().invoke(app, [*map(str, words)])


@pytest.mark.parametrize("below", [".", "deep/down"])
def test_a_place_that_cannot_be_written_is_told_before_the_work(tiny, tmp_path, below):
    (tmp_path / "class" / "ada").mkdir(parents=True)
    (tmp_path / "class" / "ada" / "adding.py").write_text(ALTERNATIVE)
    taken = tmp_path / "taken"
    taken.write_text("mine")
    done = grade_command(tiny, tmp_path / "class", taken / below)
    sentence = f"{taken / below} cannot be written: {taken} is not a folder.\n"
    assert (done.exit_code, done.stderr, taken.read_text()) == (2, sentence, "mine")


def test_who_stops_a_class_hears_where_the_grades_are(tiny, tmp_path, monkeypatch):
    (tmp_path / "class" / "ada").mkdir(parents=True)
    (tmp_path / "class" / "ada" / "adding.py").write_text(ALTERNATIVE)
    (out := tmp_path / "my grades").mkdir()

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cohort, "grade_class", stop)
    stopped = "Stopped. Finished work is kept; run the same command again to continue."
    done = grade_command(tiny, tmp_path / "class", out)
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (130, stopped)
    with Journal(out) as journal:
        journal.append(Grade("ada", TINY, "graded", 1.0, 2.0))
    with (out / "grades.jsonl").open("a") as file:
        file.write('{"a": 1}\n')
    done = grade_command(tiny, tmp_path / "class", out)
    shows = f"`autograder report '{out}'` shows the grades so far."
    assert done.exit_code == 130
    assert done.stderr.splitlines()[-1].startswith(f"{stopped} {shows}")
    assert f"{out / 'grades.jsonl'}: line 2 cannot be read; the grade in it is missing." in done.stderr


def test_no_test_is_the_first_to_import_what_gradients_need():
    """A deadline in the middle of that import made every later gradient test of the process fail."""
    code = """
import sys
from autograder.grading.prepared import import_for_gradients
import_for_gradients()
before = set(sys.modules)
import torch
x = torch.ones(2, requires_grad=True)
torch.autograd.grad((x * x).sum(), x, create_graph=True)
(x * x).sum().backward()
for optimiser in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
    optimiser([x], lr=0.1).step()
print(sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
