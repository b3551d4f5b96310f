"""Names mistakes: what a student's code answered in the failing tests is compared with every known mistake's answers.

A mistake is the solution with an edit. It takes the same tests with the same seeds in this process, through the
same frames as a student's code, so both leave transcripts. In one run all students meet the same inputs, so a
mistake takes each test once, and only as far as its answers are those of a student who failed it. Where a whole
transcript is the same, the mistake is named; where none is, nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from autograder.course.mistakes import Mistake
from autograder.grading.watch import TaskEndedError, Watch
from autograder.protocol.errors import StudentError
from autograder.protocol.server import Server
from autograder.proxy.loopback import LoopbackConnection
from autograder.proxy.remote import RemoteStudent
from autograder.proxy.subject import RemoteSubject, Use
from autograder.proxy.transcript import KeptTranscripts, Transcript
from autograder.suite.session import SuiteSession, Test

SECONDS = 10.0  # of processor time, for one mistake in one test


class _OtherAnswer(BaseException):
    """A mistake answered otherwise than the student; a BaseException, so that no test swallows it."""


class _Comparison(Transcript):
    """A mistake's transcript that goes no further than it is the same as a student's."""

    def __init__(self, students: Transcript) -> None:
        super().__init__()
        self._students = students

    def record(self, operation: str, arguments: dict[str, Any], value: Any) -> None:
        super().record(operation, arguments, value)
        self._stop_at_another()

    def record_error(self, operation: str, arguments: dict[str, Any], error: StudentError) -> None:
        super().record_error(operation, arguments, error)
        self._stop_at_another()

    def _stop_at_another(self) -> None:
        if not self._students.begins_like(self, len(self.answers) - 1):
            raise _OtherAnswer


@dataclass
class _Attempt:
    """What one mistake did in one test; not `finished` when it was stopped at another answer than a student's."""

    finished: bool
    failed: bool
    transcript: Transcript


class Diagnosis:
    """The known mistakes of one assignment, taking tests as they are asked for."""

    def __init__(
        self,
        session: SuiteSession,
        mistakes: Sequence[Mistake],
        reference: Any,
        filename: str,
        run_seed: int,
        watch: Watch,
    ) -> None:
        self._session, self._mistakes, self._reference = session, mistakes, reference
        self._filename, self._run_seed, self._watch = filename, run_seed, watch
        self._subjects: dict[str, RemoteSubject[LoopbackConnection]] = {}
        self._attempts: dict[tuple[str, str], _Attempt] = {}
        self._kept = KeptTranscripts()

    def name(self, failures: Mapping[Test, Transcript]) -> dict[str, Mistake]:
        """The mistake behind each failing test, by the test's name; tests that no mistake explains are left out.

        One mistake that explains several failures is preferred to several that explain one each.
        """
        fitting = self._all_fitting(failures)
        frequency = {m.id: sum(m in found for found in fitting.values()) for m in self._mistakes}
        order = {mistake.id: position for position, mistake in enumerate(self._mistakes)}
        return {
            name: min(found, key=lambda m: (-frequency[m.id], order[m.id]))
            for name, found in fitting.items()
            if found
        }

    def _all_fitting(self, failures: Mapping[Test, Transcript]) -> dict[str, list[Mistake]]:
        """The mistakes that fit each failure. Those that fitted an earlier one are asked first, the others only
        when none of them fits: most students make one mistake, and every attempt takes its time."""
        suspects: list[Mistake] = []
        fitting: dict[str, list[Mistake]] = {}
        for test, transcript in failures.items():
            found = self._fitting(suspects, test, transcript)
            if not found:
                others = [mistake for mistake in self._mistakes if mistake not in suspects]
                found = self._fitting(others, test, transcript)
                suspects.extend(found)
            fitting[test.name] = found
        return fitting

    def _fitting(self, mistakes: Sequence[Mistake], test: Test, transcript: Transcript) -> list[Mistake]:
        if not transcript.answers:
            return []  # nothing was asked, so nothing can be recognised
        return [mistake for mistake in mistakes if self._explains(mistake, test, transcript)]

    def _explains(self, mistake: Mistake, test: Test, transcript: Transcript) -> bool:
        key = mistake.id, test.name
        attempt = self._attempts.get(key)
        if attempt is None or not attempt.finished and transcript.begins_like(attempt.transcript):
            attempt = self._attempts[key] = self._take(mistake, test, transcript)
            self._kept.add(attempt.transcript)
        return attempt.finished and attempt.failed and attempt.transcript.same_as(transcript)

    def _take(self, mistake: Mistake, test: Test, transcript: Transcript) -> _Attempt:
        subject = self._subject(mistake)
        subject.connection.new_transcript = lambda: _Comparison(transcript)
        self._session.start(self._run_seed)
        try:
            with self._watch.limit(f"{mistake.id} in {test.name}", SECONDS, lasting=True):
                error = self._session.run(test, subject)
        except TaskEndedError:
            return _Attempt(finished=True, failed=False, transcript=Transcript())
        taken = Transcript(subject.connection.transcript.answers)  # without the student's own
        return _Attempt(not isinstance(error, _OtherAnswer), error is not None, taken)

    def _subject(self, mistake: Mistake) -> RemoteSubject[LoopbackConnection]:
        if mistake.id not in self._subjects:
            connection = LoopbackConnection(Server(ModuleType(f"mistake_{mistake.id}")))
            connection.request("load", text=mistake.source, filename=self._filename)
            uses: list[Use] = []
            self._subjects[mistake.id] = RemoteSubject(
                connection, RemoteStudent(connection), self._reference, uses
            )
        return self._subjects[mistake.id]
