"""Loading a student's text: one statement after another, within a time limit that stops one of them."""

import ast
import inspect
import signal
import sys
import threading
from collections import Counter
from collections.abc import Collection, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from types import CodeType, FrameType, ModuleType
from typing import TYPE_CHECKING, Any

import torch

from autograder.bridge.inside.absent import Missing, absent_allowed, is_absent
from autograder.bridge.shared.errors import ENDING, kept_by
from autograder.source.pieces import Piece

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

Place = tuple[str, int]  # the name of a piece, and a line of it

# repeated, because an exception in a callback or in __del__ is printed and lost
AGAIN_SECONDS = 0.5
CLOCK_FACTOR = 5  # by the clock, for code that sleeps
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_TIMERS = (
    {signal.ITIMER_PROF: signal.SIGPROF, signal.ITIMER_REAL: signal.SIGALRM}
    if hasattr(signal, "setitimer")
    else {}
)
# of the limit, after a statement that was stopped: for all others, and for one of them
SHARE_AFTER = 0.4
SHARE_OF_ONE = 0.1
# in seconds, what each statement has in any case
AT_LEAST = {timer: 1.0 if timer == signal.ITIMER_REAL else 0.05 for timer in _TIMERS}


class LoadingTimeoutError(BaseException):
    """Loading took too long; a BaseException, so that `except Exception` does not catch it."""


