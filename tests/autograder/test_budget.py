"""The budget of a submission: of processor time, over its tests, imports, repeats and follow-through."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from autograder.course.config import Course
from autograder.course.reading import load_course
from autograder.grading.grader import Grader
from autograder.grading.preparation import open_grader
from autograder.grading.time_limits import Watch
from autograder.records import Grade, SourceFile, Submission
from autograder.walls.outside.budget import MAX_BYTES, Budget
from autograder.walls.outside.launcher import Sandbox
from tests.autograder.tiny_course import SOLUTION, write_tiny_course

ROOT = Path(__file__).resolve().parents[2]
SEED = 11
NAMES = [assignment.name for assignment in load_course(ROOT).assignments]
SAMPLE = "04_multi_head_concat"
BURNS = """
import time
_end = time.process_time() + {seconds}
while time.process_time() < _end:
    pass
"""
WRONG = SOLUTION.replace("together = a + b", "together = a - b")
SHORT, LONG = 1.0, 60.0


class RecordingWatch(Watch):
    """Keeps the budgets of the submissions; `before` are the tests passed in a process that ended."""

    def __init__(self, before: Collection[str] = ()) -> None:
        super().__init__()
        self.budgets: list[Budget] = []
        self.before, self.remembered = before, set[str]()

    @contextmanager
    def submission(self, digest: str, seconds: float, clock_seconds: float) -> Iterator[Budget]:
        with super().submission(digest, seconds, clock_seconds) as budget:
            self.budgets.append(budget)
            yield budget

    def has_passed(self, test: str) -> bool:
        return test in self.before

    def remember(self, test: str) -> None:
        self.remembered.add(test)


@contextmanager
def grader_of(
    sandbox: Sandbox, course: Course, watch: RecordingWatch, *names: str
) -> Iterator[Grader]:
    grader = open_grader(course, sandbox, SEED, names or None, watch)
    try:
        yield grader
    finally:
        grader.close()


def graded(
    sandbox: Sandbox, folder: Path, text: str, seconds: float, watch: RecordingWatch | None = None
) -> tuple[Grade, Budget]:
    write_tiny_course(folder)
    file = folder / "course.yml"
    limits = f"limits: {{submission_cpu_seconds: {seconds}, "
    file.write_text(file.read_text("utf-8").replace("limits: {", limits), "utf-8")
    course, watch = load_course(folder), watch or RecordingWatch()
    with grader_of(sandbox, course, watch) as grader:
        grade = grader.grade(
            Submission("ada", course.assignments[0].name, (SourceFile("adding.py", text),))
        )
    return grade, watch.budgets[0]


class StarvedWatch(RecordingWatch):
    """Gives each submission a clock that has run out, on a machine that had no processor for it."""

    def __init__(self, withheld: float) -> None:
        super().__init__()
        self.withheld = withheld

    @contextmanager
    def submission(self, digest: str, seconds: float, clock_seconds: float) -> Iterator[Budget]:
        with super().submission(digest, seconds, -1.0) as budget:
            budget.clock_seconds = clock_seconds
            budget.withhold(self.withheld)
            yield budget


@pytest.mark.parametrize(("withheld", "is_graded"), [(0.0, False), (LONG, True)])
def test_time_in_which_the_machine_had_no_processor_is_added_to_the_clock(
    sandbox: Sandbox, tmp_path: Path, withheld: float, is_graded: bool
) -> None:
    grade, _ = graded(sandbox, tmp_path, SOLUTION, LONG, StarvedWatch(withheld))
    assert (grade.score == grade.max_score) == is_graded
    assert is_graded or grade.score == 0


def test_the_clock_has_an_end_of_its_own() -> None:
    """Code that starves itself does not stay for ever."""
    budget = Budget(60.0, 120.0)
    begun = budget.until
    budget.withhold(30.0)
    assert budget.until == begun + 30.0
    budget.withhold(100_000.0)
    assert budget.until == begun + 4 * 120.0
    assert not Budget().is_spent


def said(grade: Grade) -> list[str]:
    return [test.message or "" for test in grade.tests if test.outcome == "timeout"]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name == SAMPLE else [pytest.mark.slow]) for name in NAMES],
)
def test_solution_uses_less_than_a_third_of_its_budget(name: str, sandbox: Sandbox) -> None:
    """On a machine that is three times slower, it keeps full marks."""
    course, watch = load_course(ROOT), RecordingWatch()
    assignment = course.assignment(name)
    file = SourceFile(f"{assignment.stem}.py", course.read_solution(assignment))
    with grader_of(sandbox, course, watch, name) as grader:
        grade = grader.grade(Submission("ada", name, (file,)))
    assert grade.score == grade.max_score
    (budget,) = watch.budgets
    assert 0 < budget.used < budget.seconds / 3
    assert 0 < budget.received < MAX_BYTES / 3


def test_imports_of_repeats_and_follow_through_share_one_budget(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """Each import stays below its own limit; there would be one for each wrong test, and for each part."""
    watch = RecordingWatch()
    slow = WRONG + BURNS.format(seconds=SHORT)
    grade, budget = graded(sandbox, tmp_path, slow, 1.5 * SHORT, watch)
    assert SHORT <= budget.used < 3 * SHORT
    right = [test.name for test in grade.tests if test.part == "total" and test.outcome != "passed"]
    assert right == [], "repeats leave half of the budget to the tests that have not run"
    passed = {test.name for test in grade.tests if test.outcome == "passed"}
    assert watch.remembered == passed != set(), "a wrong test is not remembered"


def test_when_the_budget_is_spent_the_submission_is_graded_with_what_it_has(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    slow = SOLUTION.replace(
        "self.value = self.value + number", f"self.value += number\n{indented(SHORT)}"
    )
    grade, budget = graded(sandbox, tmp_path, slow, SHORT / 2)
    assert grade.status == "graded"
    assert {test.part for test in grade.tests if test.outcome == "passed"} >= {"add"}
    assert 0 < grade.score < grade.max_score
    first, *rest = said(grade)
    assert first == "Your submission used up its time in this test."
    assert set(rest) <= {"Your submission had used up its time before this test."}
    assert budget.used < 2 * SHORT


def indented(seconds: float) -> str:
    return "\n".join(
        f"        {line}" for line in BURNS.format(seconds=seconds).strip().split("\n")
    )


def test_passed_tests_are_not_run_again_in_a_process_that_replaces_one(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    watch = RecordingWatch()
    grade, _ = graded(sandbox, tmp_path / "first", SOLUTION, LONG, watch)
    assert watch.remembered == {test.name for test in grade.tests}
    again, budget = graded(
        sandbox, tmp_path / "again", "raise SystemExit", LONG, RecordingWatch(watch.remembered)
    )
    assert (again.score, budget.used) == (grade.score, 0.0), "nothing was loaded"
