"""Proxies for a student's module in a sandboxed worker.

`RemoteStudent` provides the names that the student defined. Functions are called over the
connection; classes create objects in the worker; modules are mirrored (see `mirror`).

Not supported: second derivatives, hooks, `isinstance` with the student's classes, new submodules.
"""

import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from autograder.bridge.outside.connection import Connection, malformed
from autograder.bridge.outside.mirror import RemoteModule
from autograder.bridge.outside.remote_call import RemoteFunction, attribute, call
from autograder.bridge.shared import claims
from autograder.bridge.shared.containers import mapped
from autograder.bridge.shared.errors import (
    RemoteException,
    StudentRaisedError,
    missing_name,
    student_raised,
)
from autograder.bridge.shared.wire import CallableHandle, Handle, Opaque


class RemoteStudent:
    """The student's module: `student.attention(q, k, v)`, `student.Head(20, 5, 7)`, `student.CONSTANT`."""

    def __init__(self, connection: Connection, load_errors: Sequence[RemoteException] = ()) -> None:
        connection.adopt = adopt
        self._connection = connection
        self._load_errors = load_errors

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        attributes = self._connection.found
        if name not in attributes:
            attributes[name] = self._find(name)
        return attributes[name]

    def _find(self, name: str) -> Any:
        description = self._connection.request("find", name=name)
        with malformed("a name's description"):
            kind = claims.one_of(
                ("missing", "value", "class", "function"), claims.table(description)["kind"]
            )
            if kind == "value":
                return adopt(self._connection, description["value"])
        if kind == "missing":
            raise missing_name(name, self._load_errors)
        if kind == "class":
            return RemoteClass(self._connection, None, [name])
        return RemoteFunction(self._connection, None, [name])


class RemoteClass(RemoteFunction):
    """A class of the student's: calling it creates an object in the worker; class attributes can be read."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return attribute(self._connection, None, [*self._path, name])


class RemoteObject:
    """An instance of a student's class; its attributes and methods are accessed over the connection."""

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
            length = call(self._connection, [self._handle, ["__len__"]], (), {})
        except StudentRaisedError as error:
            if error.remote.type != "AttributeError" or "__len__" not in error.remote.text:
                raise
            raise student_raised(
                replace(error.remote, type="TypeError", bases=("TypeError",))
            ) from None
        with malformed("a length"):
            if type(length) is not int or not 0 <= length <= sys.maxsize:
                raise ValueError("a length is a number of things")
            return length

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
    """An iterator of the student's, such as a generator: each value is asked for when the test needs it."""

    def __iter__(self) -> "RemoteIterator":
        return self

    def __next__(self) -> Any:
        try:
            return call(self._connection, [self._handle, ["__next__"]], (), {})
        except StudentRaisedError as error:
            if error.remote.type != "StopIteration":
                raise
        raise StopIteration


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
        if claims.one_of(("module", "object"), description["kind"]) == "module":
            mirror = connection.mirrors.get(handle.number)
            return mirror if mirror is not None else RemoteModule(connection, handle)
        remote = RemoteIterator if description["iterator"] is True else RemoteObject
        return remote(connection, handle.number, claims.text(description["type"])[:80])
