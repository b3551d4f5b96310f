"""Grade a small submission as `grade` does, to see whether grading works in a sandbox tier on this machine."""

import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

from autograder.course.config import Course
from autograder.course.reading import load_course
from autograder.records import Grade, InfrastructureError, SourceFile, Submission
from autograder.runs.pool import Plan, grade_one, graders
from autograder.walls.inside.jail import TIERS
from autograder.walls.outside.doctor import TierReport, examine

HEAD = "title: A trial\nassignments:\n"
ASSIGNMENT = """\
  - name: {name}
    title: A trial
    minutes: 1
    preload: [{preload}]
    parts:
      - {{name: double, title: Twice a number, points: 1}}
"""
SOLUTION = '''\
# %% [markdown]
# # A trial

# %%
import torch


# %%
def double(numbers: torch.Tensor) -> torch.Tensor:
    """Return each number twice as large."""
    # TODO: multiply by two
    ### BEGIN SOLUTION
    return 2 * numbers
    ### END SOLUTION


# %% part="double"
'''
SUBMISSION = "def double(numbers):\n    return numbers + numbers\n"
TESTS = '''\
import torch

from autograder import task


@task("double", 1)
def test_each_number_is_doubled(student):
    """Each number is doubled."""
    assert torch.equal(student.double(torch.ones(2)), torch.full((2,), 2.0))
'''


Preload = tuple[str, ...]  # of an assignment in course.yml: modules that its workers have imported


def examine_grading(
    course: Course | None, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> list[TierReport]:
    """Report on every tier, the strongest first: a small submission is graded in each that works.

    The first of them, in which `grade` works, also tries what each assignment of the course
    imports. `on_progress` is called with the number of tiers done and their total.
    """
    reports = list[TierReport]()
    for report in examine():
        on_progress(len(reports), len(TIERS))
        is_first = not any(earlier.works for earlier in reports)
        reports.append(with_trial(report, course if is_first else None))
    on_progress(len(reports), len(TIERS))
    return reports


def with_trial(report: TierReport, course: Course | None) -> TierReport:
    """Add to a report of a working tier whether a small submission, and each assignment of a course, can be graded."""
    if not report.works:
        return report
    assignments = course.assignments if course else ()
    failures = try_grading(report.tier, {assignment.preload for assignment in assignments})
    if () in failures:
        failure = failures[()]
        reason = getattr(failure, "reason", str(failure))
        return replace(report, works=False, reason=reason, hint=getattr(failure, "remedy", ""))
    failing = [assignment for assignment in assignments if assignment.preload in failures]
    problems = [
        f"{assignment.name} cannot be graded. {failures[assignment.preload]}"
        for assignment in failing
    ]
    return replace(report, problems=tuple(problems))


def try_grading(tier: str, preloads: Iterable[Preload] = ()) -> dict[Preload, InfrastructureError]:
    """Grade a right answer in this tier, without `preload` and with each of these; return what failed.

    If it fails without `preload`, the others are not tried.
    """
    failures = dict[Preload, InfrastructureError]()
    with tempfile.TemporaryDirectory(prefix="autograder-trial-") as folder:
        course = write_trial_course(Path(folder), {(), *preloads})
        pool = graders(Plan(course, run_seed=0, tier=tier))
        try:
            for assignment in course.assignments:
                submission = Submission(
                    "trial", assignment.name, (SourceFile("trial.py", SUBMISSION),)
                )
                try:
                    require_full_marks(pool.submit(grade_one, submission).result())
                except InfrastructureError as failure:
                    failures[assignment.preload] = failure
                except BrokenProcessPool:
                    failures[assignment.preload] = InfrastructureError("The grader died.")
                if () in failures:
                    break
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    return failures


def require_full_marks(grade: Grade) -> None:
    """Raise InfrastructureError if the right answer has lost its point."""
    if grade.score != grade.max_score:
        said = [test.message for test in grade.tests if test.message]
        reason = " ".join(said) or grade.problem
        raise InfrastructureError(f"A right answer was graded as wrong: {reason}")


def write_trial_course(folder: Path, preloads: Iterable[Preload]) -> Course:
    """Write a course with an assignment for each `preload` into an empty folder, the shortest first, and load it."""
    course = [HEAD]
    for number, preload in enumerate(sorted(preloads), start=1):
        name = f"{number:02}_trial"
        course.append(ASSIGNMENT.format(name=name, preload=", ".join(preload)))
        solution = folder / "solutions" / name / "trial.py"
        tests = folder / "tests" / "assignments" / name / "test_visible.py"
        files = {solution: SOLUTION, tests: TESTS}
        for file, text in files.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
    (folder / "course.yml").write_text("".join(course), "utf-8")
    return load_course(folder)
