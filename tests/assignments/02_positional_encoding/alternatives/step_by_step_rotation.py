"""Each row is the row before, every hand turned a little further: no sine of a large number is ever taken."""

import itertools

import torch
from torch import nn


def turn(hands, sines, cosines):
    s, c = hands
    return s * cosines + c * sines, c * cosines - s * sines


def positional_encoding(max_len, d_model):
    check_at_least_one(max_len=max_len, d_model=d_model)
    speeds = [10000 ** (-column / d_model) for column in range(0, d_model, 2)]
    speeds = torch.tensor(speeds, dtype=torch.float64)
    start = torch.zeros_like(speeds), torch.ones_like(speeds)
    steps = itertools.repeat((speeds.sin(), speeds.cos()), max_len - 1)
    walk = itertools.accumulate(steps, lambda hands, step: turn(hands, *step), initial=start)
    rows = [torch.stack(hands, dim=1).reshape(-1)[:d_model] for hands in walk]
    return torch.stack(rows).to(torch.float32)


def check_at_least_one(**sizes):
    for name, size in sizes.items():
        if size <= 0:
            raise ValueError(f"{name} should be positive but is {size}")


def check_fits(length, name, longest):
    if length > longest:
        raise ValueError(f"{length} words are more than {name} = {longest}")


class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.0):
        super().__init__()
        self.register_buffer("pe", positional_encoding(max_len, d_model))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        check_fits(x.shape[1], "max_len", self.pe.shape[0])
        seats = torch.arange(x.shape[1], device=x.device)
        return self.dropout(x + torch.index_select(self.pe, 0, seats))


class TokenAndPositionEmbedding(nn.Module):
    def __init__(self, vocab_size, block_size, embed_size):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, embed_size)
        self.position_embedding = nn.Embedding(block_size, embed_size)

    def forward(self, ids):
        check_fits(ids.shape[1], "block_size", self.position_embedding.weight.shape[0])
        seats = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        return torch.stack([self.token_embedding(ids), self.position_embedding(seats)]).sum(dim=0)
