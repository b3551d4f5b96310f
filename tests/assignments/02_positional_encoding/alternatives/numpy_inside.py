"""NumPy computes the table; torch.nn.functional looks the learned rows up."""

from __future__ import annotations

from typing import Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

BASE: Final[float] = 10_000.0


def positional_encoding(max_len: int, d_model: int) -> Tensor:
    if min(max_len, d_model) < 1:
        raise ValueError(f"both sizes must be at least 1: max_len is {max_len}, d_model is {d_model}")
    columns = np.arange(d_model)
    exponents = (columns - columns % 2) / d_model
    angles = np.outer(np.arange(max_len), BASE**-exponents)
    table = np.where(columns % 2 == 0, np.sin(angles), np.cos(angles))
    return torch.from_numpy(table.astype(np.float32))


class SinusoidalPositionalEncoding(nn.Module):
    pe: Tensor

    def __init__(self, d_model: int, max_len: int = 5000, dropout: float = 0.0) -> None:
        super().__init__()
        self.register_buffer("pe", positional_encoding(max_len, d_model), persistent=False)
        self.dropout = nn.Dropout(dropout) if dropout > 0 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        longest = self.pe.shape[0]
        if not x.shape[1] <= longest:
            raise ValueError(f"sentence of {x.shape[1]} words, but max_len is {longest}")
        rows = self.pe.narrow(0, 0, x.shape[1]).to(x.dtype)
        return self.dropout(torch.add(x, rows[None]))


class TokenAndPositionEmbedding(nn.Module):
    def __init__(self, vocab_size: int, block_size: int, embed_size: int) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, embed_size)
        self.position_embedding = nn.Embedding(block_size, embed_size)
        nn.init.xavier_uniform_(self.token_embedding.weight)
        nn.init.zeros_(self.position_embedding.weight)

    def forward(self, ids: Tensor) -> Tensor:
        seats = torch.cumsum(torch.ones_like(ids), dim=1) - 1
        if ids.shape[1] > self.position_embedding.num_embeddings:
            raise ValueError(f"block_size is {self.position_embedding.num_embeddings}, not {ids.shape[1]}")
        words = F.embedding(ids, self.token_embedding.weight)
        return words + F.embedding(seats, self.position_embedding.weight)
