"""Small tables of what several heads give on fresh inputs, for questions about a student's own code."""

import torch
from torch import Tensor


def numbered(dice, *shape: int) -> Tensor:
    """Whole numbers that all differ, so that one can follow each of them."""
    count = torch.Size(shape).numel()
    start = int(torch.randint(1, 40, (1,), generator=dice))
    return (start + torch.arange(count)).double().reshape(shape)


def strips(student, dice, heads: int = 2, swapped: bool = False) -> Tensor:
    """`split_heads` of two words with 8 numbers each, which are counted on from word to word. Below each other: head 0
    with both words, then head 1, and so on."""
    x = numbered(dice, 1, 2, 8)  # (B, T, C)
    if swapped:
        x = x.flip(1)
    split = student.split_heads(x, heads)[0]  # (H, T, D)
    return split.reshape(-1, split.shape[-1])  # (H T, D)


def merged(student, dice, turned_heads: bool = False, turned_words: bool = False) -> Tensor:
    """`merge_heads` of two heads with three words and strips of 3 numbers, which are counted on through head 0 and then
    through head 1: a row for each word."""
    x = numbered(dice, 1, 2, 3, 3)  # (B, H, T, D)
    if turned_heads:
        x = x.flip(1)
    if turned_words:
        x = x.flip(2)
    return student.merge_heads(x)[0]  # (T, C)


def side_by_side(student, dice, silent: int = -1, louder: int = -1, projected: float = 1) -> Tensor:
    """The output for three words, with two heads and a projection that changes nothing: a row for each word."""
    layer = student.MultiHeadAttention(4, 2, block_size=3).double()
    for number, head in enumerate(layer.heads):
        head.query.weight.copy_(torch.randn(2, 4, generator=dice).double())
        head.key.weight.copy_(torch.randn(2, 4, generator=dice).double())
        value = torch.randn(2, 4, generator=dice).double() * 2  # (D, C)
        head.value.weight.copy_(value * (0 if number == silent else 1) * (3 if number == louder else 1))
    layer.proj.weight.copy_(projected * torch.eye(4).double())
    layer.proj.bias.zero_()
    return layer(torch.randn(1, 3, 4, generator=dice).double())[0]  # (T, C)


def at_once(student, dice, silenced: str = "", head: int = -1) -> Tensor:
    """The output of the fused form for three words without a mask, with two heads and a `W_out` that leaves everything
    as it is: a row for each word."""
    layer = student.FusedMultiHeadAttention(4, 2).double()
    rows = torch.randn(12, 4, generator=dice).double() * 1.5  # (3 C, C)
    first = 4 * ["queries", "keys", "values"].index(silenced) if silenced else 0
    if silenced and head < 0:
        rows[first : first + 4] = 0
    elif silenced:
        rows[first + 2 * head : first + 2 * head + 2] = 0
    layer.W_qkv.weight.copy_(rows)
    layer.W_out.weight.copy_(torch.eye(4).double())
    return layer(torch.randn(1, 3, 4, generator=dice).double())[0]  # (T, C)
