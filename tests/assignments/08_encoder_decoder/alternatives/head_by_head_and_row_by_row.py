"""Loops where others use axes: one head after the other, one sentence after the other; blocks copied from one."""

import copy

import torch
import torch.nn.functional as F
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.width, rest = divmod(d_model, n_heads)
        if rest:
            raise ValueError(f"d_model = {d_model} must be a multiple of n_heads = {n_heads}")
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.proj = nn.Linear(d_model, d_model)

    def forward(self, y, memory, memory_padding_mask=None):
        mask = None
        if memory_padding_mask is not None:
            mask = torch.logical_not(memory_padding_mask).unsqueeze(1).expand(-1, y.size(1), -1)  # (B, T, S)
        triples = zip(*(layer.split(self.width, -1) for layer in (self.query(y), self.key(memory), self.value(memory))))
        notes = [F.scaled_dot_product_attention(q, k, v, mask) for q, k, v in triples]
        return self.proj(torch.cat(notes, -1))


class DecoderBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.1):
        super().__init__()
        self.self_attention = nn.MultiheadAttention(d_model, n_heads, dropout=dropout, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.cross_attention = CrossAttention(d_model, n_heads)
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(d_model), nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, y, memory, memory_padding_mask=None):
        T = y.shape[1]
        mask = torch.full((T, T), float("-inf"), dtype=y.dtype).triu(1)
        a = self.self_attention(y, y, y, attn_mask=mask, is_causal=True, need_weights=False)[0]
        a = self.norm1(y + self.dropout(a))
        b = self.cross_attention(a, memory, memory_padding_mask)
        b = self.norm2(a + self.dropout(b))
        c = self.ff(b)
        return self.norm3(b + self.dropout(c))


def shift_right(targets, bos_id):
    shifted = torch.empty_like(targets)
    for row, words in zip(shifted, targets.tolist()):
        for place, word in enumerate([bos_id, *words[:-1]]):
            row[place] = word
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
        self.head = nn.Linear(d_model, vocab_size)
        block = DecoderBlock(d_model, n_heads, d_ff, dropout)
        self.decoder = nn.ModuleList([copy.deepcopy(block) for _ in range(n_layers)])

    def embed(self, ids):
        T, max_len = ids.shape[1], self.position_embedding.num_embeddings
        if T > max_len:
            raise ValueError(f"A sentence of {T} words is longer than max_len = {max_len}.")
        return self.token_embedding(ids) + self.position_embedding.weight[:T]

    def encode(self, src, src_padding_mask=None):
        memory = self.embed(src)
        for layer in self.encoder:
            memory = layer(memory, src_key_padding_mask=src_padding_mask)
        return memory

    def decode(self, y, memory, memory_padding_mask=None):
        y = self.embed(y)
        for block in self.decoder:
            y = block(y, memory, memory_padding_mask=memory_padding_mask)
        return self.head(y)

    def forward(self, src, y, src_padding_mask=None):
        return self.decode(y, self.encode(src, src_padding_mask), src_padding_mask)


def greedy_decode(model, src, bos_id, eos_id, pad_id, max_len):
    if not max_len >= 1:
        raise ValueError(f"max_len = {max_len} leaves no room for a word")
    before = model.training
    model.eval()
    with torch.inference_mode():
        mask = src == pad_id
        memory = model.encode(src, mask)
        sentences = []
        for b in range(src.shape[0]):
            words = []
            while len(words) < max_len and eos_id not in words:
                y = torch.tensor([[bos_id, *words]])
                logits = model.decode(y, memory[b : b + 1], mask[b : b + 1])
                words.append(int(logits[0, -1].argmax()))
            sentences.append(words)
    if before:
        model.train()
    longest = max(map(len, sentences))
    return torch.tensor([words + [pad_id] * (longest - len(words)) for words in sentences])
