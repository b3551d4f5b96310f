"""A running softmax: speakers are heard one after another, and no more than one column is held at a time."""

import torch
from torch import nn


def causal_mask(T):
    return torch.ones(T, T).cumsum(dim=0) >= torch.ones(T, T).cumsum(dim=1)


def attention(q, k, v, mask=None):
    S = k.size(-2)
    shape = q.shape[:-1] + (1,)
    allowed = torch.ones(q.shape[:-1] + (S,), dtype=torch.bool, device=q.device)
    if mask is not None:
        allowed = allowed & mask
    highest = torch.full(shape, torch.finfo(q.dtype).min, dtype=q.dtype, device=q.device)
    total = torch.zeros(shape, dtype=q.dtype, device=q.device)
    blend = torch.zeros(q.shape[:-1] + (v.size(-1),), dtype=q.dtype, device=q.device)
    columns = []
    for s in range(S):
        heard = allowed[..., s : s + 1]
        score = (q * k[..., s : s + 1, :]).sum(dim=-1, keepdim=True).div(q.size(-1) ** 0.5)
        columns.append(score)
        higher = torch.where(heard, torch.maximum(highest, score.detach()), highest)
        shrink = (highest - higher).exp()
        part = torch.where(heard, (torch.where(heard, score, higher) - higher).exp(), torch.zeros_like(score))
        total = total * shrink + part
        blend = blend * shrink + part * v[..., s : s + 1, :]
        highest = higher
    total = torch.where(total > 0, total, torch.ones_like(total))
    scores = torch.cat(columns, dim=-1)
    above = torch.where(allowed, scores, highest) - highest
    parts = torch.where(allowed, above.exp(), torch.zeros_like(scores))
    return blend / total, parts / total


class Head(nn.Module):
    def __init__(self, embed_size, head_size, block_size):
        super().__init__()
        self.value = nn.Linear(in_features=embed_size, out_features=head_size, bias=False)
        self.query = nn.Linear(in_features=embed_size, out_features=head_size, bias=False)
        self.key = nn.Linear(in_features=embed_size, out_features=head_size, bias=False)
        self.limit = block_size
        self.register_buffer("order", torch.arange(block_size))

    def forward(self, x):
        words = x.shape[-2]
        if words > self.limit:
            message = "This head was built for sentences of {} words; got one of {} (see block_size)."
            raise ValueError(message.format(self.limit, words))
        order = self.order[:words]
        heard, _ = attention(self.query(x), self.key(x), self.value(x), order[:, None] >= order)
        return heard
