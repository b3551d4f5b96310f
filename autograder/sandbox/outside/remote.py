"""Proxies for a student's module in a sandboxed worker.

`RemoteStudent` provides the names that the student defined. Functions are called over the
connection; classes create objects in the worker. A module is mirrored as a real `nn.Module` with
real parameters, so that `load_state_dict`, optimisers, `.backward()`, `.eval()` and `.to(...)`
behave as for a plain module. Changes on one side are applied to the other at the next call.

Not supported: second derivatives, hooks, `isinstance` with the student's classes, new submodules.
"""

import itertools
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partialmethod
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from autograder.sandbox.outside.connection import Connection, malformed
from autograder.sandbox.shared import claims
from autograder.sandbox.shared.containers import containers, leaves, mapped
from autograder.sandbox.shared.errors import (
    RemoteException,
    StudentError,
    StudentRaisedError,
    missing_name,
    student_raised,
)
from autograder.sandbox.shared.module_state import ModuleState, Snapshot
from autograder.sandbox.shared.wire import CallableHandle, Handle, Opaque

Entry = TypeVar("Entry")
# names that a module's state_dict may have, shared ones counted at each of their places
MAX_ENTRIES = 20_000
_INPUTS_ARE_MIRRORED: ContextVar[bool] = ContextVar("inputs are mirrored", default=False)


@contextmanager
def mirror_input_mutation() -> Iterator[None]:
    """Within this context, inputs changed by a student's code are also changed on this side."""
    token = _INPUTS_ARE_MIRRORED.set(True)
    try:
        yield
    finally:
        _INPUTS_ARE_MIRRORED.reset(token)


class RemoteStudent:
    """The student's module: `student.attention(q, k, v)`, `student.Head(20, 5, 7)`,
    `student.CONSTANT`.
    """

    def __init__(self, connection: Connection, load_errors: list[RemoteException] = ()) -> None:  # type: ignore[assignment]
        connection.adopt = adopt
        self._connection = connection
        self._load_errors = load_errors

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = self._connection.found
        if name not in found:
            found[name] = self._find(name)
        return found[name]

    def _find(self, name: str) -> Any:
        found = self._connection.request("find", name=name)
        with malformed("a name's description"):
            kind = _one_of(("missing", "value", "class", "function"), claims.table(found)["kind"])
            if kind == "value":
                return adopt(self._connection, found["value"])
        if kind == "missing":
            raise missing_name(name, self._load_errors[0] if self._load_errors else None)
        if kind == "class":
            return RemoteClass(self._connection, None, [name])
        return RemoteFunction(self._connection, None, [name])


class RemoteFunction:
    """A callable in the worker; `handle` is None for names of the module itself."""

    def __init__(self, connection: Connection, handle: Handle | None, path: list[str]) -> None:
        self._connection = connection
        self._handle = handle
        self._path = path
        self.__name__ = path[-1] if path else "object"
        self.__qualname__ = self.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return call(self._connection, [self._handle, self._path], args, kwargs)

    def __repr__(self) -> str:
        return f"<the student's {self.__name__}>"


