"""The trusted end of a conversation with a student's module: requests, deadlines, callbacks, transcript.

`WorkerConnection` speaks to a sandboxed process; `LoopbackConnection` to a module of our own in this process
(a known mistake, for instance), through the same frames, so that both leave transcripts that can be compared.
"""

from __future__ import annotations

import hashlib
import math
import random
import types
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.random.mtrand import get_bit_generator, set_bit_generator
from torch import nn

from autograder.records import InfrastructureError
from autograder.sandbox.worker import Server, answer, raise_told, unsendable
from autograder.student import wire
from autograder.student.allowance import Allowance
from autograder.student.conversation import Conversations, Line, Said
from autograder.student.errors import (
    Frame,
    RemoteException,
    StudentCrashed,
    StudentError,
    StudentTimeout,
    mirrored_name,
    student_raised,
)
from autograder.student.graphs import Graphs
from autograder.student.patience import Patience, TooLate
from autograder.student.transcript import Transcript
from autograder.student.tree import leaves, mapped

UNANSWERED = {"seed"}  # cannot fail, and nobody waits for it
NOT_ITS_CALLS = {"load", "names_used", "outline"}  # waited for in full, whatever did not end before
IMPATIENCE = (0.1, 0.05, 0.025)  # what is left when a name did not end once, twice, more often
RECORDED = {"call", "backward", "get", "convert"}
MAX_TEST_BYTES = 96 << 20  # what one test may receive; some of it is kept in its transcript
HEADER_WEIGHT = 32  # a byte of a header becomes about so many bytes of Python's objects
MAX_CALLBACKS_INSIDE = 16  # how deeply calls of the test's callables may be nested
_ENDINGS = {
    "cpu": "Your code used up its processor time.",
    "wall": "Your code used up its time.",
}
_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)


class Worker(Protocol):
    """What a connection needs of a sandboxed process (see `autograder.sandbox.launcher`)."""

    socket: Any

    def end(self, kill: bool = True) -> Any: ...

    def in_line(self) -> float: ...

    def others_ran(self) -> float: ...

    def output(self, limit: int = ...) -> str: ...

    def close(self) -> None: ...


