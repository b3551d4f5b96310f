"""What the results of tests have in common: the cause of failures, its question and its message.

All that show results ask here: pages, Markdown, the terminal, notebooks and nbgrader's cells.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from autograder.records import HIDDEN_TESTS, TestResult

# what a failure is called on a page
STATES = {"failed": "not yet", "timeout": "took too long", "crashed": "crashed"}


@dataclass(frozen=True)
class Cause:
    """Tests that fail for one cause, in their order; a test that is right, and one that waits, is alone."""

    tests: tuple[TestResult, ...]

    @property
    def question(self) -> str:
        """The question that a known mistake asks; empty without one."""
        first = self.tests[0]
        return first.hint or "" if first.fails else ""

    @property
    def mistake(self) -> str:
        """The name of the known mistake; empty without one."""
        return self.tests[0].mistake or "" if self.question else ""

    @property
    def familiar(self) -> str:
        """The sentence that names the known mistake; empty without one."""
        return f"This looks familiar: {self.mistake}." if self.mistake else ""

    @property
    def shared(self) -> str:
        """The message of several failing tests if it is the same for all, to be shown once; else empty."""
        messages = {test.message or "" for test in self.tests}
        is_shared = len(self.tests) > 1 and len(messages) == 1 and self.tests[0].fails
        return messages.pop() if is_shared else ""

    @property
    def failures(self) -> list[list[TestResult]]:
        """The tests by how they ended and what they met."""
        failures: dict[tuple[str, str], list[TestResult]] = {}
        for test in self.tests:
            failures.setdefault((test.outcome, test.message or ""), []).append(test)
        return list(failures.values())


def causes_of(results: Iterable[TestResult]) -> list[Cause]:
    """Return the causes of these results, in the order of the first test of each."""
    causes: dict[object, list[TestResult]] = {}
    for result in results:
        causes.setdefault(result.cause, []).append(result)
    return [Cause(tuple(tests)) for tests in causes.values()]


def told(result: TestResult) -> str:
    """Return the message of a result, as far as it tells something: not that a test waits for another."""
    waits = result.outcome == "skipped" and result.name != HIDDEN_TESTS
    return "" if waits or result.outcome == "passed" else result.message or ""
