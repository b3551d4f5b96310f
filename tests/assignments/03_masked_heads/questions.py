"""Small tables of what masked heads give on fresh inputs, for questions about a student's own code."""

import torch
from torch import Tensor


def mask(student, dice, T: int = 5, first: int = 0) -> Tensor:
    """The mask, 1 where attending is allowed: a row for each query, a column for each key."""
    return student.causal_mask(T)[first:].double()  # (T - first, T)


def weights(student, dice, scale: float = 1, repeat: int = 1, blocked: int = -1, shift: float = 0, T: int = 4) -> Tensor:
    """The weights under the causal mask: a row for each query, a column for each key."""
    q = torch.randn(T, 4, generator=dice).double().repeat(1, repeat)  # (T, D)
    k = torch.randn(T, 4, generator=dice).double().repeat(1, repeat)  # (T, D)
    direction = torch.randn(4, generator=dice).double().repeat(repeat)  # (D,)
    allowed = torch.ones(T, T, dtype=torch.bool).tril()  # (T, T)
    if blocked >= 0:
        allowed[:, blocked] = False
    _, shown = student.attention(2 * scale * q, k + shift * direction, torch.eye(T).double(), allowed)
    return shown  # (T, T)


def free_weights(student, dice, scale: float = 1, repeat: int = 1, T: int = 4) -> Tensor:
    """The weights without a mask: a row for each query, a column for each key."""
    q = torch.randn(T, 4, generator=dice).double().repeat(1, repeat)  # (T, D)
    k = torch.randn(T, 4, generator=dice).double().repeat(1, repeat)  # (T, D)
    _, shown = student.attention(1.5 * scale * q, k, torch.eye(T).double())
    return shown  # (T, T)


def changes(student, dice, word: int = 2, swapped: bool = False, T: int = 5) -> Tensor:
    """How far the output of each word moves, the first word on the left; 0 is exactly as before."""
    head = student.Head(6, 4, T).double()
    for layer in (head.key, head.query, head.value):
        layer.weight.copy_(torch.randn(4, 6, generator=dice).double())
    before = torch.randn(1, T, 6, generator=dice).double()  # (1, T, C)
    after = before.clone()
    after[0, word] = torch.randn(6, generator=dice).double()
    if swapped:
        after = before[:, [1, 0, *range(2, T)]]  # (1, T, C)
    return (head(after) - head(before)).norm(dim=-1)  # (1, T)
