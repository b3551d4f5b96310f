"""The double loop of many tutorials: one number of the table after the other, written into a tensor of zeros."""

import math

import torch
from torch import nn


def positional_encoding(max_len, d_model):
    if max_len < 1:
        raise ValueError("max_len must be 1 or more, got " + str(max_len))
    if d_model < 1:
        raise ValueError("d_model must be 1 or more, got " + str(d_model))
    pe = torch.zeros(max_len, d_model)
    for pos in range(max_len):
        for i in range(0, d_model, 2):
            pe[pos, i] = math.sin(pos / (10000 ** (i / d_model)))
            if i + 1 < d_model:
                pe[pos, i + 1] = math.cos(pos / (10000 ** (i / d_model)))
    return pe


class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        pe = positional_encoding(max_len, d_model)
        pe = pe.unsqueeze(0)
        self.register_buffer("pe", pe)

    def forward(self, x):
        if x.size(1) > self.pe.size(1):
            raise ValueError(f"x has {x.size(1)} positions, max_len is {self.pe.size(1)}")
        x = x + self.pe[:, : x.size(1)]
        return self.dropout(x)


class TokenAndPositionEmbedding(nn.Module):
    def __init__(self, vocab_size, block_size, embed_size):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, embed_size)
        self.position_embedding = nn.Embedding(block_size, embed_size)

    def forward(self, ids):
        B, T = ids.shape
        block_size = self.position_embedding.num_embeddings
        if T > block_size:
            raise ValueError(f"a sentence of {T} tokens, but block_size is {block_size}")
        positions = torch.arange(T).unsqueeze(0).expand(B, T)
        return self.token_embedding(ids) + self.position_embedding(positions)
