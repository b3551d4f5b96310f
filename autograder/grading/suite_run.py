"""Run a suite on one submission; a failing test is repeated alone in a new worker."""

import gc
import time
import traceback
from dataclasses import dataclass, replace

from autograder.bridge.outside.local import LocalStudent
from autograder.bridge.outside.replay import ReplayCache
from autograder.bridge.outside.subject import RemoteSubject, Subject
from autograder.bridge.outside.transcript import KeptTranscripts, Transcript
from autograder.bridge.outside.worker_connection import WorkerConnection
from autograder.bridge.shared.errors import (
    MissingNameError,
    StudentCrashedError,
    StudentError,
    StudentRaisedError,
    StudentTimeoutError,
)
from autograder.checks.explain import Failure
from autograder.grading.time_limits import TaskEndedError, Watch
from autograder.grading.workers import LoadedSubmission
from autograder.records import InfrastructureError
from autograder.suite.evidence import evidence
from autograder.suite.session import SuiteSession, Test
from autograder.walls.outside.deadline import CLOCK_FACTOR

CALLS_PER_TEST = 6  # as many times `call_seconds` may a test take here; on the clock, one more call
LARGE = 8 << 20  # bytes of answers in one test
SOLUTION_SECONDS = 120.0  # of processor time, for the solution in one test
UNFINISHED = (MemoryError, RecursionError, SystemError)  # may leave the process in any state


class SolutionFailsError(InfrastructureError):
    """The solution fails a test in this process, so a submission's failure in it does not count.

    `missing` is the name of the module that could not be imported, if this was the reason.
    """

    def __init__(self, sentence: str, missing: str = "") -> None:
        super().__init__(sentence)
        self.missing = missing


@dataclass(frozen=True)
class TestEnding:
    """The end of one test: an error, a reason for skipping it, or neither if it passed.

    `used` are the names for which the solution was called (see `follow_through`), `seconds` is the
    elapsed time.
    """

    __test__ = False

    test: Test
    error: BaseException | None = None
    skipped: Failure | None = None
    transcript: Transcript | None = None
    ended_grader: bool = False
    used: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        return self.error is None and self.skipped is None

    @property
    def followed(self) -> bool:
        return self.passed and bool(self.used)

    @property
    def failed(self) -> bool:
        return self.error is not None

    @property
    def not_written(self) -> bool:
        """Whether the student's code itself says that it is not written yet."""
        return (
            isinstance(self.error, StudentRaisedError)
            and self.error.remote.type == "NotImplementedError"
        )

    @property
    def may_be_ours(self) -> bool:
        """Whether the grader itself could have caused the failure, because the submission did return a value."""
        if self.ended_grader:
            return True
        no_answer = StudentTimeoutError | StudentCrashedError | MissingNameError
        return self.failed and not self.not_written and not isinstance(self.error, no_answer)


