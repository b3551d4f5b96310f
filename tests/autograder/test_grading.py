"""Grading of real and broken submissions of a real assignment, the journal, and a run of many submissions.

A submission can lose only its own points, and a failure of the machine loses none.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
import torch
from click.testing import Result
from typer.testing import CliRunner

from autograder.bridge.outside.worker_connection import WorkerConnection
from autograder.bridge.shared import wire
from autograder.cli import app
from autograder.cli.instructors import AS_ROOT
from autograder.course.config import Course
from autograder.course.mistakes import Mistake
from autograder.course.mistakes_file import load_mistakes
from autograder.course.notebook import to_notebook
from autograder.course.reading import load_course
from autograder.gradebook import texts
from autograder.gradebook.journal import Journal, Reading
from autograder.grading import preparation, suite_run
from autograder.grading.follow_through import FollowThrough
from autograder.grading.grader import Grader
from autograder.grading.preparation import open_grader
from autograder.records import Grade, InfrastructureError, SourceFile, Submission
from autograder.runs.pool import Plan
from autograder.runs.private_folder import PREFIX
from autograder.runs.run import RunSummary, grade_class, ungraded
from autograder.walls.outside.launcher import Sandbox
from tests.autograder.at_hand import graders_at_hand
from tests.autograder.sampling import sampled
from tests.autograder.test_sandbox import descendants, living
from tests.autograder.tiny_course import ALTERNATIVE, COURSE, write_tiny_course
from tests.autograder.waiting import HANGS, wait_until

ROOT = Path(__file__).resolve().parents[2]
NAME = "03_masked_heads"
FULL = 15.0
TINY = "01_adding"


def hurried(course: Course, **limits: float) -> Course:
    """The same course with short limits, for endless loops."""
    assignments = tuple(
        a.model_copy(update={"limits": a.limits.model_copy(update=limits)})
        for a in course.assignments
    )
    return course.model_copy(update={"assignments": assignments})


@pytest.fixture(scope="module")
def course() -> Course:
    return hurried(load_course(ROOT), call_seconds=1.0, load_seconds=2, memory_mb=512)


@pytest.fixture(scope="module")
def grader(course: Course) -> Iterator[Grader]:
    """A grader with only two of the mistakes; trying all of them would take longer than all other tests."""

    def two_mistakes(*which: object) -> list[Mistake]:
        return [
            m
            for m in load_mistakes(*which)
            if m.id in ("scaled_without_the_root", "mask_transposed")
        ]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preparation, "load_mistakes", two_mistakes)
        grader = open_grader(course, Sandbox(hidden=course.hidden_folders), 2026, [NAME])
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
        sources = tuple(
            f if isinstance(f, SourceFile) else SourceFile("masked_heads.py", f) for f in files
        )
        return grader.grade(Submission("ada", NAME, sources))

    return of


def of_part(grade: Grade, part: str) -> float:
    return round(sum(test.score for test in grade.tests if test.part == part), 6)


def messages(grade: Grade) -> str:
    return "\n".join(test.message for test in grade.tests if test.message)


def same(grade: Grade) -> dict:
    """Return the fields of a grade that must not depend on when and where it was made."""
    return {**json.loads(grade.to_json()), "seconds": None, "test_seconds": None}


# ------------------------------------------------------------------ what students hand in


def test_the_solution_has_full_marks(grade, solution):
    found = grade(solution)
    assert (found.status, found.score, found.max_score) == ("graded", FULL, FULL)
    assert {test.outcome for test in found.tests} == {"passed"} and not messages(found)
    assert found.isolation != "unsafe" and found.seed == 2026


def test_stub_scores_zero_and_names_the_missing_functions(grade, stub):
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


def test_missing_function_fails_only_its_own_tests(grade, solution):
    found = grade(
        solution.replace("def attention(", "def attend(").replace("= attention(", "= attend(")
    )
    assert "There is no `attention` in the submission." in messages(found)
    assert (of_part(found, "mask"), of_part(found, "attention"), of_part(found, "head")) == (
        3,
        0,
        5,
    )


def test_forbidden_layer_of_pytorch_scores_no_points(grade, solution):
    shortcut = solution.replace(
        "return weights @ v, weights",
        "return nn.functional.scaled_dot_product_attention(q, k, v, mask), weights",
    )
    found = grade(shortcut)
    assert (of_part(found, "mask"), of_part(found, "attention")) == (3, 0)
    assert "ran `torch.nn.functional.scaled_dot_product_attention` in this test" in messages(found)


def test_notebook_has_the_same_grade_as_the_script(grade, course, solution):
    text = nbformat.writes(to_notebook(course.assignment(NAME), solution))
    found = grade(SourceFile("masked_heads.ipynb", text))
    assert (found.score, found.problem) == (FULL, None)


# ------------------------------------------------------------------ two files


def two(python: str, notebook_cells: list[str]) -> tuple[SourceFile, SourceFile]:
    cells = [
        {"cell_type": "code", "source": text, "metadata": {}, "outputs": []}
        for text in notebook_cells
    ]
    text = json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})
    return SourceFile("masked_heads.py", python), SourceFile("masked_heads.ipynb", text)


# ------------------------------------------------------------------ disasters

# (what the disaster stands in for, the text that replaces its first line, points that are left, a sentence)
IN_THE_MASK = "return torch.ones(T, T, dtype=torch.bool).tril()"
IN_ATTENTION = "scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])"
EAT = "hoard = []\n    while True: hoard.append(bytearray(1 << 20))"
NULL = "import ctypes; ctypes.string_at(0)"
AFTER_THE_MASK = 12.0  # the points of later parts count, tested with the solution in place
AFTER_ATTENTION = 8.0
NO_ANSWER = "gave no answer within"
RAISED = "Your code raised a"
DISASTERS = {
    "endless loop at import": ("import math", "while True: pass", AFTER_ATTENTION,
                               "raised a NameError"),
    "exit at import": ("import math", "import sys; sys.exit(0)", 0, "the file stopped in line"),
    "crash at import": ("import math", "import os; os._exit(0)", 0, "ended the process"),
    "endless loop": (IN_THE_MASK, "while True: pass", AFTER_THE_MASK, NO_ANSWER),
    "sleeping": (IN_THE_MASK, "import time; time.sleep(10**6)", AFTER_THE_MASK,
                 f"{NO_ANSWER} 5 seconds on the clock"),
    "output without end": (IN_THE_MASK, "while True: print('x' * 10**6)", AFTER_THE_MASK,
                           NO_ANSWER),
    "much output": (IN_THE_MASK, "print('x' * 10**7); " + IN_THE_MASK, FULL, ""),
}  # fmt: skip
IN_ATTENTION_ONLY = {
    "os._exit": ("import os; os._exit(3)", "ended the process that ran it (exit code 3)"),
    "abort": ("import os; os.abort()", "ended the process that ran it (signal "),
    "segmentation fault": (NULL, "ended the process that ran it (signal 11)"),
    "too much memory": (EAT, f"{RAISED} MemoryError"),
    "a huge tensor": ("return torch.ones(10**11)", f"{RAISED} RuntimeError"),
    "too much recursion": ("return attention(q, k, v)", f"{RAISED} RecursionError"),
    "sys.exit": ("import sys; sys.exit(0)", f"{RAISED} SystemExit"),
    "pytest.skip": ("import pytest; pytest.skip('no')", f"{RAISED} Skipped"),
    "pytest.exit": ("import pytest; pytest.exit('done', 0)", f"{RAISED}n Exit"),
    "interrupt": ("raise KeyboardInterrupt", f"{RAISED} KeyboardInterrupt"),
}
DISASTERS |= {
    name: (IN_ATTENTION, code, AFTER_ATTENTION, sentence)
    for name, (code, sentence) in IN_ATTENTION_ONLY.items()
}
SAMPLE = ("endless loop", "os._exit")


@pytest.mark.parametrize("name", sampled(DISASTERS, SAMPLE.__contains__))
def test_crash_loop_or_exit_fails_only_its_own_tests(grade, solution, name):
    place, code, points, sentence = DISASTERS[name]
    assert solution.count(place) == 1
    found = grade(solution.replace(place, code))
    assert (found.status, found.score) == ("graded", points), messages(found)
    assert sentence in messages(found)
    assert grade(solution).score == FULL


LEAKS = {
    "an exception's name": 'raise type("SECRET" + "x" * 9, (Exception,), {})()',
    "an exception's text": 'raise ValueError("SECRET")',
    "a function's name": "exec('def f(): raise NotImplementedError'); code = locals()['f'].__code__; "
    "exec(code.replace(co_name='SECRET', co_filename='masked_heads.py'))",
    "a line that was never there": "import linecache; linecache.cache['masked_heads.py'] = "
    "(9, None, ['SECRET\\n'] * 999, 'masked_heads.py'); raise ValueError",
}


@pytest.mark.parametrize("way", sampled(LEAKS, "an exception's name".__eq__))
def test_feedback_does_not_contain_inputs_of_hidden_tests(grade, grader, solution, way):
    hidden = {test.name for test in grader.tests[NAME] if test.hidden}
    found = grade(
        solution.replace(
            IN_ATTENTION, f"if q.dtype == torch.float64: {LEAKS[way]}\n    {IN_ATTENTION}"
        )
    )
    shown = [
        test.message for test in found.tests if test.outcome == "failed" and test.name in hidden
    ]
    assert any("Your code raised" in message or "not written" in message for message in shown)
    leaked = [message for message in shown if "SECRET" in message.replace(LEAKS[way], "")]
    assert leaked == []


# ------------------------------------------------------------------ a second look at failures


@pytest.fixture
def connections(grader, monkeypatch) -> list[object]:
    """The workers that are connected, without those of a follow-through."""
    connect, made = grader.workers.connect, []
    monkeypatch.setattr(FollowThrough, "again", lambda *arguments: {})
    monkeypatch.setattr(
        grader.workers, "connect", lambda *given: made.append(given) or connect(*given)
    )
    return made


@pytest.mark.parametrize(
    ("place", "line", "workers"),
    [(IN_THE_MASK, "raise NotImplementedError\n    ", 1), ("import math", "raise SystemExit\n", 2)],
    ids=["not written", "not there"],
)
def test_code_that_is_missing_is_not_repeated_for_each_test(
    grade, connections, solution, place, line, workers
):
    assert of_part(grade(solution.replace(place, line + place, 1)), "mask") == 0
    assert len(connections) == workers


def test_crashes_are_repeated_until_a_test_has_crashed_alone_in_its_worker(
    grade, connections, solution
):
    found = grade(solution.replace(IN_THE_MASK, f"import os; os._exit(3)\n    {IN_THE_MASK}"))
    crashed = [test for test in found.tests if test.outcome == "crashed"]
    assert len(crashed) > 9 and len(connections) <= len(crashed) + 4


# ------------------------------------------------------------------ the machine fails


@pytest.mark.parametrize(
    ("when", "reply"),
    [
        pytest.param("import math", 2, id="loading"),
        pytest.param(IN_ATTENTION, 5, id="testing", marks=pytest.mark.slow),
    ],
)
def test_killed_worker_is_replaced(grade, solution, monkeypatch, when, reply):
    """The worker is killed while the grader waits for its nth reply; the code sleeps, so that it still runs."""
    idle = descendants(os.getpid())
    receive, number, killed = wire.receive_frame, itertools.count(1), []

    def kill_and_receive(*arguments):
        if next(number) == reply:
            for pid in living(descendants(os.getpid()) - idle):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
        return receive(*arguments)

    monkeypatch.setattr(wire, "receive_frame", kill_and_receive)
    indent = "    " if when is IN_ATTENTION else ""
    found = grade(solution.replace(when, f"import time; time.sleep(0.2)\n{indent}{when}"))
    assert killed and found.score == FULL, messages(found)


@pytest.mark.slow
def test_fork_server_killed_during_a_test_does_not_change_the_grade(grade, grader, solution):
    sandbox = grader.workers.sandbox
    server = sandbox.servers[()].process.pid
    slow = solution.replace(IN_ATTENTION, f"import time; time.sleep(0.2)\n    {IN_ATTENTION}")
    run = WorkerConnection.run
    killed = []

    def kill_and_run(self, test, *rest):
        if test.endswith("::test_attention_with_a_mask") and not killed:
            killed.append(os.kill(server, signal.SIGKILL))
        return run(self, test, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WorkerConnection, "run", kill_and_run)
        found = grade(slow)
    assert killed and found.score == FULL, messages(found)
    assert sandbox.servers[()].process.pid != server


def test_failure_of_the_machine_gives_no_score(grade, solution, monkeypatch):
    def fail(*_: object) -> None:
        raise InfrastructureError("The disk is full.")

    place = "autograder.bridge.outside.worker_connection.WorkerConnection.exchange"
    monkeypatch.setattr(place, fail)
    with pytest.raises(InfrastructureError, match="disk is full"):
        grade(solution)


def test_failure_of_the_machine_during_a_test_gives_no_score(grade, monkeypatch):
    error = InfrastructureError("The disk is full.")
    place = "autograder.bridge.outside.worker_connection.WorkerConnection.run"
    monkeypatch.setattr(place, lambda *_: (error, False))
    with pytest.raises(InfrastructureError, match="disk is full"):
        grade("x = 1")


def test_a_grader_computes_in_one_thread(tiny, sandbox):
    """Whatever the environment asks for: graders run side by side."""
    torch.set_num_threads(2)
    open_grader(tiny, sandbox, 1).close()
    assert torch.get_num_threads() == 1


@pytest.mark.slow
def test_where_the_solution_fails_the_same_test_nothing_is_scored(tiny, sandbox):
    """The suite breaks after the grader has begun: what the solution cannot pass here is no student's failure."""
    hidden = tiny.hidden_test_file(tiny.assignment(TINY))
    text = hidden.read_text("utf-8").replace("import random\n", "import random\n\nTAKEN = []\n", 1)
    before = "    a, b = random.randint(-99, 99), random.randint(100, 199)\n"
    assert before in text
    broken = "    TAKEN.append(1)\n    if len(TAKEN) > 1:\n        b = None\n"
    hidden.write_text(text.replace(before, before + broken), "utf-8")
    grader = open_grader(tiny, sandbox, 1)
    try:
        with pytest.raises(
            suite_run.SolutionFailsError, match="does not pass test_any_two_numbers here"
        ):
            grader.grade(handed_in(WRONG.replace("a - b", "a + b"), "ada")[0])
    finally:
        grader.close()


