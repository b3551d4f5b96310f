"""Unusual calls that mean the same: unfold, unbind, hsplit, baddbmm on a batch of B·H sentences."""

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


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
        return scaled_dot_product_attention(self.query(x), self.key(x), self.value(x), is_causal=True)


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_size, num_heads, block_size, bias=True):
        super().__init__()
        head_size, rest = divmod(embed_size, num_heads)
        if rest:
            raise ValueError(f"num_heads: {num_heads} leaves a rest of {rest} when it divides embed_size {embed_size}")
        self.proj = nn.Linear(embed_size, embed_size, bias=bias)
        self.heads = nn.ModuleList([])
        self.heads.extend([Head(embed_size, head_size, block_size) for _ in range(num_heads)])

    def forward(self, x):
        return self.proj(torch.dstack([head(x) for head in self.heads]))


def split_heads(x, num_heads):
    width, rest = divmod(x.shape[2], num_heads)
    if rest:
        raise ValueError(f"num_heads={num_heads} leaves a rest of {rest}")
    return x.unfold(2, width, width).swapaxes(1, 2)


def merge_heads(x):
    return torch.cat(x.unbind(1), dim=-1)


class FusedMultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(" ".join(["n_heads", str(n_heads), "does not divide d_model", str(d_model)]))
        self.n_heads, self.head_size = n_heads, d_model // n_heads
        self.W_qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.W_out = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x, mask=None):
        B, T, C = x.shape
        q, k, v = (
            third.view(B, T, self.n_heads, self.head_size).transpose(1, 2).reshape(B * self.n_heads, T, -1)
            for third in self.W_qkv(x).tensor_split(3, dim=2)
        )
        never = x.new_zeros(B, self.n_heads, T, T)
        if mask is not None:
            never = never.masked_fill(torch.logical_not(mask), float("-inf"))
        scores = torch.baddbmm(
            never.reshape(-1, T, T), q, k.transpose(1, 2), alpha=1 / self.head_size**0.5
        )
        mixed = torch.bmm(scores.softmax(2), v)                                        # (B·H, T, D)
        return self.W_out(merge_heads(mixed.unflatten(0, (B, self.n_heads))))


def fuse(per_head, fused):
    if len(per_head.heads) != fused.n_heads or per_head.proj.in_features != fused.W_out.in_features:
        raise ValueError("per_head and fused have different sizes")
    rows = []
    for name in "query", "key", "value":
        rows += [head.state_dict()[f"{name}.weight"] for head in per_head.heads]
    projection = per_head.proj.state_dict()["weight"]
    fused.load_state_dict({"W_qkv.weight": torch.vstack(rows), "W_out.weight": projection})
