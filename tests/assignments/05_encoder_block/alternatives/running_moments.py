"""Mean and variance feature by feature, as in Welford's running update; blocks built from plain functions."""

import math
from dataclasses import dataclass

import torch
from torch.nn import Dropout, Embedding, Linear, Module, ModuleList, MultiheadAttention, Parameter


@dataclass
class Moments:
    count: int
    mean: torch.Tensor
    squares: torch.Tensor

    def update(self, value):
        count = self.count + 1
        step = value - self.mean
        mean = self.mean + step / count
        return Moments(count, mean, self.squares + step * (value - mean))


def layer_norm(x, gamma, beta, eps=1e-5):
    moments = Moments(0, torch.zeros_like(x[..., 0]), torch.zeros_like(x[..., 0]))
    for c in range(x.shape[-1]):
        moments = moments.update(x[..., c])
    variance = moments.squares / moments.count
    scale = 1.0 / torch.sqrt(variance + eps)
    columns = [(x[..., c] - moments.mean) * scale * gamma[c] + beta[c] for c in range(x.shape[-1])]
    return torch.stack(columns, dim=-1)


class LayerNorm(Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.gamma, self.beta, self.eps = Parameter(torch.ones(d_model)), Parameter(torch.zeros(d_model)), eps

    def forward(self, x):
        return layer_norm(x, self.gamma, self.beta, self.eps)


class FeedForward(Module):
    def __init__(self, d_model, d_ff, activation="relu"):
        super().__init__()
        match activation:
            case "relu":
                self.phi = lambda z: z.clamp_min(0)
            case "gelu":
                self.phi = lambda z: z * torch.special.ndtr(z)
            case _:
                raise ValueError(f"activation should be relu or gelu, not {activation}")
        self.linear1 = Linear(in_features=d_model, out_features=d_ff)
        self.linear2 = Linear(in_features=d_ff, out_features=d_model)

    def forward(self, x):
        return self.linear2(self.phi(self.linear1(x)))


def parts(block, d_model, n_heads, d_ff, dropout, activation):
    block.attention = MultiheadAttention(d_model, n_heads, dropout=dropout, batch_first=True)
    block.ff = FeedForward(d_model, d_ff, activation)
    block.norm1 = LayerNorm(d_model)
    block.norm2 = LayerNorm(d_model)
    block.dropout = Dropout(dropout)


def both_masks(padding_mask, attn_mask, B, T, H):
    """One mask (B * H, T, T) for attention: who may not hear whom, for whatever reason."""
    blocked = torch.zeros(B, 1, T, T, dtype=torch.bool)
    if padding_mask is not None:
        blocked = blocked | padding_mask.view(B, 1, 1, T)
    if attn_mask is not None:
        blocked = blocked | attn_mask.view(1, 1, T, T)
    return blocked.expand(B, H, T, T).reshape(B * H, T, T)


def self_attention(block, x, padding_mask, attn_mask):
    B, T, _ = x.shape
    mask = both_masks(padding_mask, attn_mask, B, T, block.attention.num_heads)
    return block.dropout(block.attention(x, x, x, attn_mask=mask, need_weights=False)[0])


class TransformerEncoderBlock(Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.1, activation="relu"):
        super().__init__()
        parts(self, d_model, n_heads, d_ff, dropout, activation)

    def forward(self, x, padding_mask=None, attn_mask=None):
        h = self.norm1(x + self_attention(self, x, padding_mask, attn_mask))
        return self.norm2(h + self.dropout(self.ff(h)))


class PreNormBlock(Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.1, activation="relu"):
        super().__init__()
        parts(self, d_model, n_heads, d_ff, dropout, activation)

    def forward(self, x, padding_mask=None, attn_mask=None):
        h = x.clone()
        h += self_attention(self, self.norm1(x), padding_mask, attn_mask)
        return h + self.dropout(self.ff(self.norm2(h)))


class TransformerEncoder(Module):
    def __init__(self, vocab_size, d_model=128, n_heads=4, n_layers=2, d_ff=256, max_len=64, dropout=0.1):
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.norm = LayerNorm(d_model)
        self.layers = ModuleList(
            TransformerEncoderBlock(d_model, n_heads, d_ff, dropout=dropout) for _ in range(n_layers)
        )
        self.dropout = Dropout(dropout)
        turns = torch.exp(torch.arange(0, d_model, 2) * -(math.log(1e4) / d_model)).double()
        waves = torch.polar(torch.ones(()).double(), torch.arange(max_len).double()[:, None] * turns)
        pairs = torch.stack((waves.imag, waves.real), dim=-1)                     # (max_len, C / 2, 2)
        self.register_buffer("pe", pairs.reshape(1, max_len, -1)[..., :d_model].to(torch.float32))

    def forward(self, token_ids, padding_mask=None):
        T, max_len = token_ids.shape[-1], self.pe.shape[1]
        if max_len < T:
            raise ValueError(f"T={T}, but max_len={max_len}")
        x = self.dropout(self.embedding(token_ids) + self.pe[:, :T])
        for layer in self.layers:
            x = layer(x, padding_mask=padding_mask)
        return self.norm(x)
