"""A base class with the three layers, sub-modules of its own for the rest, and another initialisation."""

from __future__ import annotations

import abc
from typing import NamedTuple

import torch
from torch import Tensor, nn


class Heard(NamedTuple):
    output: Tensor
    weights: Tensor


def causal_mask(T: int) -> Tensor:
    rows = [[speaker <= listener for speaker in range(T)] for listener in range(T)]
    return torch.tensor(rows, dtype=torch.bool)


class Shares(nn.Module):
    """Scores and a mask in, shares out."""

    def forward(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        if mask is None:
            return nn.Softmax(dim=-1)(scores)
        scores = scores.masked_fill(torch.logical_not(mask), float("-inf"))
        return torch.nan_to_num(nn.Softmax(dim=-1)(scores), nan=0.0)


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Heard:
    calm = q.shape[-1] ** 0.25
    scores = torch.matmul(q / calm, (k / calm).transpose(-1, -2))
    weights = Shares()(scores, mask)
    return Heard(torch.matmul(weights, v), weights)


class Projections(nn.Module, abc.ABC):
    def __init__(self, embed_size: int, head_size: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(embed_size, head_size, bias=False) for _ in range(3))
        self.apply(self.start)

    @staticmethod
    def start(module: nn.Module) -> None:
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)

    @abc.abstractmethod
    def forward(self, x: Tensor) -> Tensor: ...


class Head(Projections):
    def __init__(self, embed_size: int, head_size: int, block_size: int) -> None:
        super().__init__(embed_size, head_size)
        self.register_buffer("allowed", causal_mask(block_size))
        self.shares = Shares()

    @property
    def block_size(self) -> int:
        return self.allowed.size(0)

    def forward(self, x: Tensor) -> Tensor:
        _, T, _ = x.size()
        if not T <= self.block_size:
            raise ValueError(f"x has {T} positions, which does not fit block_size {self.block_size}")
        scores = self.query(x) @ self.key(x).mT / self.query.out_features**0.5
        return self.shares(scores, self.allowed.narrow(0, 0, T).narrow(1, 0, T)) @ self.value(x)
