"""How a suite examines a submission, whose failing tests are repeated in new workers, and trusted code."""

import gc
import time
import traceback
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace

from autograder.bridge.outside.local import LocalStudent
from autograder.bridge.outside.replay import ReplayCache
from autograder.bridge.outside.subject import RemoteSubject, Subject
from autograder.bridge.outside.transcript import KeptTranscripts
from autograder.bridge.outside.worker_connection import WorkerConnection
from autograder.bridge.shared.errors import (
    MissingNameError,
    StudentCrashedError,
    StudentError,
    StudentRaisedError,
    StudentTimeoutError,
)
from autograder.grading.time_limits import TaskEndedError, Watch
from autograder.grading.workers import LoadedSubmission, Renewal
from autograder.records import InfrastructureError
from autograder.suite.session import Ending, Examinee, RunTest, SuiteSession, Test, ending_of
from autograder.walls.outside.deadline import CLOCK_FACTOR

CALLS_PER_TEST = 6  # as many times `call_seconds` may a test take here; on the clock, one more call
LARGE = 8 << 20  # bytes of answers in one test
SOLUTION_SECONDS = 120.0  # of processor time, for the solution in one test
_STOPPED = (StudentTimeoutError, StudentCrashedError)
UNFINISHED = (MemoryError, RecursionError, SystemError)  # may leave the process in any state


class SolutionFailsError(InfrastructureError):
    """The solution fails a test in this process, so a submission's failure in it does not count.

    `missing` is the name of the module that could not be imported, if this was the reason.
    """

    def __init__(self, sentence: str, missing: str = "") -> None:
        super().__init__(sentence)
        self.missing = missing


