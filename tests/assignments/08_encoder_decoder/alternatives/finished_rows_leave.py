"""Rows that are done leave the batch; memory as (S, B, C) inside; fused weights at the moment of use."""

import torch
import torch.nn.functional as F
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        if d_model % n_heads:
            raise ValueError(f"n_heads {n_heads} cannot share {d_model} features (d_model)")
        super().__init__()
        self.H = n_heads
        self.key, self.value = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.query, self.proj = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def cut(self, x):
        B, L, C = x.shape
        return x.reshape(B, L, self.H, C // self.H).permute(0, 2, 1, 3)

    def forward(self, y, memory, memory_padding_mask=None):
        weight = torch.cat([self.key.weight, self.value.weight])
        bias = torch.cat([self.key.bias, self.value.bias])
        k, v = F.linear(memory, weight, bias).chunk(2, dim=-1)
        mask = None
        if memory_padding_mask is not None:
            mask = torch.zeros(memory.shape[:2], dtype=y.dtype).masked_fill(memory_padding_mask, -torch.inf)
            mask = mask[:, None, None]
        heard = F.scaled_dot_product_attention(self.cut(self.query(y)), self.cut(k), self.cut(v), attn_mask=mask)
        return self.proj(heard.permute(0, 2, 1, 3).reshape(y.shape))


class DecoderBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.1):
        super().__init__()
        self.self_attention = nn.MultiheadAttention(d_model, n_heads, dropout=dropout, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.cross_attention = CrossAttention(d_model, n_heads)
        for n in "123":
            setattr(self, "norm" + n, nn.LayerNorm(d_model))
        self.dropout = nn.Dropout(dropout)

    def forward(self, y, memory, memory_padding_mask=None):
        future = nn.Transformer.generate_square_subsequent_mask(y.shape[1], dtype=y.dtype)
        y = self.norm1(torch.add(y, self.dropout(self.self_attention(y, y, y, attn_mask=future)[0])))
        y = self.norm2(torch.add(y, self.dropout(self.cross_attention(y, memory, memory_padding_mask))))
        return self.norm3(torch.add(y, self.dropout(self.ff(y))))


def shift_right(targets, bos_id):
    return F.pad(targets, (1, -1), value=bos_id)


class Translator(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, n_layers, d_ff, max_len, dropout=0.0):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = nn.Embedding(max_len, d_model)
        self.encoder = nn.ModuleList(
            nn.TransformerEncoderLayer(d_model, n_heads, d_ff, dropout, batch_first=True)
            for _ in range(n_layers)
        )
        self.decoder = nn.ModuleList(
            {n: DecoderBlock(d_model, n_heads, d_ff, dropout) for n in range(n_layers)}.values()
        )
        self.head = nn.Linear(in_features=d_model, out_features=vocab_size)

    def embed(self, ids):
        T, max_len = ids.shape[1], self.position_embedding.num_embeddings
        if T > max_len:
            raise ValueError(f"A sentence of {T} words is longer than max_len = {max_len}.")
        return self.token_embedding(ids) + self.position_embedding.weight[:T]

    def encode(self, src, src_padding_mask=None):
        states = [self.embed(src)]
        for layer in self.encoder:
            states.append(layer(states[-1], src_key_padding_mask=src_padding_mask))
        return states[-1]

    def decode(self, y, memory, memory_padding_mask=None):
        states = [self.embed(y)]
        for block in self.decoder:
            states.append(block(states[-1], memory, memory_padding_mask))
        return self.head(states[-1])

    def forward(self, src, y, src_padding_mask=None):
        return self.decode(y, self.encode(src, src_padding_mask), src_padding_mask)


def greedy_decode(model, src, bos_id, eos_id, pad_id, max_len):
    if max_len < 1:
        raise ValueError(f"max_len {max_len} < 1")
    training = model.training
    model.train(False)
    try:
        with torch.no_grad():
            return _write(model, src, bos_id, eos_id, pad_id, max_len)
    finally:
        model.train(training)


def _write(model, src, bos_id, eos_id, pad_id, max_len):
    mask = src == pad_id
    memory = model.encode(src, src_padding_mask=mask)
    busy = torch.arange(len(src))
    columns = [torch.full((len(src),), bos_id)]
    while len(busy) and len(columns) <= max_len:
        y = torch.stack(columns, dim=1)[busy]
        best = model.decode(y, memory[busy], memory_padding_mask=mask[busy])[:, -1].max(dim=-1).indices
        columns.append(torch.full((len(src),), pad_id).index_put((busy,), best))
        busy = busy[best != eos_id]
    return torch.stack(columns[1:], dim=1)
