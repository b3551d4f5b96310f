"""Grade a whole class: many submissions, several graders in parallel, one journal.

A few submissions are read at a time, and each grade is written to the journal as soon as it
arrives.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Protocol

from autograder.course.config import Course
from autograder.course.digests import suite_digest
from autograder.gradebook.journal import Journal
from autograder.gradebook.texts import StoredSubmission
from autograder.installation.extensions import extensions, load_extension
from autograder.records import CourseError, Grade, InfrastructureError, Submission
from autograder.runs.failures import Failures, failure_sentences
from autograder.runs.fence import as_failure
from autograder.runs.pool import Plan, grade_one, graders

RUNNERS = "autograder.runners"
DASK = "dask"
AHEAD = 2  # submissions waiting for each grader


@dataclass
class RunSummary:
    """Counts of a run, and the submissions that could not be graded because the machine failed."""

    graded: int = 0
    refused: int = 0
    unchanged: int = 0
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # machines of a cluster that took no part


def ungraded(
    course: Course, stored: Iterable[StoredSubmission], journal: Journal
) -> list[StoredSubmission]:
    """Return the submissions for which the journal has no grade of the same text by the current suite."""
    suites = {
        assignment.name: suite_digest(course, assignment) for assignment in course.assignments
    }
    return [
        handed_in
        for handed_in in stored
        if not journal.holds(
            handed_in.submission, handed_in.digest, suites.get(handed_in.submission.assignment)
        )
    ]


def grade_class(
    plan: Plan,
    submissions: Iterable[Submission],
    journal: Journal,
    tell: Callable[[Grade], None],
    cluster: str | None = None,
) -> RunSummary:
    """Grade all submissions, on this machine or a cluster; `tell` is called with each grade.

    Failures of the machine are collected in the summary. Raises CourseError if the course cannot be
    graded, and InfrastructureError if the machine can grade nothing.
    """
    summary = RunSummary()
    grades = _runner(cluster).graded if cluster else _graded
    for grade in grades(plan, iter(submissions), summary):
        journal.append(grade)
        summary.graded += grade.status == "graded"
        summary.refused += grade.status == "refused"
        tell(grade)
    return summary


class Runner(Protocol):
    """Grades submissions elsewhere than in this machine's pool; one is registered under `autograder.runners`."""

    def __init__(self, address: str) -> None: ...

    def graded(
        self, plan: Plan, submissions: Iterator[Submission], summary: RunSummary
    ) -> Iterator[Grade]:
        """Yield grades as they arrive; the summary receives failures, and notes about machines that took no part."""


def _runner(address: str) -> Runner:
    """Return the runner that is named before the colon of an address such as `slurm:long`, or else that for Dask."""
    runners = extensions(RUNNERS)
    name = address.partition(":")[0]
    chosen: type[Runner] = load_extension(RUNNERS, name if name in runners else DASK)
    return chosen(address)


def _graded(plan: Plan, submissions: Iterator[Submission], summary: RunSummary) -> Iterator[Grade]:
    """Yield grades as they arrive.

    If a grader dies, its submission is graded once more by a new one.
    """
    failures = Failures(plan.course)
    pending = list[Submission]()
    try:
        while True:
            pool = graders(plan)
            try:
                yield from _drain(pool, AHEAD * plan.jobs, pending, submissions, failures)
                return
            except BrokenProcessPool:
                died = InfrastructureError("The grader died twice.")
                pending = [again for again in pending if failures.allow_another(again, died)]
            finally:
                pool.shutdown(wait=True, cancel_futures=True)
    finally:
        summary.failures.extend(failure_sentences(failures.reasons))


def _drain(
    pool: ProcessPoolExecutor,
    ahead: int,
    pending: list[Submission],
    submissions: Iterator[Submission],
    failures: Failures,
) -> Iterator[Grade]:
    running: dict[Future[Grade], Submission] = {pool.submit(grade_one, s): s for s in pending}
    while True:
        for submission in submissions:
            if failures.blocks(submission):
                continue
            pending.append(submission)
            running[pool.submit(grade_one, submission)] = submission
            if len(running) >= ahead:
                break
        if not running:
            return
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in [future for future in running if future in done]:
            submission = running.pop(future)
            try:
                yield future.result()
            except (CourseError, BrokenProcessPool):
                raise
            except Exception as error:  # of one submission, whose bytes are its author's
                if failures.allow_another(submission, as_failure(error)):
                    running[pool.submit(grade_one, submission)] = submission
                    continue
            pending.remove(submission)
