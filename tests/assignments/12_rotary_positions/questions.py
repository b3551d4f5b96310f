"""Small tables of what rotated vectors give on fresh inputs, for questions about a student's own code."""

import torch
from torch import Tensor


def turned(student, dice, first=0, step=1, base=100.0, interleaved=True, size=1.0) -> Tensor:
    """The vector (10, 0, 10, 0), rotated: a row for each position; “now” are the positions 0, 1, 2, 3."""
    x = torch.tensor([10.0, 0, 10, 0]).double().expand(4, 4) * size  # (T, D)
    return student.rope(x.clone(), first + step * torch.arange(4), base=base, interleaved=interleaved)  # (T, D)


def scores(student, dice, first=0, step=1, keys_later=0, size=1.0, base=10000.0) -> Tensor:
    """The products of rotated queries and keys: a row for each query, a column for each key. All queries are equal,
    and all keys are."""
    q, k = torch.randn(2, 1, 4, generator=dice).double() * 2  # (1, D), (1, D)
    places = first + step * torch.arange(4)  # (T,)
    queries = student.rope(size * q.expand(4, 4).clone(), places, base=base)  # (T, D)
    keys = student.rope(k.expand(4, 4).clone(), places + keys_later, base=base)  # (T, D)
    return queries @ keys.transpose(0, 1)  # (T, T)


def partners(student, dice, place: int = 0, interleaved: bool = True, position: int = 1) -> Tensor:
    """What becomes of a vector with a single 10 in it, and zeros otherwise: one row of six numbers, rotated."""
    x = torch.zeros(1, 6).double()  # (1, D)
    x[0, place] = 10
    return student.rope(x, torch.tensor([position]), base=64.0, interleaved=interleaved)  # (1, D)
