"""The inputs in a submitted catch.py: its code runs in a worker, and what comes back is plain data."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch

from autograder.checks.explain import clean
from autograder.course.config import Assignment
from autograder.grading.differences import LONGEST, SEED, count_numbers
from autograder.grading.workers import LOADING_FACTOR, WorkerFactory
from autograder.records import CATCH_FILE, SourceFile
from autograder.sandbox.outside.budget import Budget
from autograder.sandbox.outside.connection import malformed
from autograder.sandbox.outside.worker_connection import WorkerConnection
from autograder.sandbox.shared import claims
from autograder.sandbox.shared.containers import leaves
from autograder.sandbox.shared.errors import (
    LOADING_STOPPED,
    TAKES_TOO_LONG,
    RemoteException,
    StudentCrashedError,
    StudentError,
    StudentRaisedError,
    StudentTimeoutError,
    told_exception,
)

MOST_INPUTS = 20  # of one part
MOST_NUMBERS = 10_000  # of one input: all that is tried with it is done on the trusted side
MOST_WORKERS = 5  # for one catch.py: an input that ends its worker is followed by another one

_PLAIN = (type(None), bool, int, float, str, torch.Tensor, np.ndarray, torch.dtype)
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Input:
    """The arguments that an input consists of, or the sentence that refuses it."""

    arguments: tuple[Any, ...] = ()
    refused: str = ""


class UnusableCatchFileError(Exception):
    """A catch.py without inputs; `str(error)` is a sentence for the student."""


class CatchInputs:
    """A submitted catch.py, and the student's module beside it, which it can import."""

    def __init__(
        self,
        workers: WorkerFactory,
        assignment: Assignment,
        catch: SourceFile,
        module: SourceFile,
        budget: Budget,
    ) -> None:
        self._workers = workers
        self._assignment = assignment
        self._catch = catch
        self._module = module
        self._budget = budget
        self._connection: WorkerConnection | None = None
        self._opened = 0
        self._absent = ""  # the first module that it imports and that is not there

    def by_part(self, parts: Iterable[str]) -> dict[str, list[Input]]:
        """Return the inputs of these parts; the worker that made them has ended then.

        Raises UnusableCatchFileError.
        """
        try:
            counts = self._again_if_it_ends(self._counts)
            return {part: self._of_part(part, counts.get(part, 0)) for part in parts}
        except StudentError as error:
            raise UnusableCatchFileError(_sentence(error)) from None
        finally:
            self._close()

    def _of_part(self, part: str, count: int) -> list[Input]:
        inputs = [self._input(part, index) for index in range(min(count, MOST_INPUTS))]
        if count > MOST_INPUTS:
            inputs.append(Input(refused=f"Only {MOST_INPUTS} inputs of a part are tried."))
        return inputs

    def _input(self, part: str, index: int) -> Input:
        if self._budget.is_spent:
            return Input(refused="Your submission had used up its time before this input.")
        try:
            arguments = self._again_if_it_ends(lambda: self._made(part, index))
        except StudentError as error:
            return Input(refused=f"It cannot be made: {_sentence(error)}")
        if any(type(leaf) not in _PLAIN for leaf in leaves(arguments)):
            return Input(refused=self._odd)
        numbers = count_numbers(arguments)
        if numbers > MOST_NUMBERS:
            return Input(refused=f"It has {numbers:,} numbers; {MOST_NUMBERS:,} are the most.")
        return Input(arguments)

    @property
    def _odd(self) -> str:
        if self._absent:
            missing = f"{CATCH_FILE} imports `{self._absent}`"
            return f"{missing}, and there is no such module where it is graded."
        return "An input consists of tensors, numbers, texts, lists and None only."

    def _made(self, part: str, index: int) -> tuple[Any, ...]:
        value = self._open().request("make_input", part=part, index=index, seed=SEED)
        with malformed("an input"):
            return tuple(claims.items(value))

    def _counts(self) -> dict[str, int]:
        answer = self._open().request("count_inputs")
        with malformed("a number of inputs"):
            return {
                claims.text(part): claims.integer(count)
                for part, count in claims.table(answer).items()
            }

    def _again_if_it_ends(self, ask: Callable[[], Answer]) -> Answer:
        """Ask, and once more in a new worker if this one ended or the machine was too busy."""
        try:
            return ask()
        except (StudentTimeoutError, StudentCrashedError) as error:
            endless = isinstance(error, StudentTimeoutError) and not error.starved
            if endless or not self._budget.has_room:
                raise
        self._close()
        return ask()

    def _open(self) -> WorkerConnection:
        """Return a worker that has run the catch.py; raises StudentError."""
        if self._connection is not None and self._connection.dead:
            self._close()
        if self._connection is None:
            if self._opened >= MOST_WORKERS:
                raise StudentError(f"{CATCH_FILE} ended or kept waiting {self._opened} workers.")
            self._opened += 1
            self._connection = self._workers.connect(self._assignment, budget=self._budget)
            with self._closed_on_failure():
                self._load(self._connection)
        return self._connection

    def _load(self, connection: WorkerConnection) -> None:
        connection.start_test(SEED)
        connection.request("seed", seed=SEED)  # as at home
        stem = self._assignment.stem
        filename = f"{stem}.ipynb" if self._module.is_notebook else f"{stem}.py"
        connection.request("offer", name=stem, text=self._module.text, filename=filename)
        seconds = self._assignment.limits.load_seconds
        answer = connection.request(
            "load",
            LOADING_FACTOR * seconds,
            text=self._catch.text,
            filename=CATCH_FILE,
            limit=min(seconds, self._budget.left),
        )
        with malformed("the result of loading"):
            reply = claims.table(answer)
            absent = claims.rows(claims.items(reply["absent"])[:1], str, int, str)
            self._absent = next((clean(name, LONGEST) for name, _, _ in absent), "")
            errors = claims.items(reply["errors"])
            first = told_exception(errors[0]) if errors else None
        if first is not None:
            raise StudentError(_stopped(first))

    @contextmanager
    def _closed_on_failure(self) -> Iterator[None]:
        try:
            yield
        except StudentError:
            self._close()
            raise

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _stopped(error: RemoteException) -> str:
    line = error.frames[-1].line if error.frames else 0
    where = f" in line {line}" if line else ""
    if error.type == LOADING_STOPPED:
        return f"Line {line} of {CATCH_FILE} {TAKES_TOO_LONG}"
    return f"{CATCH_FILE} stops{where}: {clean(f'{error.type}: {error.text}', LONGEST)}"


def _sentence(error: StudentError) -> str:
    if isinstance(error, StudentRaisedError) and error.remote.type != "ValueError":
        return clean(f"{error.remote.type}: {error.remote.text}", LONGEST)
    return clean(str(error), LONGEST)
