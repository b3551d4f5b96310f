"""The trusted end of a connection to a student's module: requests, callbacks, and the transcript of a test."""

import hashlib
import sys
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import PurePath
from typing import Any

import torch
from torch import nn

from autograder.bridge.inside.entries import Place
from autograder.bridge.outside.replay import Exchange
from autograder.bridge.outside.solution_answers import StandIns
from autograder.bridge.outside.transcript import Transcript
from autograder.bridge.shared import claims, wire
from autograder.bridge.shared.containers import leaves, mapped
from autograder.bridge.shared.errors import (
    StudentCrashedError,
    StudentError,
    mirrored_name,
    student_raised,
    told_exception,
)
from autograder.bridge.shared.graphs import Graphs
from autograder.records import InfrastructureError
from autograder.text.wording import article

RECORDED = {"call", "backward", "get", "convert", "moved_generators"}
MOST_ENTERED = 1000  # forbidden names in one message
TOO_MUCH = "What your code gave back is too much, or nested too deeply, to be looked at."
_FUNCTIONS = (
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
)
_CONVERSIONS = (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset)


class Connection:
    """A connection to one student's module. Subclasses implement the transport of requests."""

    dead = False  # whether no request will be answered any more

    def __init__(self) -> None:
        # replaces handles by proxies
        self.adopt: Callable[[Connection, Any], Any] = lambda connection, value: value
        self.new_transcript: Callable[[], Transcript] = Transcript
        self.transcript = Transcript()
        self.reads_output = False  # whether the next test reads what the student's code prints
        self.forbids: Sequence[str] = ()  # the names that it forbids
        self.found: dict[str, Any] = {}  # the student's names used by this test
        self.entered: dict[str, Place] = {}  # forbidden names that ran in this test
        self.last_call = ""  # of this test, as a line to paste; empty if it cannot be one
        self.mirrors: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self.graphs = Graphs()  # of calls of the test's callables
        self._callbacks = 0
        self._callables: list[Any] = []
        # answer from loading on, as the first of the callables
        self._stand_ins: StandIns | None = None
        self._numbers: dict[int, int] = {}
        self._callback_failure: AssertionError | StudentError | None = None

    @property
    def exchanges(self) -> Sequence[Exchange]:
        """Those of the present test, if they can be repeated."""
        return ()

    def request(self, operation: str, seconds: float | None = None, **arguments: Any) -> Any:
        """Send a request and return its value; raises a StudentError on failure."""
        return self.answered(
            operation, arguments, lambda: self.exchange(operation, arguments, seconds)
        )

    def answered(
        self, operation: str, arguments: dict[str, Any], exchange: Callable[[], dict[str, Any]]
    ) -> Any:
        """Return the value in the reply of an exchange, and record it; raises a StudentError on failure."""
        try:
            reply = exchange()
            self._take_beside(reply)
            with malformed("an answer"):
                if "error" in reply:
                    exception = told_exception(reply["error"])
                    raise (
                        student_raised(exception)
                        if exception.type != "WireError"
                        else StudentCrashedError(TOO_MUCH)
                    )
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

    def exchange(
        self, operation: str, arguments: dict[str, Any], seconds: float | None
    ) -> dict[str, Any]:
        """Send one request and wait for its reply, answering callbacks meanwhile."""
        raise NotImplementedError

    def close(self) -> None:
        """Release the other side."""

    def start_test(self, seed: int) -> Transcript:
        """Discard the state of earlier tests; return the transcript of the new test."""
        self._begin(self.new_transcript())
        if self._stand_ins is not None:
            self._stand_ins.begin_test(seed)
        self.request(
            "seed",
            seed=seed_of("student", seed),
            reads_output=self.reads_output,
            forbids=[*self.forbids],
        )
        return self.transcript

    def _begin(self, transcript: Transcript) -> None:
        self._callables.clear()
        if self._stand_ins is not None:
            self._callables.append(self._stand_ins.answer)
        for book in (self._numbers, self.mirrors, self.graphs, self.found, self.entered):
            book.clear()
        self._callbacks = 0
        self.last_call = ""
        self.transcript = transcript

    def recording(self, names: Sequence[str]) -> AbstractContextManager[None]:
        """Record in this block which of these names are entered; a worker has recorded all since it was loaded."""
        return nullcontext()

    def answer_with(self, stand_ins: StandIns) -> dict[str, bool]:
        """Let these answer for names of the student's module, while it is loaded as within the limits of a test."""
        self._stand_ins = stand_ins
        self.start_test(0)
        stand_ins.begin()
        return stand_ins.kinds

    def register(self, value: Any) -> wire.Handle | wire.CallableHandle | None:
        """Return the handle of a student's object or of a test's callable.

        Raises WireError for what can be used on this side alone, such as a path.
        """
        if isinstance(value, PurePath):
            raise wire.WireError(
                "a path leads to nothing in the sandbox; hand over the text of the file"
            )
        as_handle: Callable[[Any], wire.Handle] | None = getattr(type(value), "as_handle", None)
        if as_handle is not None:
            return as_handle(value)
        if not _can_be_called_back(value):
            kind = value.__name__ if isinstance(value, type) else type(value).__name__
            raise wire.WireError(
                f"{article(kind)} stays where the tests run; hand over numbers, texts, lists or a function"
            )
        number = self._numbers.setdefault(id(value), len(self._callables))
        if number == len(self._callables):
            self._callables.append(value)
        return wire.CallableHandle(number, {"training": bool(getattr(value, "training", True))})

    def own_callable(self, number: int) -> Any:
        if not 0 <= number < len(self._callables):
            raise LookupError("an unknown callable")
        return self._callables[number]

    def answer_callback(self, frame: dict[str, Any]) -> dict[str, Any]:
        """Call the test's callable for the student's code, or run its backward pass.

        Errors of the student's code are returned, never raised.
        """
        try:
            self._take_beside(frame)
            if "pull_back" in frame:
                number = claims.integer(frame["pull_back"])
                gradients = claims.items(frame["gradients"])
                return {"value": self.graphs.pull_back(number, gradients)}
            return self._call_own(frame)
        except InfrastructureError:
            raise
        except Exception as error:  # raised by the test's callable for the student's arguments
            if isinstance(error, AssertionError) and not self._asks_the_solution(frame):
                self._callback_failure = error
            return {"error": _in_words(error), "type": mirrored_name(error)}

    def _asks_the_solution(self, frame: dict[str, Any]) -> bool:
        """Whether this calls a stand-in, in which an AssertionError is PyTorch's and not the test's."""
        return self._stand_ins is not None and frame.get("callback") == 0

    def refused(self, frame: dict[str, Any], error: wire.WireError) -> dict[str, Any]:
        """Return the reply to a question whose answer cannot be sent, which fails a test that was asked."""
        failure = too_much_to_send(error)
        if not self._asks_the_solution(frame):
            self._callback_failure = failure
        return {"error": str(failure), "type": "TypeError"}

    def _call_own(self, frame: dict[str, Any]) -> dict[str, Any]:
        function = self.own_callable(claims.integer(frame["callback"]))
        path = [claims.text(name) for name in claims.items(frame["path"])]
        grad = claims.flag(frame["grad"])
        given = tuple(claims.items(frame["args"])), claims.table(frame["kwargs"])
        args, kwargs = self.adopt(self, given)
        sources: list[torch.Tensor] = []

        def tied(leaf: Any) -> Any:
            """A copy, which the callable may change in place although a gradient is required."""
            if not (grad and isinstance(leaf, torch.Tensor) and leaf.is_floating_point()):
                return leaf
            sources.append(leaf.requires_grad_())
            return leaf.clone()

        with torch.set_grad_enabled(grad):
            args, kwargs = mapped(tied, (args, kwargs))
            value = _call_own(function, path, args, kwargs)
        results = [leaf for leaf in leaves(value) if isinstance(leaf, torch.Tensor)]
        flags = [bool(sources) and result.requires_grad for result in results]
        self._callbacks += 1
        if any(flags):
            self.graphs.keep(self._callbacks, results, sources)
        return {"value": value, "call": self._callbacks, "differentiable": flags}

    def _take_beside(self, frame: dict[str, Any]) -> None:
        """Note the forbidden names that ran; repeat what the student's code printed, if the test reads it."""
        if "entered" in frame:
            with malformed("a list of names"):
                for name, file, line in claims.rows(
                    claims.items(frame["entered"])[:MOST_ENTERED], str, str, int
                ):
                    self.entered.setdefault(name, (file, line))
        if self.reads_output and "printed" in frame:
            with malformed("printed text"):
                printed = [claims.text(text) for text in claims.items(frame["printed"])]
                texts = [text.encode("utf-8", "backslashreplace").decode() for text in printed]
                for stream, text in zip((sys.stdout, sys.stderr), texts, strict=True):
                    stream.write(text)
            self.transcript.record_beside("print", texts)

    def _raise_callback_failure(self) -> None:
        failure = self._callback_failure
        self._callback_failure = None
        if failure is not None:
            raise failure


