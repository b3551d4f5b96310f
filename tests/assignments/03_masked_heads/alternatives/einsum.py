"""Einstein sums, the smallest number instead of minus infinity, and a log-softmax."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def causal_mask(T: int) -> torch.BoolTensor:
    word = torch.arange(T)
    return word.unsqueeze(1) >= word.unsqueeze(0)


def attention(q, k, v, mask=None):
    scores = torch.einsum("...td,...sd->...ts", q * q.size(-1) ** -0.5, k)
    if mask is None:
        mask = torch.ones((), dtype=torch.bool, device=q.device)
    never = torch.finfo(scores.dtype).min
    scores = torch.where(mask, scores, torch.full_like(scores, never))
    shares = F.log_softmax(scores, dim=-1).exp() * mask.to(scores.dtype)
    return torch.einsum("...ts,...se->...te", shares, v), shares


class Head(nn.Module):
    def __init__(self, embed_size, head_size, block_size):
        super().__init__()
        for name in ("value", "query", "key"):
            layer = nn.Linear(embed_size, head_size, bias=False)
            nn.init.normal_(layer.weight, std=0.02)
            setattr(self, name, layer)
        self.block_size = block_size
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))

    def forward(self, x):
        B, T, C = x.shape
        if T > self.block_size:
            raise ValueError("T=%d is larger than block_size=%d" % (T, self.block_size))
        k, q, v = self.key(x), self.query(x), self.value(x)
        scores = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        scores = scores.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        return F.softmax(scores, dim=-1) @ v
