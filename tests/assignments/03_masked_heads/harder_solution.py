"""For instructors: a solution of `given/harder.py`. Students do not receive it."""

import torch
from torch import Tensor


def distances(T: int) -> Tensor:
    """How far position s lies behind position t: (T, T), negative in the future."""
    return torch.arange(T)[:, None] - torch.arange(T)


def window_mask(T: int, width: int) -> Tensor:
    back = distances(T)                                                         # (T, T)
    return (back >= 0) & (back < width)


def reach(mask: Tensor, layers: int) -> Tensor:
    step = (mask | torch.eye(len(mask), dtype=torch.bool)).float()              # (T, T)
    return torch.linalg.matrix_power(step, layers) > 0


def alibi(T: int, num_heads: int) -> Tensor:
    slopes = 2 ** (-8 * torch.arange(1, num_heads + 1) / num_heads)             # (H,)
    back = distances(T).float()                                                 # (T, T)
    return (-slopes[:, None, None] * back).masked_fill(back < 0, -torch.inf)    # (H, T, T)
