"""Nothing but loops and the math module; one number after the other."""

import math

import torch
from torch import nn


def positional_encoding(max_len, d_model):
    if max_len < 1 or d_model < 1:
        raise ValueError(f"both must be positive, got max_len={max_len}, d_model={d_model}")
    speeds = []
    for column in range(d_model):
        pair = column // 2
        speeds.append(1 / math.pow(10000, 2 * pair / d_model))
    rows = []
    for p in range(max_len):
        row = []
        for column in range(d_model):
            if column % 2 == 0:
                row.append(math.sin(p * speeds[column]))
            else:
                row.append(math.cos(p * speeds[column]))
        rows.append(row)
    return torch.tensor(rows, dtype=torch.float32)


class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.0):
        super().__init__()
        self.register_buffer("pe", positional_encoding(max_len, d_model))
        self.drop = nn.Dropout(p=dropout)

    def forward(self, x):
        B, T, C = x.shape
        if len(self.pe) < T:
            raise ValueError(f"The sentence has {T} words, max_len is {len(self.pe)}.")
        out = []
        for b in range(B):
            words = []
            for t in range(T):
                words.append(x[b, t] + self.pe[t])
            out.append(torch.stack(words))
        return self.drop(torch.stack(out))


class TokenAndPositionEmbedding(nn.Module):
    def __init__(self, vocab_size, block_size, embed_size):
        super().__init__()
        self.position_embedding = nn.Embedding(block_size, embed_size)
        self.token_embedding = nn.Embedding(vocab_size, embed_size)

    def forward(self, ids):
        B, T = ids.shape
        block_size = len(self.position_embedding.weight)
        if block_size < T:
            raise ValueError(f"{T} words do not fit into block_size {block_size}")
        sentences = []
        for b in range(B):
            words = []
            for t in range(T):
                words.append(self.token_embedding.weight[ids[b, t]] + self.position_embedding.weight[t])
            sentences.append(torch.stack(words))
        return torch.stack(sentences)
