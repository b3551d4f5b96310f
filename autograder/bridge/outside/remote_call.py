"""A call of the student's code from the tests' side: what it sends, and what it applies here.

`call` behaves as if the function were local: it brings back the results, connected to the inputs
for the backward pass, the state of the modules that took part, the state of random generators and,
if a test asks for it, inputs that were changed in place.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from autograder.bridge.outside.connection import Connection, malformed
from autograder.bridge.outside.pasted import pasted
from autograder.bridge.shared import claims
from autograder.bridge.shared.calls import Call, CallReply, claimed_tensor
from autograder.bridge.shared.containers import containers, leaves, mapped
from autograder.bridge.shared.errors import StudentError
from autograder.bridge.shared.generators import take_states
from autograder.bridge.shared.module_state import ModuleState
from autograder.bridge.shared.wire import Handle

Entry = TypeVar("Entry")
_INPUTS_ARE_MIRRORED: ContextVar[bool] = ContextVar("inputs are mirrored", default=False)


@contextmanager
def mirror_input_mutation() -> Iterator[None]:
    """Within this context, inputs changed by a student's code are also changed on this side."""
    token = _INPUTS_ARE_MIRRORED.set(True)
    try:
        yield
    finally:
        _INPUTS_ARE_MIRRORED.reset(token)


class MirroredPart(nn.Module):
    """A part of a module that is mirrored here; when it is called, or an argument of a call, the
    whole module's state is brought up to date before and after.
    """

    def _module(self) -> "MirroredModule":
        """Return the whole module."""
        raise NotImplementedError


class MirroredModule(MirroredPart):
    """A whole module that is mirrored here, with its handle on the wire."""

    _handle: Handle

    def changes(self) -> list[Any]:
        """Return this side's changes since the last synchronization, in the worker's format."""
        raise NotImplementedError

    def take_over(self, change: dict[str, Any]) -> None:
        """Apply the changes made by a call on the student's side."""
        raise NotImplementedError


def call(
    connection: Connection,
    target: list[Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    modules: tuple[MirroredModule, ...] = (),
) -> Any:
    """Call `target` ([handle or None, path]) as if it were local: state, gradients, changed inputs."""
    arguments = leaves((args, kwargs))
    parts = [leaf for leaf in arguments if isinstance(leaf, MirroredPart)]
    involved = [*modules, *[part._module() for part in parts]]
    participants = {module._handle.number: module for module in involved}
    inputs = [leaf for leaf in arguments if isinstance(leaf, Tensor | np.ndarray)]
    grad = torch.is_grad_enabled()
    wanted = [
        i
        for i, given in enumerate(inputs)
        if grad and isinstance(given, Tensor) and given.requires_grad
    ]
    sync: list[Any] = []
    for module in participants.values():
        sync += module.changes()
    asked = Call(target, args, kwargs, sync, grad, wanted, list(participants))
    connection.last_call = pasted(target[1], args, kwargs) if target[0] is None else ""
    message = connection.request("call", **asked.message())
    with malformed("the result of a call"):
        reply = CallReply.read(message)
        _change_inputs(reply, inputs)
        for number, change in reply.modules:
            participants[number].take_over(change)
        take_states(arguments, reply.generators)
        _refill(connection, reply, containers((args, kwargs)))
        sources: list[Any] = [inputs[i] for i in wanted]
        for module in participants.values():
            sources += ModuleState(module).parameters.values()
        result = _differentiable(connection, reply, sources)
    return connection.adopt(connection, result)


def attribute(
    connection: Connection,
    handle: Handle | None,
    path: list[str],
    modules: tuple[MirroredModule, ...] = (),
) -> Any:
    """Return the attribute at the end of `path`; raises AttributeError if missing, so that hasattr works."""
    try:
        description = connection.request("get", target=[handle, path])
    except StudentError as error:
        if isinstance(error, AttributeError):
            raise AttributeError(path[-1]) from None
        raise
    with malformed("an attribute"):
        if claims.one_of(("value", "callable"), claims.table(description)["kind"]) == "value":
            return connection.adopt(connection, description["value"])
    if modules:
        return lambda *args, **kwargs: call(connection, [handle, path], args, kwargs, modules)
    return RemoteFunction(connection, handle, path)


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

    def moved_generators(self, *args: Any) -> list[str]:
        """Call the function, and return the libraries whose global random state is another one afterwards."""
        self._connection.request("mark_generators")
        self(*args)
        with malformed("a list of libraries"):
            moved = claims.items(self._connection.request("moved_generators"))
            return [claims.text(name) for name in moved]

    def __repr__(self) -> str:
        return f"<the student's {self.__name__}>"


class _Boundary(torch.autograd.Function):
    """The autograd function of a remote call: connects results to the inputs; the backward pass is remote."""

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
        gradients_of_inputs = ctx.connection.request("backward", call=ctx.number, gradients=wanted)
        with malformed("a list of gradients"):
            if type(gradients_of_inputs) is not list or len(gradients_of_inputs) != len(ctx.kinds):
                raise ValueError("wrong number of gradients")
            for gradient, kind in zip(gradients_of_inputs, ctx.kinds):
                if gradient is not None and _kind(claimed_tensor(gradient)) != kind:
                    raise ValueError("wrong shape or type of a gradient")
        return (None, None, None, None, *gradients_of_inputs)


def _change_inputs(reply: CallReply, inputs: list[Any]) -> None:
    """Change the inputs as the student's code did, if the test asks for it."""
    changed = [(_entry(inputs, index), value) for index, value in reply.mutated]
    if not _INPUTS_ARE_MIRRORED.get():
        return
    with torch.no_grad():
        for tensor, value in changed:
            if isinstance(tensor, np.ndarray):
                tensor[...] = value.numpy().view(tensor.dtype)
            elif tensor.shape == value.shape:
                tensor.copy_(value)
            else:
                tensor.data = value
    for index, requires_grad, gradient in reply.marked:
        tensor = _entry(inputs, index).requires_grad_(requires_grad)
        tensor.grad = gradient


def _refill(
    connection: Connection, reply: CallReply, held: list[list[Any] | dict[str, Any]]
) -> None:
    changed = [
        (_entry(held, index), connection.adopt(connection, new)) for index, new in reply.refilled
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


def _differentiable(connection: Connection, reply: CallReply, sources: list[Tensor]) -> Any:
    """Return the result, whose differentiable tensors are connected to the sources."""
    tensors = [leaf for leaf in leaves(reply.result) if isinstance(leaf, Tensor)]
    flags = reply.differentiable
    if len(flags) != len(tensors):
        raise ValueError("one flag for each tensor was expected")
    if not any(flags):
        return reply.result
    outputs = _Boundary.apply(connection, reply.number, flags, tensors, *sources)  # type: ignore[no-untyped-call]
    results = iter(outputs)
    return mapped(lambda leaf: next(results) if isinstance(leaf, Tensor) else leaf, reply.result)


def _kind(tensor: Tensor) -> tuple[Any, ...]:
    return tensor.shape, tensor.dtype, tensor.device
