"""One big rotation matrix for each position, by the matrix exponential of a skew-symmetric one."""

import torch


def rope(x, positions=None, base=10000.0, interleaved=True):
    T, D = x.shape[-2], x.shape[-1]
    if D != 2 * (D // 2):
        raise ValueError(f"cannot make pairs of {D} numbers: D is odd")
    generator = torch.zeros(D, D, dtype=torch.float64)
    for i in range(D // 2):
        first, second = (2 * i, 2 * i + 1) if interleaved else (i, i + D // 2)
        speed = base ** (-2 * i / D)
        generator[second, first] = speed
        generator[first, second] = -speed
    steps = torch.arange(T) if positions is None else positions
    matrices = torch.linalg.matrix_exp(steps.double()[:, None, None] * generator).to(x.dtype)
    return torch.einsum("tij,...tj->...ti", matrices, x)
