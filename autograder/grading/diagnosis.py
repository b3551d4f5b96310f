"""Names mistakes: what a student's code answered in the failing tests is compared with every known mistake's answers.

A mistake is the solution with an edit. It takes the same tests with the same seeds in this process, each once in a run,
and only as far as its answers are those of a student who failed it. Most mistakes never take a test: before the first
call of a function that it changes, a mistake answers as the solution does.
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
OF_TYPE_ALONE = 0.5  # the share of a test that is explained by the type of the student's own exception
SOLUTION = "0"  # no mistake can be called so


class _OtherAnswer(BaseException):
    """A mistake answered otherwise than the student; a BaseException, so that no test swallows it."""


class _Comparison(Transcript):
    """A mistake's transcript that goes no further than it is the same as a student's."""

    def __init__(self, students: Transcript) -> None:
        super().__init__()
        self._students = students

    def add(self, answer: Answer) -> None:
        super().add(answer)
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
        self, session: SuiteSession, prepared: PreparedAssignment, reference: Any, run_seed: int, watch: Watch
    ) -> None:
        self._session, self._mistakes, self._reference = session, prepared.mistakes, reference
        self._solution, self._run_seed, self._watch = prepared.solution, run_seed, watch
        self._subjects: dict[str, RemoteSubject[LoopbackConnection]] = {}
        self._right: dict[str, tuple[Transcript, dict[int, int]]] = {}
        self._attempts: dict[tuple[str, str], _Attempt] = {}
        self._kept = KeptTranscripts()

    def name(self, failures: Mapping[Test, Transcript]) -> dict[str, Mistake]:
        """The mistake behind each failing test, by the test's name; tests that no mistake explains are left out.

        One mistake that explains several failures is preferred to several that explain one each.
        """
        parts: dict[str, list[tuple[Test, Transcript]]] = {}
        for test, transcript in failures.items():
            if transcript.answers:  # otherwise nothing can be recognised
                parts.setdefault(test.part, []).append((test, transcript))
        found: dict[Mistake, list[str]] = {}
        for failed in parts.values():
            failed.sort(key=lambda failure: len(failure[1].answers))  # the short ones take less time
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
        """The failing tests of one part that each of these mistakes explains, for those that explain enough of them."""
        missing = dict.fromkeys(mistakes, 0.0)
        explained: dict[Mistake, list[str]] = {mistake: [] for mistake in missing}
        for test, transcript in failed:
            if not missing:
                break
            right, first_calls = self._right_answers(test)
            equal = transcript.equal_answers(right)  # the mistake is in what was called until then
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
        """Two mistakes that together explain every failing test of one part: the second all that the first does not."""
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
        """The solution's answers, and how many it had given when each of its functions, known by its first line, was
        called for the first time; nothing where it did not end."""
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
                subject = self._loaded(SOLUTION, self._solution.text)  # afresh: nothing is cached in it
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
        taken = Transcript(subject.connection.transcript.answers)  # without the student's own
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
        """Each text has a file name of its own: it is by file names that Python finds the lines of a traceback."""
        return f"{self._solution.name}.{name}.py"
