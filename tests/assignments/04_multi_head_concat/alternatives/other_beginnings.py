"""Other initial weights, other orders of construction, heads by name, new parameters instead of copied ones."""

import torch
from torch import nn
from torch.nn import functional as F


class Head(nn.Module):
    def __init__(self, embed_size, head_size, block_size):
        super().__init__()
        self.value = nn.Linear(embed_size, head_size, bias=False)
        self.query = nn.Linear(embed_size, head_size, bias=False)
        self.key = nn.Linear(embed_size, head_size, bias=False)
        self.block_size = block_size
        for layer in (self.query, self.key):
            nn.init.xavier_uniform_(layer.weight)
        nn.init.orthogonal_(self.value.weight)

    def forward(self, x):
        if x.shape[1] > self.block_size:
            raise ValueError(f"the sentence has T={x.shape[1]} words, but block_size={self.block_size}")
        return F.scaled_dot_product_attention(self.query(x), self.key(x), self.value(x), is_causal=True)


def shares(width, number):
    if not isinstance(number, int) or number < 1 or width % number != 0:
        raise ValueError(f"d_model = embed_size = {width}, but n_heads = num_heads = {number}")
    return width // number


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_size, num_heads, block_size, bias=True):
        super().__init__()
        self.head_size = shares(embed_size, num_heads)
        self.proj = nn.Linear(embed_size, embed_size, bias=bias)
        made = [Head(embed_size, self.head_size, block_size) for _ in range(num_heads)]
        self.heads = nn.ModuleDict({str(number): head for number, head in enumerate(reversed(made))})
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.normal_(self.proj.weight, std=0.02)
        if self.proj.bias is not None:
            nn.init.zeros_(self.proj.bias)

    def forward(self, x):
        bundle = x.new_empty(*x.shape[:2], len(self.heads), self.head_size)
        for number, head in enumerate(self.heads.values()):
            bundle[:, :, number] = head(x)
        return F.linear(bundle.flatten(2), self.proj.weight, self.proj.bias)


def split_heads(x, num_heads):
    return torch.stack(x.split(shares(x.shape[-1], num_heads), dim=-1), dim=1)


def merge_heads(x):
    return x.permute(0, 2, 1, 3).contiguous().view(x.shape[0], x.shape[2], -1)


class FusedMultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads, self.head_size = n_heads, shares(d_model, n_heads)
        self.W_out = nn.Linear(d_model, d_model, bias=False)
        self.W_qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        nn.init.normal_(self.W_qkv.weight, std=d_model**-0.5)
        nn.init.kaiming_normal_(self.W_out.weight)

    def forward(self, x, mask=None):
        B, T, C = x.shape
        qkv = self.W_qkv(x).reshape(B, T, 3, self.n_heads, self.head_size).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]                                               # (B, H, T, D)
        bias = None
        if mask is not None:
            bias = torch.zeros(mask.shape, dtype=x.dtype)
            bias[~mask] = float("-inf")
        return self.W_out(merge_heads(F.scaled_dot_product_attention(q, k, v, attn_mask=bias)))


def fuse(per_head, fused):
    if (per_head.head_size, len(per_head.heads)) != (fused.head_size, fused.n_heads):
        raise ValueError("per_head and fused must have the same width and the same number of heads")
    rows = [getattr(head, name).weight for name in ("query", "key", "value") for head in per_head.heads.values()]
    fused.W_qkv.weight = nn.Parameter(torch.cat(rows).detach().clone())
    fused.W_out.weight = nn.Parameter(per_head.proj.weight.detach().clone())
