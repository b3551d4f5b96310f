"""The untrusted side: holds a student's module and answers requests about it, in a worker or at home.

The student's code can take over this process, so no decision is made here: the trusted side trusts
no names, flags or errors, and only compares the returned values. Isolation is the task of `jail`
before `serve` is called.
"""

import builtins
import io
import linecache
import sys
import types
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing, redirect_stderr, redirect_stdout, suppress
from typing import Any

import numpy as np
import torch
from torch import nn

from autograder.bridge.inside import loading, shell
from autograder.bridge.inside.callables import TestCallable
from autograder.bridge.inside.entries import Entries
from autograder.bridge.inside.surroundings import nobody_there
from autograder.bridge.shared import wire
from autograder.bridge.shared.calls import Call, CallReply, Mark
from autograder.bridge.shared.containers import containers, contents, mapped, same_things
from autograder.bridge.shared.errors import (
    LOADING_STOPPED,
    MIRRORED,
    Frame,
    RemoteException,
    describe_error,
)
from autograder.bridge.shared.generators import is_generator
from autograder.bridge.shared.graphs import Graphs
from autograder.bridge.shared.module_state import ModuleState, Snapshot, is_same
from autograder.bridge.shared.random_states import random_states, seed_all
from autograder.source import text as source
from autograder.source.names_used import words_in
from autograder.source.pieces import pieces

# plain data, or without an interface for tests
_NO_OBJECTS_OF = {*sys.stdlib_module_names, "torch", "numpy"}


