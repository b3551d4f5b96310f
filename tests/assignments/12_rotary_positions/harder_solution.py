"""For instructors: a solution of `given/harder.py`. Students do not receive it."""

import math

import torch
from torch import Tensor


def speeds(D: int, base: float = 10000.0) -> Tensor:
    return base ** (-torch.arange(0, D, 2, dtype=torch.float64) / D)            # (D/2,)


def waiting(D: int, trained: int, base: float) -> Tensor:
    """True for each hand that does not finish a turn in so many positions: (D/2,)."""
    return 2 * math.pi / speeds(D, base) > trained


def unfinished(D: int, trained: int, base: float = 10000.0) -> int:
    return int(waiting(D, trained, base).sum())


def larger_base(D: int, factor: float, base: float = 10000.0) -> float:
    return base * factor ** (D / (D - 2))


def by_parts(D: int, trained: int, factor: float, base: float = 10000.0) -> Tensor:
    omega = speeds(D, base)                                                     # (D/2,)
    return torch.where(waiting(D, trained, base), omega / factor, omega)
