"""Loops and slices, nothing clever: one head after the other, one sentence after the other."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Head(nn.Module):
    def __init__(self, embed_size, head_size, block_size):
        super().__init__()
        self.key = nn.Linear(embed_size, head_size, bias=False)
        self.query = nn.Linear(embed_size, head_size, bias=False)
        self.value = nn.Linear(embed_size, head_size, bias=False)
        self.block_size = block_size

    def forward(self, x):
        if x.shape[1] > self.block_size:
            raise ValueError(f"T={x.shape[1]} is more than block_size={self.block_size}")
        return F.scaled_dot_product_attention(self.query(x), self.key(x), self.value(x), is_causal=True)


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_size, num_heads, block_size, bias=True):
        super().__init__()
        head_size = embed_size // num_heads
        if head_size * num_heads != embed_size:
            raise ValueError("embed_size " + str(embed_size) + " is no multiple of num_heads " + str(num_heads))
        self.heads = nn.ModuleList()
        for _ in range(num_heads):
            self.heads.append(Head(embed_size, head_size, block_size))
        self.proj = nn.Linear(embed_size, embed_size, bias)

    def forward(self, x):
        out = self.heads[0](x)
        for i in range(1, len(self.heads)):
            out = torch.cat((out, self.heads[i](x)), 2)
        return self.proj(out)


def split_heads(x, num_heads):
    width = x.size(2)
    if width % num_heads:
        raise ValueError(f"{width} features for {num_heads} heads")
    step = width // num_heads
    strips = []
    for start in range(0, width, step):
        strips.append(x[:, :, start : start + step])
    return torch.stack(strips, 1)


def merge_heads(x):
    out = torch.empty(x.size(0), x.size(2), x.size(1) * x.size(3), dtype=x.dtype, device=x.device)
    for h in range(x.size(1)):
        out[:, :, h * x.size(3) : (h + 1) * x.size(3)] = x[:, h]
    return out


def attend_one(q, k, v, allowed):
    """One head of one sentence: (T, D), (T, D), (T, D), (T, T)."""
    scores = torch.matmul(q, k.t()) / math.sqrt(q.size(1))
    if allowed is not None:
        scores = torch.where(allowed, scores, torch.full_like(scores, -math.inf))
    return torch.matmul(torch.softmax(scores, 1), v)


class FusedMultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model {d_model} does not divide by n_heads {n_heads}")
        self.d_model = d_model
        self.h = n_heads
        self.W_qkv = nn.Linear(d_model, d_model * 3, bias=False)
        self.W_out = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x, mask=None):
        B, T, C = x.size()
        D = C // self.h
        qkv = self.W_qkv(x)
        if mask is not None:
            mask = mask.expand(B, self.h, T, T)
        sentences = []
        for b in range(B):
            notes = []
            for h in range(self.h):
                q = qkv[b, :, h * D : (h + 1) * D]
                k = qkv[b, :, C + h * D : C + (h + 1) * D]
                v = qkv[b, :, 2 * C + h * D : 2 * C + (h + 1) * D]
                notes.append(attend_one(q, k, v, None if mask is None else mask[b, h]))
            sentences.append(torch.cat(notes, 1))
        return self.W_out(torch.stack(sentences))


def fuse(per_head, fused):
    C = per_head.proj.weight.size(0)
    if fused.d_model != C:
        raise ValueError(f"embed_size {C} is not d_model {fused.d_model}")
    if len(per_head.heads) != fused.h:
        raise ValueError(f"{len(per_head.heads)} heads are not {fused.h} heads")
    D = C // fused.h
    with torch.no_grad():
        for h, head in enumerate(per_head.heads):
            for row in range(D):
                fused.W_qkv.weight[h * D + row] = head.query.weight[row]
                fused.W_qkv.weight[C + h * D + row] = head.key.weight[row]
                fused.W_qkv.weight[2 * C + h * D + row] = head.value.weight[row]
        for row in range(C):
            fused.W_out.weight[row] = per_head.proj.weight[row]