class RemoteClass(RemoteFunction):
    """A class of the student's: calling it creates an object in the worker; class attributes can be
    read.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return attribute(self._connection, None, [*self._path, name])


class RemoteObject:
    """An instance of a student's class; its attributes and methods are accessed over the
    connection.
    """

    def __init__(self, connection: Connection, number: int, kind: str) -> None:
        self.__dict__.update(_connection=connection, _handle=Handle(number), _kind=kind)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return attribute(self._connection, self._handle, [name])

    def __setattr__(self, name: str, value: Any) -> None:
        self._connection.request("set", target=[self._handle, [name]], value=value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return call(self._connection, [self._handle, []], args, kwargs)

    def as_handle(self) -> Handle:
        """Return the handle that represents the object on the wire."""
        handle: Handle = self._handle
        return handle

    def __eq__(self, other: Any) -> Any:
        answer = call(self._connection, [self._handle, ["__eq__"]], (other,), {})
        return NotImplemented if isinstance(answer, Opaque) else answer

    __hash__ = object.__hash__

    def __len__(self) -> int:
        try:
            found = call(self._connection, [self._handle, ["__len__"]], (), {})
        except StudentRaisedError as error:
            if error.remote.type != "AttributeError" or "__len__" not in error.remote.text:
                raise
            raise student_raised(
                replace(error.remote, type="TypeError", bases=("TypeError",))
            ) from None
        with malformed("a length"):
            if type(found) is not int or found < 0:
                raise ValueError("a length is a number of things")
            return found

    def __getitem__(self, key: Any) -> Any:
        return call(self._connection, [self._handle, ["__getitem__"]], (key,), {})

    def __iter__(self) -> Iterator[Any]:
        try:
            return iter(call(self._connection, [self._handle, ["__iter__"]], (), {}))
        except AttributeError as error:
            if "__iter__" not in str(error):
                raise
        return self._in_order()

    def _in_order(self) -> Iterator[Any]:
        """Yield the items of an object with `__getitem__` alone, as Python does."""
        for index in itertools.count():
            try:
                item = self[index]
            except IndexError:
                return
            yield item

    def __repr__(self) -> str:
        return f"<the student's {self._kind} object>"


class RemoteIterator(RemoteObject):
    """An iterator of the student's, such as a generator: each value is asked for when the test
    needs it.
    """

    def __iter__(self) -> "RemoteIterator":
        return self

    def __next__(self) -> Any:
        try:
            return call(self._connection, [self._handle, ["__next__"]], (), {})
        except StudentRaisedError as error:
            if error.remote.type != "StopIteration":
                raise
        raise StopIteration


class Mirror(nn.Module):
    """A mirrored submodule: real parameters and buffers, with calls over the connection."""

    def __init__(self, root: weakref.ref[Any] | None, path: list[str]) -> None:
        super().__init__()
        self.__dict__.update(_root=root, _path=path, kind="")

    def _module(self) -> "RemoteModule":
        root = self if self._root is None else self._root()
        if not isinstance(root, RemoteModule):
            raise ReferenceError("keep the student's module itself while you use a part of it")
        return root

    def as_handle(self) -> Handle:
        """Return the handle on the wire: the root module's number, and the path to this part."""
        return Handle(self._module()._handle.number, self._path)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        module = self._module()
        return call(module._connection, [module._handle, self._path], args, kwargs, (module,))

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("__"):
                raise
        module = self._module()
        module.push()
        return attribute(module._connection, module._handle, [*self._path, name], (module,))

    def __setattr__(self, name: str, value: Any) -> None:
        local = name == "training" or isinstance(value, (nn.Parameter, nn.Module))
        if local or name in self._buffers or name in self._parameters or name in self.__dict__:
            super().__setattr__(name, value)
            return
        module = self._module()
        module._connection.request("set", target=[module._handle, [*self._path, name]], value=value)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[nn.Module]:
        return iter(self._modules.values())  # type: ignore[arg-type]

    def __getitem__(self, key: int | str | slice) -> Any:
        return self._modules[key] if isinstance(key, str) else list(self._modules.values())[key]

    def __bool__(self) -> bool:
        return True  # a module without parts is truthy

    def _get_name(self) -> str:
        return str(self.kind)

    def to(self, *args: Any, **kwargs: Any) -> Any:
        options: dict[str, Any] = {}
        device, dtype, _, _ = torch._C._nn._parse_to(*args, **kwargs)
        if dtype is not None:
            options["dtype"] = dtype
        if device is not None:
            options["device"] = str(device)
        module = self._module()
        sync = module.changes()
        target = [module._handle, self._path]
        module.describe(
            module._connection.request("convert", target=target, sync=sync, options=options)
        )
        return self

    double = partialmethod(to, torch.float64)
    float = partialmethod(to, torch.float32)
    half = partialmethod(to, torch.float16)
    bfloat16 = partialmethod(to, torch.bfloat16)