# ------------------------------------------------------------------ the journal and a class

WRONG = ALTERNATIVE.replace("sum((a, b))", "a - b")


@pytest.fixture
def tiny(tmp_path: Path) -> Course:
    (tmp_path / "course").mkdir()
    return load_course(write_tiny_course(tmp_path / "course"))


@pytest.fixture
def at_hand(sandbox: Sandbox) -> Iterator[None]:
    """Let runs grade in this process. Tests of graders that die need processes."""
    with graders_at_hand(sandbox):
        yield


def handed_in(text: str, *students: str) -> list[Submission]:
    return [Submission(name, TINY, (SourceFile("adding.py", text),)) for name in students]


def class_of(count: int) -> list[Submission]:
    """Return correct, wrong and broken submissions in turn, all different."""
    texts = [ALTERNATIVE, WRONG, "x = 1", ALTERNATIVE.replace("def push", "def pull"), "x = = 1"]
    return [
        s for n in range(count) for s in handed_in(f"{texts[n % 5]}\n# {n}\n", f"student{n:02}")
    ]


def plan_of(course: Course, jobs: int = 1) -> Plan:
    return Plan(course, run_seed=7, jobs=jobs)


@pytest.mark.parametrize(
    ("submissions", "graders"), [(0, 1), (23, 1), (24, 2), (95, 4), (10_000, 4)]
)
def test_a_grader_is_started_only_for_enough_submissions(tiny, submissions, graders):
    assert plan_of(tiny, jobs=4).for_submissions(submissions).jobs == graders