class SubmissionExaminee(Examinee):
    """One submission in workers; when its budget is spent, the remaining tests fail without being run.

    A failure counts only if it occurs twice (see `endings`). In an `again`, which is the
    follow-through, it counts at once.
    """

    def __init__(
        self, loaded: LoadedSubmission, cache: ReplayCache, watch: Watch, again: bool = False
    ) -> None:
        self._loaded = loaded
        self._limits = loaded.assignment.limits
        self._cache = cache
        self._watch = watch
        self._again = again
        self._kept = KeptTranscripts()
        self._budget = loaded.budget
        self._begun: set[str] = set()
        self._crashes = 0
        self._is_alone = False  # the present test in its worker
        self._renewal: Renewal = "none"
        self._settled: dict[str, Ending] = {}  # by the test's name
        self._in_doubt: list[Ending] = []
        self._ended_graders: set[str] = set()

    def endings(self, session: SuiteSession, run_seed: int, tests: Sequence[Test]) -> list[Ending]:
        """Return the ending of each test that counts.

        Tests that failed are repeated together in one new worker, in reverse order, which reads the
        text anew for each. If one of them passes now, or answers otherwise, state or chance may
        decide: each is repeated alone in a new worker, and that ending counts. If the text can
        change more than its own module, each is alone from the first. Then the tests that waited
        for one which passes after all have their turn.
        """
        while True:
            self._in_doubt = []
            endings = [*session.examine(self, run_seed, tests)]
            in_doubt = self._in_doubt
            if not in_doubt:
                return endings
            self._settled |= {end.test.name: end for end in endings if end.waits_for is None}
            repeated = self._repeated(session, run_seed, in_doubt)
            self._settled |= {ending.test.name: ending for ending in repeated}

    def _repeated(
        self, session: SuiteSession, run_seed: int, first: Sequence[Ending]
    ) -> list[Ending]:
        for ending in first:
            del self._settled[ending.test.name]
        self._loaded.is_shared = len(first) > 1
        backwards = first[::-1]
        again: list[Ending] = []
        with closing(self._once_more(session, run_seed, backwards)) as repeats:
            for before, repeat in zip(backwards, repeats, strict=True):
                again.append(repeat)
                if not self._loaded.reaches_outside and not _equal(before, repeat):
                    break
            else:
                return again
        # the first one was alone
        self._loaded.reaches_outside = True
        others = [*again[1:], *backwards[len(again) :]]
        return [again[0], *self._once_more(session, run_seed, others)]

    def _once_more(
        self, session: SuiteSession, run_seed: int, before: Iterable[Ending]
    ) -> Generator[Ending, None, None]:
        """Repeat tests, as long as there is time, the first in a new worker.

        The others are alone in one, too, if the text can change more than its own module;
        otherwise they begin with the text read anew.
        """
        is_missing = False
        self._renewal = "worker"
        try:
            for ending in before:
                if is_missing and isinstance(ending.error, MissingNameError):
                    yield ending  # as in the second worker, too
                elif not self._budget.has_room:
                    yield ending
                else:
                    (repeat,) = session.examine(self, run_seed, [ending.test])
                    self._renewal = "worker" if self._loaded.reaches_outside else "text"
                    is_missing = isinstance(repeat.error, MissingNameError)
                    yield replace(repeat, seconds=round(ending.seconds + repeat.seconds, 3))
        finally:
            self._renewal = "none"

    def ending(self, test: Test, run: RunTest) -> Ending:
        """Return how a test ends; it is repeated at once, in a new worker, if the machine failed or was too busy,
        or if it failed in a used worker, which what the worker did before may have caused.
        """
        known_ending = self._known(test)
        if known_ending is not None:
            return known_ending
        ending = self._tried(test, run, self._renewal)
        if self._is_for_a_new_worker(ending):
            ending = self._tried(test, run, "worker")
        return self._counted(ending)

    def _is_for_a_new_worker(self, ending: Ending) -> bool:
        if ending.error is not None and self._loaded.is_in_used_worker:
            return not self._budget.is_spent
        return _is_of_the_machine(ending) and self._budget.has_room

    def _known(self, test: Test) -> Ending | None:
        """Return the ending of a test that counts already, that has passed in a process which this one replaces,
        or for which there is no time.
        """
        if test.name in self._settled:
            return self._settled[test.name]
        self._begun.add(test.name)
        if not self._again and self._watch.has_passed(test.name):
            return Ending(test)
        if self._budget.is_spent:
            sentence = "Your submission had used up its time before this test."
            return Ending(test, StudentTimeoutError(sentence))
        return None

    def _tried(self, test: Test, run: RunTest, renewal: Renewal) -> Ending:
        workers_before = self._loaded.times
        ending = self._once(test, run, renewal)
        self._is_alone = self._loaded.times > workers_before
        return ending

    def _counted(self, ending: Ending) -> Ending:
        """Return the ending that counts; raises InfrastructureError if the machine failed."""
        if isinstance(ending.error, InfrastructureError):
            raise ending.error
        if isinstance(ending.error, _STOPPED) and self._budget.is_spent:
            error = StudentTimeoutError("Your submission used up its time in this test.")
            ending = replace(ending, error=error)
        if ending.passed and not self._again:
            self._watch.remember(ending.test.name)
        if ending.failed and ending.transcript is not None:
            self._kept.add(ending.transcript)
        if self._renewal == "none" and self._is_in_doubt(ending):
            self._in_doubt.append(ending)
        return ending

    def may_be_ours(self, ending: Ending) -> bool:
        """Whether the grader itself could have caused the failure, because the submission did return a value."""
        if ending.test.name in self._ended_graders:
            return True
        is_missing = isinstance(ending.error, MissingNameError)
        return ending.failed and gives_an_answer(ending) and not is_missing

    def _is_in_doubt(self, ending: Ending) -> bool:
        """Whether a test has to fail once more before the failure counts.

        | the test ended with                              | is repeated            |
        |--------------------------------------------------|------------------------|
        | success, or the end of the grader                | no                     |
        | a time-out: an endless loop                      | no                     |
        | a crash, alone in its worker, the third or later | no                     |
        | a line that says that code is not written yet    | no                     |
        | a name that is missing in the second worker, too | no                     |
        | any other failure                                | unless in a second run |
        """
        error = ending.error
        if self._again or error is None or ending.transcript is None or _not_written(ending):
            return False
        if isinstance(error, StudentCrashedError):
            return not (self._is_alone and self._crashes > 2)
        if isinstance(error, MissingNameError):
            return self._loaded.times <= 1
        return not isinstance(error, StudentTimeoutError)

    def _once(self, test: Test, run: RunTest, renewal: Renewal) -> Ending:
        try:
            with self._budget.counted():
                subject = self._loaded.subject(renewal)
        except StudentError as refusal:
            return Ending(test, refusal)
        connection = subject.connection
        try:
            error, diverged = self._within_limits(test, run, subject)
        except TaskEndedError as ended:
            self._ended_graders.add(test.name)
            return Ending(test, _of_the_grader(ended))
        self._loaded.entered.update(connection.entered)
        if error is not None:
            _drop_traceback(error)
            if connection.received > LARGE:
                gc.collect()  # large answers in reference cycles, which Python would collect late
        if diverged:
            return self._once(test, run, "worker")
        if isinstance(error, UNFINISHED) and not isinstance(error, StudentError):
            self._watch.distrust()
        self._crashes += isinstance(error, StudentCrashedError)
        return ending_of(test, error, subject)

    def _within_limits(
        self, test: Test, run: RunTest, subject: RemoteSubject[WorkerConnection]
    ) -> tuple[BaseException | None, bool]:
        """Return the error of a test, and whether it diverged (see `WorkerConnection.run`)."""
        at_most = (CALLS_PER_TEST + CLOCK_FACTOR) * self._limits.call_seconds
        until = min(self._budget.until, time.monotonic() + at_most)
        task = f"{test.name} again" if self._again else test.name
        seconds = self._seconds_here
        with self._budget.counted(seconds), self._watch.limit(task, seconds):
            return subject.connection.run(
                test.item.nodeid, lambda: run(test, subject), until, self._cache
            )

    @property
    def _seconds_here(self) -> float:
        """The processor time of a test on the trusted side; each test that ended a grader halves it for later ones."""
        once = self._limits.call_seconds
        ended = self._begun & self._watch.ended.keys()
        return min(self._budget.left, max(once, CALLS_PER_TEST * once * 0.5 ** len(ended)))


