"""The untrusted side: holds a student's module and answers calls about it.

Everything here may be taken over by the student's code, so nothing here decides anything: the trusted side
believes no names, flags or errors from it, only compares the values that come back.

It does not isolate anything either; that is the work of `jail` before `serve` is called.
"""

from __future__ import annotations

import builtins
import linecache
import random
import socket
import sys
import traceback
import types
from collections.abc import Collection
from typing import Any

import numpy as np
import torch
from torch import nn

from autograder.sandbox import source
from autograder.student import wire
from autograder.student.errors import MIRRORED
from autograder.student.graphs import Graphs
from autograder.student.inventory import Inventory
from autograder.student.tree import containers, contents, leaves, mapped, same_things

_REHEARSAL = """
import math
import torch
from torch import nn
from torch.nn import functional as F

class Model(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.linear = nn.Linear(d, d, bias=False)
        self.register_buffer("mask", torch.ones(8, 8, dtype=torch.bool).tril())
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        q = self.linear(x)
        scores = q @ q.transpose(-2, -1) / math.sqrt(x.shape[-1])
        scores = scores.masked_fill(~self.mask[:3, :3], float("-inf"))
        return self.dropout(F.softmax(scores, dim=-1)) @ x

def unfinished():
    raise NotImplementedError("unfinished is not written yet.")
"""
_NO_OBJECTS_OF = {*sys.stdlib_module_names, "torch", "numpy"}  # data, or nothing that a test could ask
MAX_FRAMES = 6
MAX_ERROR_TEXT = 2000


class Link:
    """How the server asks the test's side, in the middle of a call; replaced where both sides share a process."""

    def __init__(self, server: Server, sock: socket.socket) -> None:
        self.server, self.sock = server, sock

    def ask(self, question: dict) -> dict:
        wire.send(self.sock, question, register=self.server.register)
        while True:
            number, operation, arguments = wire.receive(self.sock, max_text=wire.MAX_DATA)
            if operation == "return":
                break
            answer_one(self.server, self.sock, number, operation, arguments)
        raise_told(arguments)
        return self.server.localise(arguments)


