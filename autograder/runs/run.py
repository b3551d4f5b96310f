"""Grade a whole class: many submissions, several graders in parallel, one journal.

A few submissions are read at a time, and each grade is written to the journal as soon as it
arrives.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

from autograder.course.config import Course
from autograder.course.digests import submission_digest, suite_digests
from autograder.gradebook import texts
from autograder.gradebook.journal import Journal
from autograder.gradebook.texts import StoredSubmission
from autograder.installation.extensions import extensions, load_extension
from autograder.records import CourseError, Grade, InfrastructureError, Submission
from autograder.runs.by_assignment import ByAssignment
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
    stored: Sequence[StoredSubmission],
    journal: Journal,
    tell: Callable[[Grade], None],
    cluster: str | None = None,
) -> RunSummary:
    """Grade all submissions, on this machine or a cluster; `tell` is called with each grade.

    Their texts are read from the journal's folder. Failures of the machine are collected in the
    summary. Raises CourseError if the course cannot be graded, and InfrastructureError if the
    machine can grade nothing.
    """
    summary = RunSummary()
    folder = journal.path.parent
    if cluster:
        grades = _runner(cluster).graded(plan, texts.iterate(folder, stored), summary)
    else:
        grades = _graded(plan, stored, lambda handed_in: texts.read(folder, handed_in), summary)
    for grade in grades:
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
    alone = StoredSubmission(submission, submission_digest(submission))
    grades = list(_graded(plan, [alone], lambda handed_in: handed_in.submission, summary))
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


def _graded(
    plan: Plan,
    stored: Iterable[StoredSubmission],
    read: Callable[[StoredSubmission], Submission],
    summary: RunSummary,
) -> Iterator[Grade]:
    """Yield grades as they arrive; a submission that the machine fails is tried once more."""
    failures = Failures(plan.course)
    waiting = ByAssignment(stored)
    at_work: Graders[Submission] = Graders(plan)
    try:
        while True:
            for grader in at_work.with_room():
                handed_in = waiting.take(grader.assignment, at_work.with_others(grader))
                if handed_in is None:
                    break
                submission = read(handed_in)
                if not failures.blocks(submission):
                    at_work.begin(submission, grade_one, submission, grader=grader)
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


@dataclass(eq=False)
class OneGrader(Generic[Item]):
    """A pool of one process, once there was work for it, and what it has begun; `assignment` is that of the last."""

    pool: GraderPool | None = None
    begun: dict[Future[Grade], Item] = field(default_factory=dict)
    assignment: str = ""

    def begin(self, work: Item, function: Callable[..., Grade], *arguments: Any) -> Future[Grade]:
        assert self.pool is not None
        try:
            future = self.pool.submit(function, *arguments)
        except BrokenProcessPool as error:  # since the last look
            future = Future()
            future.set_exception(error)
        self.begun[future] = work
        return future

    def ended(self) -> list[tuple[Item, Grade | Exception]]:
        """Return the results that are there, and if its process ended, the reason for all that it had."""
        done = [future for future in self.begun if future.done()]
        results = [(self.begun.pop(future), _result(future)) for future in done]
        if any(isinstance(result, GraderDiedError) for _, result in results):
            results += self.close()
        return results

    def close(self) -> list[tuple[Item, Grade | Exception]]:
        """End it after what it has begun; return its results."""
        if self.pool is not None:
            self.pool.shutdown(wait=True, cancel_futures=True)
            self.pool = None
        results = [(work, _result(future)) for future, work in self.begun.items()]
        self.begun.clear()
        return results


class Graders(Generic[Item]):
    """Graders and what they work on; one whose process ended is replaced when more work begins."""

    def __init__(self, plan: Plan) -> None:
        self._plan = replace(plan, jobs=1)
        self._all: list[OneGrader[Item]] = [OneGrader() for _ in range(plan.jobs)]

    @property
    def running(self) -> list[Item]:
        """What was begun and has not ended."""
        return list(itertools.chain.from_iterable(grader.begun.values() for grader in self._all))

    def warm_up(self) -> None:
        """Wait until the graders are ready; raises CourseError or InfrastructureError."""
        for grader in self._all:
            grader.pool = graders(self._plan)
        for future in [grader.pool.submit(be_ready) for grader in self._all if grader.pool]:
            future.result()

    def with_room(self) -> Iterator[OneGrader[Item]]:
        """Yield the grader that has least to do, again and again, until all have enough."""
        while True:
            grader = min(self._all, key=lambda grader: len(grader.begun))
            if len(grader.begun) >= AHEAD:
                return
            yield grader

    def with_others(self, grader: OneGrader[Item]) -> set[str]:
        """Return the assignments that the other graders stay with."""
        return {other.assignment for other in self._all if other is not grader}

    def begin(
        self,
        work: Item,
        function: Callable[..., Grade],
        submission: Submission,
        *arguments: Any,
        grader: OneGrader[Item] | None = None,
    ) -> Future[Grade]:
        """Let a grader call the function, by default one with least to do; raises what `graders` raises."""
        if grader is None:
            grader = self._freest(submission.assignment)
        if grader.pool is None:
            grader.pool = graders(self._plan)
        grader.assignment = submission.assignment
        return grader.begin(work, function, submission, *arguments)

    def ended(self, seconds: float | None = None) -> list[tuple[Item, Grade | Exception]]:
        """Wait at most so long for results; return them."""
        futures = itertools.chain.from_iterable(grader.begun for grader in self._all)
        wait(list(futures), seconds, FIRST_COMPLETED)
        return list(itertools.chain.from_iterable(grader.ended() for grader in self._all))

    def close(self) -> list[tuple[Item, Grade | Exception]]:
        """End the graders after what they have begun; return its results."""
        return list(itertools.chain.from_iterable(grader.close() for grader in self._all))

    def _freest(self, assignment: str) -> OneGrader[Item]:
        """Return a grader with least to do, if possible the one that stays with this assignment."""
        return min(
            self._all, key=lambda grader: (len(grader.begun), grader.assignment != assignment)
        )


def _result(future: Future[Grade]) -> Grade | Exception:
    try:
        return future.result()
    except (BrokenProcessPool, CancelledError):
        return GraderDiedError("The grader died twice.")
    except Exception as error:  # of one submission, whose bytes are its author's
        return error
