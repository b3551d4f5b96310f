"""All leading dimensions folded into one batch, and a mask that is added while multiplying (baddbmm)."""

import math
from typing import Optional, Tuple

import torch
from torch import nn


def causal_mask(T: int) -> torch.Tensor:
    future = torch.triu(torch.ones(T, T), diagonal=1)
    return future == 0


def fold(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(-1, x.shape[-2], x.shape[-1])


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Optional[torch.Tensor] = None
) -> Tuple[torch.Tensor, torch.Tensor]:
    leading, T, S = tuple(q.shape[:-2]), q.shape[-2], k.shape[-2]
    penalty = torch.zeros(leading + (T, S), dtype=q.dtype, device=q.device)
    if mask is not None:
        penalty.masked_fill_(mask.logical_not(), -1e30)
    scores = torch.baddbmm(fold(penalty), fold(q), fold(k).mT, beta=1.0, alpha=1 / math.sqrt(q.shape[-1]))
    weights = scores.softmax(dim=2)
    if mask is not None:
        deaf = (mask.sum(dim=-1, keepdim=True) == 0).expand(leading + (T, 1))
        weights = weights.masked_fill(fold(deaf), 0)
    output = torch.bmm(weights, fold(v))
    return output.reshape(leading + (T, v.shape[-1])), weights.reshape(leading + (T, S))


class Head(nn.Module):
    def __init__(self, embed_size: int, head_size: int, block_size: int):
        super().__init__()
        self.key = nn.Linear(embed_size, head_size, bias=False)
        self.value = nn.Linear(embed_size, head_size, bias=False)
        self.query = nn.Linear(embed_size, head_size, bias=False)
        self.register_buffer("block", causal_mask(block_size).unsqueeze(0), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        T = x.shape[1]
        if self.block.shape[-1] < T:
            raise ValueError(f"got {T} words, expected at most block_size={self.block.shape[-1]}")
        together = torch.cat([self.query.weight, self.key.weight, self.value.weight])
        q, k, v = (x @ together.T).chunk(3, dim=-1)
        return attention(q, k, v, self.block[:, :T, :T])[0]
