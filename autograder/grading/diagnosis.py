"""Recognise known mistakes by comparing the answers of a submission in its failing tests with those of each mistake.

A mistake is the solution with an edit. The same tests run on it in this process, with the same seeds, once in each run,
and stop at the first answer that differs from the submission's. Most mistakes need no test at all: until a function that
it changes is called, a mistake answers as the solution does.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from autograder.course.mistakes import Mistake
from autograder.grading.prepared import PreparedAssignment
from autograder.grading.watch import TaskEndedError, Watch
from autograder.protocol.server import Server
from autograder.proxy.local import load_text
from autograder.proxy.loopback import LoopbackConnection
from autograder.proxy.remote import RemoteStudent
from autograder.proxy.subject import RemoteSubject
from autograder.proxy.transcript import Answer, KeptTranscripts, Transcript
from autograder.suite.session import SuiteSession, Test

SECONDS = 10.0  # of processor time, for one mistake in one test
ENOUGH = 0.75  # the share of a part's failing tests that a mistake has to explain
OF_TYPE_ALONE = 0.5  # the share of a test that an exception of the same type, but with another message, explains
SOLUTION = "0"  # not a valid name of a mistake


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
class _Attempt:
    """The result of one mistake in one test; not `finished` if the test was stopped at a different answer."""

    finished: bool
    failed: bool
    transcript: Transcript


class Diagnosis:
    """Names the known mistakes of one assignment; runs tests on a mistake only when they are needed."""

    def __init__(
        self, session: SuiteSession, prepared: PreparedAssignment, reference: Any, run_seed: int, watch: Watch
    ) -> None:
        self._session, self._mistakes, self._reference = session, prepared.mistakes, reference
        self._solution, self._run_seed, self._watch = prepared.solution, run_seed, watch
        self._subjects: dict[str, RemoteSubject[LoopbackConnection]] = {}
        self._right: dict[str, tuple[Transcript, dict[int, int]]] = {}
        self._attempts: dict[tuple[str, str], _Attempt] = {}
        self._kept = KeptTranscripts()

    def name(self, failures: Mapping[Test, Transcript]) -> dict[str, Mistake]:
        """Return the mistake that explains each failing test, by the test's name; unexplained tests are left out.

        One mistake that explains several failures is preferred to several mistakes that explain one each.
        """
        parts: dict[str, list[tuple[Test, Transcript]]] = {}
        for test, transcript in failures.items():
            if transcript.answers:  # otherwise nothing can be recognised
                parts.setdefault(test.part, []).append((test, transcript))
        found: dict[Mistake, list[str]] = {}
        for failed in parts.values():
            failed.sort(key=lambda failure: len(failure[1].answers))  # short ones first: they take less time
            explained = self._explained(list(found), failed)
            if len(failed) not in map(len, explained.values()):  # most students make one mistake
                others = [mistake for mistake in self._mistakes if mistake not in found]
                explained |= self._explained(others, failed)
            if len(failed) not in map(len, explained.values()):
                explained |= self._two_mistakes(failed)
            for mistake, tests in explained.items():
                found.setdefault(mistake, []).extend(tests)
        named: dict[str, Mistake] = {}
        for mistake in sorted(found, key=lambda each: (-len(found[each]), self._mistakes.index(each))):
            named |= {test: mistake for test in found[mistake] if test not in named}
        return named

    def _explained(
        self, mistakes: Iterable[Mistake], failed: Sequence[tuple[Test, Transcript]]
    ) -> dict[Mistake, list[str]]:
        """Return the mistakes that explain enough failing tests of one part, each with the names of these tests."""
        missing = dict.fromkeys(mistakes, 0.0)
        explained: dict[Mistake, list[str]] = {mistake: [] for mistake in missing}
        for test, transcript in failed:
            if not missing:
                break
            right, first_calls = self._right_answers(test)
            equal = transcript.equal_answers(right)  # the mistake is in a function called until then
            called = {line for line, answers in first_calls.items() if answers <= equal}
            for mistake in list(missing):
                possible = mistake.functions is None or mistake.functions & called
                share = self._share_explained(mistake, test, transcript, right) if possible else 0.0
                missing[mistake] += 1 - share
                if missing[mistake] > (1 - ENOUGH) * len(failed):
                    del missing[mistake]
                elif share:
                    explained[mistake].append(test.name)
        return {mistake: explained[mistake] for mistake in missing}

    def _two_mistakes(self, failed: Sequence[tuple[Test, Transcript]]) -> dict[Mistake, list[str]]:
        """Return two mistakes that together explain all failing tests of one part, the second one all of the rest."""
        for mistake in self._explained(self._mistakes, failed[:1]):
            rest = [failure for failure in failed if not self._explained([mistake], [failure])]
            names = [test.name for test, _ in rest]
            for other, tests in self._explained(self._mistakes, rest).items():
                if tests == names:
                    return {mistake: [test.name for test, _ in failed if test.name not in names], other: tests}
        return {}

    def _share_explained(self, mistake: Mistake, test: Test, transcript: Transcript, right: Transcript) -> float:
        key = mistake.id, test.name
        attempt = self._attempts.get(key)
        if attempt is None or not attempt.finished and transcript.begins_like(attempt.transcript):
            attempt = self._attempts[key] = self._take(mistake, test, transcript)
            self._kept.add(attempt.transcript)
        if not (attempt.finished and attempt.failed and attempt.transcript.same_as(transcript)):
            return 0.0
        return OF_TYPE_ALONE if transcript.differs_by_words(attempt.transcript, right) else 1.0

    def _right_answers(self, test: Test) -> tuple[Transcript, dict[int, int]]:
        """Return the solution's answers, and for each of its functions, by first line, the number of answers before its
        first call; both are empty if the solution did not finish."""
        if test.name not in self._right:
            subject: RemoteSubject[LoopbackConnection] | None = None
            first_calls: dict[int, int] = {}
            filename = self._filename(SOLUTION)

            def note(frame: FrameType, event: str, argument: Any) -> None:
                if frame.f_code.co_filename == filename:
                    answers = len(subject.connection.transcript.answers) if subject else 0
                    first_calls.setdefault(frame.f_code.co_firstlineno, answers)

            before = sys.gettrace()
            sys.settrace(note)
            try:
                subject = self._loaded(SOLUTION, self._solution.text)  # a new module: nothing is cached in it
                self._run(test, subject, f"the solution's answers in {test.name}")
            except TaskEndedError:
                return Transcript(), {}
            finally:
                sys.settrace(before)
            self._right[test.name] = subject.connection.transcript, first_calls
        return self._right[test.name]

    def _take(self, mistake: Mistake, test: Test, transcript: Transcript) -> _Attempt:
        if mistake.id not in self._subjects:
            self._subjects[mistake.id] = self._loaded(mistake.id, mistake.source)
        subject = self._subjects[mistake.id]
        subject.connection.new_transcript = lambda: _Comparison(transcript)
        try:
            error = self._run(test, subject, f"{mistake.id} in {test.name}")
        except TaskEndedError:
            return _Attempt(finished=True, failed=False, transcript=Transcript())
        taken = Transcript(subject.connection.transcript.answers)  # without the student's transcript
        return _Attempt(not isinstance(error, _OtherAnswer), error is not None, taken)

    def _run(self, test: Test, subject: RemoteSubject[LoopbackConnection], task: str) -> BaseException | None:
        self._session.start(self._run_seed)
        with self._watch.limit(task, SECONDS, lasting=True):
            return self._session.run(test, subject)

    def _loaded(self, name: str, text: str) -> RemoteSubject[LoopbackConnection]:
        module = f"known.{self._solution.name}.{name}"
        load_text(text, self._filename(name), module, self._solution.module_texts)
        connection = LoopbackConnection(Server(sys.modules[module]))
        return RemoteSubject(connection, RemoteStudent(connection), self._reference)

    def _filename(self, name: str) -> str:
        """Return a file name that is unique for each text: Python finds the lines of a traceback by file name."""
        return f"{self._solution.name}.{name}.py"
