"""Recognise known mistakes by comparing the answers of a submission in its failing tests with those of each mistake.

A mistake is the solution with an edit. It gets the requests that a test sent to the submission, in
this process, up to the first answer that differs; after the same bytes, it fails as the submission
did. Where neither tells, the test itself runs on it, with the same seed. Most mistakes need no
request at all: the audit has recorded which tests each mistake fails, and those that fail the same
tests as the submission are tried first.
"""

import io
from collections.abc import Collection, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, replace
from functools import cache, partial

from autograder.bridge.inside.server import Server
from autograder.bridge.outside.local import load_whole
from autograder.bridge.outside.loopback import LoopbackConnection
from autograder.bridge.outside.remote import RemoteStudent
from autograder.bridge.outside.subject import RemoteSubject
from autograder.bridge.outside.transcript import Answer, KeptTranscripts, Transcript
from autograder.course.mistakes import Mistake
from autograder.grading.naming import names
from autograder.grading.prepared import PreparedAssignment
from autograder.grading.suite_run import TrustedExaminee
from autograder.grading.time_limits import TaskEndedError, Watch
from autograder.suite.evidence import is_told
from autograder.suite.session import SuiteSession, Test
from autograder.text.wording import question_of

SECONDS = 10.0  # of processor time, for one mistake in one test


class _OtherAnswer(BaseException):
    """A mistake gave another answer than the student; a BaseException, so that tests do not catch it."""


class _Comparison(Transcript):
    """The transcript of a mistake; ends the test at the first answer that differs from a student's."""

    def __init__(self, students: Transcript) -> None:
        super().__init__()
        self._students = students

    def add(self, answer: Answer) -> None:
        super().add(answer)
        if not self._students.begins_like(self, len(self.answers) - 1):
            raise _OtherAnswer


@dataclass
class Attempt:
    """The result of one mistake in one test; not `finished` if the test was stopped at a different answer."""

    finished: bool
    failed: bool
    transcript: Transcript

    def decides(self, students: Transcript) -> bool:
        """Whether it tells that a submission answers in the same way or in another one.

        Digests tell the same way only: another last bit makes another digest.
        """
        if self.transcript.is_shortened and not self.transcript.same_as(students):
            return False
        return self.finished or not students.begins_like(self.transcript)

    def explains(self, students: Transcript) -> bool:
        """Whether a submission fails with these answers because of the mistake."""
        return self.finished and self.failed and self.transcript.same_as(students)


class Diagnosis:
    """Names the known mistakes of one assignment; runs tests on a mistake only when they are needed.

    `mistakes` are those that it can name, `attempts` those that have run so far, by mistake, test,
    and whether a sentence was compared in place of answers; `kept` limits the room of their answers.
    """

    def __init__(
        self, session: SuiteSession, prepared: PreparedAssignment, run_seed: int, watch: Watch
    ) -> None:
        self._session = session
        self.mistakes = prepared.mistakes
        self._reference = prepared.reference
        self._solution = prepared.solution
        self._run_seed = run_seed
        self._watch = watch
        self._subjects: dict[str, RemoteSubject[LoopbackConnection]] = {}
        self.attempts: dict[tuple[str, str, bool], Attempt] = {}
        self.kept = KeptTranscripts()

    def name(
        self, failures: Mapping[Test, Transcript], missed: Collection[str]
    ) -> dict[str, Mistake]:
        """Return the mistake that explains each failing test, by the test's name; unexplained tests are left out.

        `missed` are all tests that the submission did not pass, failing or not.
        """
        parts: dict[str, list[Test]] = {}
        for test, transcript in failures.items():
            if transcript.answers:  # otherwise nothing can be recognised
                parts.setdefault(test.part, []).append(test)
        short_ones_first = {
            part: [
                test.name for test in sorted(tests, key=lambda test: len(failures[test].answers))
            ]
            for part, tests in parts.items()
        }
        failed = {test.name: (test, transcript) for test, transcript in failures.items()}

        @cache  # the rule asks again, and there may be no room for the answers
        def explains(mistake: Mistake, name: str) -> bool:
            return self._explains(mistake, *failed[name])

        named = names(self.mistakes, short_ones_first, missed, explains)
        return {test: _one_of(equals) for test, equals in named.items()}

    def _explains(self, mistake: Mistake, test: Test, transcript: Transcript) -> bool:
        key = mistake.id, test.name, is_told(transcript)
        attempt = self.attempts.get(key)
        if attempt is not None and attempt.decides(transcript):
            return attempt.explains(transcript)
        attempt = self.attempts[key] = self._take(mistake, test, transcript)
        explains = attempt.explains(transcript)
        self.kept.add(attempt.transcript)  # may leave digests of it
        return explains

    def _take(self, mistake: Mistake, test: Test, transcript: Transcript) -> Attempt:
        if mistake.id not in self._subjects:
            self._subjects[mistake.id] = self._loaded(mistake.id, mistake.source)
        subject = self._subjects[mistake.id]
        task = f"{mistake.id} in"
        attempt = None
        with (
            suppress(TaskEndedError),  # neither does the test run then
            self._watch.limit(f"{task} {test.name}", SECONDS, lasting=True),
        ):
            attempt = self._without_the_test(subject.connection, transcript)
        if attempt is not None:
            return attempt
        compared = Transcript if is_told(transcript) else partial(_Comparison, transcript)
        subject.connection.new_transcript = compared
        examinee = TrustedExaminee(subject, self._watch, task, SECONDS, lasting=True)
        (ending,) = self._session.examine(examinee, self._run_seed, [test])
        if ending.transcript is None:  # it ended a process before
            return Attempt(finished=True, failed=False, transcript=Transcript())
        # without the student's transcript
        answers = Transcript(ending.transcript.answers)
        return Attempt(not isinstance(ending.error, _OtherAnswer), ending.failed, answers)

    def _without_the_test(
        self, connection: LoopbackConnection, transcript: Transcript
    ) -> Attempt | None:
        """Return what a mistake answers to the requests of a student's test; None if the test has to run on it.

        After another answer, the test would send other requests; after the same bytes, it fails, too.
        Answers that are only equal, such as new modules with other random numbers, do not tell
        whether it fails.
        """
        if not transcript.exchanges:
            return None
        compared = Transcript() if is_told(transcript) else _Comparison(transcript)
        is_same = is_other = False
        try:
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                is_same = connection.repeat(transcript.exchanges, compared)
        except _OtherAnswer:
            is_other = True
        if connection.asked_more or is_same == is_other:
            return None
        answers = transcript if is_told(transcript) else compared
        return Attempt(is_same, is_same, Transcript(answers.answers))

    def _loaded(self, name: str, text: str) -> RemoteSubject[LoopbackConnection]:
        module = f"known.{self._solution.name}.{name}"
        # unique: Python finds the lines of a traceback by file name
        filename = f"{self._solution.name}.{name}.py"
        server = Server(load_whole(text, filename, module))
        connection = LoopbackConnection(server, records=True)
        return RemoteSubject(connection, RemoteStudent(connection), self._reference)


def _one_of(equals: Sequence[Mistake]) -> Mistake:
    """Return the only mistake, or one without an id and a title for several that cannot be told apart."""
    first = equals[0]
    if len(equals) == 1:
        return first
    return replace(first, id="", title="", hint=question_of([mistake.hint for mistake in equals]))
