"""The part `catch`: points for each wrong program that an input of the submitted catch.py separates from the solution.

The inputs come from a worker as plain data (see `catch_inputs`). The solution and the programs run
in this process, as they do when a submission is compared with known mistakes: no code of a student
runs here, and no process in which one runs knows anything of them.
"""

import runpy
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from autograder.course.catches import chosen, with_letters
from autograder.course.config import Assignment, Course, CourseError
from autograder.course.markers import CATCH
from autograder.course.mistakes import Mistake
from autograder.grading.catch_inputs import CatchInputs, Input, UnusableCatchFileError
from autograder.grading.differences import Outcome, difference, functions_in, not_taken, outcome_of
from autograder.grading.suite_run import CALLS_PER_TEST
from autograder.grading.watch import TaskEndedError, Watch
from autograder.grading.workers import WorkerFactory
from autograder.records import CATCH_FILE, SourceFile, Submission, TestResult
from autograder.sandbox.outside.budget import Budget
from autograder.sandbox.outside.local import load_text
from autograder.sandbox.outside.loopback import LoopbackConnection
from autograder.sandbox.outside.memory_limit import MemoryLimit
from autograder.sandbox.outside.steady import SteadyServer

SOLUTION = "solution"
LISTED = 3  # sentences about refused inputs in one message
UNFINISHED = ("MemoryError", "RecursionError", "SystemError")  # may leave this process in any state

Call = Callable[..., Any]


@dataclass
class _Tried:
    """What the inputs of one part caught, and the sentences about those that were refused."""

    inputs: int = 0
    caught: set[str] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)

    def message(self, part: str) -> str:
        """Return what a program that was not caught says."""
        if not self.inputs:
            return f"INPUTS of your {CATCH_FILE} has no input for `{part}`."
        if self.refused:
            return " ".join(self.refused[:LISTED])
        inputs = f"your {self.inputs} inputs" if self.inputs > 1 else "your input"
        none = "None of " if self.inputs > 1 else ""
        verb = "separates" if self.inputs > 1 else "does not separate"
        sentence = f"{none}{inputs} for `{part}` {verb} it from right code."
        return sentence[0].upper() + sentence[1:]


class CatchPart:
    """The programs of an assignment that has points for catching them.

    Raises CourseError if there are none.
    """

    def __init__(self, course: Course, assignment: Assignment, solution: str) -> None:
        self.assignment = assignment
        self._solution = solution
        self._programs = with_letters(chosen(course, assignment))
        if not self._programs:
            mistakes = course.label(course.mistakes_file(assignment))
            reason = "`catch` is off" if course.catch is False else f"{mistakes} has none"
            raise CourseError(
                f"course.yml: {assignment.name} has `catch_points`, but no programs to catch: {reason}."
            )
        file = course.catch_file(assignment)
        self._calls = functions_in(runpy.run_path(str(file)))
        missing = [part for part in self._programs if part not in self._calls]
        if missing:
            raise CourseError(f"{course.label(file)} does not define `{missing[0]}`.")

    def results(
        self,
        submission: Submission,
        module: SourceFile,
        workers: WorkerFactory,
        budget: Budget,
        watch: Watch,
    ) -> tuple[TestResult, ...]:
        """Return the result of each program; a catch.py that cannot be used catches none."""
        if submission.catch is None:
            return self._none(submission.catch_problem or self._missing)
        if budget.is_spent:
            return self._none(f"Your submission had used up its time before {CATCH_FILE}.")
        inputs = CatchInputs(workers, self.assignment, submission.catch, module, budget)
        try:
            by_part = inputs.by_part(self._programs)
        except UnusableCatchFileError as problem:
            return self._none(str(problem))
        trial = _Trial(self.assignment.name, self._solution, self._programs, budget, watch)
        results: list[TestResult] = []
        seconds = CALLS_PER_TEST * self.assignment.limits.call_seconds
        for part in self._programs:
            tried = trial.of_part(part, self._calls[part], by_part.get(part, ()), seconds)
            results += [
                self._result(part, letter, "" if letter in tried.caught else tried.message(part))
                for letter in self._programs[part]
            ]
        return tuple(results)

    @property
    def _missing(self) -> str:
        return (
            f"There is no {CATCH_FILE} beside your {self.assignment.stem}. Hand in the {CATCH_FILE} "
            "that came with the assignment, with your inputs in it."
        )

    def _none(self, sentence: str) -> tuple[TestResult, ...]:
        results: list[TestResult] = []
        for part, of_part in self._programs.items():
            results += [self._result(part, letter, sentence) for letter in of_part]
        return tuple(results)

    def _result(self, part: str, letter: str, message: str) -> TestResult:
        """Return the result for a program, which is caught if there is nothing to say about it."""
        assert self.assignment.catch_points is not None
        points = self.assignment.catch_points / sum(map(len, self._programs.values()))
        title = f"An input catches program {letter} of “{self.assignment.part(part).title}”."
        return TestResult(
            f"catch_{letter}",
            CATCH,
            title,
            "failed" if message else "passed",
            0.0 if message else points,
            points,
            message or None,
            hidden=False,
        )


