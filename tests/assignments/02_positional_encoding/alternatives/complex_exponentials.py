"""A clock hand is a complex number of length 1: cosine and sine are its real and imaginary part."""

import torch
from torch import nn


def clock_hands(count, d_model):
    turns = 10000 ** (-torch.arange(count, dtype=torch.float64) * 2 / d_model)
    return torch.polar(torch.ones_like(turns), turns)


def positional_encoding(max_len, d_model):
    if max_len < 1:
        raise ValueError(f"max_len is {max_len}; at least one position is needed")
    if d_model < 1:
        raise ValueError(f"d_model is {d_model}; at least one column is needed")
    one_step = clock_hands(-(-d_model // 2), d_model)
    positions = torch.arange(max_len, dtype=torch.float64)[:, None]
    hands = torch.pow(one_step[None, :], positions)
    cosine_sine = torch.view_as_real(hands)
    return cosine_sine.flip(-1).reshape(max_len, -1)[:, :d_model].float()


class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.0):
        super().__init__()
        self.max_len = max_len
        self.register_buffer("pe", positional_encoding(max_len, d_model)[None])
        self.finish = nn.Sequential(nn.Dropout(dropout))

    def forward(self, x):
        length = x.size(-2)
        if length > self.max_len:
            raise ValueError(f"{length} positions, but max_len={self.max_len}")
        return self.finish(self.pe[:, :length] + x)


class TokenAndPositionEmbedding(nn.Module):
    def __init__(self, vocab_size, block_size, embed_size):
        super().__init__()
        self.token_embedding, self.position_embedding = (
            nn.Embedding(rows, embed_size) for rows in (vocab_size, block_size)
        )

    def forward(self, ids):
        length = ids.size(-1)
        seats = self.position_embedding.weight
        if length > len(seats):
            raise ValueError(f"{length} positions, but block_size={len(seats)}")
        return self.token_embedding(ids) + seats[:length]
