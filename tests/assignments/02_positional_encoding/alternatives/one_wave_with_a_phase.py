"""A cosine is a sine a quarter turn ahead; the modules share a base class and own helper modules."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass
class Wave:
    """One column of the table."""

    column: int
    width: int

    @property
    def phase(self) -> float:
        return math.pi / 2 * (self.column % 2)

    @property
    def speed(self) -> float:
        return 10000 ** (-2 * (self.column // 2) / self.width)

    def __call__(self, positions: Tensor) -> Tensor:
        return torch.sin(positions * self.speed + self.phase)


def positional_encoding(max_len: int, d_model: int) -> Tensor:
    if max_len < 1 or d_model < 1:
        wrong = ("max_len", max_len) if max_len < 1 else ("d_model", d_model)
        raise ValueError("{} must not be {}".format(*wrong))
    positions = torch.linspace(0, max_len - 1, max_len, dtype=torch.float64)
    return torch.stack([Wave(column, d_model)(positions) for column in range(d_model)], dim=1).float()


class AddsPositions(nn.Module):
    """Adds the first rows of whatever table a subclass offers."""

    limit = "max_len"

    def table(self) -> Tensor:
        raise NotImplementedError

    def rows(self, length: int) -> Tensor:
        table = self.table()
        if length > table.size(0):
            raise ValueError(f"{length} is longer than {self.limit} ({table.size(0)})")
        return table[:length]


class SinusoidalPositionalEncoding(AddsPositions):
    def __init__(self, d_model: int, max_len: int = 5000, dropout: float = 0.0):
        super().__init__()
        self.register_buffer("pe", positional_encoding(max_len, d_model))
        self.thin_out = ThinOut(dropout)

    def table(self) -> Tensor:
        return self.pe

    def forward(self, x: Tensor) -> Tensor:
        return self.thin_out(x + self.rows(x.size(1)))


class ThinOut(nn.Module):
    """Dropout, written by hand."""

    def __init__(self, rate: float):
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return x
        kept = torch.rand_like(x) >= self.rate
        return x * kept / (1 - self.rate)


class TokenAndPositionEmbedding(AddsPositions):
    limit = "block_size"

    def __init__(self, vocab_size: int, block_size: int, embed_size: int):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, embed_size)
        self.position_embedding = nn.Embedding(block_size, embed_size)

    def table(self) -> Tensor:
        return self.position_embedding.weight

    def forward(self, ids: Tensor) -> Tensor:
        positions = self.rows(ids.size(1))
        one_hot = nn.functional.one_hot(ids, self.token_embedding.num_embeddings).to(positions.dtype)
        return one_hot @ self.token_embedding.weight + positions