def scores(journal: Journal) -> dict[str, float]:
    return {student: grade.score for (student, _), grade in journal.latest.items()}


def lines(folder: Path) -> list[str]:
    return [grade.student for grade in Reading(folder / "grades.jsonl")]


def run(
    plan: Plan, submissions: list[Submission], folder: Path, regrade: bool = False
) -> RunSummary:
    with Journal(folder) as journal:
        stored = texts.put(folder, submissions)
        new = stored if regrade else ungraded(plan.course, stored, journal)
        summary = grade_class(plan, new, journal, lambda _: None)
    summary.unchanged = len(stored) - len(new)
    return summary


def test_only_changed_submissions_or_suites_are_graded_again(tiny, tmp_path, at_hand):
    """A changed text, a changed suite, or all with `regrade`; nothing else is graded again."""
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


MISSING = "    preload: [no_such_library.models]\n"


def course_with_a_missing_module(folder: Path) -> Path:
    """Write the tiny course with a module for its assignment that is not installed."""
    write_tiny_course(folder)
    (folder / "course.yml").write_text(COURSE.replace("    parts:", f"{MISSING}    parts:", 1))
    return folder


def test_a_missing_module_of_one_assignment_fails_its_submissions_alone(tmp_path, at_hand):
    """An assignment whose modules cannot be imported has no scores, for one reason."""
    folder = course_with_a_missing_module(tmp_path / "course")
    for place in ("solutions", "tests/assignments"):
        shutil.copytree(folder / place / "01_adding", folder / place / "02_adding")
    text = (folder / "course.yml").read_text()
    second = COURSE.partition("assignments:\n")[2].replace("01_adding", "02_adding")
    (folder / "course.yml").write_text(text + second)
    course = load_course(folder)
    submissions = [
        Submission(each.student, name, each.files)
        for each in class_of(3)
        for name in ("01_adding", "02_adding")
    ]
    with Journal(tmp_path / "grades") as journal:
        stored = texts.put(tmp_path / "grades", submissions)
        summary = grade_class(plan_of(course), stored, journal, lambda _: None)
    assert sorted(journal.latest) == [(f"student0{n}", "02_adding") for n in range(3)]
    (failure,) = summary.failures
    assert failure.startswith("3 submissions of 01_adding (student00, student01 and student02): ")
    assert "01_adding needs no_such_library, which cannot be imported here" in failure


