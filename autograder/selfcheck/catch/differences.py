"""Where two programs differ on an input, called as an assignment's catch.py says.

At home, wrong programs are compared with a student's own code; in grading, with the solution.
"""

import contextlib
import inspect
import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from autograder.bridge.outside.connection import Connection
from autograder.bridge.outside.remote import RemoteStudent
from autograder.bridge.shared.errors import StudentRaisedError
from autograder.bridge.shared.random_states import way_back
from autograder.checks.sentences import kind, show, verb
from autograder.checks.values import first_difference
from autograder.failures.explain import clean

SEED = 0
ATOL = 1e-5  # two right answers may add in another order
RTOL = 1e-4
LONGEST = 500  # letters of an error

Values = dict[str, Any]  # what a call gives back, by the name of each


@dataclass(frozen=True)
class Outcome:
    """What a program gave back for an input, or the `error` that stopped it."""

    values: Values
    error: str = ""


def functions_in(names: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    """Return the functions among the names of a catch.py: what is called, by part."""
    return {name: value for name, value in names.items() if isinstance(value, FunctionType)}


def outcome_of(
    connection: Connection, call: Callable[..., Any], arguments: tuple[Any, ...]
) -> Outcome:
    """Call the program behind a connection with an input, as `call` does."""
    try:
        with fixed_chance():
            connection.start_test(SEED)
            given = call(RemoteStudent(connection), *arguments)
    except StudentRaisedError as error:
        return Outcome({}, _with_type(error.remote.type, clean(error.remote.text, LONGEST)))
    except Exception as error:  # what a student's code gave back fits nothing
        return Outcome({}, told(error))
    values = given if isinstance(given, dict) else {"the output": given}
    return Outcome({name: _detached(value) for name, value in values.items()})


def difference(theirs: Outcome, mine: Outcome, letter: str, whose: str = "yours") -> str:
    """Return where a program differs from another and by how much; empty if it does not."""
    if theirs.error:
        return "" if mine.error else f"{letter} stops: {theirs.error}"
    for name, value in mine.values.items():
        sentence = _apart(name, theirs.values.get(name), value, letter, whose)
        if sentence:
            return f"{name} {sentence}"
    return ""


def _apart(name: str, theirs: Any, mine: Any, letter: str, whose: str) -> str:
    if isinstance(mine, Tensor) and isinstance(theirs, Tensor):
        return _tensors_apart(name, theirs, mine, letter, whose)
    if isinstance(mine, float) and isinstance(theirs, float):
        return _tensors_apart(name, torch.tensor(theirs), torch.tensor(mine), letter, whose)
    if _is_same(theirs, mine):
        return ""
    values = f"{whose} is {_shown(mine)}, {letter} is {_shown(theirs)}"
    return f"{verb(name, 'differs', 'differ')}: {values}."


def _is_same(theirs: Any, mine: Any) -> bool:
    if type(mine) is not type(theirs):
        return False
    if isinstance(mine, Tensor):
        return not _tensors_apart("it", theirs, mine, "", "")
    if isinstance(mine, float):
        return _is_same(torch.tensor(theirs), torch.tensor(mine))
    if isinstance(mine, (list, tuple)):
        return len(mine) == len(theirs) and all(map(_is_same, theirs, mine))
    return bool(mine == theirs)


def _tensors_apart(name: str, theirs: Tensor, mine: Tensor, letter: str, whose: str) -> str:
    if theirs.shape != mine.shape:
        shapes = (
            f"{whose} is of shape {tuple(mine.shape)}, {letter} is of shape {tuple(theirs.shape)}"
        )
        return f"{verb(name, 'has', 'have')} another shape: {shapes}."
    if theirs.dtype != mine.dtype:
        types = f"{mine.dtype} from {whose}, {theirs.dtype} from {letter}"
        return f"{verb(name, 'has', 'have')} another number type: {types}."
    apart = first_difference(theirs, mine, atol=ATOL, rtol=RTOL)
    if apart is None:
        return ""
    where = f" first at {apart.where}" if apart.several else ""
    numbers = f"{apart.expected} from {whose}, {apart.came} from {letter}"
    extent = f" ({apart.extent})" if apart.several and apart.extent else ""
    return f"{verb(name, 'differs', 'differ')}{where}: {numbers}{extent}."


def _shown(value: Any) -> str:
    return kind(value) if isinstance(value, Tensor) else show(value)


def _detached(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().cpu()
    if isinstance(value, (list, tuple)):
        return [_detached(item) for item in value]
    return value


def count_numbers(arguments: Any) -> int:
    """Return how many numbers an input has."""
    return sum(map(_size, tree_leaves(arguments)))


def _size(leaf: Any) -> int:
    if leaf is None:
        return 0
    return math.prod(leaf.shape) if isinstance(leaf, (Tensor, np.ndarray)) else 1


@contextlib.contextmanager
def fixed_chance() -> Iterator[None]:
    """Let random numbers be the same each time inside this block, and go on as before after it."""
    go_back = way_back()
    torch.manual_seed(SEED)  # accelerators, too
    np.random.seed(SEED)
    random.seed(SEED)
    try:
        yield
    finally:
        go_back()


def call_line(call: Callable[..., Any]) -> str:
    """Return what an input consists of, as the arguments of a call."""
    signature = inspect.signature(call)
    parameters = list(signature.parameters.values())[1:]  # behind the program
    return f"An input of this part is {signature.replace(parameters=parameters)}"


def not_taken(call: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    """Return why a call does not take these arguments behind the program; empty if it does."""
    try:
        inspect.signature(call).bind(None, *arguments)
    except TypeError as error:
        return f"{call_line(call)}: {error}."
    return ""


def told(error: BaseException) -> str:
    """Return an error as a sentence: the author's own, or its type with what it says."""
    text = clean(str(error), LONGEST)
    return (
        text if isinstance(error, ValueError) and text else _with_type(type(error).__name__, text)
    )


def _with_type(name: str, text: str) -> str:
    return f"{name}: {text}" if text else name
