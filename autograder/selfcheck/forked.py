"""Run a student's code in a forked child, so that it cannot end this process; loaded modules are inherited.

On systems without fork (Windows), the task runs in this process without a time limit. Nothing else
is isolated.
"""

import multiprocessing
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from autograder.records import RefusedError
from autograder.walls.outside.deadline import Deadline, DeadlineExceededError

STEP = 0.05
GRACE_SECONDS = 1.0


class Unfinished(Exception):
    """The child returned no result; `str(error)` is a message for the student."""


class GivenUp(Unfinished):
    """The caller cancelled the task."""


def run_in_child(
    task: Callable[[], Any], seconds: float, give_up: Callable[[], bool] = lambda: False
) -> Any:
    """Return the result of `task`, which must be picklable; `give_up` is polled during the run.

    The child may use `seconds` of processor time (see `Deadline`). Raises RefusedError if the task
    does, Unfinished on a timeout or if the child exits.
    """
    if not hasattr(os, "fork"):
        return task()
    context: Any = multiprocessing.get_context("fork")
    reading, writing = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(task, writing))
    child.start()
    writing.close()
    deadline = Deadline(seconds, _Child(child.pid or 0))
    try:
        while not reading.poll(min(STEP, deadline.left(reading.poll))):
            if give_up():
                raise GivenUp("The file changed while it was checked.")
        reply = reading.recv()
    except DeadlineExceededError as late:
        how = "took more than {:g} seconds"
        hint = "Does it wait for something?"
        if late.limit == "processor":
            how = "used more than {:g} seconds of processor time"
            hint = "Is there an endless loop?"
        raise Unfinished(f"Your code {how.format(late.seconds)} and was stopped. {hint}") from None
    except EOFError:
        child.join(GRACE_SECONDS)
        code = child.exitcode or 0
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        raise Unfinished(f"Your code ended the process that ran it ({how}).") from None
    finally:
        reading.close()
        child.kill()
        child.join()
    if isinstance(reply, Exception):
        raise reply
    return reply


@dataclass(frozen=True)
class _Child:
    """The processor time of a child, as the kernel counts it; 0 where there is no /proc."""

    pid: int

    def processor_seconds(self) -> float:
        try:
            line = Path(f"/proc/{self.pid}/stat").read_bytes()
        except OSError:
            return 0.0
        user, system = line.rpartition(b")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def wants_processor(self) -> bool:
        return False


def _answer(task: Callable[[], Any], writing: Connection) -> None:
    """Run the task in the child, and send its result; silent if Ctrl-C or a closed pipe prevents it."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # input() gets an end of file
    with suppress(KeyboardInterrupt, OSError):
        try:
            reply = task()
        except RefusedError as refusal:
            reply = refusal
        except Exception as error:
            reply = Unfinished(f"The tests themselves stopped: {type(error).__name__}: {error}")
        writing.send(reply)
