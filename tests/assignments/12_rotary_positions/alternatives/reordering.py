"""Only halves are ever turned; neighbours are sorted into halves before and back afterwards. Log-space speeds."""

import math

import torch


def rope(x, positions=None, base=10000.0, interleaved=True):
    dtype, x = x.dtype, x.double()
    D = x.shape[-1]
    half, rest = divmod(D, 2)
    if rest:
        raise ValueError(f"expected an even D but got D: {D}")
    order = torch.arange(D)
    if interleaved:
        order = order.view(half, 2).t().reshape(-1)
    back = torch.argsort(order)
    if positions is None:
        positions = torch.ones(x.shape[-2]).cumsum(0) - 1
    speeds = torch.exp(torch.arange(half, dtype=x.dtype) * (-math.log(base) / half))
    angle = positions.to(x.dtype)[:, None] * speeds[None, :]
    left, right = x.index_select(-1, order).split(half, dim=-1)
    radius, phase = torch.hypot(left, right), torch.atan2(right, left)
    turned = torch.cat([radius * torch.cos(phase + angle), radius * torch.sin(phase + angle)], dim=-1)
    return turned.index_select(-1, back).to(dtype)
