"""Loading a student's text: one piece after another, within a time limit that keeps what was defined before it."""

import __future__

import ast
import functools
import operator
import re
import signal
import sys
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch

from autograder.sandbox.inside.absent import Missing, absent_allowed, is_absent

Place = tuple[str, int]  # the name of a piece, and a line of it

# repeated, because an exception in a callback or in __del__ is printed and lost
AGAIN_SECONDS = 0.5
CLOCK_FACTOR = 5  # by the clock, for code that sleeps
_FUTURES = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
_OF_NO_CARD = (AssertionError, AttributeError, RuntimeError)
_NO_CARD = re.compile(
    r"Torch not compiled with CUDA enabled|Found no NVIDIA driver|No CUDA GPUs are available|'_cuda_\w+'"
)
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


def run_piece(
    tree: ast.Module,
    name: str,
    spaces: tuple[dict[str, Any], Any],
    limit: LoadingLimit,
    skipped: Collection[Place],
) -> list[Missing]:
    """Run a piece of a text in these global and local names; return what its imports did not find.

    A statement among `skipped`, where an earlier loading was stopped, stops it at once.
    """
    stops = sorted(node.lineno for node in tree.body if (name, node.lineno) in skipped)
    if stops:
        tree.body = [node for node in tree.body if node.lineno < stops[0]] + _definitions_at(
            stops, tree
        )
    with absent_allowed(name, tree) as missing, limit.applied():
        _run(tree, name, spaces)
    if stops:
        raise LoadingTimeoutError
    return missing


def _run(tree: ast.Module, name: str, spaces: tuple[dict[str, Any], Any]) -> None:
    """Run statements, and what follows those that fail only here.

    A call at the top that needs a missing module, such as `sns.set_theme()`, defines nothing. Other
    statements that need one, those that need a graphics card, and those that fail with an OSError,
    such as `open("input.txt")`, need something of the student's computer; the first of these errors
    is raised at the end. Statements that use names of a failed one fail with it.
    """
    code = compile(tree, name, "exec", dont_inherit=True)
    futures = code.co_flags & _FUTURES
    first: Exception | None = None
    undefined = set[str]()
    while True:
        try:
            exec(code, *spaces)
            break
        except Exception as error:
            line = line_of(error, name)
            at = max(
                (number for number, node in enumerate(tree.body) if node.lineno <= line), default=0
            )
            if not line or not _fails_only_here(error, tree.body[at], undefined):
                raise
            if not isinstance(error, ImportError) or not isinstance(tree.body[at], ast.Expr):
                first = first or error
                undefined |= _names_set_by(tree.body[at])
        tree = ast.Module(tree.body[at + 1 :], [])
        code = compile(tree, name, "exec", futures, dont_inherit=True)
    if first is not None:
        raise first


def _fails_only_here(error: Exception, statement: ast.stmt, undefined: Collection[str]) -> bool:
    if isinstance(error, ImportError):
        return is_absent(error)
    if isinstance(error, NameError):
        return error.name in undefined
    if isinstance(error, OSError):
        return not isinstance(statement, ast.Raise)
    return isinstance(error, _OF_NO_CARD) and bool(_NO_CARD.search(str(error)[:500]))


def _names_set_by(statement: ast.stmt) -> set[str]:
    names = set[str]()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
    return names


def _definitions_at(stops: Sequence[int], tree: ast.Module) -> list[ast.stmt]:
    """Return the definitions in the line that stops a piece, if it holds several statements, as below a cell magic."""
    inside = [node for node in tree.body if node.lineno == stops[0]]
    kinds = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    return [node for node in inside if isinstance(node, kinds)] if len(inside) > 1 else []


def statement_at(tree: ast.Module, line: int) -> int:
    """Return the first line of the statement at the top of a piece that holds the line."""
    return max((node.lineno for node in tree.body if node.lineno <= line), default=line)


def line_of(error: BaseException, name: str) -> int:
    """Return the line of a piece at its top, in which an error was raised; 0 if it is not known."""
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == name and step.tb_frame.f_code.co_name == "<module>":
            return step.tb_lineno
        step = step.tb_next
    return 0


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