def _of_the_grader(ended: TaskEndedError) -> StudentError:
    """Return the error of a test in which the grader's own process was ended."""
    if ended.late:
        return StudentTimeoutError("This test took too long.")
    return StudentCrashedError("This test ended the process that graded it.")


class TrustedExaminee(Examinee):
    """Trusted code in the grader's process: a task that ended the process is not started again.

    `task` begins the names of the tasks, each of which may use `seconds` of processor time.
    """

    def __init__(
        self, subject: Subject, watch: Watch, task: str, seconds: float, lasting: bool = False
    ) -> None:
        super().__init__(subject)
        self._watch = watch
        self._task = task
        self._seconds = seconds
        self._lasting = lasting

    def ending(self, test: Test, run: RunTest) -> Ending:
        try:
            with self._watch.limit(f"{self._task} {test.name}", self._seconds, self._lasting):
                return super().ending(test, run)
        except TaskEndedError as ended:
            return Ending(test, ended)


def failures_of_solution(
    session: SuiteSession,
    tests: Iterable[Test],
    solution: LocalStudent,
    watch: Watch,
    run_seed: int,
) -> Iterator[SolutionFailsError]:
    """Run tests on the solution in this process, and yield an error for each that it does not pass."""
    subject = Subject(solution, solution)
    examinee = TrustedExaminee(subject, watch, "the solution in", SOLUTION_SECONDS)
    for ending in session.examine(examinee, run_seed, tests):
        if error := ending.error:
            watch.distrust()
            yield SolutionFailsError(
                f"The solution itself does not pass {ending.test.name} here "
                f"({type(error).__name__}: {str(error)[:300]}).",
                str(error.name or "") if isinstance(error, ImportError) else "",
            )


def _equal(first: Ending, second: Ending) -> bool:
    """Whether a test ended twice with the same error after the same answers."""
    if type(first.error) is not type(second.error) or str(first.error) != str(second.error):
        return False
    if first.transcript is None or second.transcript is None:
        return first.transcript is second.transcript
    return first.transcript.same_as(second.transcript)


def _is_of_the_machine(ending: Ending) -> bool:
    error = ending.error
    is_starved = isinstance(error, StudentTimeoutError) and error.starved
    return is_starved or isinstance(error, InfrastructureError)


def gives_an_answer(ending: Ending) -> bool:
    """Whether a failing test has an answer of code that is written, which a known mistake can give, too."""
    return not (_not_written(ending) or isinstance(ending.error, _STOPPED))


def _not_written(ending: Ending) -> bool:
    error = ending.error
    return isinstance(error, StudentRaisedError) and error.remote.says_unwritten


def _drop_traceback(error: BaseException) -> None:
    """Drop the frames of an error: they keep the test's values, and an answer may be large."""
    step: BaseException | None = error
    while step is not None:
        traceback.clear_frames(step.__traceback__)
        step = step.__context__
    error.__traceback__ = error.__context__ = error.__cause__ = None
