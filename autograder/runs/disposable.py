"""Call functions in a fork of this process; a fork that ended or may be damaged is replaced.

This process itself never handles data of a submission, so each fork starts in the same state. What a
fork replies is read as what it may be: bytes of a process that a submission has taken over.
"""

import gc
import multiprocessing
import signal
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

from autograder.grading.time_limits import KernelWatch
from autograder.records import InfrastructureError
from autograder.runs import replies

LONGEST_REPLY = 256 << 20  # bytes
CRASHES = {signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL}


class Disposable:
    """Calls functions in one fork at a time; each fork calls `started` first, and then `enclose` with the
    descriptor of its pipe.

    `fits` tells whether a value can be what a function returns for its arguments; a fork that
    replies with another is no longer trusted, and counts as one that ended.
    """

    def __init__(
        self,
        watch: KernelWatch,
        started: Callable[[], None],
        enclose: Callable[[int], object] = lambda pipe: None,
        fits: Callable[[Any, Sequence[Any]], bool] = lambda value, arguments: True,
    ) -> None:
        self._watch = watch
        self._fits = fits
        self._started = started
        self._enclose = enclose
        self._left_out_always: dict[str, bool] = {}
        self._process: Any = None
        self._connection: Any = None

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call the function in the fork; return its result or raise its exception.

        If the fork ends, the call is repeated in a new one:

        | the fork ended in a task (see `Watch.limit`) by | first time       | second time         |
        |-------------------------------------------------|------------------|---------------------|
        | the task's time limit                           | without the task | –                   |
        | a crash, or an exit of its own                  | with the task    | without the task    |
        | a signal from outside                           | with the task    | InfrastructureError |

        Outside of tasks, a second end raises InfrastructureError, too.
        """
        left_out = dict(self._left_out_always)  # task: whether its time limit ended it
        accidents = set[str]()
        self._watch.begin_call()
        while True:
            reply = self._reply(left_out, function, arguments)
            if reply is not None:
                value, raised_at, in_doubt = reply
                if in_doubt:
                    self.end()
                if raised_at:
                    raise value from _RaisedInForkError(raised_at)
                return value
            code = self.end()
            task, lasting = self._watch.task
            late = code == -signal.SIGPROF
            crashed = code > 0 or -code in CRASHES
            self._watch.settle(late)
            if task and (late or (crashed and task in accidents)):
                left_out[task] = late
                if lasting:
                    self._left_out_always[task] = late
            elif task in accidents:
                where = f" in {task}" if task else ""
                raise InfrastructureError(f"The grader died twice{where} (exit code {code}).")
            accidents.add(task)

    def end(self) -> int:
        """End the fork, if there is one; return its exit code: minus the number of the signal that ended it."""
        if self._process is None:
            return 0
        process = self._process
        self._process = None
        self._connection.close()  # a fork that waits for a call then ends
        process.join()
        return int(process.exitcode)

    def _reply(
        self, left_out: dict[str, bool], function: Callable[..., Any], arguments: Sequence[Any]
    ) -> tuple[Any, str, bool] | None:
        """Return the reply of `_serve`: value or exception, traceback, whether the fork is in doubt; None if it ended."""
        if self._process is None:
            self._watch.clear()
            gc.collect()
            gc.freeze()  # a collection would write to, and so copy, what forks share with this process
            context: Any = multiprocessing.get_context("fork")
            self._connection, theirs = context.Pipe()
            ends = theirs, self._connection
            beginnings = self._started, self._enclose
            self._process = context.Process(
                target=_serve, args=(*ends, self._watch, *beginnings), daemon=True
            )
            self._process.start()
            theirs.close()
        try:
            self._connection.send((left_out, function, arguments))
            data = self._connection.recv_bytes(LONGEST_REPLY)
        except (EOFError, OSError):
            return None
        try:
            value, raised_at, in_doubt = replies.loads(data)
            if not (raised_at or self._fits(value, arguments)):
                raise ValueError("a reply to another call")
        except Exception:  # it was no trusted code that sent this
            self._process.kill()
            return None
        return value, str(raised_at), bool(in_doubt)


class _RaisedInForkError(Exception):
    """The traceback of an exception that was raised in the fork."""


def _serve(
    connection: Connection,
    other_end: Connection,
    watch: KernelWatch,
    started: Callable[[], None],
    enclose: Callable[[int], object],
) -> None:
    other_end.close()
    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process decides
    watch.in_doubt = False
    started()
    enclose(connection.fileno())
    while True:
        try:
            watch.ended, function, arguments = connection.recv()
        except EOFError:
            return
        try:
            reply = function(*arguments), ""
        except Exception as error:
            reply = error, "".join(traceback.format_exception(error))
        connection.send_bytes(replies.dumps((*reply, watch.in_doubt)))
