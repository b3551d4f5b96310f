"""Loading a student's text: one statement after another, within a time limit that keeps what was defined before it."""

import __future__

import ast
import functools
import inspect
import operator
import signal
import sys
import threading
from collections.abc import Collection, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

import torch

from autograder.sandbox.inside.absent import Missing, absent_allowed, is_absent
from autograder.source.text import without_main

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

Place = tuple[str, int]  # the name of a piece, and a line of it

# repeated, because an exception in a callback or in __del__ is printed and lost
AGAIN_SECONDS = 0.5
CLOCK_FACTOR = 5  # by the clock, for code that sleeps
_FUTURES = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
SHARE_AFTER = 0.1  # of the limit, for each further cell of a notebook after one that was stopped


class LoadingTimeoutError(BaseException):
    """Loading took too long; a BaseException, so that `except Exception` does not catch it."""


class LoadingLimit:
    """The time that the pieces of one text have together, in processor time; `seconds` is None for no limit."""

    def __init__(self, seconds: float | None) -> None:
        usable = (
            hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
        )
        self.seconds = seconds if usable else None
        self._left: dict[int, float] = {}
        self._begin(1.0)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Raise LoadingTimeoutError inside this block when the time is over; timers that ran before go on after it."""
        if self.seconds is None:
            yield
            return
        numbers = {signal.ITIMER_PROF: signal.SIGPROF, signal.ITIMER_REAL: signal.SIGALRM}
        handlers = {number: signal.signal(number, _ring) for number in numbers.values()}
        timers = {
            timer: signal.setitimer(timer, max(self._left[timer], 0.001), AGAIN_SECONDS)
            for timer in numbers
        }
        try:
            yield
        finally:
            left = {timer: signal.setitimer(timer, 0)[0] for timer in numbers}
            for number, handler in handlers.items():
                signal.signal(number, handler)
            for timer, (seconds, interval) in timers.items():
                if seconds:
                    used = max(0.0, self._left[timer] - left[timer])
                    signal.setitimer(timer, max(seconds - used, 0.001), interval)
            self._left = left

    def begin_rest(self) -> None:
        """Give the next piece of a notebook a short time, after one that was stopped."""
        self._begin(SHARE_AFTER)

    def _begin(self, share: float) -> None:
        if self.seconds is not None:
            seconds = share * self.seconds
            self._left = {signal.ITIMER_PROF: seconds, signal.ITIMER_REAL: CLOCK_FACTOR * seconds}


def _ring(number: int, frame: FrameType | None) -> None:
    raise LoadingTimeoutError


@dataclass
class TextLoading:
    """What one text binds in `spaces`, its global and local names, and what went wrong on the way.

    A statement that raises an Exception stops itself alone, in a script and in a notebook's cell
    alike; what only follows from that, such as a name that it would have bound, is no failure of
    its own. SystemExit and its like end the text. The limit ends a script, and a notebook's cell:
    each later cell has a short time. A statement among `skipped`, where an earlier loading was
    stopped, stops it at once. `failures` holds exceptions, and places where the time was over.
    """

    spaces: tuple[dict[str, Any], Any]
    limit: LoadingLimit
    skipped: Collection[Place] = ()
    leaves_main_out: bool = True
    failures: list[BaseException | Place] = field(default_factory=list)
    stopped: list[Place] = field(default_factory=list)
    absent: list[Missing] = field(default_factory=list)
    has_ended: bool = False
    _unbound: set[str] = field(default_factory=set)
    _missing: set[str | None] = field(default_factory=set)
    _place: Place = ("", 0)
    _loop: "AbstractEventLoop | None" = None

    def run(self, code: str, name: str) -> Any:
        """Run a piece; return the value of its last statement, None if that is no expression."""
        self._place = (name, 1)
        try:
            tree = without_main(code, name, self.leaves_main_out)
            with absent_allowed(name, tree, self.absent), self.limit.applied():
                return self._run(tree, name)
        except LoadingTimeoutError:
            self.stopped.append(self._place)
            self.failures.append(self._place)
            self.limit.begin_rest()
        except Exception as error:  # Python cannot read the piece
            self.failures.append(error)
        except BaseException as error:  # SystemExit, and pytest's outcomes
            self.failures.append(error)
            self.has_ended = True
        return None

    def close(self) -> None:
        if self._loop is not None:
            self._loop.close()

    def _run(self, tree: ast.Module, name: str) -> Any:
        whole = compile(tree, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        flags = whole.co_flags & _FUTURES | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        statements = self._statements(tree, name, flags)
        if whole.co_flags & inspect.CO_COROUTINE:
            return self._completed(statements)
        return _driven(statements)

    async def _statements(self, tree: ast.Module, name: str, flags: int) -> Any:
        value = None
        before, stop = _until_skipped(tree, name, self.skipped)
        for statement in before:
            self._place = (name, statement.lineno)
            code = _compiled(statement, name, flags)
            try:
                value = eval(code, *self.spaces)
                if code.co_flags & inspect.CO_COROUTINE:
                    value = await value
            except Exception as error:
                value = None
                self._add_failure(error, statement)
        if stop is not None:
            self._place = stop
            raise LoadingTimeoutError
        return value

    def _completed(self, statements: Coroutine[Any, Any, Any]) -> Any:
        """Run statements that wait for something in an event loop, below which no other one shows."""
        import asyncio

        outer = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        self._loop = self._loop or asyncio.new_event_loop()
        try:
            return self._loop.run_until_complete(statements)
        finally:
            asyncio._set_running_loop(outer)

    def _add_failure(self, error: Exception, statement: ast.stmt) -> None:
        """Keep an error, unless it follows from another one or from a missing module that only a call needs."""
        follows = False
        if isinstance(error, NameError):
            follows = error.name in self._unbound
        elif isinstance(error, ImportError) and is_absent(error):
            follows = isinstance(statement, ast.Expr) or error.name in self._missing
            self._missing.add(error.name)
        if not follows:
            self.failures.append(error)
        self._unbound |= _names_set_by(statement)


def _compiled(statement: ast.stmt, name: str, flags: int) -> CodeType:
    tree: ast.Expression | ast.Module = ast.Module([statement], [])
    mode = "exec"
    if isinstance(statement, ast.Expr):
        tree = ast.Expression(statement.value)
        mode = "eval"
    code: CodeType = compile(tree, name, mode, flags, dont_inherit=True)
    return code


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


def _until_skipped(
    tree: ast.Module, name: str, skipped: Collection[Place]
) -> tuple[list[ast.stmt], Place | None]:
    """Return the statements above the first one to skip, and its place.

    Of a line that holds several statements, as below a cell magic, the definitions are kept.
    """
    lines = [node.lineno for node in tree.body if (name, node.lineno) in skipped]
    if not lines:
        return tree.body, None
    above = [node for node in tree.body if node.lineno < min(lines)]
    beside = [node for node in tree.body if node.lineno == min(lines)]
    if len(beside) > 1:
        above += [node for node in beside if isinstance(node, (*_DEFINITIONS, *_IMPORTS))]
    return above, (name, min(lines))


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
