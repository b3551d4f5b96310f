"""The side-by-side form stacks its heads' weights and attends once; the fused form walks through its rows."""

import torch
import torch.nn.functional as F
from torch import nn


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


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_size, num_heads, block_size, bias=True):
        if embed_size % num_heads:
            raise ValueError(f"embed_size={embed_size} % num_heads={num_heads} is not 0")
        super().__init__()
        self.heads = nn.ModuleList(
            [Head(embed_size, embed_size // num_heads, block_size) for _ in range(num_heads)]
        )
        self.proj = nn.Linear(embed_size, embed_size, bias=bias)
        self.block_size = block_size
        causal = torch.tril(torch.ones(block_size, block_size)).bool()
        self.register_buffer("causal", causal, persistent=False)

    def stacked(self, name):
        return torch.stack([getattr(head, name).weight for head in self.heads])        # (H, D, C)

    def forward(self, x):
        T = x.shape[1]
        if self.block_size < T:
            raise ValueError(f"T={T} does not fit into block_size={self.block_size}")
        q, k, v = (x[:, None] @ self.stacked(name).mT for name in ("query", "key", "value"))
        scores = (q @ k.mT) * q.shape[-1] ** -0.5                                      # (B, H, T, T)
        scores = torch.where(self.causal[:T, :T], scores, float("-inf"))
        return self.proj(merge_heads(torch.softmax(scores, dim=-1) @ v))


def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError(f"C={x.shape[-1]} % num_heads={num_heads} is not 0")
    width = x.shape[-1] // num_heads
    columns = torch.arange(x.shape[-1]).reshape(num_heads, width)                      # (H, D)
    return x[..., columns].permute(0, 2, 1, 3)


def merge_heads(x):
    return torch.hstack([word.flatten(1)[:, None] for word in x.unbind(2)])


class FusedMultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        if d_model % n_heads:
            raise ValueError(f"d_model={d_model} % n_heads={n_heads} is not 0")
        super().__init__()
        self.n_heads = n_heads
        self.W_qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.W_out = nn.Linear(d_model, d_model, bias=False)

    def tables(self):
        """For every head its three tables of (D, C)."""
        thirds = [third.chunk(self.n_heads) for third in self.W_qkv.weight.chunk(3)]
        return zip(*thirds, strict=True)

    def forward(self, x, mask=None):
        out = 0
        if mask is not None:
            mask = mask.expand(x.shape[0], self.n_heads, x.shape[1], x.shape[1])
        for h, (query, key, value) in enumerate(self.tables()):
            allowed = None if mask is None else mask[:, h]
            q, k, v = F.linear(x, query), F.linear(x, key), F.linear(x, value)         # (B, T, D)
            note = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
            out = out + note @ self.W_out.weight.chunk(self.n_heads, dim=1)[h].T
        return out


def fuse(per_head, fused):
    same_width = per_head.proj.weight.shape == fused.W_out.weight.shape
    if not same_width or len(per_head.heads) != fused.n_heads:
        raise ValueError("the two modules have different sizes")
    with torch.no_grad():
        for head, (query, key, value) in zip(per_head.heads, fused.tables(), strict=True):
            query.copy_(head.query.weight)
            key.copy_(head.key.weight)
            value.copy_(head.value.weight)
        fused.W_out.weight[:] = per_head.proj.weight
