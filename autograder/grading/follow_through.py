"""Follow-through marks: one error is paid for once.

When tests of a part fail, the tests of later parts that fail are tried again with the solution in place of what the
failed part defines. A test that passes then has failed because of the earlier part only. It counts unless the stub
would pass it, too, with the same names in place: a part that was not written earns nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from autograder.course.config import Assignment, Course
from autograder.course.document import BEGIN
from autograder.grading.suite_run import SuiteRun, TestEnding
from autograder.grading.watch import TaskEndedError, Watch
from autograder.grading.workers import LoadedSubmission
from autograder.protocol.errors import StudentRaisedError
from autograder.protocol.server import Server
from autograder.proxy.loopback import LoopbackConnection
from autograder.proxy.remote import RemoteStudent
from autograder.proxy.stand_ins import StandIns
from autograder.proxy.subject import RemoteSubject
from autograder.suite.session import SuiteSession, Test

STUB_SECONDS = 10.0  # of processor time, for the stub in one test
_PART = re.compile(r'# %% part="(\w+)"')


@dataclass(frozen=True)
class Retry:
    """How a failed test ended with the solution in place of an earlier part; `names` are those that were used."""

    ending: TestEnding
    names: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return bool(self.names)


class FollowThrough:
    """Tries the tests of one assignment again, in one run."""

    def __init__(
        self,
        session: SuiteSession,
        course: Course,
        assignment: Assignment,
        reference: Any,
        run_seed: int,
        watch: Watch,
    ) -> None:
        self._session, self._assignment, self._reference = session, assignment, reference
        self._run_seed, self._watch = run_seed, watch
        self._names = names_of_parts(course.solution_file(assignment).read_text("utf-8"))
        stub = course.stub_file(assignment)
        self._stub = stub.read_text("utf-8") if stub.exists() else ""
        self._stubs: dict[tuple[str, ...], RemoteSubject[LoopbackConnection]] = {}
        self._passed_by_stub: dict[tuple[str, tuple[str, ...]], bool] = {}

    def retries(
        self, suite_run: SuiteRun, loaded: LoadedSubmission, endings: Sequence[TestEnding]
    ) -> dict[str, Retry]:
        """How failed tests end with the solution in place of the parts that failed before theirs, by name."""
        found: dict[str, Retry] = {}
        wrong: set[str] = set()  # the names of the parts that failed so far
        for part in self._assignment.parts:
            failed = [each for each in endings if each.test.part == part.name and not each.passed]
            own = self._names.get(part.name, [])
            names = tuple(sorted(wrong & self._reached(own, loaded)))
            if names and failed:
                found |= self._tried_again(suite_run, loaded, names, own, failed)
            if not all(found[each.test.name].passed if each.test.name in found else False for each in failed):
                wrong.update(own)
        return found

    def _reached(self, own: Iterable[str], loaded: LoadedSubmission) -> set[str]:
        """What the student's code of a part leads to; everything where that cannot be read from their text."""
        reached = [loaded.reached.get(name, set()) for name in own]
        if any(name not in found for name, found in zip(own, reached)):
            return {name for names in self._names.values() for name in names}
        return set().union(*reached)

    def _tried_again(
        self,
        suite_run: SuiteRun,
        loaded: LoadedSubmission,
        names: tuple[str, ...],
        own: list[str],
        failed: list[TestEnding],
    ) -> dict[str, Retry]:
        stand_ins = StandIns(self._reference, names)
        replaced = loaded.with_stand_ins(stand_ins)
        found: dict[str, Retry] = {}
        missed = {each.test.name for each in failed}
        try:
            for each in failed:
                test = each.test
                if missed & set(test.needs) or _is_unwritten(each, own) or self._stub_passes(test, names):
                    continue
                self._session.start(self._run_seed)
                ending = suite_run.again(test, replaced)
                used = tuple(sorted(stand_ins.called)) if ending.passed else ()
                found[test.name] = Retry(ending, used)
                if used:
                    missed.discard(test.name)
        finally:
            replaced.close()
        return found

    def _stub_passes(self, test: Test, names: tuple[str, ...]) -> bool:
        """Whether the solution's names alone pass a test; also where the stub cannot take it."""
        key = test.name, names
        if key not in self._passed_by_stub:
            self._session.start(self._run_seed)
            try:
                with self._watch.limit(f"the stub in {test.name}", STUB_SECONDS, lasting=True):
                    self._passed_by_stub[key] = self._session.run(test, self._stub_with(names)) is None
            except TaskEndedError:
                self._passed_by_stub[key] = True
        return self._passed_by_stub[key]

    def _stub_with(self, names: tuple[str, ...]) -> RemoteSubject[LoopbackConnection]:
        if names not in self._stubs:
            connection = LoopbackConnection(Server(ModuleType(f"stub_{len(self._stubs)}")))
            stand_ins = StandIns(self._reference, names)
            connection.load(None, stand_ins, text=self._stub, filename=f"{self._assignment.stem}.py")
            self._stubs[names] = RemoteSubject(connection, RemoteStudent(connection), self._reference)
        return self._stubs[names]


def names_of_parts(solution: str) -> dict[str, list[str]]:
    """The functions and classes that a student writes for each part: those with a gap before the part's marker."""
    lines, parts = solution.splitlines(), part_of_lines(solution)
    names: dict[str, list[str]] = {part: [] for part in parts if part}
    for node in ast.parse(solution).body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        part = parts[node.lineno - 1]
        if part and any(BEGIN in line for line in lines[node.lineno - 1 : node.end_lineno]):
            names[part].append(node.name)
    return names


def part_of_lines(solution: str) -> list[str]:
    """The part to which each line of a solution belongs, that of the next marker; "" behind the last one."""
    parts: list[str] = []
    part = ""
    for line in reversed(solution.splitlines()):
        found = _PART.match(line)
        part = found[1] if found else part
        parts.append(part)
    return parts[::-1]


def _is_unwritten(ending: TestEnding, own: Sequence[str]) -> bool:
    """Whether the student's own code of the part said that it is not written yet."""
    error = ending.error
    if not isinstance(error, StudentRaisedError) or error.remote.type != "NotImplementedError":
        return False
    frames = error.remote.frames
    return not frames or frames[-1].function.partition(".")[0] in own