class Connection:
    """One student's module, wherever it lives. Subclasses say how a request travels."""

    def __init__(self) -> None:
        self.adopt: Callable[[Connection, Any], Any] = _as_it_is  # turns handles into what stands for objects
        self.new_transcript: Callable[[], Transcript] = Transcript
        self.transcript = Transcript()
        self.found: dict[str, Any] = {}  # the student's names that this test has asked for
        self.mirrors: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self.graphs = Graphs()  # of calls of the test's callables
        self._calls_back = 0
        self._callables: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._callback_failure: AssertionError | None = None

    def request(self, operation: str, seconds: float | None = None, **arguments: Any) -> Any:
        """The value that the student's side answers; raises a StudentError when it does not."""
        try:
            reply = self.exchange(operation, arguments, seconds)
            with malformed("an answer"):
                if "error" in reply:
                    raise _told_error(reply["error"])
                value = reply["ok"]
        except StudentError as error:
            if operation in RECORDED:
                self.transcript.record_error(operation, arguments, error)
            self._raise_callback_failure()
            raise
        if operation in RECORDED:
            with malformed("an answer"):
                self.transcript.record(operation, arguments, value)
        self._raise_callback_failure()
        return value

    def exchange(self, operation: str, arguments: dict, seconds: float | None) -> dict:
        """Send one request and wait for its reply, answering callbacks meanwhile."""
        raise NotImplementedError

    @property
    def dead(self) -> bool:
        """Whether nothing will ever be answered again."""
        return False

    def close(self) -> None:
        """Let go of the other side."""

    def start_test(self, seed: int) -> Transcript:
        """Forget what earlier tests left behind; returns the transcript that this test will fill."""
        self._callables.clear()
        self._numbers.clear()
        self.mirrors.clear()
        self.graphs.clear()
        self._calls_back = 0
        self.found.clear()
        self.transcript = self.new_transcript()
        self.request("seed", seed=_seed_over_there(seed))
        return self.transcript

    # ------------------------------------------------------------------ callables of the test

    def register(self, value: Any) -> wire.Handle | wire.CallableHandle | None:
        """A handle for a student's object that lives there, or for one of the test that may be called back."""
        as_handle = getattr(type(value), "as_handle", None)
        if as_handle is not None:
            return as_handle(value)
        if type(value).__module__ == "builtins" and not isinstance(value, _FUNCTIONS):
            return None
        number = self._numbers.setdefault(id(value), len(self._callables))
        if number == len(self._callables):
            self._callables.append(value)
        return wire.CallableHandle(number, {"training": bool(getattr(value, "training", True))})

    def own_callable(self, number: int) -> Any:
        if not 0 <= number < len(self._callables):
            raise LookupError("an unknown callable")
        return self._callables[number]

    def answer_callback(self, frame: dict) -> dict:
        """What the test's own callable says to the student's code, forwards or backwards; never raises because of it."""
        try:
            if "pull_back" in frame:
                return {"value": self.graphs.pull_back(int(frame["pull_back"]), list(frame["gradients"]))}
            return self._call_of_own(frame)
        except AssertionError as error:
            self._callback_failure = error
            return {"error": str(error)[:500], "type": "AssertionError"}
        except InfrastructureError:
            raise
        except Exception as error:  # whatever the student's arguments broke in the test's callable
            return {"error": str(error)[:500], "type": mirrored_name(error)}

    def _call_of_own(self, frame: dict) -> dict:
        function = self.own_callable(int(frame["callback"]))
        path, args, kwargs = list(frame["path"]), tuple(frame["args"]), dict(frame["kwargs"])
        args, kwargs = self.adopt(self, (args, kwargs))
        sources: list[torch.Tensor] = []

        def tied(leaf: Any) -> Any:
            """A copy, which the callable may change in place though a gradient is wanted."""
            if not (frame["grad"] and isinstance(leaf, torch.Tensor) and leaf.is_floating_point()):
                return leaf
            sources.append(leaf.requires_grad_())
            return leaf.clone()

        with torch.set_grad_enabled(bool(frame["grad"])):
            args, kwargs = mapped(tied, (args, kwargs))
            value = _call_own(function, path, args, kwargs)
        results = [leaf for leaf in leaves(value) if isinstance(leaf, torch.Tensor)]
        flags = [bool(sources) and result.requires_grad for result in results]
        self._calls_back += 1
        if any(flags):
            self.graphs.keep(self._calls_back, results, sources)
        return {"value": value, "call": self._calls_back, "differentiable": flags}

    def _raise_callback_failure(self) -> None:
        failure, self._callback_failure = self._callback_failure, None
        if failure is not None:
            raise failure


