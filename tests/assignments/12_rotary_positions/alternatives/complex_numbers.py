"""A pair of numbers is one complex number, and turning is multiplying by e^(i·angle)."""

import torch


def rope(x, positions=None, base=10000.0, interleaved=True):
    *leading, T, D = x.shape
    if D % 2:
        raise ValueError(f"x needs an even number of features, D={D} is odd")
    if positions is None:
        positions = torch.arange(T, device=x.device)
    speeds = 1.0 / base ** (torch.arange(0, D, 2, device=x.device)[: D // 2].double() / D)
    angles = torch.outer(positions.double(), speeds)
    turn = torch.polar(torch.ones_like(angles), angles)
    if interleaved:
        pairs = x.reshape(*leading, T, D // 2, 2)
    else:
        pairs = x.reshape(*leading, T, 2, D // 2).transpose(-1, -2)
    hands = torch.view_as_complex(pairs.double().contiguous()) * turn
    turned = torch.view_as_real(hands)
    if not interleaved:
        turned = turned.transpose(-1, -2)
    return turned.reshape(x.shape).to(x.dtype)