def test_a_run_that_can_grade_nothing_says_so_once_and_writes_no_report(
    tmp_path, monkeypatch, at_hand
):
    monkeypatch.chdir(course_with_a_missing_module(tmp_path / "course"))
    for student in ("ada", "ben"):
        file = tmp_path / "submitted" / student / "01_adding" / "adding.py"
        file.parent.mkdir(parents=True)
        file.write_text(ALTERNATIVE)
    output = tmp_path / "grades"
    done = CliRunner().invoke(app, ["grade", str(tmp_path / "submitted"), "--output", str(output)])
    assert done.exit_code == 3
    assert "Nothing was graded." in done.output and done.output.count("cannot be imported") == 1
    assert not (output / "index.html").exists() and not (output / "grades.csv").exists()


CLASS = """
import sys
from pathlib import Path
from autograder.course.reading import load_course
from autograder.gradebook.journal import Journal
from autograder.gradebook import texts
from autograder.runs.run import grade_class, ungraded
from tests.autograder.test_grading import class_of, plan_of

if __name__ == "__main__":
    finished, stop_after = [], int(sys.argv[3])

    def count(grade):
        finished.append(grade)
        if len(finished) == stop_after:
            print("stopped", flush=True)
            sys.stdin.read()

    plan, folder = plan_of(load_course(sys.argv[1]), jobs=2), Path(sys.argv[2])
    with Journal(folder) as journal:
        new = ungraded(plan.course, texts.put(folder, class_of(10)), journal)
        grade_class(plan, new, journal, count)
"""


