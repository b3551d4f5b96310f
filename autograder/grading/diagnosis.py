"""Recognise known mistakes by comparing the answers of a submission in its failing tests with those of each mistake.

A mistake is the solution with an edit. The same tests run on it in this process, with the same
seeds, once in each run, and stop at the first answer that differs from the submission's. Most
mistakes need no test at all: the audit has recorded which tests each mistake fails, and those that
fail the same tests as the submission are tried first.
"""

import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from autograder.course.mistakes import Mistake
from autograder.grading.prepared import PreparedAssignment
from autograder.grading.watch import TaskEndedError, Watch
from autograder.sandbox.inside.server import Server
from autograder.sandbox.outside.local import load_text
from autograder.sandbox.outside.loopback import LoopbackConnection
from autograder.sandbox.outside.remote import RemoteStudent
from autograder.sandbox.outside.subject import RemoteSubject
from autograder.sandbox.outside.transcript import Answer, KeptTranscripts, Transcript
from autograder.suite.evidence import evidence, is_told
from autograder.suite.session import SuiteSession, Test
from autograder.text.wording import question_of

SECONDS = 10.0  # of processor time, for one mistake in one test
ENOUGH = 0.75  # the share of a part's failing tests that a mistake has to explain
# the share of a test that an exception of the same type, but with another message, explains
OF_TYPE_ALONE = 0.5
SOLUTION = "0"  # not a valid name of a mistake
_Failure = tuple[Test, Transcript]


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


def keep_one_name(named: dict[str, Mistake], tests: Sequence[str]) -> None:
    """Remove all but the most frequent mistake from the failing tests of one part.

    Two mistakes stay if they explain all of these tests together; otherwise a second name is mostly
    a wrong one.
    """
    frequency = Counter(named[test] for test in tests if test in named)
    if len(frequency) < 2 or all(test in named for test in tests):
        return
    (first, _), *_ = frequency.most_common(1)
    for test in tests:
        if named.get(test) != first:
            named.pop(test, None)


@dataclass
class Attempt:
    """The result of one mistake in one test; not `finished` if the test was stopped at a different answer."""

    finished: bool
    failed: bool
    transcript: Transcript


