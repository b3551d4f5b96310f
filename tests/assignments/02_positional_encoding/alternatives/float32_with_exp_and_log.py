"""The form found in most textbooks: speeds from exp and log, ordinary float32 all the way, a leading 1."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def positional_encoding(max_len: int, d_model: int) -> torch.Tensor:
    for name, size in {"max_len": max_len, "d_model": d_model}.items():
        if size < 1:
            raise ValueError(f"{name}={size} is too small")
    position = torch.arange(0, max_len).float()
    speed = torch.exp(torch.arange(0, d_model, 2).float() * -(math.log(10000.0) / d_model))
    angle = torch.einsum("p,i->pi", position, speed)
    hands = torch.stack((angle.sin(), angle.cos()), dim=-1)
    return hands.flatten(1)[:, :d_model].contiguous()


class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_len: int = 5000, dropout: float = 0.0) -> None:
        super().__init__()
        self.p = dropout
        self.register_buffer("pe", positional_encoding(max_len, d_model).unsqueeze(0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.size(1) > self.pe.size(1):
            raise ValueError(f"T={x.size(1)} is more than max_len={self.pe.size(1)}")
        return F.dropout(x + self.pe[:, : x.size(1), :], self.p, self.training)


class TokenAndPositionEmbedding(nn.Module):
    def __init__(self, vocab_size: int, block_size: int, embed_size: int) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, embed_size)
        self.position_embedding = nn.Embedding(block_size, embed_size)
        for table in (self.token_embedding, self.position_embedding):
            nn.init.normal_(table.weight, std=0.02)
        self.register_buffer("seats", torch.arange(block_size).unsqueeze(0), persistent=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        length, block_size = ids.size(1), self.seats.size(1)
        if length > block_size:
            raise ValueError(f"T={length} is more than block_size={block_size}")
        return self.position_embedding(self.seats[:, :length]) + self.token_embedding(ids)
