"""Every step is an einsum, and the softmax is written by hand."""

from math import sqrt

import torch
from torch import einsum, nn
from torch.nn import functional as F


class Head(nn.Module):
    def __init__(self, embed_size, head_size, block_size):
        super().__init__()
        self.key = nn.Linear(embed_size, head_size, bias=False)
        self.query = nn.Linear(embed_size, head_size, bias=False)
        self.value = nn.Linear(embed_size, head_size, bias=False)
        self.block_size = block_size

    def forward(self, x):
        if x.shape[1] > self.block_size:
            raise ValueError(f"the sentence has T={x.shape[1]} words, but block_size={self.block_size}")
        return F.scaled_dot_product_attention(self.query(x), self.key(x), self.value(x), is_causal=True)


def stable_softmax(scores):
    powers = (scores - scores.amax(dim=-1, keepdim=True).detach()).exp()
    return powers / powers.sum(dim=-1, keepdim=True)


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_size, num_heads, block_size, bias=True):
        super().__init__()
        if embed_size % num_heads:
            raise ValueError(f"{embed_size=} must be a multiple of {num_heads=}")
        self.heads = nn.ModuleList(
            Head(embed_size, embed_size // num_heads, block_size) for _ in range(num_heads)
        )
        self.proj = nn.Linear(embed_size, embed_size, bias=bias)

    def forward(self, x):
        notes = torch.stack([head(x) for head in self.heads])                          # (H, B, T, D)
        table = self.proj.weight.unflatten(1, (notes.shape[0], -1))                    # (C, H, D)
        out = einsum("hbtd,chd->btc", notes, table)
        return out if self.proj.bias is None else out + self.proj.bias


def split_heads(x, num_heads):
    eye = torch.eye(x.shape[-1], dtype=x.dtype).unflatten(0, (num_heads, -1))          # (H, D, C)
    return einsum("btc,hdc->bhtd", x, eye)


def merge_heads(x):
    H, D = x.shape[1], x.shape[3]
    eye = torch.eye(H * D, dtype=x.dtype).unflatten(0, (H, D))                         # (H, D, C)
    return einsum("bhtd,hdc->btc", x, eye)


class FusedMultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"{d_model=} must be a multiple of {n_heads=}")
        self.shape = (3, n_heads, d_model // n_heads, d_model)
        self.W_qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.W_out = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x, mask=None):
        q, k, v = einsum("btc,nhdc->nbhtd", x, self.W_qkv.weight.view(self.shape))
        scores = einsum("bhtd,bhsd->bhts", q, k) / sqrt(self.shape[2])
        if mask is not None:
            scores = scores + torch.zeros_like(scores).masked_fill(~mask, -1e30)
        mixed = einsum("bhts,bhsd->bhtd", stable_softmax(scores), v)
        return einsum("bhtd,chd->btc", mixed, self.W_out.weight.view(-1, *self.shape[1:3]))


def fuse(per_head, fused):
    _, n_heads, _, width = fused.shape
    if len(per_head.heads) != n_heads or per_head.proj.weight.shape[0] != width:
        raise ValueError(f"sizes differ: {len(per_head.heads)} and {n_heads} heads, or the widths")
    three = [
        torch.stack([getattr(head, name).weight.detach() for head in per_head.heads])
        for name in ("query", "key", "value")
    ]
    fused.W_qkv.weight.data = torch.stack(three).reshape(3 * width, width).clone()
    fused.W_out.weight.data = per_head.proj.weight.detach().clone()
