"""Small classes of one's own, inheritance, and type hints everywhere."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Sizes:
    width: int
    heads: int

    def __post_init__(self) -> None:
        if self.heads <= 0 or self.width % self.heads:
            raise ValueError(f"embed_size or d_model {self.width}, num_heads or n_heads {self.heads}")

    @property
    def strip(self) -> int:
        return self.width // self.heads


class Three(NamedTuple):
    queries: Tensor
    keys: Tensor
    values: Tensor


class Head(nn.Module):
    def __init__(self, embed_size: int, head_size: int, block_size: int):
        super().__init__()
        self.key = nn.Linear(embed_size, head_size, bias=False)
        self.query = nn.Linear(embed_size, head_size, bias=False)
        self.value = nn.Linear(embed_size, head_size, bias=False)
        self.block_size = block_size

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.block_size:
            raise ValueError(f"the sentence has T={x.shape[1]} words, but block_size={self.block_size}")
        return F.scaled_dot_product_attention(self.query(x), self.key(x), self.value(x), is_causal=True)


class NumberedHead(Head):
    """A head that knows its number, for printing."""

    def __init__(self, number: int, *sizes: int):
        super().__init__(*sizes)
        self.number = number

    def extra_repr(self) -> str:
        return f"number={self.number}"


class Choir(nn.ModuleList):
    """Heads that sing together: a list of modules which can be called."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.concat([voice(x) for voice in self], dim=-1)


class Strips(nn.Module):
    """Cuts on the way in, glues on the way out; has nothing to learn."""

    def __init__(self, heads: int):
        super().__init__()
        self.heads = heads

    def forward(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).movedim(2, 1)

    @staticmethod
    def glue(x: Tensor) -> Tensor:
        return x.movedim(1, 2).flatten(start_dim=2)


class Attend(nn.Module):
    """softmax(QKᵀ/√D)V under a mask."""

    def forward(self, three: Three, mask: Tensor | None) -> Tensor:
        logits = three.queries.mul(three.queries.size(-1) ** -0.5) @ three.keys.mT
        if mask is not None:
            logits = logits.masked_fill(mask.logical_not(), torch.finfo(logits.dtype).min)
        return F.softmax(logits, dim=-1) @ three.values


class Projected(nn.Module):
    """What both forms share: they know their sizes."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        self.sizes = sizes


class MultiHeadAttention(Projected):
    def __init__(self, embed_size: int, num_heads: int, block_size: int, bias: bool = True):
        super().__init__(Sizes(embed_size, num_heads))
        make = functools.partial(NumberedHead)
        self.heads = Choir(make(i, embed_size, self.sizes.strip, block_size) for i in range(num_heads))
        self.proj = nn.Linear(in_features=embed_size, out_features=embed_size, bias=bias)
        self.register_buffer("block", torch.tensor(block_size))

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(self.heads(x))


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    Sizes(x.shape[-1], num_heads)
    return Strips(num_heads)(x)


def merge_heads(x: Tensor) -> Tensor:
    return Strips.glue(x)


class FusedMultiHeadAttention(Projected):
    def __init__(self, d_model: int, n_heads: int):
        super().__init__(Sizes(d_model, n_heads))
        self.W_out = nn.Linear(d_model, d_model, bias=False)
        self.W_qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.cut = Strips(n_heads)
        self.attend = Attend()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        three = Three(*map(self.cut, self.W_qkv(x).split(self.sizes.width, dim=-1)))
        return self.W_out(self.cut.glue(self.attend(three, mask)))


@torch.no_grad()
def fuse(per_head: MultiHeadAttention, fused: FusedMultiHeadAttention) -> None:
    if per_head.sizes != fused.sizes:
        raise ValueError(f"{per_head.sizes} and {fused.sizes} differ")
    thirds = zip(fused.W_qkv.weight.chunk(3), ("query", "key", "value"), strict=True)
    for third, name in thirds:
        for rows, head in zip(third.chunk(fused.sizes.heads), per_head.heads, strict=True):
            rows.copy_(getattr(head, name).weight)
    fused.W_out.weight.copy_(per_head.proj.weight)
