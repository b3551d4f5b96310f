"""A class of several assignments: each is prepared when its first submission comes, and stays with one grader."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from autograder.cli import app
from autograder.course.config import Course
from autograder.course.reading import load_course
from autograder.gradebook import texts
from autograder.gradebook.journal import Journal, Reading
from autograder.gradebook.texts import StoredSubmission
from autograder.grading.preparation import open_grader
from autograder.grading.reference import PreparationNeededError
from autograder.records import Grade, InfrastructureError, SourceFile, Submission
from autograder.runs import run
from autograder.runs.by_assignment import ByAssignment
from autograder.runs.pool import Plan, grade_one, graders
from autograder.walls.outside.launcher import Sandbox
from tests.autograder.stand_in_graders import one_point
from tests.autograder.tiny_course import ALTERNATIVE, COURSE, write_tiny_course

FIRST, SECOND, THIRD = NAMES = ("01_adding", "02_adding", "03_adding")
NOTED = "from pathlib import Path\nPath({file!r}).open('a').write(f'{{__import__(\"os\").getpid()}}\\n')\n"


def write_course(folder: Path) -> Path:
    """The tiny course with three assignments that are alike."""
    root = write_tiny_course(folder)
    assignment = COURSE.partition("assignments:\n")[2]
    rules = root / "course.yml"
    for name in NAMES[1:]:
        rules.write_text(rules.read_text("utf-8") + assignment.replace(FIRST, name), "utf-8")
        for place in ("solutions", "tests/assignments"):
            shutil.copytree(root / place / FIRST, root / place / name)
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_course(tmp_path / "course")


@pytest.fixture
def course(root: Path) -> Course:
    return load_course(root)


def handed_in(student: str, name: str) -> Submission:
    return Submission(student, name, (SourceFile("adding.py", f"{ALTERNATIVE}# {student}\n"),))


def class_of(count: int, *names: str) -> list[Submission]:
    """So many students, each with these assignments, as a folder lists them."""
    students = [f"student{number}" for number in range(count)]
    return [handed_in(student, name) for student, name in itertools.product(students, names)]


def note(root: Path, name: str, file: Path) -> None:
    """Let the solution of an assignment tell in this file which process runs it."""
    solution = root / "solutions" / name / "adding.py"
    text = solution.read_text("utf-8")
    solution.write_text(text.replace("STEP = 1\n", NOTED.format(file=str(file)), 1), "utf-8")


# ---------------------------------------------------------------------- who grades what


def unread(*names: str) -> ByAssignment:
    return ByAssignment(StoredSubmission(Submission("ada", name), "") for name in names)


def taken(waiting: ByAssignment, own: str, *of_others: str) -> str | None:
    stored = waiting.take(own, of_others)
    return stored.submission.assignment if stored else None


def test_a_grader_takes_the_next_of_its_own_then_what_nobody_has_and_then_helps() -> None:
    waiting = unread("a", "b", "c", "b", "a", "a", "c", "c", "c")
    assert taken(waiting, "b", "c") == "b"
    assert taken(waiting, "b", "c") == "b"
    assert taken(waiting, "b", "c") == "a", "the only one that nobody has"
    assert taken(waiting, "b", "a", "c") == "c", "where most wait"
    assert taken(waiting, "", "a") == "c", "the one with most that nobody has"
    left = [taken(waiting, "a") for _ in range(5)]
    assert left == ["a", "a", "c", "c", None]


class Pools:
    """Stand-ins for pools of one grader each; `graded` holds the assignments that each has graded."""

    def __init__(self, answer: Callable[[Submission, int], Grade]) -> None:
        self.answer = answer
        self.graded: list[list[str]] = []

    def start(self, plan: Plan) -> Pool:
        assert plan.jobs == 1
        self.graded.append([])
        return Pool(self, self.graded[-1])


class Pool:
    def __init__(self, pools: Pools, graded: list[str]) -> None:
        self._pools = pools
        self._graded = graded

    def submit(self, function: Callable[..., Any], submission: Submission) -> Future[Any]:
        future = Future[Any]()
        self._graded.append(submission.assignment)
        try:
            future.set_result(self._pools.answer(submission, 0))
        except Exception as error:
            future.set_exception(error)
        return future

    def shutdown(self, **options: bool) -> None:
        pass


@pytest.fixture
def pools(course: Course, monkeypatch: pytest.MonkeyPatch) -> Pools:
    made = Pools(one_point(course))
    monkeypatch.setattr(run, "graders", made.start)
    return made


def grade(
    course: Course, folder: Path, submissions: list[Submission], jobs: int = 2
) -> tuple[run.RunSummary, list[Grade]]:
    grades: list[Grade] = []
    with Journal(folder) as journal:
        stored = texts.put(folder, submissions)
        summary = run.grade_class(Plan(course, 1, jobs=jobs), stored, journal, grades.append)
    return summary, grades


def test_an_assignment_stays_with_one_grader_while_there_is_enough_to_do(
    course: Course, pools: Pools, tmp_path: Path
) -> None:
    submissions = class_of(8, *NAMES)
    summary, grades = grade(course, tmp_path / "grades", submissions)
    assert summary.graded == len(submissions)
    assert {grade.attempt[:2] for grade in grades} == {
        (s.student, s.assignment) for s in submissions
    }
    first, second = [list(dict.fromkeys(names)) for names in pools.graded]
    assert (first[0], second[0]) == (FIRST, SECOND)
    assert pools.graded[0][:8] == [FIRST] * 8
    assert pools.graded[1][:8] == [SECOND] * 8
    assert THIRD in first and THIRD in second, "one helps the other at the end"


def test_texts_are_read_when_a_grader_can_take_them(
    course: Course, pools: Pools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    graded: list[str] = []
    ahead: list[int] = []
    real = texts.read

    def reading(folder: Path, stored: StoredSubmission) -> Submission:
        read.append(stored.submission.student)
        ahead.append(len(read) - len(graded))
        return real(folder, stored)

    monkeypatch.setattr(texts, "read", reading)
    answer = pools.answer

    def answering(submission: Submission, seed: int) -> Grade:
        graded.append(submission.student)
        return answer(submission, seed)

    pools.answer = answering
    grade(course, tmp_path / "grades", class_of(20, *NAMES))
    assert len(read) == len(graded) == 60
    assert max(ahead) <= run.AHEAD * 2


def test_a_grader_that_dies_takes_only_what_it_had(
    course: Course, pools: Pools, tmp_path: Path
) -> None:
    answer = pools.answer
    deaths = iter([True])

    def dying(submission: Submission, seed: int) -> Grade:
        if submission.assignment == SECOND and next(deaths, False):
            raise BrokenProcessPool
        return answer(submission, seed)

    pools.answer = dying
    summary, grades = grade(course, tmp_path / "grades", class_of(6, *NAMES))
    assert (summary.graded, summary.failures) == (18, [])
    assert len(pools.graded) == 3, "one of two graders was replaced"
    assert sum(map(len, pools.graded)) - 18 <= run.AHEAD


# ---------------------------------------------------------------------- when it is prepared


def test_an_assignment_of_which_nothing_was_handed_in_is_not_prepared(
    root: Path, sandbox: Sandbox, tmp_path: Path
) -> None:
    for name in (FIRST, SECOND):
        note(root, name, tmp_path / name)
    grader = open_grader(load_course(root), sandbox, 1)
    try:
        assert not (tmp_path / FIRST).exists()
        for student in ("ada", "ben"):
            assert grader.grade(handed_in(student, FIRST)).score == 10
        assert (tmp_path / FIRST).read_text() == f"{os.getpid()}\n", "prepared once"
        assert not (tmp_path / SECOND).exists()
        grader.prepare_all()
        assert (tmp_path / SECOND).exists()
    finally:
        grader.close()


def test_a_fork_prepares_nothing(course: Course, sandbox: Sandbox) -> None:
    grader = open_grader(course, sandbox, 1)
    try:
        grader.prepare([FIRST])
        grader.prepare_no_more()
        assert grader.grade(handed_in("ada", FIRST)).score == 10
        with pytest.raises(PreparationNeededError) as needed:
            grader.grade(handed_in("ada", SECOND))
        assert needed.value.names == (SECOND,)
    finally:
        grader.close()


def parent_of_fork() -> int:
    return os.getppid()


def ask_for(*names: str) -> None:
    """Do as a fork that a submission has taken over might."""
    raise PreparationNeededError(names)


@pytest.mark.slow
def test_the_grader_prepares_what_its_fork_misses(root: Path, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    note(root, FIRST, tmp_path / "notes" / "first")
    with graders(Plan(load_course(root), run_seed=1)) as pool:
        # it finds this module before the course's `tests`
        parent = pool.submit(parent_of_fork).result()
        for student in ("ada", "ben"):
            assert pool.submit(grade_one, handed_in(student, FIRST)).result().score == 10
        assert (tmp_path / "notes" / "first").read_text() == f"{parent}\n"
        for names in ((FIRST,), ("04_adding",), ()):
            with pytest.raises(InfrastructureError, match="lost an assignment"):
                pool.submit(ask_for, *names).result()
        assert pool.submit(grade_one, handed_in("cleo", SECOND)).result().score == 10


# ---------------------------------------------------------------------- an assignment that is broken


def grade_folder(root: Path, tmp_path: Path, *names: str) -> tuple[int, str, list[str]]:
    """Grade two students with the command; return its code, what it says, and the assignments with grades."""
    for submission in class_of(2, *names):
        file = tmp_path / "submitted" / submission.student / submission.assignment / "adding.py"
        file.parent.mkdir(parents=True)
        file.write_text(submission.files[0].text, "utf-8")
    output = tmp_path / "grades"
    command = ["grade", str(tmp_path / "submitted"), "--course", str(root), "--output", str(output)]
    done = CliRunner().invoke(app, [*command, "--jobs", "1"])
    journal = output / "grades.jsonl"
    graded = [grade.assignment for grade in Reading(journal)] if journal.exists() else []
    return done.exit_code, " ".join(done.output.split()), graded


def edit(root: Path, place: str, old: str, new: str) -> None:
    file = root / place
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), "utf-8")


@pytest.mark.parametrize(
    ("place", "old", "new", "sentence"),
    [
        (
            f"solutions/{SECOND}/adding.py",
            "return together\n",
            "return together + 1\n",
            f"{SECOND}: The solution itself does not pass test_two_and_three_are_five here",
        ),
        (
            f"tests/assignments/{SECOND}/mistakes.yml",
            "replace: ",
            "replace: never there ",
            f"{SECOND}/mistakes.yml",
        ),
    ],
    ids=["a solution that fails its own tests", "mistakes that cannot be read"],
)
def test_what_is_broken_in_an_assignment_ends_the_run(
    root: Path, tmp_path: Path, grader_at_hand: None, place: str, old: str, new: str, sentence: str
) -> None:
    edit(root, place, old, new)
    code, said, graded = grade_folder(root, tmp_path, FIRST, SECOND)
    assert code == 2
    assert sentence in said
    assert SECOND not in graded


def test_a_broken_assignment_of_which_nothing_was_handed_in_stops_nobody(
    root: Path, tmp_path: Path, grader_at_hand: None
) -> None:
    edit(root, f"solutions/{SECOND}/adding.py", "return together\n", "return together + 1\n")
    code, _, graded = grade_folder(root, tmp_path, FIRST)
    assert (code, graded) == (0, [FIRST, FIRST])


@pytest.mark.parametrize(
    ("place", "old", "new", "sentence"),
    [
        ("test_visible.py", "points(1)", "points(2)", "add up to 5 points; course.yml says 4."),
        ("test_visible.py", "def test_two", "def test_two(:\ndef test_two", "cannot be collected"),
    ],
    ids=["points", "syntax"],
)
def test_a_broken_suite_ends_the_run_before_anything_is_graded(
    root: Path, tmp_path: Path, grader_at_hand: None, place: str, old: str, new: str, sentence: str
) -> None:
    edit(root, f"tests/assignments/{SECOND}/{place}", old, new)
    code, said, graded = grade_folder(root, tmp_path, FIRST, SECOND)
    assert (code, graded) == (2, [])
    assert sentence in said


def test_a_missing_module_that_a_suite_imports_fails_its_submissions_alone(
    root: Path, tmp_path: Path, grader_at_hand: None
) -> None:
    rules = root / "course.yml"
    head, second, tail = rules.read_text("utf-8").partition(f"  - name: {SECOND}\n")
    rules.write_text(f"{head}{second}    preload: [no_such_library]\n{tail}", "utf-8")
    visible = f"tests/assignments/{SECOND}/test_visible.py"
    edit(root, visible, "import pytest\n", "import pytest\nimport no_such_library\n")
    code, said, graded = grade_folder(root, tmp_path, FIRST, SECOND)
    assert graded == [FIRST, FIRST]
    assert code == 3
    assert f"{SECOND} needs no_such_library, which cannot be imported here" in said
