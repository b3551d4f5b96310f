"""x·cos + rotated(x)·sin with tables as wide as x, as large libraries write it; all in float32."""

from typing import Optional

import torch
from torch import Tensor


def rotate_half(x: Tensor) -> Tensor:
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def rotate_every_two(x: Tensor) -> Tensor:
    x1, x2 = x[..., ::2], x[..., 1::2]
    return torch.stack((-x2, x1), dim=-1).reshape(x.shape)


def rope(
    x: Tensor, positions: Optional[Tensor] = None, base: float = 10000.0, interleaved: bool = True
) -> Tensor:
    T, D = x.size(-2), x.size(-1)
    if D % 2 != 0:
        raise ValueError("the number of features D must be even, got %d" % D)
    if positions is None:
        positions = torch.arange(T)
    inv_freq = 1.0 / (base ** (torch.arange(0, D, 2).float() / D))
    freqs = torch.einsum("t,d->td", positions.float(), inv_freq)
    if interleaved:
        emb = torch.repeat_interleave(freqs, 2, dim=-1)
        rotated = rotate_every_two(x)
    else:
        emb = torch.cat((freqs, freqs), dim=-1)
        rotated = rotate_half(x)
    return x * emb.cos().to(x.dtype) + rotated * emb.sin().to(x.dtype)
