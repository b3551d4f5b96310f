"""Modules that a student's file imports and that are not there.

An import at the top of the file that fails binds a stand-in, which raises the import's own error as
soon as it is used. An import inside `try` or in a function fails as always. A stand-in can be named
in annotations, and what is decorated with it, or derived from it, becomes a stand-in, too.
"""

import ast
import builtins
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from autograder.bridge.shared.errors import kept_by

Missing = tuple[
    str, int, str
]  # the name of what is not there, the line of its import and its piece

_BLOCKS = (ast.If, ast.For, ast.While, ast.With)
_RAISING = (
    *(
        "__iter__",
        "__len__",
        "__bool__",
        "__int__",
        "__float__",
        "__index__",
        "__enter__",
        "__exit__",
        "__contains__",
    ),
    *(
        "__add__",
        "__radd__",
        "__sub__",
        "__rsub__",
        "__mul__",
        "__rmul__",
        "__matmul__",
        "__rmatmul__",
    ),
    *(
        "__truediv__",
        "__rtruediv__",
        "__pow__",
        "__rpow__",
        "__neg__",
        "__setitem__",
        "__delitem__",
    ),
    *("__lt__", "__le__", "__gt__", "__ge__", "__instancecheck__", "__subclasscheck__"),
)


class Absent:
    """A name that could not be imported, or an attribute of it; `error` is the import's."""

    def __init__(self, error: ImportError) -> None:
        self.__dict__["_error"] = error

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return []  # of `import *`
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the stand-in when it decorates something or takes other stand-ins; raise for any other call."""
        given = [*args, *kwargs.values()]
        decorates = len(given) == 1 and isinstance(given[0], (type, types.FunctionType))
        if decorates or (given and all(isinstance(argument, Absent) for argument in given)):
            return self
        self._raise()

    def __getitem__(self, key: Any) -> Any:
        return self

    def __or__(self, other: Any) -> Any:  # in an annotation
        return self

    __ror__ = __or__

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        error = self._error

        def refuse(kind: type, *args: Any, **kwargs: Any) -> NoReturn:
            raise _anew(error)

        members = {
            "__new__": refuse,
            "__init_subclass__": classmethod(lambda kind, **options: None),
        }
        return (type("Absent", (), members),)

    def _raise(self, *args: Any) -> NoReturn:
        raise _anew(self._error)


for _name in _RAISING:
    setattr(Absent, _name, Absent._raise)


def _anew(error: ImportError) -> ImportError:
    """Return an error like this one, without its traceback."""
    anew = type(error)(*error.args, name=error.name, path=error.path)
    anew.__dict__["is_of_stand_in"] = True
    return anew


def is_absent(error: BaseException) -> bool:
    """Whether a stand-in raised this, because something was used that is not there."""
    return "is_of_stand_in" in kept_by(error, BaseException, "__dict__")


def top_imports(tree: ast.Module) -> set[int]:
    """Return the lines of the imports that run when the text is loaded, without those inside `try`."""
    lines = set[int]()
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, _BLOCKS):
            waiting += [*node.body, *getattr(node, "orelse", ())]
    return lines


@contextmanager
def absent_allowed(filename: str, tree: ast.Module, not_there: list[Missing]) -> Iterator[None]:
    """While the text runs, bind stand-ins for what its imports at the top do not find, and list these."""
    lines = top_imports(tree)
    own_import = builtins.__import__

    def __import__(
        name: str,
        globals: Any = None,
        locals: Any = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        importer = sys._getframe(1)
        line = importer.f_lineno
        if importer.f_code.co_filename != filename or line not in lines:
            return own_import(name, globals, locals, fromlist or (), level)
        try:
            module = own_import(name, globals, locals, fromlist or (), level)
        except ImportError as error:
            absent = Absent(error.with_traceback(None))
            not_there.append((error.name or name or ".", line, filename))
            return absent
        missing = [
            missing_name
            for missing_name in fromlist or ()
            if missing_name != "*" and not hasattr(module, missing_name)
        ]
        not_there.extend((f"{name}.{missing_name}", line, filename) for missing_name in missing)
        return _with_stand_ins(module, fromlist or (), missing) if missing else module

    builtins.__import__ = __import__
    try:
        yield
    finally:
        builtins.__import__ = own_import


def _with_stand_ins(module: Any, names: Sequence[str], missing: Sequence[str]) -> types.ModuleType:
    """Return a module with these names of another one, and stand-ins for those that it does not have."""
    copy = types.ModuleType(module.__name__)
    copy.__dict__.update(
        {attribute: getattr(module, attribute) for attribute in names if attribute not in missing}
    )
    for attribute in missing:
        error = ImportError(
            f"cannot import name {attribute!r} from {module.__name__!r}", name=module.__name__
        )
        copy.__dict__[attribute] = Absent(error)
    return copy
