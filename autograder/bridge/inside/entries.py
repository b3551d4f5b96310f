"""Which forbidden functions, classes and packages a student's code enters, whatever road led it there.

The name `torch.Tensor[600]` stands for a tensor of more than 600 numbers, that one of PyTorch's
operators made.

Functions and classes are wrapped before the code is loaded. A function mode of PyTorch sees the
operators below them as well, such as those of `torch.ops`, and a profiler sees the functions of a
package that is forbidden as a whole. All of this lies within reach of the student's code, which can
undo it: what is not recorded is no proof.
"""

import importlib
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import lru_cache, wraps
from types import FrameType, FunctionType, MethodDescriptorType, ModuleType
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode

from autograder.source import text as source
from autograder.source.names_used import Words

Place = tuple[str, int]  # the file, as a traceback names it, and the line; "" and 0 if unknown
IMMUTABLE = 1 << 8  # a flag of classes that are written in C
CALLED = {"__init__", "__call__"}  # the special methods that a use of a class goes through
LARGE_TENSOR = re.compile(r"torch\.Tensor\[(\d+)\]")


def most_numbers(name: str) -> int | None:
    """Return 600 for `torch.Tensor[600]`, and None for a name of a function, a class or a package."""
    match = LARGE_TENSOR.fullmatch(name)
    return None if match is None else int(match[1])