class RemoteModule(Mirror):
    """A mirrored module with all its submodules; keeps the state of both sides equal."""

    def __init__(self, connection: Connection, handle: Handle) -> None:
        super().__init__(None, [])
        self.__dict__.update(_connection=connection, _handle=Handle(handle.number))
        self.describe(handle)
        connection.mirrors[handle.number] = self

    def describe(self, handle: Handle) -> None:
        """Apply a description: add, update or remove modules, parameters and buffers."""
        with malformed("a description of a module"):
            description = claims.table(handle.description)
            known = dict(self.named_parameters(remove_duplicate=False))
            places = self._place_modules(description["modules"])
            self._place_parameters(description["parameters"], places, known)
            self._place_buffers(description["buffers"], places)
            _count_entries(self, {})
        self.__dict__["_sent"] = Snapshot(self)

    def _place_modules(self, modules: Any) -> dict[str, Mirror]:
        places: dict[str, Mirror] = {"": self}
        old = dict(self.named_modules())
        for part in old.values():  # parts that are no longer described are removed
            for book in (
                part._modules,
                part._parameters,
                part._buffers,
                part._non_persistent_buffers_set,
            ):
                book.clear()
        root = weakref.ref(self)
        for name, kind, training, first in claims.rows(modules, str, str, bool, str):
            if not name:
                self.__dict__["kind"] = kind
            elif first != name:  # one module under two names
                place, leaf = _slot(name, places)
                place._modules[leaf] = places[name] = places[first]
            else:
                place, leaf = _slot(name, places)
                known = old.get(name)
                part = known if isinstance(known, Mirror) else Mirror(root, name.split("."))
                part.__dict__["kind"] = kind
                place._modules[leaf] = places[name] = part
            places[name].training = training
        return places

    def _place_parameters(
        self, parameters: Any, places: dict[str, Mirror], known: dict[str, nn.Parameter]
    ) -> None:
        placed: dict[str, nn.Parameter] = {}
        for name, value, requires_grad in claims.rows(parameters, str, (str, Tensor), bool):
            place, leaf = _slot(name, places)
            parameter = known.get(name)
            taken = any(parameter is other for other in placed.values())
            if isinstance(value, str):
                parameter = placed[value]  # tied to an earlier one
            elif parameter is None or parameter.device != value.device or taken:
                parameter = nn.Parameter(value, requires_grad=requires_grad)
            else:
                _renew(parameter, value)
                parameter.requires_grad_(requires_grad)
            place._parameters[leaf] = placed[name] = parameter

    def _place_buffers(self, buffers: Any, places: dict[str, Mirror]) -> None:
        placed: dict[str, Tensor] = {}
        for name, value, persistent in claims.rows(buffers, str, (str, Tensor), bool):
            place, leaf = _slot(name, places)
            buffer = placed[value] if isinstance(value, str) else value
            place._buffers[leaf] = placed[name] = buffer
            if not persistent:
                place._non_persistent_buffers_set.add(leaf)

    def changes(self) -> list[Any]:
        """Return this side's changes since the last synchronization, in the worker's format."""
        change = ModuleState(self).changes_since(self._sent)
        if change is None:
            return []
        self.__dict__["_sent"] = Snapshot(self)
        return [[self._handle, change["values"], change["flags"], change["modes"]]]

    def push(self) -> None:
        """Send this side's changes now, before a value is read in the worker."""
        sync = self.changes()
        if sync:
            self._connection.request("apply_sync", sync=sync)

    def take_over(self, change: dict[str, Any]) -> None:
        """Apply the changes made by a call on the student's side."""
        if "description" in change:
            self.describe(Handle(self._handle.number, change["description"]))
            return
        module_state = ModuleState(self)
        tensors = module_state.tensors
        for name, value in claims.table(change["values"]).items():
            _renew(tensors[name], _tensor(value))
            self._sent.values[name] = value.clone()
        for name, flag in claims.table(change["flags"]).items():
            self._sent.flags[name] = claims.flag(flag)
            tensors[name].requires_grad_(flag)
        parts = dict(module_state.own)
        for name, mode in claims.table(change["modes"]).items():
            parts[name].training = self._sent.modes[name] = claims.flag(mode)


