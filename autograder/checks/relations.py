"""How wrong numbers relate to the right ones, in words: a common factor, swapped rows, the columns that differ."""

from collections.abc import Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from autograder.checks.sentences import AXES, number
from autograder.checks.tolerance import Tolerance


def relation(
    actual: Tensor,
    expected: Tensor,
    wrong: Tensor,
    axes: Sequence[str] | None,
    tolerance: Tolerance,
) -> str:
    """Return what holds for all numbers of a wrong tensor: a sentence without its period, "only where …", or "".

    `wrong` marks the numbers that differ by more than the `tolerance`. That numbers are multiplied or
    have moved is said only if this explains all of them, and would change right ones.
    """
    names = tuple(axes or ()) if axes and len(axes) == wrong.ndim else AXES.get(wrong.ndim, ())
    if int(wrong.sum()) < 2 or not names or actual.is_complex() or expected.is_complex():
        return ""
    if actual.dtype is torch.bool and bool(wrong.all()):
        return "Every True should be False, and every False True"
    if not bool(actual.isfinite().all() and expected.isfinite().all()):
        return _places(wrong, names)
    changed = ""
    if actual.is_floating_point():
        changed = _change(actual.double(), expected.double(), tolerance)
    moves = list(_moves(actual, expected, wrong, names, tolerance))
    return changed or (moves[0] if len(moves) == 1 else "") or _places(wrong, names)


def _places(wrong: Tensor, names: Sequence[str]) -> str:
    """Return at which indices of an axis the numbers differ, if it is not everywhere."""
    for axis, name in reversed(list(enumerate(names))):
        bad = _indices(wrong, axis)
        size = wrong.shape[axis]
        if size < 3 or len(bad) == size:
            continue
        if len(bad) == 1:
            return f"only at {name} {bad[0]}"
        if size > 3 and bad in (list(range(0, size, 2)), list(range(1, size, 2))):
            return f"only where {name} is {'odd' if bad[0] else 'even'}"
        if bad == list(range(bad[0], size)):
            return f"only from {name} {bad[0]} on"
        if bad == list(range(len(bad))):
            return f"only up to {name} {bad[-1]}"
    return ""


def _change(actual: Tensor, expected: Tensor, tolerance: Tolerance) -> str:
    """Name the number by which all are multiplied, or which is added to all."""
    if not bool(actual.any()):
        return "Every number is 0"
    factor = (actual * expected).sum() / (expected * expected).sum().clamp(min=1e-300)
    times = number(factor.item(), 3)
    if times != "1" and _explains(factor * expected, actual, expected, tolerance):
        return f"Every number is {times} times what was expected"
    apart = (actual - expected).mean()
    if _explains(expected + apart, actual, expected, tolerance):
        return f"Every number is too {'large' if apart > 0 else 'small'} by {number(apart.abs().item(), 3)}"
    return ""


def _moves(
    actual: Tensor, expected: Tensor, wrong: Tensor, names: Sequence[str], tolerance: Tolerance
) -> Iterator[str]:
    """Yield how the right numbers have come to other places."""
    explains = partial(_explains, actual=actual, expected=expected, tolerance=tolerance)
    if wrong.ndim > 1 and wrong.shape[-1] == wrong.shape[-2] and explains(expected.mT):
        yield f"{names[-2]} and {names[-1]} are swapped".capitalize()
    for axis, name in enumerate(names):
        bad = _indices(wrong, axis)
        if len(bad) == 2 and explains(_exchanged(expected, axis, bad)):
            yield f"{name} {bad[0]} and {name} {bad[1]} are swapped".capitalize()
        elif explains(expected.flip(axis)):
            yield f"The order along the axis {name} is reversed"
        for step in (1, -1):
            if wrong.shape[axis] > 2 and explains(expected.roll(step, axis)):
                yield f"Along the axis {name}, every number stands one place too {'late' if step > 0 else 'early'}"


def _explains(changed: Tensor, actual: Tensor, expected: Tensor, tolerance: Tolerance) -> bool:
    """Return whether the right numbers, changed, are what came back, and each wrong number was changed."""
    if not tolerance.agree(actual, changed):
        return False
    wrong = tolerance.differ(actual, expected)
    return bool(tolerance.differ(changed, expected)[wrong].all())


def _indices(wrong: Tensor, axis: int) -> list[int]:
    return [
        int(i)
        for i in wrong.movedim(axis, 0)
        .reshape(wrong.shape[axis], -1)
        .any(dim=1)
        .nonzero()
        .flatten()
    ]


def _exchanged(tensor: Tensor, axis: int, pair: list[int]) -> Tensor:
    """Return the tensor with two slices of an axis exchanged."""
    order = torch.arange(tensor.shape[axis])
    order[pair] = order[pair[::-1]]
    return tensor.index_select(axis, order)
