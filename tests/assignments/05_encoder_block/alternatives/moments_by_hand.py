"""Every step of the norm spelled out with sums; PreNormBlock stands on its own feet."""

import math

import torch
import torch.nn as nn


def moments(x):
    C = x.size(-1)
    total = x.sum(-1, keepdim=True)                                               # (..., 1)
    mu = total / C
    centred = x - mu                                                              # (..., C)
    return centred, (centred * centred).sum(-1, keepdim=True) / C


def layer_norm(x, gamma, beta, eps=1e-5):
    centred, variance = moments(x)
    return centred * (variance + eps).rsqrt() * gamma + beta


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.beta = nn.Parameter(torch.empty(d_model))
        self.gamma = nn.Parameter(torch.empty(d_model))
        self.eps = eps
        nn.init.zeros_(self.beta)
        nn.init.ones_(self.gamma)

    def forward(self, x):
        return layer_norm(x, self.gamma, self.beta, eps=self.eps)


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="relu"):
        super().__init__()
        if activation == "relu":
            self.act = nn.ReLU()
        elif activation == "gelu":
            self.act = nn.GELU()
        else:
            raise ValueError("unknown activation: " + str(activation))
        self.linear2 = nn.Linear(d_ff, d_model)
        self.linear1 = nn.Linear(d_model, d_ff)

    def forward(self, x):
        return self.linear2(self.act(self.linear1(x)))


class TransformerEncoderBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.1, activation="relu"):
        super().__init__()
        self.norm2 = LayerNorm(d_model)
        self.norm1 = LayerNorm(d_model)
        self.attention = nn.MultiheadAttention(d_model, n_heads, dropout=dropout, batch_first=True)
        self.ff = FeedForward(d_model, d_ff, activation)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, padding_mask=None, attn_mask=None):
        residual = x
        x, weights = self.attention(x, x, x, attn_mask=attn_mask, key_padding_mask=padding_mask)
        x = self.dropout(x)
        x = residual + x
        x = self.norm1(x)
        residual = x
        x = self.ff(x)
        x = self.dropout(x)
        x = residual + x
        x = self.norm2(x)
        return x


class PreNormBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.1, activation="relu"):
        super().__init__()
        self.attention = nn.MultiheadAttention(d_model, n_heads, dropout=dropout, batch_first=True)
        self.ff = FeedForward(d_model, d_ff, activation)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, padding_mask=None, attn_mask=None):
        residual = x
        x = self.norm1(x)
        x = self.attention(x, x, x, attn_mask=attn_mask, key_padding_mask=padding_mask)[0]
        x = residual + self.dropout(x)
        residual = x
        x = self.norm2(x)
        return residual + self.dropout(self.ff(x))


def sinusoidal_table(max_len, d_model):
    table = torch.zeros(max_len, d_model)
    position = torch.arange(max_len).float()[:, None]
    rate = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate)[:, : d_model // 2]
    return table


class TransformerEncoder(nn.Module):
    def __init__(self, vocab_size, d_model=128, n_heads=4, n_layers=2, d_ff=256, max_len=64, dropout=0.1):
        super().__init__()
        self.norm = LayerNorm(d_model)
        layers = []
        for _ in range(n_layers):
            layers.append(TransformerEncoderBlock(d_model, n_heads, d_ff, dropout))
        self.layers = nn.ModuleList(layers)
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("pe", sinusoidal_table(max_len, d_model).unsqueeze(0))

    def forward(self, token_ids, padding_mask=None):
        length = token_ids.size(1)
        if length > self.pe.size(1):
            raise ValueError("max_len is " + str(self.pe.size(1)) + ", T is " + str(length))
        x = self.embedding(token_ids)
        x = x + self.pe[:, :length, :]
        x = self.dropout(x)
        for block in self.layers:
            x = block(x, padding_mask=padding_mask)
        return self.norm(x)
