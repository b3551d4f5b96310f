"""Calls in a fork of this process, which is replaced when it has ended or is in doubt.

The fork begins with all that this process has loaded. This process runs nothing that a submission has a part in, so
each replacement begins in the same state.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from autograder.grading.watch import KernelWatch
from autograder.records import InfrastructureError

CRASHES = {signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL}


@dataclass(frozen=True)
class _Reply:
    """What a call returned or, with its `traceback`, raised."""

    value: Any
    traceback: str = ""


@dataclass(frozen=True)
class _Ending:
    """The task that a fork was at when it ended, and its exit code: minus the number of a signal."""

    task: str
    lasting: bool
    code: int

    @property
    def late(self) -> bool:
        return self.code == -signal.SIGPROF

    @property
    def crashed(self) -> bool:
        """Whether the fork did something that ended it; otherwise it was ended from outside."""
        return -self.code in CRASHES


class _Fork:
    """One forked process and the connection to it."""

    def __init__(self, watch: KernelWatch, started: Callable[[], None]) -> None:
        self._watch = watch
        self._watch.clear()
        context: Any = multiprocessing.get_context("fork")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, self._connection, watch, started), daemon=True
        )
        self._process.start()
        theirs.close()

    def call(self, *request: Any) -> tuple[_Reply, bool] | None:
        """The reply, and whether the fork is in doubt; None when it ended."""
        try:
            self._connection.send(request)
            answer: tuple[_Reply, bool] = self._connection.recv()
        except (EOFError, OSError):
            return None
        return answer

    def end(self) -> _Ending:
        self._connection.close()  # one that waits for a call ends at that
        self._process.join()
        return _Ending(*self._watch.task, self._process.exitcode or 0)


class Disposable:
    """Calls functions in one fork at a time. `started` is called in each fork before anything else."""

    def __init__(self, watch: KernelWatch, started: Callable[[], None]) -> None:
        self._watch, self._started = watch, started
        self._lasting: dict[str, bool] = {}
        self._fork: _Fork | None = None
        gc.collect()
        gc.freeze()  # a collection would write to, and so copy, what forks share with this process

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What the function returns in the fork; raises what it raises there.

        A task in which the fork took too long once, or crashed twice, is not begun again: the call is repeated without
        it. Raises InfrastructureError for a fork that ended twice in another way.
        """
        ended, accidents = dict(self._lasting), set[str]()
        while True:
            self._fork = self._fork or _Fork(self._watch, self._started)
            answer = self._fork.call(ended, function, arguments)
            if answer is not None:
                return self._opened(*answer)
            ending = self._replace()
            if ending.task and (ending.late or ending.crashed and ending.task in accidents):
                ended[ending.task] = ending.late
                if ending.lasting:
                    self._lasting[ending.task] = ending.late
            elif ending.task in accidents:
                where = f" in {ending.task}" if ending.task else ""
                raise InfrastructureError(f"The grader died twice{where} (exit code {ending.code}).")
            accidents.add(ending.task)

    def _opened(self, reply: _Reply, in_doubt: bool) -> Any:
        if in_doubt:
            self._replace()
        if reply.traceback:
            raise reply.value from _RaisedInForkError(reply.traceback)
        return reply.value

    def _replace(self) -> _Ending:
        assert self._fork is not None
        fork, self._fork = self._fork, None
        return fork.end()


class _RaisedInForkError(Exception):
    """The traceback of an exception that was raised in the fork."""


def _serve(
    connection: Connection, other_end: Connection, watch: KernelWatch, started: Callable[[], None]
) -> None:
    """Runs in the fork."""
    other_end.close()
    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that forked this one decides
    watch.in_doubt = False
    started()
    while True:
        try:
            watch.ended, function, arguments = connection.recv()
        except EOFError:
            return
        try:
            reply = _Reply(function(*arguments))
        except Exception as error:
            reply = _Reply(error, "".join(traceback.format_exception(error)))
        connection.send((reply, watch.in_doubt))
