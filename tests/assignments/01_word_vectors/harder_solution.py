"""For instructors: a solution of `given/harder.py`. Students do not receive it."""

import torch
from torch import Tensor


def counts(ids: list[int], window: int, vocab_size: int) -> Tensor:
    table = torch.zeros(vocab_size, vocab_size, dtype=torch.float64)            # (V, V)
    for place, centre in enumerate(ids):
        for context in ids[max(0, place - window) : place] + ids[place + 1 : place + 1 + window]:
            table[centre, context] += 1
    return table


def ppmi(table: Tensor) -> Tensor:
    pairs = table / table.sum()                                                 # (V, V)
    by_chance = pairs.sum(dim=1, keepdim=True) * pairs.sum(dim=0)               # (V, V)
    ratio = torch.where(table > 0, pairs / by_chance, 1.0)                      # (V, V)
    return ratio.log().clamp(min=0)


def vectors(table: Tensor, size: int) -> Tensor:
    u, s, _ = torch.linalg.svd(table)                                           # (V, V), (V,)
    return u[:, :size] * s[:size].sqrt()                                        # (V, size)