class _Boundary(torch.autograd.Function):
    """The autograd function of a remote call: connects results to the inputs; the backward pass is
    remote.
    """

    @staticmethod
    def forward(
        ctx: Any,
        connection: Connection,
        number: int,
        flags: list[Any],
        results: list[Any],
        *inputs: Tensor,
    ) -> Any:
        ctx.connection = connection
        ctx.number = number
        ctx.flags = flags
        ctx.kinds = [_kind(tensor) for tensor in inputs]
        ctx.mark_non_differentiable(*[tensor for tensor, flag in zip(results, flags) if not flag])
        ctx.set_materialize_grads(False)
        return tuple(results)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        wanted = [gradient if flag else None for gradient, flag in zip(gradients, ctx.flags)]
        found = ctx.connection.request("backward", call=ctx.number, gradients=wanted)
        with malformed("a list of gradients"):
            if type(found) is not list or len(found) != len(ctx.kinds):
                raise ValueError("wrong number of gradients")
            for gradient, kind in zip(found, ctx.kinds):
                if gradient is not None and _kind(_tensor(gradient)) != kind:
                    raise ValueError("wrong shape or type of a gradient")
        return (None, None, None, None, *found)


def call(
    connection: Connection,
    target: list[Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    modules: tuple[Any, ...] = (),
) -> Any:
    """Call `target` ([handle or None, path]) as if it were local: state, gradients, changed inputs."""
    found = leaves((args, kwargs))
    involved = (*modules, *(leaf._module() for leaf in found if isinstance(leaf, Mirror)))
    participants = {module._handle.number: module for module in involved}
    inputs = [leaf for leaf in found if isinstance(leaf, Tensor)]
    generators = [leaf for leaf in found if isinstance(leaf, torch.Generator)]
    grad = torch.is_grad_enabled()
    wanted = [i for i, tensor in enumerate(inputs) if grad and tensor.requires_grad]
    reply = connection.request(
        "call",
        target=target,
        args=args,
        kwargs=kwargs,
        sync=[change for module in participants.values() for change in module.changes()],
        grad=grad,
        wanted=wanted,
        modules=list(participants),
    )
    with malformed("the result of a call"):
        _bring_home(claims.table(reply), inputs, generators, participants)
        _refill(connection, reply["refilled"], containers((args, kwargs)))
        parameters = [p for m in participants.values() for p in ModuleState(m).parameters.values()]
        result = _differentiable(connection, reply, [inputs[i] for i in wanted] + parameters)
    return adopt(connection, result)


def attribute(
    connection: Connection, handle: Handle | None, path: list[str], modules: tuple[Any, ...] = ()
) -> Any:
    """Return the attribute at the end of `path`; raises AttributeError if missing, so that hasattr
    works.
    """
    try:
        found = connection.request("get", target=[handle, path])
    except StudentError as error:
        if isinstance(error, AttributeError):
            raise AttributeError(path[-1]) from None
        raise
    with malformed("an attribute"):
        if _one_of(("value", "callable"), claims.table(found)["kind"]) == "value":
            return adopt(connection, found["value"])
    if modules:
        return lambda *args, **kwargs: call(connection, [handle, path], args, kwargs, modules)
    return RemoteFunction(connection, handle, path)


def adopt(connection: Connection, value: Any) -> Any:
    """Replace handles in a value by proxies."""

    def stand_in(leaf: Any) -> Any:
        if isinstance(leaf, Handle):
            return _object_of(connection, leaf)
        if isinstance(leaf, CallableHandle):
            with malformed("a callable"):
                return connection.own_callable(leaf.number)
        return leaf

    return mapped(stand_in, value)


def _object_of(connection: Connection, handle: Handle) -> Any:
    with malformed("an object"):
        description = claims.table(handle.description)
        if _one_of(("module", "object"), description["kind"]) == "module":
            known = connection.mirrors.get(handle.number)
            return known if known is not None else RemoteModule(connection, handle)
        remote = RemoteIterator if description["iterator"] is True else RemoteObject
        return remote(connection, handle.number, claims.text(description["type"])[:80])


def _bring_home(
    reply: dict[str, Any], inputs: list[Tensor], generators: list[Any], participants: dict[str, Any]
) -> None:
    """Apply the changes of a call: its modules, the generators' state and, if requested, its
    inputs.
    """
    changed = [
        (_entry(inputs, index), value)
        for index, value in claims.rows(reply["mutated"], int, Tensor)
    ]
    if _INPUTS_ARE_MIRRORED.get():
        with torch.no_grad():
            for tensor, value in changed:
                if tensor.shape == value.shape:
                    tensor.copy_(value)
                else:
                    tensor.data = value
        marked = claims.rows(reply.get("marked", ()), int, bool, (Tensor, type(None)))
        for index, wanted, gradient in marked:
            tensor = _entry(inputs, index).requires_grad_(wanted)
            tensor.grad = gradient
    for number, change in claims.rows(reply["modules"], int, dict):
        participants[number].take_over(change)
    for generator, advanced in zip(generators, claims.items(reply["generators"])):
        generator.set_state(advanced.get_state())


def _refill(connection: Connection, refilled: Any, held: list[list[Any] | dict[str, Any]]) -> None:
    changed = [
        (_entry(held, index), adopt(connection, new))
        for index, new in claims.rows(refilled, int, object)
    ]
    for container, new in changed:
        if not isinstance(new, list if isinstance(container, list) else dict):
            raise TypeError("a list stays a list, and a dict a dict")
        if _INPUTS_ARE_MIRRORED.get():
            container.clear()
            container.extend(new) if isinstance(container, list) else container.update(new)


def _entry(inputs: list[Entry], index: Any) -> Entry:
    if type(index) is not int or not 0 <= index < len(inputs):
        raise IndexError("there is no such input")
    return inputs[index]


def _differentiable(connection: Connection, reply: dict[str, Any], inputs: list[Tensor]) -> Any:
    tensors = [leaf for leaf in leaves(reply["result"]) if isinstance(leaf, Tensor)]
    flags = [claims.flag(flag) for flag in claims.items(reply["differentiable"])]
    if len(flags) != len(tensors):
        raise ValueError("one flag for each tensor was expected")
    if not any(flags):
        return reply["result"]
    outputs = _Boundary.apply(connection, claims.integer(reply["call"]), flags, tensors, *inputs)  # type: ignore[no-untyped-call]
    results = iter(outputs)
    return mapped(lambda leaf: next(results) if isinstance(leaf, Tensor) else leaf, reply["result"])


def _slot(name: str, places: dict[str, Mirror]) -> tuple[Mirror, str]:
    """Return the module and the attribute of a dotted name; it is untrusted, and its parent must
    exist.
    """
    parent, _, leaf = name.rpartition(".")
    if len(name) > 500 or not leaf or not leaf.isprintable() or leaf.startswith("__"):
        raise ValueError(f"a strange name: {name[:80]!r}")
    return places[parent], leaf


def _one_of(kinds: tuple[str, ...], claim: Any) -> str:
    if type(claim) is not str or claim not in kinds:
        raise ValueError("a kind that there is not")
    return claim


def _tensor(value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError("a tensor was expected")
    return value


def _renew(tensor: Tensor, value: Tensor) -> None:
    """Replace a tensor's data; its gradient is kept if the shape still fits."""
    gradient = tensor.grad
    tensor.grad = None
    tensor.data = value
    if gradient is not None and gradient.shape == value.shape:
        tensor.grad = gradient.to(value)


def _kind(tensor: Tensor) -> tuple[Any, ...]:
    return tensor.shape, tensor.dtype, tensor.device


def _count_entries(part: nn.Module, counted: dict[nn.Module, int]) -> int:
    """Count the entries of a state_dict.

    Raises ValueError if there are too many, or for a recursive module.
    """
    if part not in counted:
        counted[part] = MAX_ENTRIES  # during counting, to detect recursion
        inside = sum(
            [_count_entries(sub, counted) for sub in part._modules.values() if sub is not None]
        )
        counted[part] = 1 + len(part._parameters) + len(part._buffers) + inside
    if counted[part] >= MAX_ENTRIES:
        raise ValueError("it has too many names, or holds itself")
    return counted[part]