class Entries:
    """A record of the names that are entered while it is active.

    Without a `test_file`, all that is entered then belongs to the student's code. With one, only
    what is entered from a frame that is the student's `is_own` does: this process runs the test, too.
    """

    def __init__(
        self,
        names: Iterable[str] = (),
        is_own: Callable[[FrameType], bool] | None = None,
        test_file: str = "",
    ) -> None:
        self.found: dict[str, Place] = {}
        self._is_own = is_own or source.is_in_cells
        self._test_file = test_file
        self._told = 0
        self._active = False
        self._packages = set[str]()
        self._names = defaultdict[tuple[str, str], list[str]](list)  # by root and last component
        self._limits = dict[str, int]()
        for name in names:
            if (limit := most_numbers(name)) is not None:
                self._limits[name] = limit
            if "." in name:
                self._names[_root(name), name.rpartition(".")[2]].append(name)
            else:
                self._packages.add(name)
        self._mode = _Operators(self) if any(root == "torch" for root, _ in self._names) else None
        self._meets_operators = True
        self._watches_operators = True
        self._watches_packages = bool(self._packages)
        self.watches_sizes = bool(self._limits)
        self._smallest_limit = min(self._limits.values(), default=0)

    def expect(self, words: Words) -> None:
        """Say which words stand in the code that is recorded: without certain ones, no operator has to be watched."""
        self._meets_operators = words.lead_to(last for _, last in self._names)

    def begin(self, forbids: Collection[str] = ()) -> None:
        """Forget what was entered, and watch as closely as a test needs that `forbids` these names.

        Watching each operator costs time, looking at the size of each tensor even more, and so does
        looking at each call for those of a package.
        """
        self.found.clear()
        self._told = 0
        self._watches_packages = not self._packages.isdisjoint(forbids)
        self.watches_sizes = not self._limits.keys().isdisjoint(forbids)
        self._watches_operators = self.watches_sizes or (self._meets_operators and bool(forbids))

    def news(self) -> list[list[Any]]:
        """Return [name, file, line] of what was entered since the last time."""
        names = [*self.found][self._told :]
        self._told += len(names)
        return [[name, *self.found[name]] for name in names]

    @contextmanager
    def active(self, active: bool = True) -> Iterator[None]:
        """Record in this block, or pause in it."""
        before = self._active
        profiler = sys.getprofile()
        mode = self._mode if active and self._watches_operators else None
        self._active = active
        if self._watches_packages:
            sys.setprofile(self._profile if active else None)
        try:
            with mode or nullcontext():
                yield
        finally:
            self._active = before
            if self._watches_packages:
                sys.setprofile(profiler)

    def install(self, *modules: ModuleType) -> ExitStack:
        """Wrap what the dotted names refer to, in these modules as well; closing the result undoes it.

        A name stands for everything of its package with the same last component, as in a search of
        the text.
        """
        undo = ExitStack()
        things = [*self._things()]
        exact = defaultdict[int, list[str]](list)
        for module, last, thing in things:
            name = f"{module.__name__}.{last}"
            if name in self._named(module, last):
                exact[id(thing)].append(name)
        wrappers: dict[int, Any] = {}
        for module, last, thing in things:
            if id(thing) in wrappers:
                continue
            names = exact[id(thing)] or self._named(module, last)
            if isinstance(thing, type):
                self._wrap_methods(thing, names, undo)
                wrappers[id(thing)] = thing  # its methods are wrapped in place
            else:
                wrappers[id(thing)] = self._wrapped(thing, names)
        for module, last, thing in (*things, *_places_of(wrappers, modules)):
            undo.callback(setattr, module, last, thing)
            setattr(module, last, wrappers[id(thing)])
        return undo

    def note(self, names: Iterable[str]) -> None:
        """Record that these names are entered now."""
        for name in names if self._active else ():
            if name not in self.found and (place := self._place()) is not None:
                self.found[name] = place

    def note_operator(self, operator: Any) -> None:
        """Record an operator of PyTorch by its own name; a method of tensors such as `+` is no use of `torch.add`."""
        if isinstance(operator, MethodDescriptorType):
            return
        name = str(getattr(operator, "__name__", "")).partition(".")[0]
        if names := self._names.get(("torch", name)):
            self.note(names)

    def note_sizes(self, result: Any, given: Iterable[Any]) -> None:
        """Record the tensors in an operator's result that are larger than a limit, and no views of what it got."""
        if isinstance(result, Tensor) and result.numel() <= self._smallest_limit:
            return  # as nearly all
        large = [tensor for tensor in _tensors([result]) if tensor.numel() > self._smallest_limit]
        if not large:
            return
        given_storages = {_storage(tensor) for tensor in _tensors(given)}
        for tensor in large:
            if _storage(tensor) not in given_storages:
                names = [name for name, limit in self._limits.items() if tensor.numel() > limit]
                self.note(names)

    def _profile(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            origin = frame.f_globals.get("__name__")
        elif event == "c_call":
            origin = (
                getattr(argument, "__module__", None)
                or type(getattr(argument, "__self__", None)).__module__
            )
        else:
            return
        root = str(origin).partition(".")[0]
        if root in self._packages:
            self.note([root])

    def _place(self) -> Place | None:
        """Return the student's line that is running; None if this is the test's doing."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            if self._is_own(frame):
                return frame.f_code.co_filename, frame.f_lineno
            if self._test_file and frame.f_code.co_filename == self._test_file:
                return None
            frame = frame.f_back
        return None if self._test_file else ("", 0)

    def _named(self, module: ModuleType, last: str) -> list[str]:
        return self._names.get((_root(module.__name__), last), [])

    def _things(self) -> Iterator[tuple[ModuleType, str, Any]]:
        """Yield each function and class that a dotted name stands for, with the modules that hold it."""
        for (root, _), names in self._names.items():
            for name in names if root in sys.modules else ():
                with suppress(ImportError):  # of another version of the package
                    importlib.import_module(name.rpartition(".")[0])
        for root, last in self._names:
            for name in _holders(root).of(last):
                module = sys.modules.get(name)
                thing = getattr(module, "__dict__", {}).get(last)
                if not isinstance(module, ModuleType) or not callable(thing):
                    continue
                named = f"{name}.{last}" in self._named(module, last)
                if named or _root(getattr(thing, "__module__", None) or name) == root:
                    yield module, last, thing

    def _wrap_methods(self, kind: type, names: list[str], undo: ExitStack) -> None:
        if kind.__flags__ & IMMUTABLE:
            return
        for name, method in [*vars(kind).items()]:
            if isinstance(method, FunctionType) and (name in CALLED or not name.startswith("__")):
                undo.callback(setattr, kind, name, method)
                setattr(kind, name, self._wrapped(method, names))
        if "__init__" not in vars(kind):
            undo.callback(delattr, kind, "__init__")
            kind.__init__ = self._wrapped(kind.__init__, names)  # type: ignore[misc]

    def _wrapped(self, function: Callable[..., Any], names: list[str]) -> Callable[..., Any]:
        @wraps(function)
        def entered(*args: Any, **kwargs: Any) -> Any:
            self.note(names)
            return function(*args, **kwargs)

        del entered.__wrapped__
        return entered


class _Operators(TorchFunctionMode):
    """Tells a record which operators of PyTorch are called."""

    def __init__(self, entries: Entries) -> None:
        super().__init__()
        self._entries = entries

    def __torch_function__(
        self, operator: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self._entries.note_operator(operator)
        result = operator(*args, **(kwargs or {}))
        if self._entries.watches_sizes:
            self._entries.note_sizes(result, [*args, *(kwargs or {}).values()])
        return result


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    """Yield the tensors among values, and those in their lists and tuples."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _storage(tensor: Tensor) -> int:
    """Return where a tensor's numbers lie, which its views share."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):  # sparse ones, for example, have no storage
        return id(tensor)


def _root(name: str) -> str:
    return name.partition(".")[0]


class _Holders:
    """Which modules of a package have an attribute: an index, made once for all workers of a fork server."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._newest = ""
        self._names = defaultdict[str, list[str]](list)

    def of(self, attribute: str) -> Sequence[str]:
        """Return the names of the modules; only those that were imported since are looked at."""
        new = []
        for name in reversed(sys.modules):
            if name == self._newest:
                break
            new.append(name)
        else:
            self._names.clear()
        for name in reversed(new):
            self._newest = name
            module = sys.modules[name]
            if _root(name) == self._root and isinstance(module, ModuleType):
                for its_attribute in vars(module):
                    self._names[its_attribute].append(name)
        return self._names.get(attribute, ())


@lru_cache(maxsize=8)
def _holders(root: str) -> _Holders:
    return _Holders(root)


def _places_of(
    things: Collection[int], modules: Iterable[ModuleType]
) -> list[tuple[ModuleType, str, Any]]:
    """Return where these modules hold things with these identities."""
    places = []
    for module in modules:
        places += [
            (module, name, thing) for name, thing in vars(module).items() if id(thing) in things
        ]
    return places