class Server:
    """The student's module and the objects created by it, addressed by number."""

    def __init__(
        self,
        module: types.ModuleType,
        is_own: Callable[[types.FrameType], bool] = source.is_in_cells,
    ) -> None:
        """`is_own` decides which frames of a traceback are the student's."""
        self.module = module
        self._is_own = is_own
        self.objects: list[Any] = []
        # by identity, which is unique because `objects` keeps them alive
        self.numbers: dict[int, int] = {}
        self.graphs = Graphs()
        self.random_states: dict[str, str] = {}
        # those that the last call left as they were, by number, until something else happens
        self._unchanged: dict[int, Snapshot] = {}
        self.calls = 0
        # sends a question to the test's side
        self.exchange: Callable[[dict[str, Any]], dict[str, Any]] | None = None
        self.entries = Entries()
        self.output: tuple[io.TextIOWrapper, ...] = ()  # of a test that reads it: stdout and stderr

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Call the test's side during a call, and raise what a callable of the test raised."""
        assert self.exchange is not None
        with self.entries.active(False):
            reply = self.exchange({**question, **self.beside()})
        self.forget_states()  # of calls that the test made meanwhile
        if "error" in reply:
            kind = reply["type"]
            raise (getattr(builtins, kind) if kind in MIRRORED else RuntimeError)(reply["error"])
        answer: dict[str, Any] = self.localise(reply)
        return answer

    def load(
        self,
        text: str,
        filename: str,
        limit: float | None = None,
        skipped: Sequence[Sequence[Any]] = (),
    ) -> dict[str, Any]:
        """Run the text; a statement that fails stops itself alone (see `loading.TextLoading`).

        Loading is stopped after `limit` seconds of processor time; what was defined before counts.
        `stopped` of the answer tells where, and `skipped` are such places of an earlier loading.
        """
        return self.run_text(text, filename, self.module.__dict__, limit, skipped)

    def run_text(
        self,
        text: str,
        filename: str,
        names: dict[str, Any],
        limit: float | None,
        skipped: Sequence[Sequence[Any]],
    ) -> dict[str, Any]:
        """Run the text in the module; what its top binds goes to `names`."""
        own_shell = self._begin(filename)
        space = self.module.__dict__
        history = None
        if filename.endswith(".ipynb"):
            sys.modules["autograder.notebook"] = shell.silent_notebook()
            history = shell.History(space)
        text_loading = loading.TextLoading(
            (space, names),
            loading.LoadingLimit(limit),
            {(str(name), int(line)) for name, line in skipped},
            can_remove_modules=words_in(text, filename).lead_to(()),
        )
        nobody = nobody_there(filename, own_shell if "IPython" in text else None)
        with loading.own_settings(), closing(text_loading), nobody:
            for piece in pieces(text, filename):
                _keep_lines(piece.name, piece.code)
                if text_loading.has_ended:
                    continue
                if history:
                    history.begin(piece.code)
                value = text_loading.run(piece)
                if history:
                    history.end(value)
        return {
            "errors": [self._failure(failure) for failure in text_loading.failures[:20]],
            "stopped": [list(place) for place in text_loading.stopped[:20]],
            "absent": [list(missing) for missing in text_loading.absent[:20]],
        }

    def run_whole(self, text: str, filename: str) -> None:
        """Run a trusted script in the module, as Python does; raises what it raises."""
        code = compile(text, filename, "exec", dont_inherit=True)
        self._begin(filename)
        _keep_lines(filename, text)
        with loading.own_settings(), nobody_there(filename):
            exec(code, self.module.__dict__)

    def _begin(self, filename: str) -> shell.Shell:
        """Give the module what a text finds there, and return its shell."""
        sys.modules[self.module.__name__] = self.module
        space = self.module.__dict__
        own_shell = shell.Shell(space)
        space.update(__file__=filename, get_ipython=lambda: own_shell, display=shell.display)
        return own_shell

    def _failure(self, failure: BaseException | loading.Place) -> dict[str, Any]:
        if isinstance(failure, BaseException):
            return self.describe_error(failure)
        name, line = failure
        frame = Frame(name, line, "<module>", linecache.getline(name, line).strip())
        return _as_table(RemoteException(LOADING_STOPPED, ("BaseException",), "", (frame,)))

    def find(self, name: str) -> dict[str, Any]:
        """Return the module's attribute as a `value`, or only its `kind`."""
        if name not in self.module.__dict__:
            return {"kind": "missing"}
        value = self.module.__dict__[name]
        if isinstance(value, type):
            return {"kind": "class"}
        if isinstance(value, nn.Module) or not callable(value):
            return {"kind": "value", "value": value}
        return {"kind": "function"}

    def get(self, target: list[Any]) -> dict[str, Any]:
        """Return the attribute at the end of a path; callables remain here and are called by path."""
        with self.entries.active():
            value = self.resolve(target)
        if isinstance(value, type) or (callable(value) and not isinstance(value, nn.Module)):
            return {"kind": "callable"}
        return {"kind": "value", "value": value}

    def set(self, target: list[Any], value: Any) -> None:
        *path, name = target[1]
        setattr(self.resolve([target[0], path]), name, self.localise(value))

    def seed(self, seed: int, reads_output: bool = False, forbids: Sequence[str] = ()) -> None:
        """Start a test: seed the random generators, and drop all objects of earlier tests.

        `forbids` lists the names that the test forbids, whose use is recorded as closely as possible.
        """
        self.output = (_PrintedText.stream(), _PrintedText.stream()) if reads_output else ()
        for book in (self.objects, self.numbers, self.graphs):
            book.clear()
        self.calls = 0
        self.entries.begin(forbids)
        seed_all(seed)

    def mark_generators(self) -> None:
        """Remember the global random states."""
        self.random_states = random_states()

    def moved_generators(self) -> list[str]:
        """Return the libraries whose global random state is not the one remembered."""
        now = random_states()
        return [name for name, state in self.random_states.items() if state != now[name]]

    def convert(self, target: list[Any], sync: list[Any], options: dict[str, Any]) -> Any:
        """Apply the module's own `.to(...)`, which leaves plain attributes unchanged."""
        self.apply_sync(sync)
        self.resolve(target).to(**options)
        return self.objects[target[0].number]

    def call(self, **fields: Any) -> dict[str, Any]:
        """Answer a `Call` by the message of a `CallReply`."""
        return self.perform(Call(**fields)).message()

    def perform(self, call: Call) -> CallReply:
        """Call the student's code, and find what it changed."""
        earlier_states = {} if call.sync else self._unchanged
        self.forget_states()
        self.apply_sync(call.sync)
        function = self.resolve(call.target)
        tensors: list[torch.Tensor] = []
        generators: list[Any] = []
        args, kwargs = self.prepare((call.args, call.kwargs), tensors, generators, set(call.wanted))
        held = [(container, contents(container)) for container in containers((args, kwargs))]
        values_before = [tensor.detach().clone() for tensor in tensors]
        modules = [(number, self.objects[number]) for number in call.modules]
        states_before = [
            earlier_states.get(number) or Snapshot(module) for number, module in modules
        ]
        with torch.set_grad_enabled(call.grad), self.entries.active():
            result = function(*args, **kwargs)
        if isinstance(function, type) and isinstance(result, (dict, tuple)):
            # an object, whatever its base classes
            result = wire.Handle(self.number(result), self.describe(result))
        states = [ModuleState(module) for _, module in modules]
        changes = []
        unchanged = {}
        for (number, module), before, now in zip(modules, states_before, states):
            change = self.change(module, before, now)
            if change:
                changes.append((number, change))
            else:
                unchanged[number] = before
        self._unchanged = unchanged
        outputs = _tensors(result)
        self.calls += 1
        differentiable = [call.grad and tensor.requires_grad for tensor in outputs]
        if any(differentiable):
            sources = [tensors[i] for i in call.wanted]
            for state in states:
                sources += state.parameters.values()
            self.graphs.keep(self.calls, outputs, sources)
        return CallReply(
            number=self.calls,
            result=result,
            differentiable=differentiable,
            mutated=[
                (i, tensor.detach())
                for i, (tensor, before) in enumerate(zip(tensors, values_before))
                if not is_same(tensor, before)
            ],
            refilled=[
                (i, container)
                for i, (container, before) in enumerate(held)
                if not same_things(contents(container), before)
            ],
            modules=changes,
            generators=generators,
            marked=_marked(tensors, call.wanted),
        )

    def forget_states(self) -> None:
        """Forget how modules were after the last call: something else may have changed them."""
        self._unchanged = {}

    def backward(self, call: int, gradients: list[Any]) -> list[Any]:
        """Return the vector-Jacobian product of an earlier call, for its wanted inputs and modules' parameters."""
        with self.entries.active():
            return self.graphs.pull_back(call, gradients)

    def prepare(
        self, value: Any, tensors: list[Any], generators: list[Any], wanted: Collection[int]
    ) -> Any:
        """Convert the arguments for the student's code: copies of tensors, and objects in place of handles.

        An array stands among the `tensors` as one with the same memory.
        """

        def own(leaf: Any) -> Any:
            if isinstance(leaf, np.ndarray):
                is_unsigned = leaf.dtype.kind == "u"  # PyTorch has few of these
                same_bytes = leaf.view(f"i{leaf.itemsize}") if is_unsigned else leaf
                tensors.append(torch.from_numpy(same_bytes))
                return leaf
            if isinstance(leaf, torch.Tensor):
                tensors.append(leaf)
                return leaf.requires_grad_() if len(tensors) - 1 in wanted else leaf
            if is_generator(leaf):
                generators.append(leaf)
            return self._local(leaf)

        return mapped(own, value)

    def localise(self, value: Any) -> Any:
        """Replace handles in a value by the objects that they stand for."""
        return mapped(self._local, value)

    def _local(self, leaf: Any) -> Any:
        if isinstance(leaf, wire.Handle):
            return self.resolve([leaf, leaf.description or []])
        if isinstance(leaf, wire.CallableHandle):
            return TestCallable(self, leaf.number, leaf.description or {})
        return leaf

    def resolve(self, target: list[Any]) -> Any:
        handle, path = target
        value = self.module if handle is None else self.objects[handle.number]
        for name in path:
            value = getattr(value, name)
        return value

    def change(self, module: nn.Module, old: Snapshot, now: ModuleState) -> Any:
        """Return the changes made by a call: new values, a full description if names changed, or None."""
        if not now.has_names_of(old):
            return {"description": self.describe(module)}
        return now.changes_since(old)

    def apply_sync(self, sync: list[Any]) -> None:
        for handle, values, requires_grad, modes in sync:
            module = self.objects[handle.number]
            module_state = ModuleState(module)
            tensors = module_state.tensors
            for name, value in values.items():
                _assign(tensors[name], value)
            for name, flag in requires_grad.items():
                tensors[name].requires_grad_(flag)
            if len(set(modes.values())) == 1 and "" in modes:
                module.train(modes[""])
            elif modes:
                for name, sub in module_state.own:
                    sub.training = modes[name]

    def register(self, value: Any) -> wire.Handle | wire.CallableHandle | None:
        """Return a handle for an object of a student's or library class."""
        if isinstance(value, TestCallable):
            return wire.CallableHandle(value._number)
        origin = str(type(value).__module__)
        is_students = (
            origin == self.module.__name__ or origin.partition(".")[0] not in _NO_OBJECTS_OF
        )
        stays = isinstance(value, types.FunctionType | nn.Module | Iterator)
        if not (is_students or stays):
            return None
        return wire.Handle(self.number(value), self.describe(value))

    def number(self, value: Any) -> int:
        number = self.numbers.setdefault(id(value), len(self.objects))
        if number == len(self.objects):
            self.objects.append(value)
        return number

    def describe(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, nn.Module):
            facts = {"callable": callable(value), "iterator": isinstance(value, Iterator)}
            return {"kind": "object", "type": type(value).__name__, **facts}
        first: dict[int, str] = {}

        def once(name: str, tensor: torch.Tensor) -> Any:
            first_name = first.setdefault(id(tensor), name)
            return tensor.detach() if first_name == name else first_name  # tied: the name suffices

        module_state = ModuleState(value)
        return {
            "kind": "module",
            "parameters": [
                [n, once(n, p), p.requires_grad] for n, p, _ in module_state.all("_parameters")
            ],
            "buffers": [
                [n, once(n, b), persistent] for n, b, persistent in module_state.all("_buffers")
            ],
            "modules": [
                [name, type(sub).__name__, bool(sub.training), first_name]
                for name, sub, first_name in module_state.parts
            ],
        }

    def describe_error(self, error: BaseException) -> dict[str, Any]:
        return _as_table(describe_error(error, self._is_own))

    def beside(self) -> dict[str, Any]:
        """Return what goes with the next message: forbidden names that were entered, and printed text."""
        entered = self.entries.news()
        return {**self.printed(), **({"entered": entered} if entered else {})}

    def printed(self) -> dict[str, list[str]]:
        """Return what the student's code has printed since the last time, for a test that reads it; or nothing."""
        with suppress(ValueError):  # closed by the student's code
            texts = [stream.buffer.drain() for stream in self.output]  # type: ignore[attr-defined]
            return {"printed": texts} if any(texts) else {}
        return {}