class WorkerConnection(Connection):
    """Requests over a worker's socket, each with a deadline. A dead or silent worker is dead for good."""

    def __init__(self, worker: Worker, call_seconds: float, endless: Counter[str] | None = None) -> None:
        super().__init__()
        self.worker = worker
        self.line = Line(worker.socket)
        self.call_seconds = call_seconds
        self._endless = Counter[str]() if endless is None else endless  # how often which calls did not end
        self._number = 0
        self._callbacks_inside = 0
        self._received = 0
        self._dead: StudentError | None = None
        self._allowance = Allowance()

    def start_test(self, seed: int) -> Transcript:
        self._received = self._number = 0
        self._allowance.begin()
        return super().start_test(seed)

    def recite(self, known: Conversations, test: str, until: float) -> bool:
        """Go through the known part of a test; True when it is passed, otherwise it is to be run."""
        return not self.dead and self.line.recite(known, test, self._patience, until)

    def exchange(self, operation: str, arguments: dict, seconds: float | None) -> dict:
        self._raise_if_dead()
        self._number += 1
        number = 0 if operation in UNANSWERED else self._number
        try:
            frame = wire.dumps([number, operation, arguments], self.register)
        except wire.WireError as error:
            raise _too_much_to_send(error) from None
        name, seconds = _called(operation, arguments), seconds or self.call_seconds
        patience = self._patience(name, seconds)
        try:
            self.line.say(Said(frame, name, seconds), patience)
            return self._await_reply(number, patience) if number else {"ok": None}
        except StudentError:
            raise
        except TooLate as late:
            self._die(self._too_late(name, patience.seconds, late))
        except (EOFError, OSError):
            self._raise_if_dead()  # it died in a call from inside this one, which knows better why
            self._die(StudentCrashed(self._epitaph()))
        except wire.WireError as error:
            self._die(StudentCrashed(f"What came back could not be read: {error}."))
        except BaseException:  # the test's alarm: a late answer must not answer the next question
            self._bury(StudentTimeout("Your code was stopped while the test waited for it."))
            raise
        raise AssertionError("unreachable")

    def _patience(self, name: str, seconds: float, until: float = math.inf) -> Patience:
        """How long to wait: not as long for what did not end before; from the second such name on, each
        halves what others are given."""
        times, others = self._endless[name], len(self._endless.keys() - {name})
        share = IMPATIENCE[min(times, 3) - 1] if times else max(IMPATIENCE[0], 0.5 ** max(0, others - 1))
        return Patience(seconds * share if name else seconds, self.worker, until)

    def _too_late(self, name: str, seconds: float, late: TooLate) -> StudentTimeout:
        again = ", as in an earlier test" if self._endless[name] else ""
        if name and late.endless:
            self._endless[name] += 1
        return StudentTimeout(f"Your code gave no answer within {seconds:g} seconds{again}.", late.starved)

    def _await_reply(self, number: int, deadline: Patience) -> dict:
        while True:
            reply = self._receive(deadline)
            if type(reply) is not dict:
                raise wire.WireError("it is not a reply")
            if "callback" in reply or "pull_back" in reply:
                answered = [number, "return", self._call_inside(reply)]
                self.line.say(Said(wire.dumps(answered, self.register)), deadline)
                continue
            if type(reply.get("id")) is not int or reply["id"] != number:
                raise wire.WireError("it is not the reply to this question")
            if ("ok" in reply) == ("error" in reply):
                raise wire.WireError("it is neither an answer nor an error")
            return reply

    def _receive(self, deadline: Patience) -> Any:
        header, data = self.line.hear(deadline)
        self._received += HEADER_WEIGHT * len(header) + len(data)
        if self._received > MAX_TEST_BYTES:
            raise wire.WireError("there is too much of it in one test")
        return wire.loads(header, data)

    def _call_inside(self, frame: dict) -> dict:
        if self._callbacks_inside >= MAX_CALLBACKS_INSIDE:
            raise wire.WireError("calls back are nested too deeply")
        self._callbacks_inside += 1
        try:
            return self.answer_callback(frame)
        finally:
            self._callbacks_inside -= 1

    @property
    def dead(self) -> bool:
        return self._dead is not None

    def close(self) -> None:
        self._allowance.end()
        self.worker.close()

    def _raise_if_dead(self) -> None:
        if self._dead is not None:
            raise self._dead.with_traceback(None)  # or its traceback would grow with each question

    def _die(self, error: StudentError) -> None:
        self._bury(error)
        raise error from None

    def _bury(self, error: StudentError) -> None:
        self._dead = error
        self.worker.end(kill=True)

    def _epitaph(self) -> str:
        ending = self.worker.end(kill=False)
        if ending.reason in _ENDINGS:
            return _ENDINGS[ending.reason]
        how = f"signal {-ending.code}" if ending.code < 0 else f"exit code {ending.code}"
        return f"Your code ended the process that ran it ({how})."


class LoopbackConnection(Connection):
    """A trusted module in this process, spoken to in the same way. Its random numbers are its own."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.server = Server(name)
        self.server.link = self
        self._other_random_numbers = _RandomNumbers.elsewhere()

    def exchange(self, operation: str, arguments: dict, seconds: float | None) -> dict:
        try:
            arguments = _travelled(arguments, self.register, wire.MAX_DATA)
        except wire.WireError as error:
            raise _too_much_to_send(error) from None
        with self._sides_changed():
            reply = answer(self.server, operation, arguments)
        try:
            return _travelled(reply, self.server.register, wire.MAX_TEXT)
        except wire.WireError as error:
            return {"error": unsendable(error)}

    def ask(self, question: dict) -> dict:
        """As `worker.Link`: how the server in this process reaches the test's callables."""
        frame = _travelled(question, self.server.register, wire.MAX_TEXT)
        with self._sides_changed():
            reply = self.answer_callback(frame)
        raise_told(reply)
        return self.server.localise(_travelled(reply, self.register, wire.MAX_DATA))

    @contextmanager
    def _sides_changed(self) -> Iterator[None]:
        """Change sides: the module's random numbers inside a request, the test's inside a call back."""
        self._change_sides()
        try:
            yield
        finally:
            self._change_sides()

    def _change_sides(self) -> None:
        here = _RandomNumbers.here()
        self._other_random_numbers.come_here()
        self._other_random_numbers = here


