"""No matrix product at all: everything is laid out, multiplied and summed; the mask is a penalty."""

import math

import torch
from torch import nn
from torch.nn import functional as F

LOUDEST = 1e9


def causal_mask(T):
    mask = torch.zeros(T, T, dtype=torch.bool)
    for t in range(T):
        mask[t, : t + 1] = True
    return mask


def softmax(scores):
    scores = scores - torch.amax(scores, dim=-1, keepdim=True)
    return torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))


def attention(q, k, v, mask=None):
    q, k = q.unsqueeze(-2), k.unsqueeze(-3)
    scores = torch.sum(q * k, dim=-1) / math.sqrt(q.shape[-1])
    if mask is None:
        weights = softmax(scores)
    else:
        keep = mask.to(scores.dtype)
        weights = softmax(scores * keep - LOUDEST * (1 - keep))
        weights = weights * keep
    output = torch.sum(weights.unsqueeze(-1) * v.unsqueeze(-3), dim=-2)
    return [output, weights]


class Head(nn.Module):
    def __init__(self, embed_size, head_size, block_size):
        nn.Module.__init__(self)
        self.head_size = head_size
        self.block_size = block_size
        self.key = nn.Linear(embed_size, head_size, bias=False)
        self.query = nn.Linear(embed_size, head_size, bias=False)
        self.value = nn.Linear(embed_size, head_size, bias=False)
        penalties = torch.full((1, block_size, block_size), -LOUDEST).triu(1)
        self.register_buffer("penalties", penalties)

    def forward(self, x):
        T = x.shape[1]
        if T > self.block_size:
            raise ValueError(f"x.shape[1] = {T} is more than block_size = {self.block_size}")
        q = F.linear(x, self.query.weight)
        k = F.linear(x, self.key.weight)
        v = F.linear(x, self.value.weight)
        scores = (q.unsqueeze(-2) * k.unsqueeze(-3)).sum(-1) / self.head_size**0.5
        weights = F.softmax(scores + self.penalties[:, :T, :T], dim=-1)
        return (weights.unsqueeze(-1) * v.unsqueeze(-3)).sum(-2)
