"""Attention written out in Einstein sums; answers are written on a board of max_len columns, full of PAD."""

import math

import torch
from torch import einsum, nn


class CrossAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if n_heads * (d_model // n_heads) != d_model:
            raise ValueError(f"n_heads={n_heads} does not fit d_model={d_model}")
        self.n_heads, self.D = n_heads, d_model // n_heads
        for name in ("query", "key", "value", "proj"):
            self.add_module(name, nn.Linear(d_model, d_model))

    def forward(self, y, memory, memory_padding_mask=None):
        B, T, C = y.shape
        q = self.query(y).view(B, T, self.n_heads, self.D)
        k = self.key(memory).view(B, -1, self.n_heads, self.D)
        v = self.value(memory).view(B, -1, self.n_heads, self.D)
        scores = einsum("bthd,bshd->bhts", q, k) / math.sqrt(self.D)                  # (B, H, T, S)
        if memory_padding_mask is not None:
            scores = scores.masked_fill(memory_padding_mask.view(B, 1, 1, -1), float("-inf"))
        return self.proj(einsum("bhts,bshd->bthd", scores.softmax(-1), v).reshape(B, T, C))


class DecoderBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.1):
        super().__init__()
        self.self_attention = nn.MultiheadAttention(d_model, n_heads, dropout=dropout, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.cross_attention = CrossAttention(d_model, n_heads)
        self.norm3, self.norm2, self.norm1 = (nn.LayerNorm(d_model) for _ in range(3))
        self.dropout = nn.Dropout(dropout)

    def forward(self, y, memory, memory_padding_mask=None):
        T = y.size(1)
        late = torch.arange(T)[None, :] > torch.arange(T)[:, None]                    # (T, T)
        steps = (
            (self.norm1, lambda x: self.self_attention(x, x, x, attn_mask=late)[0]),
            (self.norm2, lambda x: self.cross_attention(x, memory, memory_padding_mask)),
            (self.norm3, self.ff),
        )
        for norm, sublayer in steps:
            y = norm(self.dropout(sublayer(y)) + y)
        return y


def shift_right(targets, bos_id):
    shifted = targets.roll(1, dims=1)
    shifted[:, 0] = bos_id
    return shifted


class Translator(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, n_layers, d_ff, max_len, dropout=0.0):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = nn.Embedding(max_len, d_model)
        self.encoder = nn.ModuleList(
            nn.TransformerEncoderLayer(d_model, n_heads, d_ff, dropout, batch_first=True)
            for _ in range(n_layers)
        )
        self.decoder = nn.ModuleList()
        while len(self.decoder) < n_layers:
            self.decoder.append(DecoderBlock(d_model, n_heads, d_ff, dropout))
        self.head = nn.Linear(d_model, vocab_size)

    def embed(self, ids):
        T, max_len = ids.shape[1], self.position_embedding.num_embeddings
        if T > max_len:
            raise ValueError(f"A sentence of {T} words is longer than max_len = {max_len}.")
        return self.token_embedding(ids) + self.position_embedding.weight[:T]

    def encode(self, src, src_padding_mask=None):
        x = self.embed(src)
        for layer in self.encoder:
            x = layer(x, None, src_padding_mask)
        return x

    def decode(self, y, memory, memory_padding_mask=None):
        x = self.embed(y)
        for block in self.decoder:
            x = block(x, memory, memory_padding_mask)
        return self.head(x)

    def forward(self, src, y, src_padding_mask=None):
        return self.decode(y, self.encode(src, src_padding_mask), src_padding_mask)


@torch.no_grad()
def greedy_decode(model, src, bos_id, eos_id, pad_id, max_len):
    if max_len <= 0:
        raise ValueError(f"max_len must be positive, not {max_len}")
    mode = model.training
    model.eval()
    silent = src.eq(pad_id)
    memory = model.encode(src, silent)
    board = torch.full((len(src), max_len + 1), pad_id)                               # (B, 1 + max_len)
    board[:, 0] = bos_id
    alive = torch.ones(len(src), dtype=torch.bool)
    t = 0
    while alive.any() and t < max_len:
        logits = model.decode(board[:, :max_len], memory, silent)                     # all places, every time
        board[alive, t + 1] = logits[alive, t].argmax(-1)
        alive &= board[:, t + 1] != eos_id
        t += 1
    model.train(mode)
    return board[:, 1 : t + 1]
