"""Grade a whole class: many submissions, several graders in parallel, one journal.

A few submissions are read at a time, and each grade is written to the journal as soon as it
arrives.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from autograder.course.config import Course
from autograder.course.digests import suite_digests
from autograder.gradebook.journal import Journal
from autograder.gradebook.texts import StoredSubmission
from autograder.installation.extensions import extensions, load_extension
from autograder.records import CourseError, Grade, InfrastructureError, Submission
from autograder.runs.failures import Failures, failure_sentences
from autograder.runs.fence import as_failure
from autograder.runs.pool import GraderPool, Plan, be_ready, grade_one, graders

RUNNERS = "autograder.runners"
DASK = "dask"
AHEAD = 2  # submissions waiting for each grader

Item = TypeVar("Item")


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
    suites = suite_digests(course)
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


def grade_once_more(plan: Plan, submission: Submission) -> Grade:
    """Return the grade of one submission, which no journal receives.

    Raises CourseError or InfrastructureError.
    """
    summary = RunSummary()
    grades = list(_graded(plan, iter([submission]), summary))
    if not grades:
        raise InfrastructureError("\n".join(summary.failures))
    return grades[0]


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
    """Yield grades as they arrive; a submission that the machine fails is tried once more."""
    failures = Failures(plan.course)
    at_work: Graders[Submission] = Graders(plan)
    try:
        while True:
            for submission in submissions:
                if not failures.blocks(submission):
                    at_work.begin(submission, grade_one, submission)
                if len(at_work.running) >= AHEAD * plan.jobs:
                    break
            if not at_work.running:
                return
            for submission, result in at_work.ended():
                if isinstance(result, Grade):
                    yield result
                elif isinstance(result, CourseError):
                    raise result
                elif failures.allow_another(submission, as_failure(result)):
                    at_work.begin(submission, grade_one, submission)
    finally:
        at_work.close()
        summary.failures.extend(failure_sentences(failures.reasons))


class GraderDiedError(InfrastructureError):
    """The process of a grader ended, and with it its pool."""


class Graders(Generic[Item]):
    """A pool of graders and what they work on; one that broke is replaced when more work begins."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._pool: GraderPool | None = None
        self.running: dict[Future[Grade], Item] = {}

    def warm_up(self) -> None:
        """Wait until the graders are ready; raises CourseError or InfrastructureError."""
        self._pool = graders(self._plan)
        for future in [self._pool.submit(be_ready) for _ in range(self._plan.jobs)]:
            future.result()

    def begin(self, work: Item, function: Callable[..., Grade], *arguments: Any) -> Future[Grade]:
        """Let a grader call the function; raises what `graders` raises."""
        if self._pool is None:
            self._pool = graders(self._plan)
        try:
            future = self._pool.submit(function, *arguments)
        except BrokenProcessPool as error:  # since the last look
            future = Future()
            future.set_exception(error)
        self.running[future] = work
        return future

    def ended(self, seconds: float | None = None) -> list[tuple[Item, Grade | Exception]]:
        """Wait at most so long for results; return them, those of a pool that broke with the reason."""
        done, _ = wait(self.running, seconds, FIRST_COMPLETED)
        results = [(self.running.pop(future), _result(future)) for future in done]
        if any(isinstance(result, GraderDiedError) for _, result in results):
            results += self.close()
        return results

    def close(self) -> list[tuple[Item, Grade | Exception]]:
        """End the graders after what they have begun; return its results."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
        results = [(work, _result(future)) for future, work in self.running.items()]
        self.running.clear()
        return results


def _result(future: Future[Grade]) -> Grade | Exception:
    try:
        return future.result()
    except (BrokenProcessPool, CancelledError):
        return GraderDiedError("The grader died twice.")
    except Exception as error:  # of one submission, whose bytes are its author's
        return error