class TestCallable(nn.Module):
    """Stands for a callable of the test, for example a fake model handed to the student's `generate`."""

    def __init__(self, server: Server, number: int, description: dict) -> None:
        super().__init__()
        object.__setattr__(self, "_server", server)
        object.__setattr__(self, "_number", number)
        object.__setattr__(self, "training", bool(description.get("training", True)))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call([], args, kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._call([], args, kwargs)

    def train(self, mode: bool = True) -> TestCallable:
        self.training = mode
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        """A mode that is set by hand counts as much as one that `train` sets."""
        super().__setattr__(name, value)
        if name == "training" and "_number" in self.__dict__:
            self._call(["train"], (value,), {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = self._call(["__getattr__"], (name,), {})
        if isinstance(value, wire.Opaque):
            return lambda *args, **kwargs: self._call([name], args, kwargs)
        return value

    def _call(self, path: list[str], args: tuple, kwargs: dict) -> Any:
        return CallBack(self._server, self._number, path, args, kwargs).made()


class CallBack:
    """One call of a callable of the test, and its backward pass."""

    def __init__(self, server: Server, number: int, path: list[str], args: tuple, kwargs: dict) -> None:
        self.link, self.given = server.link, (args, kwargs)
        self.question = {"callback": number, "path": path, "grad": torch.is_grad_enabled()}
        self.reply: dict = {}

    def made(self) -> Any:
        """What the callable answers, with a graph that leads to the floating-point tensors it was given."""
        results = iter(_CalledBack.apply(self, *filter(_is_float, leaves(self.given))))
        value = self.reply["value"]
        return mapped(lambda leaf: next(results) if isinstance(leaf, torch.Tensor) else leaf, value)

    def ask(self, tensors: tuple) -> tuple:
        """The tensors of the answer, when these stand for those that were given."""
        own = iter(tensors)
        args, kwargs = mapped(lambda leaf: next(own) if _is_float(leaf) else leaf, self.given)
        self.reply = self.link.ask({**self.question, "args": args, "kwargs": kwargs})
        return tuple(_tensors(self.reply["value"]))

    def pull_back(self, gradients: tuple) -> tuple:
        question = {"pull_back": self.reply["call"], "gradients": list(gradients)}
        return tuple(self.link.ask(question)["value"])


class _CalledBack(torch.autograd.Function):
    """The call itself happens in here, where also `torch.func` shows plain tensors."""

    @staticmethod
    def forward(call: CallBack, *tensors: torch.Tensor) -> tuple:
        return call.ask(tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
        ctx.call = inputs[0]
        flags = ctx.call.reply["differentiable"]
        ctx.mark_non_differentiable(*[tensor for tensor, flag in zip(output, flags) if not flag])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple:
        return None, *_PulledBack.apply(ctx.call, *gradients)


class _PulledBack(torch.autograd.Function):
    @staticmethod
    def forward(call: CallBack, *gradients: torch.Tensor | None) -> tuple:
        return call.pull_back(gradients)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
        pass

    @staticmethod
    def vmap(info: Any, in_dims: tuple, call: CallBack, *gradients: Any) -> tuple:
        """Many gradients at once, as in `torch.func.jacrev`, are pulled back one after the other."""
        found = []
        for i in range(info.batch_size):
            own = [g if dim is None else g.select(dim, i) for g, dim in zip(gradients, in_dims[1:])]
            found.append(_PulledBack.apply(call, *own))
        return tuple(None if each[0] is None else torch.stack(each) for each in zip(*found)), 0

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple:
        raise RuntimeError("trying to differentiate twice through a function of the test")


class State:
    """What a call might change in a module: values, which parameters want gradients, modes of training."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        inventory = Inventory(module)
        self.values = {name: t.detach().clone() for name, t in inventory.tensors.items()}
        self.flags, self.modes = inventory.flags(), inventory.modes()


class Server:
    """The student's module and the objects it made, addressed by number."""

    def __init__(self, name: str = "submission") -> None:
        self.module = types.ModuleType(name)
        self.objects: list[Any] = []
        self.numbers: dict[int, int] = {}  # by identity, which lasts because `objects` keeps them alive
        self.graphs = Graphs()
        self.calls = 0
        self.link: Any = None

    # ------------------------------------------------------------------ loading

    def load(self, text: str, filename: str) -> dict:
        """Run the submission. A notebook goes on after a cell that fails, as it does for its author."""
        sys.modules[self.module.__name__] = self.module
        space = self.module.__dict__
        space.update(__file__=filename, get_ipython=source.no_shell)
        if filename.endswith(".ipynb"):
            sys.modules["autograder.notebook"] = source.silent_notebook()
        errors = []
        skips_main = source.leaves_main_out(text)
        for cell_name, code in source.cells(text, filename):
            linecache.cache[cell_name] = (len(code), None, code.splitlines(keepends=True), cell_name)
            try:
                piece = source.without_main(code, cell_name) if skips_main else code
                exec(compile(piece, cell_name, "exec"), space)
            except BaseException as error:  # SystemExit and pytest's outcomes are no Exceptions
                errors.append(self.describe_error(error))
        return {"errors": errors[:20]}

    def names_used(self, text: str, filename: str) -> dict:
        """The dotted names that the text uses; asked only of a worker that never runs the text."""
        return source.names_used(text, filename)

    def outline(self, text: str, filename: str) -> str:
        """A digest of the code without comments and layout; asked only of a worker that never runs the text."""
        return source.outline(text, filename)

    # ------------------------------------------------------------------ questions

    def find(self, name: str) -> dict:
        """What the module offers under a name: a `value`, or only its `kind`."""
        if name not in self.module.__dict__:
            return {"kind": "missing"}
        value = self.module.__dict__[name]
        if isinstance(value, type):
            return {"kind": "class"}
        if isinstance(value, nn.Module) or not callable(value):
            return {"kind": "value", "value": value}
        return {"kind": "function"}

    def get(self, target: list) -> dict:
        """The attribute at the end of a path; callables stay here and are called by their path."""
        value = self.resolve(target)
        if isinstance(value, type) or (callable(value) and not isinstance(value, nn.Module)):
            return {"kind": "callable"}
        return {"kind": "value", "value": value}

    def set(self, target: list, value: Any) -> None:
        *path, name = target[1]
        setattr(self.resolve([target[0], path]), name, self.localise(value))

    def seed(self, seed: int) -> None:
        """Start a test: fixed random numbers, and nothing that earlier tests made."""
        for book in (self.objects, self.numbers, self.graphs):
            book.clear()
        self.calls = 0
        torch.default_generator.manual_seed(seed)  # torch.manual_seed asks every accelerator, too
        np.random.seed(seed % 2**32)
        random.seed(seed)

    def convert(self, target: list, sync: list, options: dict) -> Any:
        """`.to(...)` of a module, by the module itself: plain attributes are left behind, as they would be."""
        self.apply_sync(sync)
        self.resolve(target).to(**options)
        return self.objects[target[0].number]

    # ------------------------------------------------------------------ calls

    def call(
        self, target: list, args: tuple, kwargs: dict, sync: list, grad: bool, wanted: list, modules: list
    ) -> dict:
        """Call what the path leads to. `wanted` numbers the tensors in the arguments to differentiate,
        `modules` the modules that take part; `sync` says how their state was changed on the other side."""
        self.apply_sync(sync)
        function = self.resolve(target)
        tensors: list[torch.Tensor] = []
        generators: list[torch.Generator] = []
        args, kwargs = self.prepare((args, kwargs), tensors, generators, set(wanted))
        held = [(container, contents(container)) for container in containers((args, kwargs))]
        before = [tensor.detach().clone() for tensor in tensors]
        before_call = [(number, State(self.objects[number])) for number in modules]
        with torch.set_grad_enabled(grad):
            result = function(*args, **kwargs)
        if isinstance(function, type) and isinstance(result, (dict, tuple)):
            result = wire.Handle(self.number(result), self.describe(result))  # an object, whatever it is made of
        watched = [(number, old, Inventory(old.module)) for number, old in before_call]
        outputs = _tensors(result)
        self.calls += 1
        differentiable = [grad and tensor.requires_grad for tensor in outputs]
        if any(differentiable):
            sources = [tensors[i] for i in wanted]
            sources += [p for _, _, now in watched for p in now.parameters.values()]
            self.graphs.keep(self.calls, outputs, sources)
        return {
            "call": self.calls,
            "result": result,
            "differentiable": differentiable,
            "mutated": [
                [i, t.detach()] for i, (t, old) in enumerate(zip(tensors, before)) if _changed(t, old)
            ],
            "refilled": [
                [i, container]
                for i, (container, old) in enumerate(held)
                if not same_things(contents(container), old)
            ],
            "modules": [
                [number, change] for number, old, now in watched if (change := self.change(old, now))
            ],
            "generators": generators,
            "marked": [
                [i, t.requires_grad, t.grad] for i, t in enumerate(tensors) if i not in wanted and _marked(t)
            ],
        }

    def backward(self, call: int, gradients: list) -> list:
        """The vector-Jacobian product of an earlier call, for its wanted inputs and its modules' parameters."""
        return self.graphs.pull_back(call, gradients)

    def prepare(self, value: Any, tensors: list, generators: list, wanted: Collection[int]) -> Any:
        """The arguments as the student's code receives them: own copies of tensors, own objects for handles."""

        def own(leaf: Any) -> Any:
            if isinstance(leaf, torch.Tensor):
                tensors.append(leaf)
                return leaf.requires_grad_() if len(tensors) - 1 in wanted else leaf
            if isinstance(leaf, torch.Generator):
                generators.append(leaf)
            return self._local(leaf)

        return mapped(own, value)

    def localise(self, value: Any) -> Any:
        """The value with handles replaced by what they stand for here."""
        return mapped(self._local, value)

    def _local(self, leaf: Any) -> Any:
        if isinstance(leaf, wire.Handle):
            return self.resolve([leaf, leaf.description or []])
        if isinstance(leaf, wire.CallableHandle):
            return TestCallable(self, leaf.number, leaf.description or {})
        return leaf

    def resolve(self, target: list) -> Any:
        handle, path = target
        value = self.module if handle is None else self.objects[handle.number]
        for name in path:
            value = getattr(value, name)
        return value

    # ------------------------------------------------------------------ state of modules

    def change(self, old: State, now: Inventory) -> Any:
        """What a call did change, or None: new values, or a whole description where names came or went."""
        tensors, flags, modes = now.tensors, now.flags(), now.modes()
        if tensors.keys() != old.values.keys() or flags.keys() != old.flags.keys():
            return {"description": self.describe(old.module)}
        values = {name: t.detach() for name, t in tensors.items() if _changed(t, old.values[name])}
        if not values and (flags, modes) == (old.flags, old.modes):
            return None
        changed_flags = {name: flag for name, flag in flags.items() if flag != old.flags[name]}
        return {"values": values, "flags": changed_flags, "modes": modes if modes != old.modes else {}}

    def apply_sync(self, sync: list) -> None:
        for handle, values, requires_grad, modes in sync:
            module = self.objects[handle.number]
            inventory = Inventory(module)
            own = inventory.tensors
            for name, value in values.items():
                _assign(own[name], value)
            for name, flag in requires_grad.items():
                own[name].requires_grad_(flag)
            if len(set(modes.values())) == 1 and "" in modes:
                module.train(modes[""])
            elif modes:
                for name, sub in inventory.own:
                    sub.training = modes[name]

    # ------------------------------------------------------------------ describing objects

    def register(self, value: Any) -> wire.Handle | wire.CallableHandle | None:
        """A handle for an object that must stay here: modules, and objects of the student's or a library's classes."""
        if isinstance(value, TestCallable):
            return wire.CallableHandle(value._number)
        origin = str(type(value).__module__)
        own = origin == self.module.__name__ or origin.partition(".")[0] not in _NO_OBJECTS_OF
        function = isinstance(value, types.FunctionType)
        if not (own or function or isinstance(value, nn.Module)):
            return None
        return wire.Handle(self.number(value), self.describe(value))

    def number(self, value: Any) -> int:
        number = self.numbers.setdefault(id(value), len(self.objects))
        if number == len(self.objects):
            self.objects.append(value)
        return number

    def describe(self, value: Any) -> dict:
        if not isinstance(value, nn.Module):
            return {"kind": "object", "type": type(value).__name__, "callable": callable(value)}
        first: dict[int, str] = {}

        def once(name: str, tensor: torch.Tensor) -> Any:
            known = first.setdefault(id(tensor), name)
            return tensor.detach() if known == name else known  # tied: the name says enough

        inventory = Inventory(value)
        return {
            "kind": "module",
            "type": type(value).__name__,
            "parameters": [[n, once(n, p), p.requires_grad] for n, p, _ in inventory.all("_parameters")],
            "buffers": [[n, once(n, b), persistent] for n, b, persistent in inventory.all("_buffers")],
            "modules": [
                [name, type(sub).__name__, _torch_base(sub), bool(sub.training), known]
                for name, sub, known in inventory.parts
            ],
        }

    def describe_error(self, error: BaseException) -> dict:
        frames: list[list[Any]] = [
            [
                step.f_code.co_filename,
                line,
                source.qualified_name(step.f_code),
                source.line_of(step.f_code, line),
            ]
            for step, line in traceback.walk_tb(error.__traceback__)
            if source.is_students(step.f_code.co_filename)
        ]
        if isinstance(error, SyntaxError) and source.is_students(error.filename or ""):
            frames.append([error.filename, error.lineno or 0, "", (error.text or "").strip()])
        return {
            "type": type(error).__name__,
            "bases": [base.__name__ for base in type(error).__mro__ if base.__module__ == "builtins"],
            "text": _text(error),
            "frames": [[str(f), int(n), str(w), str(line)[:300]] for f, n, w, line in frames[-MAX_FRAMES:]],
        }


def serve(sock: socket.socket) -> None:
    """Answer requests until the other side hangs up."""
    server = Server()
    server.link = Link(server, sock)
    while True:
        try:
            number, operation, arguments = wire.receive(sock, max_text=wire.MAX_DATA)
        except EOFError:
            return
        answer_one(server, sock, number, operation, arguments)


def rehearse() -> None:
    """Walk once where every submission walks, so that forks of this process share the pages and imports."""
    server = Server("rehearsal")
    server.seed(0)
    server.names_used(_REHEARSAL, "rehearsal.py")
    server.load(_REHEARSAL, "rehearsal.py")
    call = {"kwargs": {}, "sync": [], "grad": True, "modules": []}
    made = answer(server, "call", {"target": [None, ["Model"]], "args": (4,), "wanted": [], **call})
    wire.parse(wire.dumps(made, server.register))
    x = torch.randn(2, 3, 4)
    call |= {"target": [wire.Handle(0), []], "args": (x,), "wanted": [0], "modules": [0]}
    wire.parse(wire.dumps(answer(server, "call", call), server.register))
    server.backward(server.calls, [torch.ones(2, 3, 4)])
    wire.parse(wire.dumps(answer(server, "find", {"name": "nothing"}), server.register))
    answer(
        server, "call", {**call, "target": [None, ["unfinished"]], "args": (), "wanted": [], "modules": []}
    )
    for name in ("rehearsal", "rehearsal.py"):
        sys.modules.pop(name, None)
        linecache.cache.pop(name, None)


def answer_one(server: Server, sock: socket.socket, number: int, operation: str, arguments: dict) -> None:
    reply = answer(server, operation, arguments)
    if not number:
        return  # nobody waits for this one
    _flush()
    try:
        frame = wire.dumps({"id": number, **reply}, server.register, wire.MAX_TEXT)
    except wire.WireError as error:
        frame = wire.dumps({"id": number, "error": unsendable(error)})
    except BaseException as error:  # the student's own properties and class names may fail, too
        frame = wire.dumps({"id": number, "error": server.describe_error(error)})
    wire.send_frame(sock, frame)


def unsendable(error: wire.WireError) -> dict:
    """How a reply that cannot travel is told."""
    return {"type": "WireError", "bases": [], "text": str(error), "frames": []}


def raise_told(answered: dict) -> None:
    """Raise here what a callable of the test raised there, if it did."""
    if "error" in answered:
        kind = answered["type"]
        raise (getattr(builtins, kind) if kind in MIRRORED else RuntimeError)(answered["error"])


def answer(server: Server, operation: str, arguments: dict) -> dict:
    """What came of one request: `ok` with a value, or `error` with a description."""
    try:
        return {"ok": getattr(server, operation)(**arguments)}
    except BaseException as error:  # SystemExit and pytest's outcomes are no Exceptions
        return {"error": server.describe_error(error)}


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue  # the student closed it, or its file is full


def _tensors(value: Any) -> list[torch.Tensor]:
    """The tensors in a result, in the order in which the wire names them."""
    found, waiting, seen = [], [value], 0
    while waiting:
        item, seen = waiting.pop(), seen + 1
        if seen > wire.MAX_VALUES:
            raise wire.WireError("it holds too many values")
        if isinstance(item, torch.Tensor):
            found.append(item)
        elif type(item) is list or isinstance(item, tuple):
            waiting.extend(reversed(item))
        elif isinstance(item, dict):
            waiting.extend(reversed(item.values()))
    return found


def _changed(now: torch.Tensor, old: torch.Tensor) -> bool:
    if now.shape != old.shape or now.dtype != old.dtype or now.device != old.device:
        return True
    if now.is_meta or torch.equal(now, old):
        return False
    return not now.is_floating_point() or not torch.equal(now.nan_to_num(), old.nan_to_num())


def _marked(tensor: torch.Tensor) -> bool:
    """Whether a call left its input wanting gradients, or with one."""
    return tensor.is_leaf and (tensor.requires_grad or tensor.grad is not None)


def _is_float(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.is_floating_point()


def _assign(tensor: torch.Tensor, value: torch.Tensor) -> None:
    if tensor.shape == value.shape and tensor.dtype == value.dtype:
        tensor.data.copy_(value)
    else:
        tensor.data = value


def _torch_base(module: nn.Module) -> str:
    """The PyTorch class that a module is or comes from, such as ModuleList."""
    return next(base.__name__ for base in type(module).__mro__ if base.__module__.startswith("torch.nn."))


def _text(error: BaseException) -> str:
    try:
        return str(str(error)[:MAX_ERROR_TEXT])
    except BaseException:  # the student's own __str__ may fail, or leave, too
        return ""
