"""Small tables of what positional encodings give on fresh inputs, for questions about a student's own code."""

import torch
from torch import Tensor


def table(student, dice, max_len: int = 4, d_model: int = 4, first: int = 0) -> Tensor:
    """The table of sines and cosines: a row for each position, a column for each number."""
    return student.positional_encoding(max_len, d_model)[first:]  # (max_len - first, d_model)


def added(student, dice, T: int = 4, times: int = 1, max_len: int = 9) -> Tensor:
    """What the module answers to words that are all the same: a row for each position."""
    word = torch.randn(4, generator=dice).mul(3).round()  # (C,)
    module = student.SinusoidalPositionalEncoding(4, max_len=max_len, dropout=0.0)
    return module((times * word).expand(1, T, 4).clone())[0]  # (T, C)


def learned(student, dice, ids: list = (0, 1, 2, 1), seats: float = 1) -> Tensor:
    """The vectors of four tokens: a row for each position. The same token stands there more than once."""
    layer = student.TokenAndPositionEmbedding(4, 6, 3)
    words = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]])  # (V, C)
    rows = torch.randint(2, 10, (6, 3), generator=dice) * 10.0  # (block_size, C)
    layer.token_embedding.weight.copy_(words)
    layer.position_embedding.weight.copy_(seats * rows)
    return layer(torch.tensor([list(ids)]))[0]  # (T, C)