class SuiteRun:
    """Runs the tests of a suite, in their order, on one submission; with `again`, failures are not repeated.

    When the budget of the submission is spent, the remaining tests fail without being run.
    """

    def __init__(
        self,
        session: SuiteSession,
        loaded: LoadedSubmission,
        cache: ReplayCache,
        watch: Watch,
        again: bool = False,
    ) -> None:
        self._session = session
        self._loaded = loaded
        self._limits = loaded.assignment.limits
        self._cache = cache
        self._watch = watch
        self._again = again
        self._kept = KeptTranscripts()
        self._budget = loaded.budget
        self._titles: dict[str, str] = {}
        self._crashes = 0

    def take(self, test: Test) -> TestEnding:
        """Run one test; raises InfrastructureError if the machine fails."""
        self._titles[test.name] = test.title
        self._session.skip(test)  # until it passes
        ending = self._known_without_running(test)
        if ending is not None:
            return ending
        begun = time.monotonic()
        ending = self._twice_if_it_fails(test)
        if isinstance(ending.error, InfrastructureError):
            raise ending.error
        if ending.passed and not self._again:
            self._watch.remember(test.name)
        if ending.failed and ending.transcript is not None:
            self._kept.add(ending.transcript)
        return replace(ending, seconds=round(time.monotonic() - begun, 3))

    def _known_without_running(self, test: Test) -> TestEnding | None:
        """Return the ending of a test that waits for another one, that has passed in a process
        which this one replaces, or for which there is no time; None if it has to run.
        """
        blocked = self._session.blocked_by(test)
        if blocked:
            sentence = f"This waits until “{self._titles[blocked]}” passes."
            return TestEnding(test, skipped=Failure("skipped", sentence))
        if not self._again and self._watch.has_passed(test.name):
            self._session.accept(test)
            return TestEnding(test)
        if self._budget.is_spent:
            sentence = "Your submission had used up its time before this test."
            return TestEnding(test, error=StudentTimeoutError(sentence))
        return None

    def _twice_if_it_fails(self, test: Test) -> TestEnding:
        workers_before = self._loaded.times
        ending = self._once(test, fresh=False)
        alone = self._loaded.times > workers_before
        if self._is_repeated(ending, alone) and self._budget.has_room:
            ending = self._once(test, fresh=True)
        stopped = isinstance(ending.error, StudentTimeoutError | StudentCrashedError)
        if stopped and self._budget.is_spent:
            error = StudentTimeoutError("Your submission used up its time in this test.")
            return replace(ending, error=error)
        return ending

    def _is_repeated(self, ending: TestEnding, alone: bool) -> bool:
        """Whether to repeat a test in a new worker: a failure counts only if it occurs twice.

        `alone` says that the test had a worker to itself.

        | the test ended with                                | is repeated            |
        |----------------------------------------------------|------------------------|
        | success, a skip, or the end of the grader          | no                     |
        | a time-out on a machine that was too busy          | always                 |
        | another time-out: an endless loop                  | no                     |
        | a crash, alone in its worker, the third or later   | no                     |
        | NotImplementedError                                | no                     |
        | a name that is missing in the second worker, too   | no                     |
        | any other failure                                  | unless in a second run |
        """
        error = ending.error
        if isinstance(error, StudentTimeoutError):
            return error.starved
        if error is None or ending.transcript is None:
            return False
        if self._again or ending.not_written:
            return False
        if isinstance(error, StudentCrashedError):
            return not (alone and self._crashes > 2)
        if isinstance(error, MissingNameError):
            return self._loaded.times <= 1
        return True

    def _once(self, test: Test, fresh: bool) -> TestEnding:
        try:
            with self._budget.counted():
                subject = self._loaded.subject(fresh)
        except StudentError as refusal:
            return TestEnding(test, error=refusal)
        connection = subject.connection
        try:
            error, diverged = self._within_limits(test, subject)
        except TaskEndedError as ended:
            return TestEnding(test, error=_of_the_grader(ended), ended_grader=True)
        self._loaded.entered.update(connection.entered)
        if error is not None:
            _drop_traceback(error)
            if connection.received > LARGE:
                gc.collect()  # large answers in reference cycles, which Python would collect late
        if diverged:
            return self._once(test, fresh=True)
        if error is None:
            self._session.accept(test)
        if isinstance(error, UNFINISHED) and not isinstance(error, StudentError):
            self._watch.distrust()
        self._crashes += isinstance(error, StudentCrashedError)
        return TestEnding(test, error=error, transcript=evidence(error, connection.transcript))

    def _within_limits(
        self, test: Test, subject: RemoteSubject[WorkerConnection]
    ) -> tuple[BaseException | None, bool]:
        """Return the error of a test, and whether it diverged (see `WorkerConnection.run`)."""
        at_most = (CALLS_PER_TEST + CLOCK_FACTOR) * self._limits.call_seconds
        until = min(self._budget.until, time.monotonic() + at_most)
        task = f"{test.name} again" if self._again else test.name
        seconds = self._seconds_here
        with self._budget.counted(seconds), self._watch.limit(task, seconds):
            return subject.connection.run(
                test.item.nodeid, lambda: self._session.run(test, subject), until, self._cache
            )

    @property
    def _seconds_here(self) -> float:
        """The processor time of a test on the trusted side; each test that ended a grader halves it for later ones."""
        once = self._limits.call_seconds
        ended = self._titles.keys() & self._watch.ended.keys()
        return min(self._budget.left, max(once, CALLS_PER_TEST * once * 0.5 ** len(ended)))


def _of_the_grader(ended: TaskEndedError) -> StudentError:
    """Return the error of a test in which the grader's own process was ended."""
    if ended.late:
        return StudentTimeoutError("This test took too long.")
    return StudentCrashedError("This test ended the process that graded it.")


def check_solution(session: SuiteSession, test: Test, solution: LocalStudent, watch: Watch) -> None:
    """Run a test on the solution in this process; raises SolutionFailsError if it fails."""
    try:
        with watch.limit(f"the solution in {test.name}", SOLUTION_SECONDS):
            error = session.run(test, Subject(solution, solution))
    except TaskEndedError as ended:
        error = ended
    if error is not None:
        watch.distrust()
        sentence = f"The solution itself does not pass {test.name} here ({type(error).__name__}: {str(error)[:300]})."
        raise SolutionFailsError(
            sentence, str(error.name or "") if isinstance(error, ImportError) else ""
        )


def _drop_traceback(error: BaseException) -> None:
    """Drop the frames of an error: they keep the test's values, and an answer may be large."""
    step: BaseException | None = error
    while step is not None:
        traceback.clear_frames(step.__traceback__)
        step = step.__context__
    error.__traceback__ = error.__context__ = error.__cause__ = None
