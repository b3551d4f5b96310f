"""One submission takes the tests of a suite; a failing test is run once more, alone in a fresh worker."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass

from autograder.course.config import Assignment
from autograder.grading.explain import Failure
from autograder.grading.workers import LoadedSubmission
from autograder.protocol.errors import StudentError, StudentTimeoutError
from autograder.proxy.replay import ReplayCache
from autograder.proxy.transcript import Transcript
from autograder.records import InfrastructureError
from autograder.suite.session import SuiteSession, Test

CALLS_PER_TEST = 6  # a test may take this many times `call_seconds` on the trusted side


@dataclass(frozen=True)
class TestEnding:
    """How one test ended: an error, a reason to skip it, or neither when it passed."""

    __test__ = False

    test: Test
    error: BaseException | None = None
    skipped: Failure | None = None
    transcript: Transcript | None = None

    @property
    def failed(self) -> bool:
        return self.error is not None

    @property
    def deserves_another(self) -> bool:
        """A failure counts only when it happens again; but an endless loop is not waited for twice."""
        if isinstance(self.error, StudentTimeoutError):
            return self.error.starved
        return self.error is not None and self.transcript is not None


class SuiteRun:
    """One submission takes the tests of a suite, in their order."""

    def __init__(
        self, session: SuiteSession, loaded: LoadedSubmission, assignment: Assignment, cache: ReplayCache
    ) -> None:
        self._session, self._loaded, self._limits = session, loaded, assignment.limits
        self._cache = cache
        self._end = time.monotonic() + assignment.limits.submission_seconds
        self._titles: dict[str, str] = {}

    def take(self, test: Test) -> TestEnding:
        """Run one test. Raises InfrastructureError when the machine failed."""
        self._titles[test.name] = test.title
        blocked = self._session.blocked_by(test)
        if blocked:
            self._session.skip(test)
            sentence = f"This waits until “{self._titles[blocked]}” passes."
            return TestEnding(test, skipped=Failure("skipped", sentence))
        if time.monotonic() > self._end:
            self._session.skip(test)
            return TestEnding(
                test, error=StudentTimeoutError("Your submission had used up its time before this test.")
            )
        ending = self._once(test, fresh=False)
        if ending.deserves_another:
            ending = self._once(test, fresh=True)
        if isinstance(ending.error, InfrastructureError):
            raise ending.error
        return ending

    def _once(self, test: Test, fresh: bool) -> TestEnding:
        try:
            subject = self._loaded.subject(fresh)
        except StudentError as refusal:
            self._session.skip(test)
            return TestEnding(test, error=refusal)
        connection, name = subject.connection, test.item.nodeid
        until = time.monotonic() + CALLS_PER_TEST * self._limits.call_seconds
        cache = self._cache if subject.forbidden(test.forbids) is None else None

        def run_test() -> BaseException | None:
            seconds = max(until - time.monotonic(), self._limits.call_seconds)
            return self._session.run(test, subject, seconds)

        run = connection.run(name, run_test, until, cache)
        if run.outcome == "diverged":
            return self._once(test, fresh=True)
        if run.outcome == "passed":
            self._session.accept(test)
        if run.error is not None:
            _drop_traceback(run.error)
        return TestEnding(test, error=run.error, transcript=connection.transcript)


def _drop_traceback(error: BaseException) -> None:
    """Drop the frames that led to an error: they hold the test's values, and an answer may be large."""
    step: BaseException | None = error
    while step is not None:
        traceback.clear_frames(step.__traceback__)
        step = step.__context__
    error.__traceback__ = error.__context__ = error.__cause__ = None