class Diagnosis:
    """Names the known mistakes of one assignment; runs tests on a mistake only when they are needed.

    `mistakes` are those that it can name, `attempts` those that have run so far, by mistake, test,
    and whether a sentence was compared in place of answers.
    """

    def __init__(
        self,
        session: SuiteSession,
        prepared: PreparedAssignment,
        reference: Any,
        run_seed: int,
        watch: Watch,
    ) -> None:
        self._session = session
        self.mistakes = prepared.mistakes
        self._reference = reference
        self._solution = prepared.solution
        self._run_seed = run_seed
        self._watch = watch
        self._subjects: dict[str, RemoteSubject[LoopbackConnection]] = {}
        self._right: dict[str, Transcript] = {}
        self.attempts: dict[tuple[str, str, bool], Attempt] = {}
        self._kept = KeptTranscripts()

    def name(
        self, failures: Mapping[Test, Transcript], missed: Collection[str]
    ) -> dict[str, Mistake]:
        """Return the mistake that explains each failing test, by the test's name; unexplained tests are left out.

        `missed` are all tests that the submission did not pass, failing or not. One mistake that
        explains several failures is preferred to several mistakes that explain one each.
        """
        parts: dict[str, list[_Failure]] = {}
        for test, transcript in failures.items():
            if transcript.answers:  # otherwise nothing can be recognised
                parts.setdefault(test.part, []).append((test, transcript))
        explained: dict[Mistake, set[str]] = {}
        for failed in parts.values():
            # short ones first: they take less time
            failed.sort(key=lambda failure: len(failure[1].answers))
            for mistake, tests in self._explanations(list(explained), failed, set(missed)).items():
                explained.setdefault(mistake, set()).update(tests)
        for mistake in explained if len(explained) > 1 else ():
            for failed in parts.values():
                explained[mistake].update(self._explained(mistake, failed))
        named: dict[str, Mistake] = {}

        def most_tests_first(mistake: Mistake) -> tuple[int, int]:
            return -len(explained[mistake]), self.mistakes.index(mistake)

        for mistake in sorted(explained, key=most_tests_first):
            reported = self._without_a_name(mistake, explained[mistake], failures)
            named |= {test: reported for test in explained[mistake] if test not in named}
        for failed in parts.values():
            keep_one_name(named, [test.name for test, _ in failed])
        return named

    def _without_a_name(
        self, mistake: Mistake, tests: Collection[str], failures: Mapping[Test, Transcript]
    ) -> Mistake:
        """Return the mistake, or one without an id and a title if another mistake explains the same tests as well."""
        failed = [(test, transcript) for test, transcript in failures.items() if test.name in tests]
        alike = [
            other
            for other in self.mistakes
            if other.title != mistake.title and other.fails and other.fails == mistake.fails
        ]
        equals = [
            other
            for other in alike
            if all(self._share_explained(other, *failure) == 1.0 for failure in failed)
        ]
        if not equals:
            return mistake
        question = question_of([mistake.hint, *(other.hint for other in equals)])
        return replace(mistake, id="", title="", hint=question)

    def _explanations(
        self, found: list[Mistake], failed: Sequence[_Failure], missed: set[str]
    ) -> dict[Mistake, list[str]]:
        """Return mistakes that explain failing tests of one part: one for all of them, or two, or several for some."""
        names = {test.name for test, _ in failed}

        def unlikeliness(mistake: Mistake) -> tuple[int, int, int]:
            """First, failing tests of this part that the mistake is not known to fail; then, all
            tests in which it differs from the submission; then the author's order.
            """
            fails = mistake.fails or frozenset()
            return len(names - fails), len(missed ^ fails), self.mistakes.index(mistake)

        others = [mistake for mistake in self.mistakes if mistake not in found]
        mistakes = [*found, *sorted(others, key=unlikeliness)]
        partly: dict[Mistake, list[str]] = {}
        for mistake in mistakes:
            tests = self._explained(mistake, failed)
            if len(tests) == len(failed) and (mistake in found or mistake.fails):
                return {mistake: tests}  # most students make one mistake, and none fits better
            if tests:
                partly[mistake] = tests
        one_is_enough = len(failed) in map(len, partly.values())
        return partly if one_is_enough else partly | self._two_mistakes(mistakes, failed)

    def _explained(self, mistake: Mistake, failed: Sequence[_Failure]) -> list[str]:
        """Return the names of failing tests of one part that a mistake explains; none if these are not enough.

        Of four failing tests, at most one may be unexplained ((1 - 0.75) * 4). A mistake with the
        answers of three of them explains enough; so does one with the answers of two that raises
        the other two's exceptions with other messages (two halves are unexplained).

        Other random inputs can make a mistake fail more tests than recorded: from half of them on,
        it runs in all.
        """
        names = {test.name for test, _ in failed}
        unrecorded = set() if mistake.fails is None else names - mistake.fails
        if 2 * len(unrecorded) > len(failed):
            return []
        most_unexplained = (1 - ENOUGH) * len(failed)
        unexplained = 0.0
        explained = list[str]()
        for test, transcript in sorted(failed, key=lambda failure: failure[0].name in unrecorded):
            share = self._share_explained(mistake, test, transcript)
            unexplained += 1 - share
            if unexplained > most_unexplained:
                return []
            if share:
                explained.append(test.name)
        return explained

    def _two_mistakes(
        self, mistakes: Sequence[Mistake], failed: Sequence[_Failure]
    ) -> dict[Mistake, list[str]]:
        """Return two mistakes that together explain all failing tests of one part, the second one all of the rest."""
        for mistake in mistakes:
            if self._explained(mistake, failed[:1]):
                rest = [failure for failure in failed if not self._explained(mistake, [failure])]
                names = [test.name for test, _ in rest]
                for other in mistakes:
                    if self._explained(other, rest) == names:
                        return {
                            mistake: [test.name for test, _ in failed if test.name not in names],
                            other: names,
                        }
        return {}

    def _share_explained(self, mistake: Mistake, test: Test, transcript: Transcript) -> float:
        key = mistake.id, test.name, is_told(transcript)
        attempt = self.attempts.get(key)
        if attempt is None or (not attempt.finished and transcript.begins_like(attempt.transcript)):
            attempt = self.attempts[key] = self._take(mistake, test, transcript)
            self._kept.add(attempt.transcript)
        if not (attempt.finished and attempt.failed and attempt.transcript.same_as(transcript)):
            return 0.0
        return (
            OF_TYPE_ALONE
            if transcript.differs_by_words(attempt.transcript, self.right_answers(test))
            else 1.0
        )

    def right_answers(self, test: Test) -> Transcript:
        """Return the solution's answers; none if it did not finish."""
        if test.name not in self._right:
            # a new module: nothing is cached in it
            subject = self._loaded(SOLUTION, self._solution.text)
            try:
                self._run(test, subject, f"the solution's answers in {test.name}")
            except TaskEndedError:
                return Transcript()
            self._right[test.name] = subject.connection.transcript
        return self._right[test.name]

    def _take(self, mistake: Mistake, test: Test, transcript: Transcript) -> Attempt:
        if mistake.id not in self._subjects:
            self._subjects[mistake.id] = self._loaded(mistake.id, mistake.source)
        subject = self._subjects[mistake.id]
        compared = Transcript if is_told(transcript) else partial(_Comparison, transcript)
        subject.connection.new_transcript = compared
        try:
            error = self._run(test, subject, f"{mistake.id} in {test.name}")
        except TaskEndedError:
            return Attempt(finished=True, failed=False, transcript=Transcript())
        # without the student's transcript
        taken = evidence(error, Transcript(subject.connection.transcript.answers))
        return Attempt(not isinstance(error, _OtherAnswer), error is not None, taken)

    def _run(
        self, test: Test, subject: RemoteSubject[LoopbackConnection], task: str
    ) -> BaseException | None:
        self._session.start(self._run_seed)
        with self._watch.limit(task, SECONDS, lasting=True):
            return self._session.run(test, subject)

    def _loaded(self, name: str, text: str) -> RemoteSubject[LoopbackConnection]:
        module = f"known.{self._solution.name}.{name}"
        # unique: Python finds the lines of a traceback by file name
        filename = f"{self._solution.name}.{name}.py"
        load_text(text, filename, module)
        connection = LoopbackConnection(Server(sys.modules[module]))
        return RemoteSubject(connection, RemoteStudent(connection), self._reference)