class _Trial:
    """The solution and the programs, loaded anew for one submission."""

    def __init__(
        self,
        assignment: str,
        solution: str,
        programs: dict[str, dict[str, Mistake]],
        budget: Budget,
        watch: Watch,
    ) -> None:
        self._assignment = assignment
        self._programs = programs
        self._budget = budget
        self._watch = watch
        self._solution = self._loaded(SOLUTION, solution)

    def of_part(self, part: str, call: Call, inputs: Sequence[Input], seconds: float) -> _Tried:
        """Try the inputs of a part, each on those programs that none before it has caught."""
        programs = {
            letter: self._loaded(mistake.id, mistake.source)
            for letter, mistake in self._programs[part].items()
        }
        tried = _Tried(len(inputs))
        for number, given in enumerate(inputs, start=1):
            waiting = {
                letter: program
                for letter, program in programs.items()
                if letter not in tried.caught
            }
            if not waiting:
                break
            refused = given.refused or not_taken(call, given.arguments)
            if not refused:
                task = f"{CATCH}, input {number} of {part}"
                refused = self._limited(task, call, given.arguments, waiting, tried, seconds)
            if refused:
                name = f"Input {number}" if len(inputs) > 1 else "Your input"
                tried.refused.append(f"{name} for `{part}` is refused: {refused}")
        return tried

    def _limited(
        self,
        task: str,
        call: Call,
        arguments: tuple[Any, ...],
        waiting: dict[str, LoopbackConnection],
        tried: _Tried,
        seconds: float,
    ) -> str:
        """Try an input within limits of time and memory; return the sentence that refuses it, or ""."""
        if self._budget.is_spent:
            return "Your submission had used up its time before this input."
        seconds = min(seconds, self._budget.left)
        memory = MemoryLimit()
        memory.begin()
        try:
            with self._budget.counted(seconds), self._watch.limit(task, seconds):
                return self._compare(call, arguments, waiting, tried)
        except TaskEndedError:
            return "Right code takes too long for it."
        finally:
            memory.end()

    def _compare(
        self,
        call: Call,
        arguments: tuple[Any, ...],
        waiting: dict[str, LoopbackConnection],
        tried: _Tried,
    ) -> str:
        right = self._outcome(self._solution, call, arguments)
        if right.error:
            return right.error
        for letter, program in waiting.items():
            if difference(self._outcome(program, call, arguments), right, letter):
                tried.caught.add(letter)
        return ""

    def _outcome(
        self, program: LoopbackConnection, call: Call, arguments: tuple[Any, ...]
    ) -> Outcome:
        outcome = outcome_of(program, call, arguments)
        if outcome.error.startswith(UNFINISHED):
            self._watch.distrust()
        return outcome

    def _loaded(self, name: str, text: str) -> LoopbackConnection:
        module = f"{CATCH}.{self._assignment}.{name}"
        load_text(text, f"{CATCH}.{self._assignment}.{name}.py", module)
        server = SteadyServer(sys.modules[module])
        server.every_weight = True
        return LoopbackConnection(server)