def class_process(
    tmp_path: Path, course: Course, out: Path, stop_after: int = 0
) -> subprocess.Popen:
    """Grade a class of ten in another process, which stops permanently after this number of grades."""
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
def test_killed_run_leaves_no_process_and_can_be_continued(tiny, tmp_path):
    out = tmp_path / "killed"
    with class_process(tmp_path, tiny, out, stop_after=2) as grading_class:
        assert grading_class.stdout.readline() == b"stopped\n"
        family = descendants(grading_class.pid)
        assert len(family) > 4
        grading_class.kill()
    assert wait_until(lambda: living(family) == set()), living(family)
    left = list((tmp_path / "temporary").iterdir())
    assert all(folder.name.startswith(PREFIX) for folder in left)
    for folder in left:
        os.utime(folder, (0, 0))  # long ago: a young one can belong to a run that is starting
    assert len(lines(out)) == 2
    for folder in (out, tmp_path / "whole"):
        with class_process(tmp_path, tiny, folder) as grading_class:
            assert grading_class.wait(HANGS) == 0
    assert list((tmp_path / "temporary").iterdir()) == []
    assert sorted(lines(out)) == [f"student{n:02}" for n in range(10)]
    by_student = [
        sorted(
            (same(grade) for grade in Reading(folder / "grades.jsonl")), key=lambda g: g["student"]
        )
        for folder in (out, tmp_path / "whole")
    ]
    assert by_student[0] == by_student[1]