def _seed_over_there(seed: int) -> int:
    """The seed that the student's side is told: from the test's own it could draw what the test keeps to itself."""
    digest = hashlib.sha256(f"student/{seed}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def _called(operation: str, arguments: dict) -> str:
    """The name of what is called: `attention`, `Head`, or `forward` for a module itself; empty for loading."""
    if operation == "call":
        return ".".join(arguments["target"][1]) or "forward"
    return "" if operation in NOT_ITS_CALLS else f"({operation})"


@contextmanager
def malformed(what: str) -> Iterator[None]:
    """Whatever a malformed reply breaks on our side is the student's failure, not ours."""
    try:
        yield
    except StudentError:
        raise
    except Exception as error:
        raise StudentCrashed(f"What came back is not {what} ({type(error).__name__}).") from None


def _travelled(value: Any, register: wire.Register, max_text: int) -> Any:
    return wire.parse(wire.dumps(value, register, max_text), max_text)


def _too_much_to_send(error: wire.WireError) -> StudentError:
    return StudentError(f"What the test hands over cannot be sent: {error}.")


def _as_it_is(connection: Connection, value: Any) -> Any:
    return value


@dataclass
class _RandomNumbers:
    """Where one side's random numbers stand. NumPy's generator changes hands whole, which costs nothing."""

    of_torch: torch.Tensor
    of_numpy: Any
    of_python: tuple

    @classmethod
    def here(cls) -> _RandomNumbers:
        return cls(torch.default_generator.get_state(), get_bit_generator(), random.getstate())

    @classmethod
    def elsewhere(cls) -> _RandomNumbers:
        return cls(torch.default_generator.get_state(), np.random.MT19937(), random.getstate())

    def come_here(self) -> None:
        torch.default_generator.set_state(self.of_torch)
        set_bit_generator(self.of_numpy)
        random.setstate(self.of_python)


def _told_error(claim: dict) -> StudentError:
    if claim["type"] == "WireError":
        return StudentCrashed("What your code gave back is too much, or nested too deeply, to be looked at.")
    return student_raised(told_exception(claim))


def told_exception(claim: dict) -> RemoteException:
    """An exception as the other side described it, cut to size; raises what `malformed` expects when it is odd."""
    return RemoteException(
        type=str(claim["type"])[:80],
        bases=tuple(str(base)[:80] for base in claim["bases"][:20]),
        text=str(claim["text"])[:2000],
        frames=tuple(
            Frame(str(f)[:200], int(n), str(w)[:100], str(c)[:300]) for f, n, w, c in claim["frames"][:8]
        ),
    )


def _call_own(function: Any, path: list, args: tuple, kwargs: dict) -> Any:
    """A call that the student's code makes to an object of the test: only what that object itself offers."""
    if not path:
        return function(*args, **kwargs)
    name = str(path[0])
    if name == "train" and isinstance(function, nn.Module):
        function.train(bool(args[0]))
        return None
    if name == "__getattr__":
        value = _own_attribute(function, str(args[0]))
        return wire.Opaque("method") if callable(value) else value
    return _own_attribute(function, name)(*args, **kwargs)


def _own_attribute(thing: Any, name: str) -> Any:
    """An attribute that the test's author wrote: nothing private, nothing inherited from PyTorch or Python."""
    authored = name in vars(thing) or any(
        name in vars(kind)
        for kind in type(thing).__mro__
        if not kind.__module__.startswith(("builtins", "torch.", "autograder.student."))
    )
    if name.startswith("_") or not authored:
        raise AttributeError(f"the model that the test handed over has no attribute {name!r}")
    return getattr(thing, name)