class _PrintedText(io.BytesIO):
    """Text that is printed during a test; what exceeds the limit of a text on the wire is dropped."""

    @classmethod
    def stream(cls) -> io.TextIOWrapper:
        return io.TextIOWrapper(cls(), "utf-8", "backslashreplace", newline="", write_through=True)

    def write(self, data: Any) -> int:
        super().write(bytes(data)[: max(0, wire.MAX_TEXT - self.tell())])
        return len(data)

    def drain(self) -> str:
        text = self.getvalue().decode("utf-8", "ignore")
        self.seek(0)
        self.truncate()
        return text


def _keep_lines(name: str, code: str) -> None:
    """Keep the lines of a text for its tracebacks."""
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)


def unsendable(error: wire.WireError) -> dict[str, Any]:
    """Describe a reply that cannot be encoded."""
    return {"type": "WireError", "bases": [], "text": str(error), "frames": []}


def answer(server: Server, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Handle one request; return `ok` with a value, or `error` with a description."""
    with ExitStack() as streams:
        for redirect, stream in zip((redirect_stdout, redirect_stderr), server.output):
            streams.enter_context(redirect(stream))
        if operation != "call":
            server.forget_states()
        try:
            reply = {"ok": getattr(server, operation)(**arguments)}
        except BaseException as error:  # SystemExit and pytest's outcomes are no Exceptions
            reply = {"error": server.describe_error(error)}
    return {**reply, **server.beside()}


def reply_frame(server: Server, number: int, reply: dict[str, Any]) -> bytes:
    """Encode the reply to the request with this number, or why it cannot be encoded."""
    try:
        return wire.dumps({"id": number, **reply}, server.register, wire.MAX_TEXT)
    except wire.WireError as error:
        return wire.dumps({"id": number, "error": unsendable(error)})
    except BaseException as error:  # the student's own properties and class names may fail, too
        return wire.dumps({"id": number, "error": server.describe_error(error)})


def _as_table(error: RemoteException) -> dict[str, Any]:
    return {**vars(error), "frames": [[*vars(frame).values()] for frame in error.frames]}


def _tensors(value: Any) -> list[torch.Tensor]:
    """Return the tensors in a result, in the order of the wire format."""
    tensors = []
    waiting = [value]
    seen = 0
    while waiting:
        item = waiting.pop()
        seen = seen + 1
        if seen > wire.MAX_VALUES:
            raise wire.WireError("it holds too many values")
        if isinstance(item, torch.Tensor):
            tensors.append(item)
        elif type(item) is list or isinstance(item, tuple):
            waiting.extend(reversed(item))
        elif isinstance(item, dict):
            waiting.extend(reversed(item.values()))
    return tensors


def _marked(tensors: list[torch.Tensor], wanted: Collection[int]) -> list[Mark]:
    """Return the inputs that require or hold a gradient only since the call."""
    return [
        (i, tensor.requires_grad, tensor.grad)
        for i, tensor in enumerate(tensors)
        if i not in wanted and tensor.is_leaf and (tensor.requires_grad or tensor.grad is not None)
    ]


def _assign(tensor: torch.Tensor, value: torch.Tensor) -> None:
    if tensor.shape == value.shape and tensor.dtype == value.dtype:
        tensor.data.copy_(value)
    else:
        tensor.data = value
