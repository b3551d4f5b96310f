"""A list of angles for each position, powers taken one by one by NumPy; sines and cosines at the end."""

import numpy as np
import torch
from torch import nn


def positional_encoding(max_len, d_model):
    for name, size in [("max_len", max_len), ("d_model", d_model)]:
        if size < 1:
            raise ValueError("%s should be positive, not %d" % (name, size))

    def angles(position):
        return [position / np.power(10000, 2 * (j // 2) / d_model) for j in range(d_model)]

    table = np.array([angles(position) for position in range(max_len)])
    table[:, 0::2] = np.sin(table[:, 0::2])
    table[:, 1::2] = np.cos(table[:, 1::2])
    return torch.FloatTensor(table)


class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.0):
        super(SinusoidalPositionalEncoding, self).__init__()
        self.register_buffer("pe", positional_encoding(max_len, d_model)[None, :, :])
        self.p = dropout

    def forward(self, x):
        length, longest = x.size(1), self.pe.size(1)
        if longest < length:
            raise ValueError("max_len is %d, the sentence has %d words" % (longest, length))
        total = torch.add(x, self.pe.narrow(1, 0, length))
        return torch.dropout(total, self.p, self.training)


class TokenAndPositionEmbedding(nn.Module):
    def __init__(self, vocab_size, block_size, embed_size):
        super(TokenAndPositionEmbedding, self).__init__()
        for name, rows in [("token_embedding", vocab_size), ("position_embedding", block_size)]:
            setattr(self, name, nn.Embedding(rows, embed_size))

    def forward(self, ids):
        length, seats = ids.size(-1), self.position_embedding.weight
        if length > len(seats):
            raise ValueError("block_size is %d, the sentence has %d words" % (len(seats), length))
        return torch.add(self.token_embedding(ids), seats.narrow(0, 0, length))