class LoadingLimit:
    """The time that the statements of one text have together, in processor time; `seconds` is None for no limit.

    After a statement that was stopped, the others have a short time together, and each of them
    a part of it. So that a definition far below is not lost, none has less than `AT_LEAST`.
    """

    def __init__(self, seconds: float | None) -> None:
        usable = (
            hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
        )
        self.seconds = seconds if usable else None
        self._left = 1.0  # of the limit, for all statements that follow
        self._most = 1.0  # of the limit, for one of them
        self._given = 0.0
        self._used = dict.fromkeys(_TIMERS, 0.0)
        self._is_running = False

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep the time inside this block; timers that ran before go on after it."""
        if self.seconds is None:
            yield
            return
        used_before = dict(self._used)
        handlers = {number: signal.signal(number, self._ring) for number in _TIMERS.values()}
        timers = {timer: signal.setitimer(timer, 0) for timer in _TIMERS}
        try:
            yield
        finally:
            self.end()
            for number, handler in handlers.items():
                signal.signal(number, handler)
            for timer, (seconds, interval) in timers.items():
                if seconds:
                    used = self._used[timer] - used_before[timer]
                    signal.setitimer(timer, max(seconds - used, 0.001), interval)

    def begin(self) -> None:
        """Begin a statement, in which LoadingTimeoutError is raised when its time is over."""
        if self.seconds is not None:
            self._given = min(self._left, self._most)
            self._is_running = True
            for timer in _TIMERS:
                signal.setitimer(timer, self._allowed(timer), AGAIN_SECONDS)

    def end(self) -> None:
        """End the statement, if it did not end before."""
        if self.seconds is not None and self._is_running:
            self._is_running = False
            used = {
                timer: max(0.0, self._allowed(timer) - signal.setitimer(timer, 0)[0])
                for timer in _TIMERS
            }
            shares = [used[timer] / self._allowed(timer) * self._given for timer in _TIMERS]
            self._left = max(0.0, self._left - max(shares))
            for timer, seconds in used.items():
                self._used[timer] += seconds

    def stop(self) -> None:
        """End the statement that was stopped, or that is skipped: the others have a short time."""
        self.end()
        self._left = min(self._left, SHARE_AFTER) if self._most < 1 else SHARE_AFTER
        self._most = SHARE_OF_ONE

    def _allowed(self, timer: int) -> float:
        factor = CLOCK_FACTOR if timer == signal.ITIMER_REAL else 1
        return max((self.seconds or 0.0) * self._given * factor, AT_LEAST[timer])

    def _ring(self, number: int, frame: FrameType | None) -> None:
        if self._is_running:
            raise LoadingTimeoutError


@dataclass
class TextLoading:
    """What one text binds in `spaces`, its global and local names, and what went wrong on the way.

    A statement that raises anything stops itself alone, in a script and in a notebook's cell
    alike; what only follows from that, such as a name that it would have bound, is no failure of
    its own. Only what is `ENDING` ends the text. The limit stops one statement, too, and those
    below it have a short time. A statement among `skipped`, where an earlier loading was stopped,
    does not run. `failures` holds exceptions, and places where the time was over. Modules that the
    text removes are there again below: the engine needs them, too.
    """

    spaces: tuple[dict[str, Any], Any]
    limit: LoadingLimit
    skipped: Collection[Place] = ()
    can_remove_modules: bool = True
    failures: list[BaseException | Place] = field(default_factory=list)
    stopped: list[Place] = field(default_factory=list)
    absent: list[Missing] = field(default_factory=list)
    has_ended: bool = False
    _unbound: set[str] = field(default_factory=set)
    _missing: set[str] = field(default_factory=set)
    _statement: ast.stmt = field(default_factory=ast.Pass)
    _left: ast.stmt | None = None  # the statement that waited when its loop was left
    _loop: "AbstractEventLoop | None" = None
    _modules: "_Modules" = field(default_factory=lambda: _Modules())

    def run(self, piece: Piece) -> Any:
        """Run a piece; return the value of its last statement, None if that is no expression."""
        try:
            with absent_allowed(piece.name, piece.tree, self.absent), self.limit.kept():
                return self._run(piece)
        except Exception as error:  # Python cannot read the piece
            self.failures.append(error)
        except BaseException as error:
            self.failures.append(error)
            self.has_ended = True
        finally:
            self._modules.put_back()
        return None

    def close(self) -> None:
        if self._loop is not None:
            self._loop.close()

    def _run(self, piece: Piece) -> Any:
        if self.can_remove_modules:
            self._modules.keep()
        run = self._completed if piece.waits else _driven
        waiting = iter(zip(piece.tree.body, piece.statements, strict=True))
        skipped = _lines_to_skip(piece, self.skipped)
        while True:
            try:
                return run(self._statements(waiting, skipped, piece.name))
            except LoadingTimeoutError:
                self._add_stop(self._statement, piece.name)

    async def _statements(
        self, waiting: Iterator[tuple[ast.stmt, CodeType]], skipped: Collection[ast.stmt], name: str
    ) -> Any:
        """Run these statements; the value is that of the last one."""
        value = None
        for statement, code in waiting:
            self._statement = statement
            value = None
            if statement in skipped:
                self._add_stop(statement, name)
                continue
            try:
                self.limit.begin()
                value = eval(code, *self.spaces)
                if code.co_flags & inspect.CO_COROUTINE:
                    value = await value
                self.limit.end()
            except (LoadingTimeoutError, *ENDING):
                raise
            except BaseException as error:
                if statement is self._left:
                    raise
                self.limit.end()
                self._add_failure(error, statement)
            self._modules.put_back()
        return value

    def _add_stop(self, statement: ast.stmt, name: str) -> None:
        """Keep the place of a statement whose time is over, once for all those in one line."""
        self.limit.stop()
        place = (name, statement.lineno)
        if place not in self.stopped:
            self.stopped.append(place)
            self.failures.append(place)
        self._unbound |= _names_set_by(statement)

    def _completed(self, statements: Coroutine[Any, Any, Any]) -> Any:
        """Run statements that wait for something in an event loop, below which no other one shows."""
        import asyncio

        outer = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        self._loop = self._loop or asyncio.new_event_loop()
        task = self._loop.create_task(statements)
        try:
            return self._loop.run_until_complete(task)
        except BaseException:
            self._left = self._statement
            task.cancel()
            raise
        finally:
            asyncio._set_running_loop(outer)

    def _add_failure(self, error: BaseException, statement: ast.stmt) -> None:
        """Keep an error, unless it follows from another one or from a missing module that only a call needs."""
        follows = False
        if issubclass(type(error), NameError):
            follows = _name_of(error, NameError) in self._unbound
        elif issubclass(type(error), ImportError) and is_absent(error):
            name = _name_of(error, ImportError)
            follows = isinstance(statement, ast.Expr) or name in self._missing
            self._missing.add(name)
        if not follows:
            self.failures.append(error)
        self._unbound |= _names_set_by(statement)


def _name_of(error: BaseException, kind: type[BaseException]) -> str:
    """Return the name that an error tells; a text can put anything in its place."""
    name = kept_by(error, kind, "name")
    return name if type(name) is str else ""


# those that all workers of a fork server begin with
modules_before_fork: dict[str, ModuleType] = {}


def remember_modules() -> None:
    """Take the copy of the modules that are there, before a fork: a worker would copy as many pages of memory."""
    modules_before_fork.clear()
    modules_before_fork.update(sys.modules)


class _Modules:
    """The modules that are there before a text runs which can remove some.

    Looking at thousands of modules copies as many pages of memory after a fork.
    """

    def __init__(self) -> None:
        self._table = sys.modules
        self._old: dict[str, ModuleType] = {}
        self._newer: dict[str, ModuleType] = {}

    def keep(self) -> None:
        """Remember those that are there now."""
        if self._old:
            return
        self._old = modules_before_fork if self._holds(modules_before_fork) else dict(self._table)
        added = islice(reversed(self._table), len(self._table) - len(self._old))
        self._newer = {name: self._table[name] for name in reversed([*added])}

    def put_back(self) -> None:
        """Add those that are not there any more, and leave the others as they are."""
        sys.modules = self._table
        if not self._old or self._holds(self._old, self._newer):
            return
        for there in (self._old, self._newer):
            self._table.update({name: there[name] for name in there.keys() - self._table.keys()})

    def _holds(self, *remembered: dict[str, ModuleType]) -> bool:
        """Whether none of these was removed: what is added to a table comes after the last one that was there.

        Only a statement that adds that last one again itself, below another one, can deceive this.
        """
        names = [next(reversed(modules)) for modules in remembered if modules]
        added = len(self._table) - sum(map(len, remembered))
        if not names or added < 0:
            return False
        return next(islice(reversed(self._table), added, None), None) is names[-1]


def _driven(statements: Coroutine[Any, Any, Any]) -> Any:
    """Run statements that wait for nothing."""
    try:
        statements.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("A statement without `await` waits.")


def _names_set_by(statement: ast.stmt) -> set[str]:
    names = set[str]()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, _DEFINITIONS):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name.partition(".")[0])
    return names


def _lines_to_skip(piece: Piece, skipped: Collection[Place]) -> Collection[ast.stmt]:
    """Return the statements in the places to skip.

    Of a line that holds several statements, as below a cell magic, the definitions are kept.
    """
    there = [node for node in piece.tree.body if (piece.name, node.lineno) in skipped]
    lines = Counter(node.lineno for node in there)
    return [
        node
        for node in there
        if lines[node.lineno] == 1 or not isinstance(node, (*_DEFINITIONS, *_IMPORTS))
    ]


@contextmanager
def own_settings() -> Iterator[None]:
    """Restore PyTorch's global settings after this block, so that no text changes those of the tests' side."""
    dtype = torch.get_default_dtype()
    grad = torch.is_grad_enabled()
    anomaly = torch.is_anomaly_enabled()
    check_nan = torch.is_anomaly_check_nan_enabled()
    determinism = _determinism()
    precision = torch.get_float32_matmul_precision()
    threads = torch.get_num_threads()
    compiler = torch.compile
    set_interop_threads = torch.set_num_interop_threads
    torch.compile = uncompiled
    # PyTorch allows it once, and only before anything has run
    torch.set_num_interop_threads = _ignore  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.compile = compiler
        torch.set_num_interop_threads = set_interop_threads
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(grad)
        torch.autograd.set_detect_anomaly(anomaly, check_nan)
        if _determinism() != determinism:
            torch.use_deterministic_algorithms(determinism[0], warn_only=determinism[1])
        torch.set_float32_matmul_precision(precision)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        if "torch.utils._device" in sys.modules:
            torch.set_default_device(None)


def _determinism() -> tuple[bool, bool]:
    """Return the two settings of `torch.use_deterministic_algorithms`, whose call imports PyTorch's compiler."""
    enabled = torch.are_deterministic_algorithms_enabled()
    return enabled, torch.is_deterministic_algorithms_warn_only_enabled()


def _ignore(number: int) -> None:
    """Do nothing with a number of threads."""


def uncompiled(model: Any = None, **options: Any) -> Any:
    """A replacement for `torch.compile`, which needs a compiler and files: return the function as it is."""
    return (lambda function: function) if model is None else model
