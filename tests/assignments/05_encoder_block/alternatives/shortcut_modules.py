"""Small modules for everything, kept out of the list of parameters; float masks for attention."""

import functools
import math

import numpy as np
import torch
from torch import nn


def standardise(x, eps):
    deviation = x - torch.mean(x, -1).unsqueeze(-1)
    power = torch.linalg.vector_norm(deviation, dim=-1, keepdim=True) ** 2 / x.shape[-1]
    return deviation / torch.sqrt(power + eps)


def layer_norm(x, gamma, beta, eps=1e-5):
    """One token after the other would do; all at once is faster."""
    return standardise(x, eps).mul(gamma).add(beta)


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        affine = torch.tensor([[1.0], [0.0]]).repeat(1, d_model)                  # (2, C)
        self.gamma = nn.Parameter(affine[0].clone())
        self.beta = nn.Parameter(affine[1].clone())
        self.forward = functools.partial(self._forward, eps=eps)

    def _forward(self, x, eps):
        return layer_norm(x, self.gamma, self.beta, eps)


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="relu"):
        if activation not in ("relu", "gelu"):
            raise ValueError(f"activation '{activation}' is not one of relu, gelu")
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        for layer in (self.linear1, self.linear2):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.normal_(layer.bias, std=0.02)
        self.activation = nn.ReLU() if activation == "relu" else nn.GELU()

    def forward(self, x):
        *leading, width = x.shape
        rows = x.reshape(-1, width)                                               # (B * T, C)
        for step in (self.linear1, self.activation, self.linear2):
            rows = step(rows)
        return rows.view(*leading, width)


def as_scores(blocked, like):
    if blocked is None:
        return None
    return torch.zeros(blocked.shape, dtype=like.dtype).masked_fill(blocked, -np.inf)


class TransformerEncoderBlock(nn.Module):
    norm_first = False

    def __init__(self, d_model, n_heads, d_ff, dropout=0.1, activation="relu"):
        super().__init__()
        self.attention = nn.MultiheadAttention(
            embed_dim=d_model, num_heads=n_heads, dropout=dropout, batch_first=True
        )
        self.ff = FeedForward(d_model=d_model, d_ff=d_ff, activation=activation)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, x, padding_mask=None, attn_mask=None):
        masks = {"key_padding_mask": as_scores(padding_mask, x), "attn_mask": as_scores(attn_mask, x)}
        steps = ((self.norm1, lambda y: self.attention(y, y, y, **masks)[0]), (self.norm2, self.ff))
        for norm, sublayer in steps:
            if self.norm_first:
                x = x + self.dropout(sublayer(norm(x)))
            else:
                x = norm(self.dropout(sublayer(x)) + x)
        return x


class PreNormBlock(TransformerEncoderBlock):
    norm_first = True


class TransformerEncoder(nn.Module):
    def __init__(self, vocab_size, d_model=128, n_heads=4, n_layers=2, d_ff=256, max_len=64, dropout=0.1):
        super().__init__()
        self.max_len = max_len
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.register_buffer("pe", self.table(max_len, d_model))
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            [TransformerEncoderBlock(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)]
        )
        self.norm = LayerNorm(d_model)

    @staticmethod
    def table(max_len, d_model):
        rows = np.zeros((max_len, d_model))
        for p in range(max_len):
            for c in range(d_model):
                angle = p / math.pow(10000, (c - c % 2) / d_model)
                rows[p, c] = math.cos(angle) if c % 2 else math.sin(angle)
        return torch.from_numpy(rows).float()

    def forward(self, token_ids, padding_mask=None):
        if token_ids.size(1) > self.max_len:
            raise ValueError(f"{token_ids.size(1)} tokens are more than max_len ({self.max_len})")
        seats = torch.arange(token_ids.size(1))
        x = self.dropout(self.embedding(token_ids) + self.pe[seats])
        return self.norm(functools.reduce(lambda y, layer: layer(y, padding_mask), self.layers, x))
