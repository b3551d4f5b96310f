"""A loop over the pairs, with plain Python numbers for the speeds, filling a new tensor column by column."""

import torch


def rope(x, positions=None, base=10000.0, interleaved=True):
    T, D = x.shape[-2:]
    if D & 1:
        raise ValueError(f"D = {D}")
    if positions is None:
        positions = torch.tensor(list(range(T)))
    columns = [None] * D
    for i in range(D // 2):
        first = 2 * i if interleaved else i
        second = first + 1 if interleaved else first + D // 2
        angle = positions / base ** (2 * i / D)
        c, s = torch.cos(angle).to(x), torch.sin(angle).to(x)
        columns[first] = x[..., first] * c - x[..., second] * s
        columns[second] = x[..., second] * c + x[..., first] * s
    return torch.stack(columns, dim=-1)
