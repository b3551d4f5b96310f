"""Follow-through marks: a student loses points for one error only once.

Failing tests of later parts are run again with the solution in place of the functions and classes
of a failed part. A test that the stub passes with the same names replaced does not count: an
unwritten part earns nothing.
"""

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autograder.bridge.outside.endless_calls import EndlessCalls
from autograder.bridge.outside.replay import ReplayCache
from autograder.bridge.outside.solution_answers import StandIns
from autograder.course.markers import BEGIN, parts_of_lines
from autograder.grading.prepared import PreparedAssignment
from autograder.grading.suite_run import SubmissionExaminee
from autograder.grading.time_limits import Watch
from autograder.grading.workers import LoadedSubmission, WorkerFactory
from autograder.suite.session import Ending, SuiteSession, Test

STUB_SEED = 0  # the same in all runs: whether a test counts must not depend on the run
Names = tuple[str, ...]


@dataclass(frozen=True)
class Retry:
    """How a test ended with the solution in place of other parts; `used` are the names for which that was called."""

    ending: Ending
    used: Names

    @property
    def followed(self) -> bool:
        return self.ending.passed and bool(self.used)


class FollowThrough:
    """Runs failed tests of one assignment again with parts of the solution."""

    def __init__(
        self,
        prepared: PreparedAssignment,
        workers: WorkerFactory,
        session: SuiteSession,
        watch: Watch,
    ) -> None:
        self._assignment = prepared.assignment
        self._stub = LoadedSubmission(workers, prepared.assignment, prepared.stub)
        self._workers = workers
        self._session = session
        self._watch = watch
        self._names, self._reached = names_of_parts(prepared.solution.text)
        self._passed_by_stub: dict[tuple[str, Names], set[str]] = {}

    def again(
        self, loaded: LoadedSubmission, endings: Sequence[Ending], seed: int
    ) -> dict[str, Retry]:
        """Run failed tests again with the solution in place of the earlier failed parts; return their ends by name."""
        retries: dict[str, Retry] = {}
        endless = loaded.endless.for_cured_code()
        wrong: set[str] = set()  # the names of the parts that failed so far
        for part in self._assignment.parts:
            of_part = [ending for ending in endings if ending.test.part == part.name]
            failed = [ending.test for ending in of_part if not ending.passed]
            replaced = tuple(sorted(wrong & self._reached.get(part.name, set())))
            if replaced and failed:
                tests = [ending.test for ending in of_part]
                earned_by_stub = self._tests_that_the_stub_passes(part.name, replaced, tests)
                tried = [test for test in failed if test.name not in earned_by_stub]
                retries |= self._taken(loaded, replaced, tried, seed, endless)
            followed = {name for name, retry in retries.items() if retry.followed}
            if not all(test.name in followed for test in failed):
                wrong.update(self._names.get(part.name, ()))
        return retries

    def _tests_that_the_stub_passes(
        self, part: str, replaced: Names, tests: Iterable[Test]
    ) -> set[str]:
        """Return the names of the tests of a part that need nothing from the student when these
        functions are the solution's.
        """
        if (part, replaced) not in self._passed_by_stub:
            retries = self._taken(self._stub, replaced, tests, STUB_SEED, EndlessCalls())
            passed = {name for name, retry in retries.items() if retry.ending.passed}
            self._passed_by_stub[part, replaced] = passed
        return self._passed_by_stub[part, replaced]

    def _taken(
        self,
        submission: LoadedSubmission,
        replaced: Names,
        tests: Iterable[Test],
        seed: int,
        endless: EndlessCalls,
    ) -> dict[str, Retry]:
        """Run tests on a submission with the solution in place of these functions and classes."""
        stand_ins = StandIns(self._workers.references[self._assignment.name], replaced)
        loaded = submission.cured(stand_ins, endless)
        cache = ReplayCache()  # a separate one: part of these answers comes from the solution
        examinee = SubmissionExaminee(loaded, cache, self._watch, again=True)
        retries = {}
        try:
            for ending in self._session.examine(examinee, seed, tests):
                retries[ending.test.name] = Retry(ending, tuple(sorted(stand_ins.called)))
        finally:
            loaded.close()
        return retries


def names_of_parts(solution: str) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Return the functions and classes that students write for each part, and all names that these use, directly or not.

    They contain a gap and stand between the marker of the previous part and that of their own part.
    """
    lines = solution.split("\n")
    parts = parts_of_lines(solution)
    names: dict[str, set[str]] = {part: set() for part in parts if part}
    refers: dict[str, set[str]] = {}
    for node in ast.parse(solution).body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        refers[node.name] = {
            name_node.id for name_node in ast.walk(node) if isinstance(name_node, ast.Name)
        }
        part = parts[node.lineno - 1]
        if part and any(BEGIN in line for line in lines[node.lineno : node.end_lineno]):
            names[part].add(node.name)
    reached = {}
    for part, names_of_part in names.items():
        reached[part] = set(names_of_part)
        waiting = set(names_of_part)
        while waiting:
            waiting = (refers[waiting.pop()] & refers.keys()) - reached[part] | waiting
            reached[part] |= waiting
    return names, reached
