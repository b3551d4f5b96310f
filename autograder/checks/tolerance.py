"""The one rule by which two numbers count as the same, in every check and in every sentence about a difference."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Tolerance:
    """Numbers agree if they are at most `absolute + relative * |expected|` apart; integers and booleans if equal."""

    absolute: float
    relative: float

    def differ(self, actual: Tensor, expected: Tensor) -> Tensor:
        """Return where the numbers do not agree; NaN agrees with NaN, and infinity with itself."""
        if is_exact(actual) and is_exact(expected):
            return actual != expected
        a = widened(actual, expected)
        e = widened(expected, actual)
        near = (a - e).abs() <= self.absolute + self.relative * e.abs().nan_to_num(posinf=0.0)
        return ~(near | (a == e) | (a.isnan() & e.isnan()))

    def surely_agree(self, actual: Tensor, expected: Tensor) -> bool:
        """Return whether all numbers are at most `absolute` apart, which is found out faster than where they differ."""
        if not actual.numel() or (is_exact(actual) and is_exact(expected)):
            return False
        apart = (widened(actual, expected) - widened(expected, actual)).abs()
        return bool(apart.max() <= self.absolute)  # False for NaN

    def agree(self, actual: Tensor, expected: Tensor) -> bool:
        """Return whether all numbers agree; of a large tensor whose first ones do not, the others are not read."""
        first_ones_differ = bool(self.differ(actual[:1], expected[:1]).any())
        return not first_ones_differ and not bool(self.differ(actual, expected).any())


def is_exact(numbers: Tensor) -> bool:
    """Return whether the tensor holds integers or booleans, which are compared exactly."""
    return not numbers.is_floating_point() and not numbers.is_complex()


def widened(numbers: Tensor, other: Tensor) -> Tensor:
    """Return the numbers with the most digits, complex if one of both tensors is."""
    is_complex = numbers.is_complex() or other.is_complex()
    return numbers.to(torch.complex128 if is_complex else torch.float64)