def _can_be_called_back(value: Any) -> bool:
    """Whether a value is a function or an object with attributes of its own, and not one of a built-in class."""
    if type(value).__module__ == "builtins":
        return isinstance(value, _FUNCTIONS) or value in _CONVERSIONS
    return callable(value) or hasattr(value, "__dict__")


def _in_words(error: Exception) -> str:
    """Return the message of an error of the test's side; one that quotes what is not plain data can take seconds."""
    return str(error)[:500] if all(map(wire.is_plain, error.args)) else type(error).__name__


def seed_of(whole: object, part: object) -> int:
    """Return the seed of a test in a run, or of a side in a test: different for each, and none tells another."""
    digest = hashlib.sha256(f"{whole}/{part}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


@contextmanager
def malformed(what: str) -> Iterator[None]:
    """Convert exceptions caused by a malformed reply to a failure of the student."""
    try:
        yield
    except StudentError:
        raise
    except Exception as error:
        raise StudentCrashedError(
            f"What came back is not {what} ({type(error).__name__})."
        ) from None


def too_much_to_send(error: wire.WireError) -> StudentError:
    return StudentError(f"What the test hands over cannot be sent: {error}.")


def _call_own(function: Any, path: list[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an object of the test for the student's code, limited to the object's own attributes."""
    if not path:
        return function(*args, **kwargs)
    name = path[0]
    if name == "train" and isinstance(function, nn.Module):
        function.train(bool(args[0]))
        return None
    if name == "__getattr__":
        value = _own_attribute(function, claims.text(args[0]))
        return wire.Opaque("method") if callable(value) else value
    return _own_attribute(function, name)(*args, **kwargs)


def _own_attribute(thing: Any, name: str) -> Any:
    """Return an attribute defined by the test's author; private and inherited ones are rejected."""
    attributes = {} if isinstance(thing, type) else getattr(thing, "__dict__", {})
    authored = name in attributes or any(
        name in vars(kind)
        for kind in type(thing).__mro__
        if not kind.__module__.startswith(("builtins", "torch.", "autograder.bridge."))
    )
    if name.startswith("_") or not authored:
        raise AttributeError(f"the model that the test handed over has no attribute {name!r}")
    return getattr(thing, name)
