"""For instructors: a solution of `given/harder.py`. Students do not receive it."""

import torch
from torch import Tensor


def step_matrix(k: int, d_model: int) -> Tensor:
    hands = torch.arange(d_model // 2, dtype=torch.float64)
    angles = k / 10000 ** (2 * hands / d_model)                                 # (d_model / 2,)
    blocks = [torch.stack([torch.stack([a.cos(), a.sin()]), torch.stack([-a.sin(), a.cos()])]) for a in angles]
    return torch.block_diag(*blocks)                                            # (d_model, d_model)


def best_step(table: Tensor, k: int) -> tuple[Tensor, float]:
    before, after = table[:-k], table[k:]                                       # (P - k, d), (P - k, d)
    matrix = torch.linalg.lstsq(before, after).solution.T                       # (d, d)
    return matrix, (before @ matrix.T - after).square().mean().sqrt().item()
