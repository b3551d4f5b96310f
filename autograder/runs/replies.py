"""What a fork replies, as bytes that its parent reads without trusting them.

`pickle` alone would let a fork that a submission has taken over run code in its parent. Here, bytes
can make plain values, records and exceptions, and none of their own methods is called.
"""

import builtins
import importlib
import io
import pickle
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

ENGINE = __name__.partition(".")[0]
_PLAIN = (str, bytes, int, float, complex, bool, type(None))


def dumps(value: Any) -> bytes:
    """Return a reply as bytes; an exception of another library becomes a RuntimeError with its name."""
    buffer = io.BytesIO()
    _Writer(buffer, protocol=5).dump(value)
    return buffer.getvalue()


def loads(data: bytes) -> Any:
    """Return the value that `dumps` was given; raises Exception of some kind for all else."""
    return _built(_Reader(io.BytesIO(data)).load(), {})


class _Made(tuple[Any, ...]):
    """What a maker is to make, of which the unpickler can call or change nothing: its name and arguments."""

    __slots__ = ()


class _Maker:
    """Stands for a maker while bytes are read."""

    __slots__ = ("_name",)
    _name: str

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "_name", name)

    def __setattr__(self, name: str, value: object) -> None:
        raise pickle.UnpicklingError("a reply may not change a maker")

    def __call__(self, *arguments: Any) -> _Made:
        return _Made((self._name, *arguments))


class _Writer(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        name = (kind.__module__, kind.__qualname__)
        if isinstance(value, BaseException):
            if not _is_ours(kind.__module__):
                return raised, ("builtins", "RuntimeError", (f"{kind.__name__}: {value}",), {})
            return raised, (*name, value.args, dict(vars(value)))
        if isinstance(value, tuple):
            return row, (*name, tuple(value))
        if is_dataclass(value) and not isinstance(value, type):
            return record, (
                *name,
                {field.name: getattr(value, field.name) for field in fields(kind)},
            )
        if isinstance(value, Path):
            return path, (str(value),)
        return NotImplemented


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module == __name__ and name in MAKERS:
            return _Maker(name)
        raise pickle.UnpicklingError(f"a reply may not hold {module}.{name}")


def _built(value: Any, built_before: dict[int, Any]) -> Any:
    """Return a value that was read, with what its parts are to make."""
    kind = type(value)
    if kind not in (_Made, list, tuple, dict, set, frozenset):
        return value
    if id(value) not in built_before:
        built_before[id(value)] = _of_parts(kind, value, built_before)
    return built_before[id(value)]


def _of_parts(kind: type[Any], value: Any, built_before: dict[int, Any]) -> Any:
    if kind is _Made:
        name, *arguments = value
        return MAKERS[name](*(_built(argument, built_before) for argument in arguments))
    if kind is dict:
        return {_key(key): _built(part, built_before) for key, part in value.items()}
    if kind in (set, frozenset):
        return kind(map(_key, value))
    return kind(_built(part, built_before) for part in value)


def _key(value: Any) -> Any:
    """Return a key or a member, which is built of plain values: no hash of a record is computed."""
    if type(value) is tuple:
        return tuple(map(_key, value))
    if type(value) in _PLAIN:
        return value
    raise pickle.UnpicklingError(f"a {type(value).__name__} may not be a key in a reply")


def raised(module: str, name: str, arguments: tuple[Any, ...], state: dict[str, Any]) -> Any:
    """Return an exception with these arguments and attributes."""
    kind = _class(module, name)
    if not issubclass(kind, Exception):
        raise pickle.UnpicklingError(f"{name} is no error")
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    vars(error).update(state)
    return error


def row(module: str, name: str, values: tuple[Any, ...]) -> Any:
    """Return a named tuple with these values."""
    kind = _class(module, name)
    if not (issubclass(kind, tuple) and len(values) == len(getattr(kind, "_fields", ()))):
        raise pickle.UnpicklingError(f"{name} is no named tuple of such a length")
    return tuple.__new__(kind, values)


def record(module: str, name: str, values: dict[str, Any]) -> Any:
    """Return a record with these values in its fields."""
    kind = _class(module, name)
    if not is_dataclass(kind) or {field.name for field in fields(kind)} != set(values):
        raise pickle.UnpicklingError(f"{name} is no record with such fields")
    copy = object.__new__(kind)
    for field, value in values.items():
        object.__setattr__(copy, field, value)
    return copy


def path(text: str) -> Path:
    """Return a path."""
    return Path(text)


MAKERS = {maker.__name__: maker for maker in (raised, row, record, path)}


def _class(module: str, name: str) -> type[Any]:
    """Return a class at the top of a module, which only one of the engine's is imported for."""
    space = importlib.import_module(module) if _is_ours(module) else sys.modules.get(module)
    kind = getattr(space, name, None)
    if not isinstance(kind, type):
        raise pickle.UnpicklingError(f"there is no class {module}.{name}")
    return kind


def _is_ours(module: str) -> bool:
    return module == builtins.__name__ or module.split(".")[0] == ENGINE