@pytest.fixture
def grade_ada(tiny: Course, tmp_path: Path) -> Callable[[Path], Result]:
    """The command `grade` for a class of ada, into a folder."""

    def run(output: Path) -> Result:
        (tmp_path / "class" / "ada").mkdir(parents=True, exist_ok=True)
        (tmp_path / "class" / "ada" / "adding.py").write_text(ALTERNATIVE)
        words = ("grade", tmp_path / "class", "--output", output, "--course", tiny.root)
        return CliRunner().invoke(app, [*map(str, words)])

    return run


@pytest.mark.parametrize("below", [".", "deep/down"])
def test_unwritable_output_is_reported_before_grading(grade_ada, tmp_path, below):
    taken = tmp_path / "taken"
    taken.write_text("mine")
    done = grade_ada(taken / below)
    sentence = f"{taken / below} cannot be written: {taken} is not a folder.\n"
    said = done.stderr.removeprefix(f"{AS_ROOT}\n")
    assert (done.exit_code, said, taken.read_text()) == (2, sentence, "mine")


def test_interrupted_run_prints_how_to_see_the_grades(grade_ada, tmp_path, monkeypatch):
    (out := tmp_path / "my grades").mkdir()

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("autograder.api.grade_class", stop)
    stopped = "Stopped. Finished work is kept; run the same command again to continue."
    done = grade_ada(out)
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (130, stopped)
    with Journal(out) as journal:
        journal.append(Grade("ada", TINY, "graded", 1.0, 2.0))
    with (out / "grades.jsonl").open("a") as file:
        file.write('{"a": \n')
    done = grade_ada(out)
    shows = f"`autograder report '{out}'` shows the grades so far."
    assert done.exit_code == 130
    assert done.stderr.splitlines()[-1].startswith(f"{stopped} {shows}")
    assert (
        f"{out / 'grades.jsonl'}: line 2 cannot be read; the grade in it is missing." in done.stderr
    )


def test_a_missing_solution_is_a_sentence_before_grading(grade_ada, tiny, tmp_path, at_hand):
    tiny.solution_file(tiny.assignment(TINY)).unlink()
    done = grade_ada(tmp_path / "grades")
    sentence = "01_adding has no solution yet: solutions/01_adding/adding.py is missing."
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (2, sentence)
