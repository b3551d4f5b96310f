"""A module of the student's as a real `nn.Module` on the tests' side.

Its parameters and buffers are real, so `load_state_dict`, optimisers, `.backward()`, `.eval()` and
`.to(...)` behave as for a plain module. Each side changes its own copy; they are made equal when a
call begins and when it ends:

| method            | direction          | when                            | carries                        |
|-------------------|--------------------|---------------------------------|--------------------------------|
| `describe`        | worker → here      | a new module; other names in it | all modules and tensors        |
| `changes`, `push` | here → worker      | before a call, before a read    | values, gradient flags, modes  |
| `take_over`       | worker → here      | after a call                    | values, gradient flags, modes  |
| `to`              | both               | another type or device          | all modules and tensors        |

What has changed is told by comparison with a snapshot of the last synchronization.
"""

import weakref
from collections.abc import Iterator
from functools import partialmethod
from typing import Any

import torch
from torch import Tensor, nn

from autograder.bridge.outside.connection import Connection, malformed
from autograder.bridge.outside.remote_call import MirroredModule, MirroredPart, attribute, call
from autograder.bridge.shared import claims
from autograder.bridge.shared.calls import claimed_tensor
from autograder.bridge.shared.module_state import ModuleState, Snapshot
from autograder.bridge.shared.wire import Handle

# names that a module's state_dict may have, shared ones counted at each of their places
MAX_ENTRIES = 20_000


class Mirror(MirroredPart):
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


class RemoteModule(Mirror, MirroredModule):
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
            old_parameters = dict(self.named_parameters(remove_duplicate=False))
            places = self._place_modules(description["modules"])
            self._place_parameters(description["parameters"], places, old_parameters)
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
                earlier = old.get(name)
                part = earlier if isinstance(earlier, Mirror) else Mirror(root, name.split("."))
                part.__dict__["kind"] = kind
                place._modules[leaf] = places[name] = part
            places[name].training = training
        return places

    def _place_parameters(
        self, parameters: Any, places: dict[str, Mirror], old_parameters: dict[str, nn.Parameter]
    ) -> None:
        placed: dict[str, nn.Parameter] = {}
        for name, value, requires_grad in claims.rows(parameters, str, (str, Tensor), bool):
            place, leaf = _slot(name, places)
            parameter = old_parameters.get(name)
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
            _renew(tensors[name], claimed_tensor(value))
            self._sent.renew(name, value)
        for name, flag in claims.table(change["flags"]).items():
            self._sent.flags[name] = claims.flag(flag)
            tensors[name].requires_grad_(flag)
        parts = dict(module_state.own)
        for name, mode in claims.table(change["modes"]).items():
            parts[name].training = self._sent.modes[name] = claims.flag(mode)


def _slot(name: str, places: dict[str, Mirror]) -> tuple[Mirror, str]:
    """Return the module and the attribute of a dotted name; it is untrusted, and its parent must exist."""
    parent, _, leaf = name.rpartition(".")
    if len(name) > 500 or not leaf or not leaf.isprintable() or leaf.startswith("__"):
        raise ValueError(f"a strange name: {name[:80]!r}")
    return places[parent], leaf


def _renew(tensor: Tensor, value: Tensor) -> None:
    """Replace a tensor's data; its gradient is kept if the shape still fits."""
    gradient = tensor.grad
    tensor.grad = None
    tensor.data = value
    if gradient is not None and gradient.shape == value.shape:
        tensor.grad = gradient.to(value)


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
