"""A connection to a sandboxed worker: deadlines, limits on replies, and the replay of known tests."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from autograder.bridge.outside.connection import Connection, too_much_to_send
from autograder.bridge.outside.endless_calls import EndlessCalls
from autograder.bridge.outside.replay import Exchange, ReplayCache, ReplaySocket, Request
from autograder.bridge.outside.transcript import Transcript
from autograder.bridge.shared import wire
from autograder.bridge.shared.errors import StudentCrashedError, StudentError, StudentTimeoutError
from autograder.walls.outside.budget import Budget
from autograder.walls.outside.deadline import Deadline, DeadlineExceededError
from autograder.walls.outside.memory_limit import MemoryLimit

if TYPE_CHECKING:
    from autograder.walls.outside.worker_process import WorkerProcess

UNANSWERED = {"seed"}  # cannot fail and has no reply
# always given their full time
NOT_CALLS_OF_THE_STUDENT = {"load", "names_used", "outline", "reaches_outside"}
# limit of the data received in one test, part of which its transcript stores
MAX_TEST_BYTES = 96 << 20
HEADER_WEIGHT = 32  # bytes of Python objects per byte of a header, approximately
MAX_CALLBACKS_INSIDE = 16  # maximum nesting of calls of the test's callables
_ENDINGS = {
    "cpu": "Your code used up its processor time.",
    "wall": "Your code used up its time.",
    "disk": "Your code wrote more files than it may.",
}


class WorkerConnection(Connection):
    """Requests over a worker's socket, each with a deadline.

    A dead or silent worker is never used again. `endless` counts the calls that did not end; later
    ones have less time.
    """

    def __init__(
        self, worker: "WorkerProcess", call_seconds: float, budget: Budget | None = None
    ) -> None:
        super().__init__()
        self.worker = worker
        self._socket = ReplaySocket(worker.socket)
        self.call_seconds = call_seconds
        self.endless = EndlessCalls()
        self._budget = budget or Budget()
        self._counted = 0.0
        self._waited = 0.0
        self._until = math.inf
        self._number = 0
        self._callbacks_inside = 0
        self.received = 0
        self._dead: StudentError | None = None
        self._memory_limit = MemoryLimit()

    @property
    def exchanges(self) -> Sequence[Exchange]:
        return self._socket.exchanges

    def start_test(self, seed: int) -> Transcript:
        self._socket.begin()
        self.received = self._number = 0
        self._memory_limit.begin()
        return super().start_test(seed)

    def run(
        self,
        test: str,
        body: Callable[[], BaseException | None],
        until: float,
        cache: ReplayCache | None,
    ) -> tuple[BaseException | None, bool]:
        """Replay the known part of a test, and call `body`, which runs it, unless the replay passes it.

        Return the error of the test, None if it passed, and whether it diverged: it sent different
        requests than before and needs a fresh worker. The student's code is not waited for after
        `until` (time.monotonic). Without a cache, nothing is replayed or recorded.
        """
        try:
            with self.ending_at(until):
                replayed = None
                if cache is not None and not self.dead:
                    replayed = self._socket.replay(cache, test, self._deadline, until)
                if replayed is not None:
                    self.entered.update(replayed.entered)
                    return None, False
                error = body()
            if cache is not None and self._socket.diverged:
                cache.nondeterministic.add(test)
                return error, True
            if error is None:
                self._socket.mark_passed(self.entered)
            return error, False
        finally:
            self._socket.disable()  # the requests after a test do not belong to it
            self._count()

    @contextmanager
    def ending_at(self, until: float) -> Iterator[None]:
        """Wait for none of the requests inside after that moment (time.monotonic)."""
        self._until = until
        try:
            yield
        finally:
            self._until = math.inf

    def exchange(
        self, operation: str, arguments: dict[str, Any], seconds: float | None
    ) -> dict[str, Any]:
        self._raise_if_dead()
        self._number += 1
        number = 0 if operation in UNANSWERED else self._number
        try:
            frame = wire.dumps([number, operation, arguments], self.register)
        except wire.WireError as error:
            raise too_much_to_send(error) from None
        name = _called(operation, arguments)
        seconds = seconds or self.call_seconds
        deadline = self._deadline(name, seconds, self._until)
        try:
            self._socket.send(Request(frame, name, seconds), deadline)
            return self._await_reply(number, deadline) if number else {"ok": None}
        except StudentError:
            raise
        except DeadlineExceededError as late:
            raise self._ended(self.endless.too_late(name, late)) from None
        except (EOFError, OSError):
            self._raise_if_dead()  # it died in a nested call, whose error is more precise
            raise self._ended(StudentCrashedError(self._exit_reason())) from None
        except wire.WireError as error:
            raise self._ended(
                StudentCrashedError(f"What came back could not be read: {error}.")
            ) from None
        except BaseException:  # raised by a callback: a late reply must not answer the next request
            self._ended(StudentTimeoutError("Your code was stopped while the test waited for it."))
            raise
        finally:
            self._count()

    def _deadline(self, name: str, seconds: float, until: float) -> Deadline:
        """Return the deadline of a call, which is shorter for a name that timed out before."""
        share = self.endless.share_left(name)
        seconds = min(self._budget.left, seconds * share)
        return Deadline(seconds, self.worker, min(until, self._budget.until))

    def _await_reply(self, number: int, deadline: Deadline) -> dict[str, Any]:
        while True:
            reply = self._receive(deadline)
            if type(reply) is not dict:
                raise wire.WireError("it is not a reply")
            if "callback" in reply or "pull_back" in reply:
                self._socket.send(Request(self._returned(number, reply)), deadline)
                continue
            if type(reply.get("id")) is not int or reply["id"] != number:
                raise wire.WireError("it is not the reply to this question")
            if ("ok" in reply) == ("error" in reply):
                raise wire.WireError("it is neither an answer nor an error")
            return reply

    def _returned(self, number: int, question: dict[str, Any]) -> bytes:
        """Return the frame that answers a question of the worker."""
        answer = self._call_inside(question)
        try:
            return wire.dumps([number, wire.RETURN, answer], self.register)
        except wire.WireError as error:
            return wire.dumps([number, wire.RETURN, self.refused(question, error)])

    def _receive(self, deadline: Deadline) -> Any:
        header, data = self._socket.receive(deadline)
        self.received += HEADER_WEIGHT * len(header) + len(data)
        self._budget.receive(len(header) + len(data))
        if self.received > MAX_TEST_BYTES:
            raise wire.WireError("there is too much of it in one test")
        return wire.loads(header, data)

    def _call_inside(self, frame: dict[str, Any]) -> dict[str, Any]:
        if self._callbacks_inside >= MAX_CALLBACKS_INSIDE:
            raise wire.WireError("calls back are nested too deeply")
        self._callbacks_inside += 1
        try:
            return self.answer_callback(frame)
        finally:
            self._callbacks_inside -= 1

    def close(self) -> None:
        self._memory_limit.end()
        self.worker.close()
        self._budget.note(self.worker.tried)
        self._count()

    def _count(self) -> None:
        """Count the processor time that the worker has used, and waited for, since it was last
        counted: its threads can also work between two calls.
        """
        used = self.worker.processor_seconds()
        self._budget.use(max(0.0, used - self._counted))
        self._counted = max(used, self._counted)
        waited = self.worker.seconds_waited()
        self._budget.withhold(max(0.0, waited - self._waited))
        self._waited = max(waited, self._waited)

    def _raise_if_dead(self) -> None:
        if self._dead is not None:
            # otherwise its traceback would grow with each request
            raise self._dead.with_traceback(None)

    def _ended(self, error: StudentError) -> StudentError:
        self._dead = error
        self.dead = True
        self.worker.end(kill=True)
        return error

    def _exit_reason(self) -> str:
        # after another request than before it does not end by itself, and nothing of it counts
        ending = self.worker.end(kill=self._socket.diverged)
        if ending.reason in _ENDINGS:
            return _ENDINGS[ending.reason]
        how = f"signal {-ending.code}" if ending.code < 0 else f"exit code {ending.code}"
        return f"Your code ended the process that ran it ({how})."


def _called(operation: str, arguments: dict[str, Any]) -> str:
    """Return the name of the called object: `attention`, `Head`, or `forward` for a module; empty for loading."""
    if operation == "call":
        return ".".join(arguments["target"][1]) or "forward"
    return "" if operation in NOT_CALLS_OF_THE_STUDENT else f"({operation})"
